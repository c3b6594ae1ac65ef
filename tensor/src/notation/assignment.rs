//! A checked assignment.

use std::collections::BTreeMap;

use super::check;
use super::error::{NotationError, NotationErrorKind as Kind};
use super::expression::{Access, Expression};
use super::masks;
use super::presence;
use super::sums;
use super::types;
use super::variable::{IndexVariable, TensorVariable};
use crate::element::ElementType;
use crate::loops::Reduction;

/// `left = right`, or one of `left += right`, `*=`, `min=` and `max=`, which follows all rules of index notation. Its
/// sums are explicit, and its numbers have types.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    left: Access,
    accumulation: Option<Reduction>,
    right: Expression,
    extents: BTreeMap<IndexVariable, i64>,
}

impl Assignment {
    /// `left = right`, or with `accumulate` `left += right`, where variables that only the right side has are summed
    /// over, term by term.
    ///
    /// # Errors
    ///
    /// Any [`NotationErrorKind`](super::NotationErrorKind) but those of texts.
    pub fn new(left: Access, accumulate: bool, right: Expression) -> Result<Self, NotationError> {
        Self::accumulating(left, accumulate.then_some(Reduction::Sum), right)
    }

    /// The same, where the old value, with an operator, is combined with the new one.
    ///
    /// # Errors
    ///
    /// As of [`new`](Self::new).
    pub fn accumulating(
        left: Access,
        accumulation: Option<Reduction>,
        right: Expression,
    ) -> Result<Self, NotationError> {
        Self::masked(left, accumulation, &[], right)
    }

    /// The same, where values are computed only at coordinates at which each of the masks stores an element:
    /// `left = mask ? right`. Elsewhere, the result is what it is filled with, or what it was if old values are
    /// combined with new ones.
    ///
    /// # Errors
    ///
    /// As of [`new`](Self::new).
    pub fn masked(
        left: Access,
        accumulation: Option<Reduction>,
        masks: &[Access],
        right: Expression,
    ) -> Result<Self, NotationError> {
        if let Some(operator) = accumulation.filter(|operator| !operator.keeps_any()) {
            return Err(Kind::Accumulation(operator).at(left.place));
        }
        // Masks with variables that are summed over are within the sums.
        let (of_element, of_term): (Vec<_>, Vec<_>) =
            masks.iter().cloned().partition(|mask| mask.variables.iter().all(|own| left.variables.contains(own)));
        if let (Some(mask), true) = (of_term.first(), accumulation.is_some_and(|by| by != Reduction::Sum)) {
            return Err(Kind::SummedMask { mask: mask.to_string() }.at(mask.place));
        }
        let right = masks::of_terms(&left, &of_term, right);
        let right = masks::masked(&left, accumulation, &of_element, sums::explicit(&left, &right));
        let extents = check::extents(&left, &right)?;
        check::result(&left, &right)?;
        check::reductions(&left, &right)?;
        let element = left.tensor.element();
        if let Some(reduction) = accumulation.filter(|operator| !operator.is_defined_for(element)) {
            return Err(Kind::ReductionNotDefined { reduction, element }.at(left.place));
        }
        let right = types::typed(&right, element)?;
        Ok(Self { left, accumulation, right, extents })
    }

    /// The same assignment of tensors that are stored, or filled, otherwise: each that has the name of one of `tensors`
    /// is that one.
    ///
    /// # Errors
    ///
    /// As of [`new`](Self::new).
    pub fn with(&self, tensors: &[TensorVariable]) -> Result<Self, NotationError> {
        let other = |access: &Access| tensors.iter().find(|tensor| tensor.name() == access.tensor.name()).cloned();
        let tensor = other(&self.left).unwrap_or_else(|| self.left.tensor.clone());
        Self::accumulating(Access { tensor, ..self.left.clone() }, self.accumulation, self.right.with_tensors(&other))
    }

    /// The element that is assigned.
    pub fn left(&self) -> &Access {
        &self.left
    }

    /// Whether the old value counts.
    pub fn accumulates(&self) -> bool {
        self.accumulation.is_some()
    }

    /// The operator that combines the old value with the new one.
    pub fn accumulation(&self) -> Option<Reduction> {
        self.accumulation
    }

    /// The right side of the assignment, with all sums explicit.
    pub fn right(&self) -> &Expression {
        &self.right
    }

    /// The extent of each index variable.
    pub fn extents(&self) -> &BTreeMap<IndexVariable, i64> {
        &self.extents
    }

    /// The type of the result's elements.
    pub fn element(&self) -> ElementType {
        self.left.tensor.element()
    }

    /// The dense operands that are checked before loops run: by their elements something is divided that is zero where
    /// no operand in levels has an entry, as in `y(i) = A(i,j) / x(j)`, and loops go through what is stored, as zero
    /// divided by them is zero. An element that is zero or NaN is refused. Where all elements of a dense result are
    /// computed one by one, nothing is checked.
    pub fn checked_divisors(&self) -> Vec<TensorVariable> {
        let is_stored = presence::has_entries(&self.left.tensor);
        let is_wanted = |variables: &[IndexVariable]| {
            is_stored || variables.iter().any(|variable| !self.left.variables.contains(variable.base()))
        };
        presence::divisors(&self.right, &self.left.tensor, &is_wanted)
    }

    /// All tensors: the result, then operands in order of appearance, each once.
    pub fn tensors(&self) -> Vec<TensorVariable> {
        let mut tensors = vec![self.left.tensor.clone()];
        for access in self.right.accesses() {
            if !tensors.contains(&access.tensor) {
                tensors.push(access.tensor.clone());
            }
        }
        tensors
    }
}
