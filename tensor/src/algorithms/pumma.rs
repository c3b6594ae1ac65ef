//! PUMMA.

use super::roles::matrices;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Substitution};

/// As Cannon's algorithm, but rotated by the row alone: tiles of one operand are passed on from neighbour to neighbour,
/// those of the other one are broadcast. (Choi, Dongarra, Walker, *PUMMA: Parallel Universal Matrix Multiplication
/// Algorithms*, 1994.)
///
/// # Errors
///
/// If the statement is no product of two matrices.
pub fn pumma(statement: &Statement, grid: [i64; 2]) -> Result<Algorithm, AlgorithmError> {
    let names = matrices("PUMMA", statement)?;
    let scheduled = statement
        .distribute(names.names("i j"), names.names("io jo"), names.names("ii ji"), &grid)?
        .divide(names.one("k"), names.one("ko"), names.one("ki"), grid[0])?
        .reorder(names.names("ko ii ji ki"))?
        .rotate(names.one("ko"), names.names("io"), names.one("kos"))?
        .communicate(names.tensors(&[0]), names.one("jo"))?
        .communicate(names.tensors(&[1, 2]), names.one("kos"))?
        .substitute(names.names("ii ji ki"), Substitution::GEMM)?;
    Ok(names.algorithm(scheduled, &grid, &["xy -> xy", "xy -> xy", "xy -> xy"]))
}
