//! The regions of the solver: rows of the system, and entries of the matrix.

use maniple::prelude::*;

/// One row of the system, with its element of each vector.
#[derive(Fields)]
pub struct Row {
    /// The entries of the row.
    pub entries: Rect<1>,
    /// Jacobi's preconditioner: one over the diagonal entry.
    pub inverse_diagonal: f64,
    /// The right-hand side.
    pub b: f64,
    /// The solution.
    pub x: f64,
    /// The residual b - A x.
    pub r: f64,
    /// The direction of the next step.
    pub p: f64,
    /// A p.
    pub q: f64,
}

/// One entry of the matrix.
#[derive(Fields)]
pub struct Entry {
    /// The column: the row that the entry is multiplied with.
    pub column: Ptr<Row>,
    /// The value.
    pub value: f64,
}
