//! Matrix products of each element type.

use num_complex::Complex;

use super::blas;
use super::matrix::{Matrix, Number};
use crate::element::Element;

/// An element whose matrices can be multiplied.
pub(super) trait Multiply: Number {
    /// Stores or, if it is to `accumulate`, adds the product of `left`, of rows times inner elements, and `right`, of
    /// inner times columns; `extents` has the number of rows, columns, and inner.
    ///
    /// # Safety
    ///
    /// All elements must be there; those of `result` must be distinct, not be in use elsewhere, and set if it is to
    /// accumulate.
    unsafe fn multiply(
        extents: [usize; 3],
        result: Matrix<Self>,
        left: Matrix<Self>,
        right: Matrix<Self>,
        accumulate: bool,
    );
}

/// A real element, whose matrices `gemm` multiplies. It does so with matrices of complex elements, too, but its code
/// for them is larger than all of the rest.
pub(super) trait Real: Element {
    const MINUS_ONE: Self;
}

impl Real for f32 {
    const MINUS_ONE: Self = -1.0;
}

impl Real for f64 {
    const MINUS_ONE: Self = -1.0;
}

/// Stores, or adds to what is there, a factor times the product of two matrices.
///
/// # Safety
///
/// As for [`Multiply::multiply`].
unsafe fn multiply_scaled<T: Real>(
    [rows, columns, inner]: [usize; 3],
    result: Matrix<T>,
    left: Matrix<T>,
    right: Matrix<T>,
    factor: T,
    accumulate: bool,
) {
    // SAFETY: the caller's.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            result.first,
            result.column,
            result.row,
            accumulate,
            left.first,
            left.column,
            left.row,
            right.first,
            right.column,
            right.row,
            T::ONE,
            factor,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

/// Stores, or adds to what is there, the product of two matrices of reals.
///
/// # Safety
///
/// As for [`Multiply::multiply`].
unsafe fn multiply_real<T: Real>(
    extents: [usize; 3],
    result: Matrix<T>,
    left: Matrix<T>,
    right: Matrix<T>,
    accumulate: bool,
) {
    // SAFETY: the caller's.
    unsafe { multiply_scaled(extents, result, left, right, T::ONE, accumulate) }
}

/// The same for complex elements: four products of their parts.
///
/// # Safety
///
/// As for [`Multiply::multiply`].
unsafe fn multiply_complex<T: Real>(
    extents: [usize; 3],
    result: Matrix<Complex<T>>,
    left: Matrix<Complex<T>>,
    right: Matrix<Complex<T>>,
    accumulate: bool,
) {
    let ([real, imaginary], [left, left_imaginary]) = (result.parts(), left.parts());
    let [right, right_imaginary] = right.parts();
    // SAFETY: the caller's: the parts of elements are as distinct as these, and the first of two products sets what the
    // second one adds to.
    unsafe {
        multiply_scaled(extents, real, left, right, T::ONE, accumulate);
        multiply_scaled(extents, real, left_imaginary, right_imaginary, T::MINUS_ONE, true);
        multiply_scaled(extents, imaginary, left, right_imaginary, T::ONE, accumulate);
        multiply_scaled(extents, imaginary, left_imaginary, right, T::ONE, true);
    }
}

impl<T: Real> Matrix<Complex<T>> {
    /// The matrices of the real and of the imaginary parts.
    fn parts(self) -> [Matrix<T>; 2] {
        let (first, row, column) = (self.first.cast::<T>(), 2 * self.row, 2 * self.column);
        [first, first.wrapping_add(1)].map(|first| Matrix { first, row, column })
    }
}

macro_rules! by_library {
    ($($type:ty, $zero:expr, $multiply:expr;)*) => {$(
        impl Number for $type {
            const ZERO: Self = $zero;

            fn add_product(self, left: Self, right: Self) -> Self {
                self + left * right
            }

            fn is_number(self) -> bool {
                // Infinities less themselves are NaN.
                self - self == Self::ZERO
            }
        }

        impl Multiply for $type {
            unsafe fn multiply(
                extents: [usize; 3],
                result: Matrix<Self>,
                left: Matrix<Self>,
                right: Matrix<Self>,
                accumulate: bool,
            ) {
                // SAFETY: the caller's.
                unsafe {
                    if !blas::multiply(extents, result, left, right, accumulate) {
                        $multiply(extents, result, left, right, accumulate);
                    }
                }
            }
        }
    )*};
}

by_library! {
    f32, 0.0, multiply_real;
    f64, 0.0, multiply_real;
    Complex<f32>, Complex { re: 0.0, im: 0.0 }, multiply_complex;
    Complex<f64>, Complex { re: 0.0, im: 0.0 }, multiply_complex;
}

macro_rules! by_loops {
    ($($type:ty, $zero:expr, $add_product:expr;)*) => {$(
        impl Number for $type {
            const ZERO: Self = $zero;

            fn add_product(self, left: Self, right: Self) -> Self {
                let add_product: fn(Self, Self, Self) -> Self = $add_product;
                add_product(self, left, right)
            }

            fn is_number(self) -> bool {
                true
            }
        }

        impl Multiply for $type {
            unsafe fn multiply(
                [rows, columns, inner]: [usize; 3],
                result: Matrix<Self>,
                left: Matrix<Self>,
                right: Matrix<Self>,
                accumulate: bool,
            ) {
                for row in 0..rows {
                    if !accumulate {
                        // SAFETY: the element is there, by the caller.
                        (0..columns).for_each(|column| unsafe { *result.shifted(row, column).first = Self::ZERO });
                    }
                    for sum in 0..inner {
                        // SAFETY: as above.
                        let factor = unsafe { *left.shifted(row, sum).first };
                        for column in 0..columns {
                            // SAFETY: as above.
                            unsafe {
                                let place = result.shifted(row, column).first;
                                *place = (*place).add_product(factor, *right.shifted(sum, column).first);
                            }
                        }
                    }
                }
            }
        }
    )*};
}

by_loops! {
    bool, false, |sum, left, right| sum | left & right;
    u8, 0, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    i8, 0, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    u16, 0, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    i16, 0, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    u32, 0, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    i32, 0, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    u64, 0, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    i64, 0, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
}
