//! A tensor times a matrix.

use super::roles::Roles;
use super::{Algorithm, AlgorithmError};
use crate::concrete::{Statement, Substitution};

/// `A(i,j,l) = B(i,j,k) * C(k,l)`, where each processor has a slab of `A` and `B` and all of `C`: nothing moves, and
/// each multiplies matrices.
///
/// # Errors
///
/// If the statement is no such product.
pub fn ttm(statement: &Statement, processors: i64) -> Result<Algorithm, AlgorithmError> {
    let names = Roles::new("TTM", "A(i,j,l) = B(i,j,k) * C(k,l)", &["ijl", "ijk", "kl"], statement)?;
    let scheduled = statement
        .distribute(names.names("i"), names.names("io"), names.names("ii"), &[processors])?
        .communicate(names.tensors(&[0, 1, 2]), names.one("io"))?
        .substitute(names.names("ii j l k"), Substitution::GEMM)?;
    Ok(names.algorithm(scheduled, &[processors], &["xyz -> x", "xyz -> x", "xy -> *"]))
}
