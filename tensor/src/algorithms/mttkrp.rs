//! The matricized tensor times a Khatri-Rao product.

use super::roles::Roles;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Unit};
use crate::schedule::Races;

/// `A(i,l) = B(i,j,k) * C(j,l) * D(k,l)` on a box of processors, each of which has a block of `B`, which never moves; blocks of `C` and `D` are broadcast, and those of
/// `A` summed. (Ballard, Knight, Rouse, *Communication lower bounds for matricized tensor times Khatri-Rao product*, 2018.)
///
/// # Errors
///
/// If the statement is no such product.
pub fn mttkrp(statement: &Statement, grid: [i64; 3]) -> Result<Algorithm, AlgorithmError> {
    let form = ["il", "ijk", "jl", "kl"];
    let names = Roles::new("MTTKRP", "A(i,l) = B(i,j,k) * C(j,l) * D(k,l)", &form, statement)?;
    let scheduled = statement
        .reorder(names.names("i j k l"))?
        .distribute(names.names("i j k"), names.names("io jo ko"), names.names("ii ji ki"), &grid)?
        .communicate(names.tensors(&[0, 1, 2, 3]), names.one("ko"))?
        .parallelize(names.one("ii"), Unit::Threads, Races::Forbidden)?
        .parallelize(names.one("l"), Unit::Vector, Races::Forbidden)?;
    Ok(names.algorithm(scheduled, &grid, &["xy -> x00", "xyz -> xyz", "xy -> 0x0", "xy -> 00x"]))
}
