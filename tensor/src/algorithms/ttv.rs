//! A tensor times a vector.

use super::roles::Roles;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Unit};
use crate::schedule::Races;

/// `A(i,j) = B(i,j,k) * c(k)`, where each processor has a tile of `A` and `B` and all of `c`: nothing moves.
///
/// # Errors
///
/// If the statement is no such product.
pub fn ttv(statement: &Statement, grid: [i64; 2]) -> Result<Algorithm, AlgorithmError> {
    let names = Roles::new("TTV", "A(i,j) = B(i,j,k) * c(k)", &["ij", "ijk", "k"], statement)?;
    let scheduled = statement
        .distribute(names.names("i j"), names.names("io jo"), names.names("ii ji"), &grid)?
        .communicate(names.tensors(&[0, 1, 2]), names.one("jo"))?
        .split(names.one("ii"), names.one("iio"), names.one("iii"), 4)?
        // Four rows at once that lie far from each other: a core reads memory faster in four streams than in one.
        .reorder(names.names("iio ji iii"))?
        .parallelize(names.one("iio"), Unit::Threads, Races::Forbidden)?
        .unroll(names.one("iii"), 4)?
        .parallelize(names.one("k"), Unit::Vector, Races::Reduced)?;
    Ok(names.algorithm(scheduled, &grid, &["xy -> xy", "xyz -> xy", "x -> **"]))
}
