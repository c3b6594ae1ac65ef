//! Quotients of complex numbers that overflow and underflow only where the quotient itself does.

use num_complex::Complex;

/// Floats whose quotients of complex numbers are known.
pub trait Divided: Sized {
    /// `left / right`.
    fn divided(left: Complex<Self>, right: Complex<Self>) -> Complex<Self>;
}

/// `left / right`. Where squares could overflow or underflow, both are scaled by powers of two. Infinities and zeros
/// give what annex G of the C standard says, as far as it can be told: a finite number divided by an infinity is 0, an
/// infinity divided by a finite number is an infinity, and what is not zero divided by 0 as well. Compiled kernels do
/// the same.
pub fn divide<T: Divided>(left: Complex<T>, right: Complex<T>) -> Complex<T> {
    T::divided(left, right)
}

impl Divided for f64 {
    fn divided(left: Complex<f64>, right: Complex<f64>) -> Complex<f64> {
        // Within these bounds, squares and products are far from the ends of the range.
        let (least, most) = (power(1023 - 400), power(1023 + 400));
        let size = |value: Complex<f64>| value.re.abs() + value.im.abs();
        let is_between = |size: f64| size > least && size < most;
        match is_between(size(right)) && (is_between(size(left)) || size(left) == 0.0) {
            true => plain(left, right),
            false => scaled(left, right),
        }
    }
}

impl Divided for f32 {
    /// In double precision nothing is out of range.
    fn divided(left: Complex<f32>, right: Complex<f32>) -> Complex<f32> {
        let wide = |value: Complex<f32>| Complex::<f64>::new(value.re.into(), value.im.into());
        let (a, b) = (wide(left), wide(right));
        let quotient = special(a, b, plain(a, b));
        Complex::new(quotient.re as f32, quotient.im as f32)
    }
}

fn plain(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
    let norm = b.re * b.re + b.im * b.im;
    Complex::new((a.re * b.re + a.im * b.im) / norm, (a.im * b.re - a.re * b.im) / norm)
}

/// The quotient of numbers that are brought near to 1 first.
fn scaled(left: Complex<f64>, right: Complex<f64>) -> Complex<f64> {
    let (of_left, of_right) = (scale(left), scale(right));
    let quotient = plain(left * power(of_left), right * power(of_right));
    // In two steps, of which neither is out of range before the result is.
    let exponent = of_right - of_left;
    let (half, rest) = (power(1023 + (exponent >> 1)), power(1023 + exponent - (exponent >> 1)));
    special(left, right, quotient * half * rest)
}

/// The biased exponent of the power of two that brings the larger part of `value` near to 1.
fn scale(value: Complex<f64>) -> i64 {
    let (re, im) = (value.re.abs().to_bits(), value.im.abs().to_bits());
    (2045 - (re.max(im) >> 52) as i64).max(1)
}

/// The power of two with this biased exponent, which is that of a normal number.
fn power(exponent: i64) -> f64 {
    f64::from_bits((exponent as u64) << 52)
}

/// The quotient, or what infinities and zeros make of it where the formula has no number for either part.
fn special(a: Complex<f64>, b: Complex<f64>, quotient: Complex<f64>) -> Complex<f64> {
    let infinite = |value: Complex<f64>| value.re.is_infinite() || value.im.is_infinite();
    let finite = |value: Complex<f64>| value.re.is_finite() && value.im.is_finite();
    if !(quotient.re.is_nan() && quotient.im.is_nan()) {
        return quotient;
    }
    // The infinite parts of a number as ones, the others as zeros.
    let boxed = |value: Complex<f64>| {
        let part = |part: f64| (if part.is_infinite() { 1.0_f64 } else { 0.0 }).copysign(part);
        Complex::new(part(value.re), part(value.im))
    };
    if b.re == 0.0 && b.im == 0.0 {
        let infinity = f64::INFINITY.copysign(b.re);
        Complex::new(infinity * a.re, infinity * a.im)
    } else if infinite(a) && finite(b) {
        let a = boxed(a);
        Complex::new(f64::INFINITY * (a.re * b.re + a.im * b.im), f64::INFINITY * (a.im * b.re - a.re * b.im))
    } else if infinite(b) && finite(a) {
        let b = boxed(b);
        Complex::new(0.0 * (a.re * b.re + a.im * b.im), 0.0 * (a.im * b.re - a.re * b.im))
    } else {
        quotient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_in_range_where_they_can_be() {
        let sizes = [5e-324, 1e-320, 1e-308, 1e-200, 1e-160, 1e-10, 1.0, 1e10, 1e154, 1e160, 1e200, 1e308, f64::MAX];
        for size in sizes {
            for (re, im) in [(1.0, 0.0), (0.0, -1.0), (1.0, 1.0), (-1.0, 1e-3)] {
                let value = Complex::new(re * size, im * size);
                let one = divide(value, value);
                // Half of the parts may be lost where the smaller part is not a normal number.
                let tolerance = if size < 1e-304 { 0.5 } else { 1e-15 };
                assert!((one - 1.0).norm() <= tolerance, "{value} / {value} = {one}");
                let half = divide(value, value * 2.0);
                assert!(size > 8e307 || (half - 0.5).norm() <= tolerance, "{value} / {value} / 2 = {half}");
            }
        }
        assert_eq!(divide(Complex::new(1e300, 0.0), Complex::new(1e-300, 0.0)), Complex::new(f64::INFINITY, 0.0));
        assert_eq!(divide(Complex::new(1e-300, 0.0), Complex::new(0.0, 1e300)), Complex::new(0.0, -0.0));
        let (large, small) = (Complex::new(1e38_f32, -1e38), Complex::new(1e-44_f32, 1e-44));
        assert_eq!(divide(large, large), Complex::new(1.0, 0.0));
        assert_eq!(divide(small, small), Complex::new(1.0, 0.0));
    }

    #[test]
    fn infinities_and_zeros_give_what_annex_g_says() {
        let [zero, one, i] = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)].map(|(re, im)| Complex::new(re, im));
        let infinity = Complex::new(f64::INFINITY, f64::INFINITY);
        for finite in [zero, one, i] {
            assert_eq!(divide(finite, infinity), zero);
        }
        for finite in [one, i, one + i] {
            assert!(divide(infinity, finite).re.is_infinite() || divide(infinity, finite).im.is_infinite());
            assert!(divide(finite, zero).re.is_infinite() || divide(finite, zero).im.is_infinite());
        }
        let nan = |value: Complex<f64>| value.re.is_nan() && value.im.is_nan();
        assert!(
            nan(divide(zero, zero)) && nan(divide(infinity, infinity)) && nan(divide(one, Complex::new(f64::NAN, 0.0)))
        );
    }
}
