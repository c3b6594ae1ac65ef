//! Solomonik's 2.5D algorithm.

use super::roles::matrices;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Substitution};

/// Of `processors`, each of `copies` layers runs a part of Cannon's algorithm, and the results are summed across
/// layers: the more copies there is memory for, the less is moved. (Solomonik, Demmel, *Communication-optimal parallel
/// 2.5D matrix multiplication and LU factorization algorithms*, 2011.)
///
/// # Errors
///
/// If the statement is no product of two matrices, or `processors / copies` or `processors / copies^3` is no square of
/// a whole number.
pub fn solomonik(statement: &Statement, processors: i64, copies: i64) -> Result<Algorithm, AlgorithmError> {
    let names = matrices("the 2.5D algorithm", statement)?;
    let Some(side) = square_side(processors, copies) else {
        return Err(AlgorithmError::Grid {
            algorithm: "the 2.5D algorithm",
            found: format!("{processors} processors and {copies} copies"),
            wanted: "processors / copies and processors / copies^3 have to be squares of whole numbers",
        });
    };
    let grid = [side, side, copies];
    let scheduled = statement
        .distribute(names.names("i j k"), names.names("io jo ko"), names.names("ii ji ki"), &grid)?
        .divide(names.one("ki"), names.one("kio"), names.one("kii"), side / copies)?
        .reorder(names.names("kio ii ji kii"))?
        .rotate(names.one("kio"), names.names("io jo"), names.one("kios"))?
        .communicate(names.tensors(&[0]), names.one("jo"))?
        .communicate(names.tensors(&[1, 2]), names.one("kios"))?
        .substitute(names.names("ii ji kii"), Substitution::GEMM)?;
    Ok(names.algorithm(scheduled, &grid, &["xy -> xy0", "xy -> xy0", "xy -> xy0"]))
}

/// The side of the square of processors in each layer, if it is a multiple of the number of layers.
fn square_side(processors: i64, copies: i64) -> Option<i64> {
    if processors < 1 || copies < 1 || processors % copies != 0 {
        return None;
    }
    let side = (processors / copies).isqrt();
    (side * side == processors / copies && side % copies == 0).then_some(side)
}
