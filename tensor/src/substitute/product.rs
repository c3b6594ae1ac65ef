//! Loops that are products of matrices.
//!
//! `A(i,j) += B(i,k) * C(k,j)` is one, in any order of loops and dimensions, and so is every sum of products of two
//! tensors whose variables each occur in two or three of the accesses: several rows, columns or sums together are like
//! one.

use super::functions::Nest;
use crate::loops::Reduction;
use crate::notation::{Access, BinaryOperator, Expression, IndexVariable};

/// A product, by the roles of its variables. For each variable there is a range of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// The access that the product is added to.
    pub target: Access,
    /// The left factor.
    pub left: Access,
    /// The right factor.
    pub right: Access,
    /// The variables of target and left factor.
    pub rows: Vec<IndexVariable>,
    /// The variables of target and right factor.
    pub columns: Vec<IndexVariable>,
    /// The variables of both factors, which are summed over.
    pub sums: Vec<IndexVariable>,
    /// The variables of all three: a product for each of their values.
    pub batches: Vec<IndexVariable>,
}

/// The product that loops compute; otherwise what they compute instead.
pub(super) fn find(nest: &Nest<'_>) -> Result<Product, String> {
    let (loops, _) = nest.loops();
    let (target, operator, value) = nest.assignment()?;
    let Expression::Binary(BinaryOperator::Multiply, left, right) = value else {
        return Err(format!("{target} = {value}"));
    };
    let ((Expression::Access(left), Expression::Access(right)), Some(Reduction::Sum)) = ((&**left, &**right), operator)
    else {
        return Err(format!("{target} = {value}"));
    };
    let mut product = Product {
        target: target.clone(),
        left: left.clone(),
        right: right.clone(),
        rows: Vec::new(),
        columns: Vec::new(),
        sums: Vec::new(),
        batches: Vec::new(),
    };
    let mut used = Vec::new();
    for access in [target, left, right] {
        for (position, variable) in access.variables.iter().enumerate() {
            if access.variables[..position].contains(variable) {
                return Err(format!("{access}, where {variable} occurs twice"));
            }
            if !used.contains(variable) {
                used.push(variable.clone());
            }
        }
    }
    for variable in &used {
        let list = match [target, left, right].map(|access| access.variables.contains(variable)) {
            [true, true, true] => &mut product.batches,
            [true, true, false] => &mut product.rows,
            [true, false, true] => &mut product.columns,
            [false, true, true] => &mut product.sums,
            _ => return Err(format!("{target} += {value}, where {variable} occurs once")),
        };
        list.push(variable.clone());
        if !nest.is_range(variable) {
            return Err(format!("a part of {variable} that is no range"));
        }
    }
    let unused =
        loops.iter().find(|inner| !used.iter().any(|variable| nest.statement.dependencies(variable).contains(inner)));
    match unused {
        Some(unused) => Err(format!("{target} += {value} several times over {unused}")),
        None => Ok(product),
    }
}
