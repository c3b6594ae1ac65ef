//! The region of the solver.

use maniple::prelude::*;

/// One row of the system, with its element of each vector.
#[derive(Fields)]
pub struct Row {
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
