//! The matricized tensor times a Khatri-Rao product.

use super::roles::Roles;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Substitution};

/// `A(i,l) = B(i,j,k) * C(j,l) * D(k,l)`, or the same for the second or third index of `B`, on a box of processors,
/// each of which has a block of `B`, which never moves; blocks of `C` and `D` are broadcast, and those of `A` summed.
/// (Ballard, Knight, Rouse, *Communication lower bounds for matricized tensor times Khatri-Rao product*, 2018.)
///
/// # Errors
///
/// If the statement is no such product.
pub fn mttkrp(statement: &Statement, grid: [i64; 3]) -> Result<Algorithm, AlgorithmError> {
    const WANTED: &str = "A(i,l) = B(i,j,k) * C(j,l) * D(k,l)";
    let modes = [["il", "ijk", "jl", "kl"], ["jl", "ijk", "il", "kl"], ["kl", "ijk", "il", "jl"]];
    let found = |form: &[&'static str; 4]| Some((*form, Roles::exactly(form, statement)?));
    let (form, names) = match modes.iter().find_map(found) {
        Some(found) => found,
        None => (modes[0], Roles::new("MTTKRP", WANTED, &modes[0], statement)?),
    };
    let placement = |letters: &str| match letters {
        "il" => "xy -> x00",
        "jl" => "xy -> 0x0",
        "kl" => "xy -> 00x",
        _ => "xyz -> xyz",
    };
    let scheduled = statement
        .reorder(names.names("i j k l"))?
        .distribute(names.names("i j k"), names.names("io jo ko"), names.names("ii ji ki"), &grid)?
        .communicate(names.tensors(&[0, 1, 2, 3]), names.one("ko"))?
        .substitute(names.names("ii ji ki l"), Substitution::GEMM)?;
    Ok(names.algorithm(scheduled, &grid, &form.map(placement)))
}
