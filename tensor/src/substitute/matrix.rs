//! Matrices in memory, and the numbers in them.

use crate::element::Element;

/// A matrix: where its first element is, and its strides in elements.
pub(super) struct Matrix<T> {
    pub(super) first: *mut T,
    pub(super) row: isize,
    pub(super) column: isize,
}

// Not derived: that would ask for `T: Copy`.
impl<T> Clone for Matrix<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Matrix<T> {}

impl<T> Matrix<T> {
    /// The same rows and columns, `rows` and `columns` further.
    pub(super) fn shifted(self, rows: usize, columns: usize) -> Self {
        let offset = rows as isize * self.row + columns as isize * self.column;
        Self { first: self.first.wrapping_offset(offset), ..self }
    }
}

/// An element of matrices that are multiplied.
pub(super) trait Number: Element {
    const ZERO: Self;

    /// `self + left * right`; integers wrap.
    fn add_product(self, left: Self, right: Self) -> Self;

    /// Whether it is neither infinite nor NaN.
    fn is_number(self) -> bool;
}
