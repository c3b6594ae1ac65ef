//! SUMMA.

use super::roles::matrices;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Substitution};

/// Processors keep a tile of the result. In each step, `chunk` columns of one operand are broadcast along rows of
/// processors, and as many rows of the other one along columns. (Van de Geijn, Watts, *SUMMA: scalable universal matrix
/// multiplication algorithm*, 1997.)
///
/// # Errors
///
/// If the statement is no product of two matrices, or the chunk is less than 1.
pub fn summa(statement: &Statement, grid: [i64; 2], chunk: i64) -> Result<Algorithm, AlgorithmError> {
    let names = matrices("SUMMA", statement)?;
    let scheduled = statement
        .distribute(names.names("i j"), names.names("io jo"), names.names("ii ji"), &grid)?
        .split(names.one("k"), names.one("ko"), names.one("ki"), chunk)?
        .reorder(names.names("ko ii ji ki"))?
        .communicate(names.tensors(&[0]), names.one("jo"))?
        .communicate(names.tensors(&[1, 2]), names.one("ko"))?
        .substitute(names.names("ii ji ki"), Substitution::GEMM)?;
    Ok(names.algorithm(scheduled, &grid, &["xy -> xy", "xy -> xy", "xy -> xy"]))
}
