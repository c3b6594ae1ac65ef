//! Loops that multiply a tensor by a Khatri-Rao product of two matrices (MTTKRP).
//!
//! `A(i,l) += B(i,j,k) * C(j,l) * D(k,l)` is one, with factors in any order, loops and dimensions too, and whichever
//! index of `B` the result has.

use super::functions::Nest;
use crate::loops::Reduction;
use crate::notation::{Access, BinaryOperator, Expression, IndexVariable};

/// A product, by its accesses. Each variable runs over a range.
#[derive(Clone, Debug, PartialEq)]
pub struct KhatriRao {
    /// The access that the product is added to: `A`.
    pub target: Access,
    /// The tensor of three dimensions: `B`.
    pub tensor: Access,
    /// A matrix: `C`.
    pub first: Access,
    /// The other one: `D`.
    pub second: Access,
}

/// The product that loops compute, if it is one.
pub(super) fn find(nest: &Nest<'_>) -> Option<KhatriRao> {
    let (loops, _) = nest.loops();
    let Ok((target, Some(Reduction::Sum), value)) = nest.assignment() else { return None };
    let mut accesses = Vec::new();
    factors(value, &mut accesses)?;
    let of_order = |order| accesses.iter().copied().filter(move |access| access.variables.len() == order);
    let (tensors, matrices): (Vec<_>, Vec<_>) = (of_order(3).collect(), of_order(2).collect());
    let ([tensor], [first, second]) = (&tensors[..], &matrices[..]) else { return None };
    if accesses.len() != 3 || target.variables.len() != 2 {
        return None;
    }
    let all = [target, *tensor, *first, *second];
    let has = |access: &Access, variable: &IndexVariable| access.variables.contains(variable);
    // Of the tensor's variables, one is in each of the others; the fourth is in all of those.
    let owners: Vec<Vec<usize>> = tensor
        .variables
        .iter()
        .map(|variable| (0..4).filter(|&of| of != 1 && has(all[of], variable)).collect())
        .collect();
    let mut once: Vec<usize> =
        owners.iter().filter_map(|owners| <[usize; 1]>::try_from(&owners[..]).ok()).map(|[of]| of).collect();
    once.sort_unstable();
    let common = target.variables.iter().find(|variable| !has(tensor, variable))?;
    let is_one = once == [0, 2, 3] && has(first, common) && has(second, common);
    let used: Vec<&IndexVariable> = tensor.variables.iter().chain([common]).collect();
    let one_type = all.iter().all(|access| access.tensor.element() == target.tensor.element());
    let is_range = |variable: &&IndexVariable| nest.is_range(variable);
    let is_used =
        |inner: &&IndexVariable| used.iter().any(|variable| nest.statement.dependencies(variable).contains(inner));
    (is_one && one_type && used.iter().all(is_range) && loops.iter().all(is_used)).then(|| KhatriRao {
        target: target.clone(),
        tensor: (*tensor).clone(),
        first: (*first).clone(),
        second: (*second).clone(),
    })
}

/// The accesses that are multiplied, if there is nothing else.
fn factors<'a>(value: &'a Expression, into: &mut Vec<&'a Access>) -> Option<()> {
    match value {
        Expression::Access(access) => into.push(access),
        Expression::Binary(BinaryOperator::Multiply, left, right) => {
            factors(left, into)?;
            factors(right, into)?;
        }
        _ => return None,
    }
    Some(())
}
