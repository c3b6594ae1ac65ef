//! Products by a library: which it can compute, and how it is called.

use std::ffi::{c_int, c_void};

use num_complex::Complex;

use super::super::matrix::{Matrix, Number};
use super::{Blas, shared};
use crate::element::Element;

/// A number that BLAS multiplies matrices of.
pub(in super::super) trait Numbers: Number {
    /// The function's type.
    type Function: Copy;
    /// The function's name.
    const SYMBOL: &str;

    /// This type's function.
    fn function(blas: &Blas) -> Self::Function;

    /// Calls it: `result = left * right`, plus `result` if it is to `accumulate`.
    ///
    /// # Safety
    ///
    /// As of the products of elements (`element.rs`), and the numbers describe these matrices.
    unsafe fn call(function: Self::Function, call: &Call, matrices: [*mut Self; 3], accumulate: bool);
}

/// The numbers of a call: as CBLAS has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Call {
    /// Whether rows or columns of the result are contiguous.
    order: c_int,
    /// Whether left and right are transposed.
    transposed: [c_int; 2],
    /// Rows, columns, inner.
    extents: [c_int; 3],
    /// The strides of result, left and right.
    leading: [c_int; 3],
}

const ROW_MAJOR: c_int = 101;
const COLUMN_MAJOR: c_int = 102;
const AS_IT_IS: c_int = 111;
const TRANSPOSED: c_int = 112;

/// With a shorter side than this, the crate `gemm` multiplies: libraries are made for large matrices, and calling them
/// costs more. OpenBLAS is slower up to here.
pub(super) const LEAST: usize = 64;

impl Call {
    /// How matrices are multiplied that lie so; `None` if BLAS has no way, because no side is contiguous, or because
    /// numbers are too large.
    pub(super) fn new<T>(
        [rows, columns, inner]: [usize; 3],
        result: Matrix<T>,
        left: Matrix<T>,
        right: Matrix<T>,
    ) -> Option<Self> {
        let number = |extent: usize| c_int::try_from(extent).ok();
        let extents = [number(rows)?, number(columns)?, number(inner)?];
        let by_rows = leading(result.row, result.column, rows, columns);
        let by_columns = leading(result.column, result.row, columns, rows);
        let (order, of_result) = match (by_rows, by_columns) {
            (Some(leading), _) => (ROW_MAJOR, leading),
            (None, Some(leading)) => (COLUMN_MAJOR, leading),
            (None, None) => return None,
        };
        let operand = |matrix: Matrix<T>, rows, columns| {
            let by_rows = leading(matrix.row, matrix.column, rows, columns);
            let by_columns = leading(matrix.column, matrix.row, columns, rows);
            let (same, other) = if order == ROW_MAJOR { (by_rows, by_columns) } else { (by_columns, by_rows) };
            same.map(|leading| (AS_IT_IS, leading)).or(other.map(|leading| (TRANSPOSED, leading)))
        };
        let ((left_transposed, of_left), (right_transposed, of_right)) =
            (operand(left, rows, inner)?, operand(right, inner, columns)?);
        Some(Self {
            order,
            transposed: [left_transposed, right_transposed],
            extents,
            leading: [of_result, of_left, of_right],
        })
    }
}

/// The distance of lines, of which there are so many with so many elements each, if their elements follow each other
/// and they do not overlap.
fn leading(line: isize, element: isize, lines: usize, elements: usize) -> Option<c_int> {
    if elements > 1 && element != 1 {
        return None;
    }
    let least = c_int::try_from(elements).ok()?.max(1);
    // The distance of a single line is never used, but must be enough.
    if lines <= 1 { Some(least) } else { c_int::try_from(line).ok().filter(|&line| line >= least) }
}

/// Whether a product is worth a library: then one is loaded.
pub(super) fn is_large(extents: [usize; 3]) -> bool {
    extents.into_iter().all(|extent| extent >= LEAST)
}

/// Multiplies as elements do (`element.rs`), by this process' library. Says whether it did: it does not if there is
/// none, if matrices are too small for it to be worth it, or if BLAS has no way.
///
/// # Safety
///
/// As of those.
pub(in super::super) unsafe fn multiply<T: Numbers>(
    extents: [usize; 3],
    result: Matrix<T>,
    left: Matrix<T>,
    right: Matrix<T>,
    accumulate: bool,
) -> bool {
    if !is_large(extents) {
        return false;
    }
    let Some(blas) = &shared().blas else { return false };
    // SAFETY: the caller's.
    unsafe { blas.multiply_any(extents, result, left, right, accumulate) }
}

impl Blas {
    /// The same by this library, for matrices of any size, empty ones excepted.
    ///
    /// # Safety
    ///
    /// As above.
    pub(super) unsafe fn multiply_any<T: Numbers>(
        &self,
        extents: [usize; 3],
        result: Matrix<T>,
        left: Matrix<T>,
        right: Matrix<T>,
        accumulate: bool,
    ) -> bool {
        let Some(call) = Call::new(extents, result, left, right) else { return false };
        // SAFETY: the matrices are there, by the caller, and the call describes them.
        unsafe { T::call(T::function(self), &call, [result.first, left.first, right.first], accumulate) };
        true
    }

    /// Whether small products of each type come out right.
    pub(super) fn is_right(&self) -> bool {
        self.is_right_for::<f32>()
            && self.is_right_for::<f64>()
            && self.is_right_for::<Complex<f32>>()
            && self.is_right_for::<Complex<f64>>()
    }

    fn is_right_for<T: Numbers + PartialEq>(&self) -> bool {
        const EXTENTS: [usize; 3] = [7, 5, 6];
        let [rows, columns, inner] = EXTENTS;
        let number = |number: usize| (0..number).fold(T::ZERO, |sum, _| sum.add_product(T::ONE, T::ONE));
        let numbers =
            |count: usize, factor: usize| -> Vec<T> { (0..count).map(|at| number(at * factor % 11)).collect() };
        let (mut left, mut right, before) =
            (numbers(rows * inner, 3), numbers(inner * columns, 5), numbers(rows * columns, 7));
        let matrix = |elements: &mut Vec<T>, rows: usize, columns: usize, by_rows: bool| {
            let (row, column) = if by_rows { (columns as isize, 1) } else { (1, rows as isize) };
            Matrix { first: elements.as_mut_ptr(), row, column }
        };
        let ways = (0..16).map(|way| [way & 1, way & 2, way & 4, way & 8].map(|bit| bit != 0));
        ways.into_iter().all(|[of_result, of_left, of_right, accumulate]| {
            let mut found = before.clone();
            let result = matrix(&mut found, rows, columns, of_result);
            let (left, right) = (matrix(&mut left, rows, inner, of_left), matrix(&mut right, inner, columns, of_right));
            let mut expected = if accumulate { before.clone() } else { vec![T::ZERO; before.len()] };
            let sums = matrix(&mut expected, rows, columns, of_result);
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                for k in 0..inner {
                    // SAFETY: all indices are in the ranges that the vectors were made for.
                    unsafe {
                        let sum = sums.shifted(row, column).first;
                        *sum = (*sum).add_product(*left.shifted(row, k).first, *right.shifted(k, column).first);
                    }
                }
            }
            // SAFETY: as above; the vectors are this function's own.
            unsafe { self.multiply_any(EXTENTS, result, left, right, accumulate) && found == expected }
        })
    }
}

macro_rules! numbers {
    // How a factor is passed: complex ones by their address.
    ($($type:ty, $symbol:literal, $field:ident, $factor:ty, $matrix:ty, |$value:ident| $passed:expr;)*) => {$(
        impl Numbers for $type {
            type Function = unsafe extern "C" fn(
                c_int, c_int, c_int, c_int, c_int, c_int,
                $factor, *const $matrix, c_int, *const $matrix, c_int, $factor, *mut $matrix, c_int,
            );
            const SYMBOL: &str = $symbol;

            fn function(blas: &Blas) -> Self::Function {
                blas.$field
            }

            unsafe fn call(function: Self::Function, call: &Call, matrices: [*mut Self; 3], accumulate: bool) {
                let ([rows, columns, inner], [of_result, of_left, of_right]) = (call.extents, call.leading);
                let [result, left, right] = matrices.map(|first| first.cast::<$matrix>());
                let [left_transposed, right_transposed] = call.transposed;
                let pass = |$value: &Self| -> $factor { $passed };
                let (one, before) = (Self::ONE, if accumulate { Self::ONE } else { Self::ZERO });
                // SAFETY: the caller's; the factors outlive the call.
                unsafe {
                    function(
                        call.order, left_transposed, right_transposed, rows, columns, inner,
                        pass(&one), left, of_left, right, of_right, pass(&before), result, of_result,
                    );
                }
            }
        }
    )*};
}

numbers! {
    f32, "cblas_sgemm", single, f32, f32, |value| *value;
    f64, "cblas_dgemm", double, f64, f64, |value| *value;
    Complex<f32>, "cblas_cgemm", complex_single, *const c_void, c_void, |value| std::ptr::from_ref(value).cast();
    Complex<f64>, "cblas_zgemm", complex_double, *const c_void, c_void, |value| std::ptr::from_ref(value).cast();
}
