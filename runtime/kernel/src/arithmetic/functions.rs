//! Functions of real and complex numbers: those of the C library, which compiled kernels call too.
//!
//! The functions of complex numbers are C's own (annex G of the C standard says what they give at infinities and on
//! branch cuts, by the sign of zero). Other implementations lose numbers that are large, or choose the other side of a
//! cut.

use num_complex::Complex;

/// Functions that Rust's standard library lacks, or has in a form that overflows early.
#[allow(missing_docs)] // They are called what they are.
pub trait Functions: Sized {
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    fn log(self) -> Self;
    fn log10(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tan(self) -> Self;
    fn asin(self) -> Self;
    fn acos(self) -> Self;
    fn atan(self) -> Self;
    fn sinh(self) -> Self;
    fn cosh(self) -> Self;
    fn tanh(self) -> Self;
    fn asinh(self) -> Self;
    fn acosh(self) -> Self;
    fn atanh(self) -> Self;
    fn pow(self, exponent: Self) -> Self;
}

/// The platforms on which a complex number of C is passed as a structure of two floats is, and the C library has the
/// functions.
macro_rules! c_library {
    ($($item:item)*) => {$(
        #[cfg(all(unix, any(target_arch = "x86_64", target_arch = "aarch64")))]
        $item
    )*};
}

macro_rules! elsewhere {
    ($($item:item)*) => {$(
        #[cfg(not(all(unix, any(target_arch = "x86_64", target_arch = "aarch64"))))]
        $item
    )*};
}

/// `Functions` for a real type by the functions of the C library with these names.
macro_rules! real {
    ($type:ty: $($method:ident $name:ident),*) => {
        c_library! {
            const _: () = {
                // SAFETY: the C library has these functions of one float, which have no requirements.
                unsafe extern "C" {
                    $(safe fn $name(value: $type) -> $type;)*
                }

                impl Functions for $type {
                    $(fn $method(self) -> Self {
                        $name(self)
                    })*

                    fn pow(self, exponent: Self) -> Self {
                        self.powf(exponent)
                    }
                }
            };
        }

        elsewhere! {
            impl Functions for $type {
                fn log(self) -> Self {
                    self.ln()
                }

                fn pow(self, exponent: Self) -> Self {
                    self.powf(exponent)
                }

                by_num_complex!();
            }
        }
    };
}

/// `Functions` for a complex type by the functions of the C library with these names.
macro_rules! complex {
    ($part:ty, $pow:ident: $($method:ident $name:ident),*) => {
        c_library! {
            // A complex number of C has the layout of `Complex`, and on these platforms both are passed in the same
            // registers.
            #[allow(improper_ctypes)]
            const _: () = {
                // SAFETY: the C library has these functions, which have no requirements; see above for how their
                // arguments are passed.
                unsafe extern "C" {
                    $(safe fn $name(value: Complex<$part>) -> Complex<$part>;)*
                    safe fn $pow(value: Complex<$part>, exponent: Complex<$part>) -> Complex<$part>;
                }

                impl Functions for Complex<$part> {
                    $(fn $method(self) -> Self {
                        $name(self)
                    })*

                    fn log10(self) -> Self {
                        // As compiled kernels do.
                        let log = Functions::log(self);
                        Self::new(log.re / std::f64::consts::LN_10 as $part, log.im / std::f64::consts::LN_10 as $part)
                    }

                    fn pow(self, exponent: Self) -> Self {
                        $pow(self, exponent)
                    }
                }
            };
        }

        elsewhere! {
            impl Functions for Complex<$part> {
                fn log(self) -> Self {
                    self.ln()
                }

                fn pow(self, exponent: Self) -> Self {
                    self.powc(exponent)
                }

                by_num_complex!();
            }
        }
    };
}

elsewhere! {
    macro_rules! by_num_complex {
        () => { by_num_complex!(sqrt exp log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh); };
        ($($method:ident)*) => {
            $(fn $method(self) -> Self {
                num_complex::ComplexFloat::$method(self)
            })*
        };
    }
}

real!(f32: sqrt sqrtf, exp expf, log logf, log10 log10f, sin sinf, cos cosf, tan tanf, asin asinf, acos acosf, atan atanf, sinh sinhf,
    cosh coshf, tanh tanhf, asinh asinhf, acosh acoshf, atanh atanhf);
real!(f64: sqrt sqrt, exp exp, log log, log10 log10, sin sin, cos cos, tan tan, asin asin, acos acos, atan atan, sinh sinh, cosh cosh,
    tanh tanh, asinh asinh, acosh acosh, atanh atanh);
complex!(f32, cpowf: sqrt csqrtf, exp cexpf, log clogf, sin csinf, cos ccosf, tan ctanf, asin casinf, acos cacosf, atan catanf, sinh csinhf,
    cosh ccoshf, tanh ctanhf, asinh casinhf, acosh cacoshf, atanh catanhf);
complex!(f64, cpow: sqrt csqrt, exp cexp, log clog, sin csin, cos ccos, tan ctan, asin casin, acos cacos, atan catan, sinh csinh,
    cosh ccosh, tanh ctanh, asinh casinh, acosh cacosh, atanh catanh);
