//! Johnson's algorithm.

use super::roles::matrices;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Substitution};

/// Each processor of a cube multiplies one tile of each operand, and the results are summed along one direction: less
/// is moved than in two dimensions, and more is stored. (Agarwal, Balle, Gustavson, Joshi, Palkar, *A three-dimensional
/// approach to parallel matrix multiplication*, 1995.)
///
/// # Errors
///
/// If the statement is no product of two matrices.
pub fn johnson(statement: &Statement, grid: [i64; 3]) -> Result<Algorithm, AlgorithmError> {
    let names = matrices("Johnson's algorithm", statement)?;
    let scheduled = statement
        .distribute(names.names("i j k"), names.names("io jo ko"), names.names("ii ji ki"), &grid)?
        .communicate(names.tensors(&[0, 1, 2]), names.one("ko"))?
        .substitute(names.names("ii ji ki"), Substitution::GEMM)?;
    // The second operand is indexed by k and j, so that its first dimension lies along the third of the grid.
    Ok(names.algorithm(scheduled, &grid, &["xy -> xy0", "xz -> x0z", "zy -> 0yz"]))
}
