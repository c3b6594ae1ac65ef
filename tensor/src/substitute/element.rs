//! Matrix products of each element type.

use num_complex::Complex;

use super::blas;
use super::matrix::{Matrix, Number};

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

macro_rules! by_library {
    ($($type:ty, $zero:expr, $one:expr;)*) => {$(
        impl Number for $type {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

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
                [rows, columns, inner]: [usize; 3],
                result: Matrix<Self>,
                left: Matrix<Self>,
                right: Matrix<Self>,
                accumulate: bool,
            ) {
                // SAFETY: the caller's.
                unsafe {
                    let extents = [rows, columns, inner];
                    if blas::multiply(extents, result, left, right, accumulate) {
                        return;
                    }
                    gemm::gemm(
                        rows, columns, inner,
                        result.first, result.column, result.row, accumulate,
                        left.first, left.column, left.row,
                        right.first, right.column, right.row,
                        $one, $one, false, false, false,
                        gemm::Parallelism::None,
                    );
                }
            }
        }
    )*};
}

by_library! {
    f32, 0.0, 1.0;
    f64, 0.0, 1.0;
    Complex<f32>, Complex { re: 0.0, im: 0.0 }, Complex { re: 1.0, im: 0.0 };
    Complex<f64>, Complex { re: 0.0, im: 0.0 }, Complex { re: 1.0, im: 0.0 };
}

macro_rules! by_loops {
    ($($type:ty, $zero:expr, $one:expr, $add_product:expr;)*) => {$(
        impl Number for $type {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

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
    bool, false, true, |sum, left, right| sum | left & right;
    u8, 0, 1, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    i8, 0, 1, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    i16, 0, 1, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    u32, 0, 1, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    i32, 0, 1, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
    i64, 0, 1, |sum, left, right| sum.wrapping_add(left.wrapping_mul(right));
}
