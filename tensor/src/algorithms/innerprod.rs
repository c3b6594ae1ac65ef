//! The inner product of two tensors.

use super::roles::Roles;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Unit};
use crate::schedule::Races;

/// `a = B(i,j,k) * C(i,j,k)`, where each processor has the same block of both tensors, on a grid of one, two or three
/// dimensions: one number for each processor moves.
///
/// # Errors
///
/// If the statement is no such product, or the grid has other dimensions.
pub fn innerprod(statement: &Statement, grid: &[i64]) -> Result<Algorithm, AlgorithmError> {
    let names = Roles::new("innerprod", "a = B(i,j,k) * C(i,j,k)", &["", "ijk", "ijk"], statement)?;
    let (targets, outer, inner, placements): (_, _, _, [&'static str; 3]) = match grid.len() {
        1 => ("i", "io", "ii", [" -> 0", "xyz -> x", "xyz -> x"]),
        2 => ("i j", "io jo", "ii ji", [" -> 00", "xyz -> xy", "xyz -> xy"]),
        3 => ("i j k", "io jo ko", "ii ji ki", [" -> 000", "xyz -> xyz", "xyz -> xyz"]),
        dimensions => {
            let found = format!("a grid of {dimensions} dimensions");
            let wanted = "it takes one, two or three dimensions";
            return Err(AlgorithmError::Grid { algorithm: "innerprod", found, wanted });
        }
    };
    let last = if grid.len() == 3 { "ki" } else { "k" };
    let scheduled = statement
        .distribute(names.names(targets), names.names(outer), names.names(inner), grid)?
        .parallelize(names.one("ii"), Unit::Threads, Races::Reduced)?
        .parallelize(names.one(last), Unit::Vector, Races::Reduced)?;
    Ok(names.algorithm(scheduled, grid, &placements))
}
