//! Cannon's algorithm.

use super::roles::matrices;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Substitution};

/// Processors keep a tile of the result. In each step, each multiplies the tiles of the operands that it has, and
/// passes them on to a neighbour in its row and one in its column. (L. E. Cannon, *A cellular computer to implement the
/// Kalman filter algorithm*, 1969.)
///
/// # Errors
///
/// If the statement is no product of two matrices.
pub fn cannon(statement: &Statement, grid: [i64; 2]) -> Result<Algorithm, AlgorithmError> {
    let names = matrices("Cannon's algorithm", statement)?;
    let scheduled = statement
        .distribute(names.names("i j"), names.names("io jo"), names.names("ii ji"), &grid)?
        .divide(names.one("k"), names.one("ko"), names.one("ki"), grid[0])?
        .reorder(names.names("ko ii ji ki"))?
        .rotate(names.one("ko"), names.names("io jo"), names.one("kos"))?
        .communicate(names.tensors(&[0]), names.one("jo"))?
        .communicate(names.tensors(&[1, 2]), names.one("kos"))?
        .substitute(names.names("ii ji ki"), Substitution::GEMM)?;
    Ok(names.algorithm(scheduled, &grid, &["xy -> xy", "xy -> xy", "xy -> xy"]))
}
