//! Leaves that a library of matrix products computes.

use super::step::Plan;
use crate::kernel::{Argument, Team, View};
use crate::notation::{Access, IndexVariable};
use crate::substitute::{Operand, SubstituteError, contract};

impl Plan {
    /// Computes the leaf by a library of matrix products, where `values` are those of [`Leaf::fixed`](super::Leaf::fixed), and `arguments` what its kernel would be
    /// called with: they are used in the same way, views of more than the leaf needs included. Says whether it did: it does not if the leaf is no
    /// [product](super::Leaf::product).
    ///
    /// # Errors
    ///
    /// If the views don't fit.
    pub fn multiply(
        &self,
        values: &[i64],
        arguments: &mut [Argument<'_>],
        team: &dyn Team,
    ) -> Result<bool, SubstituteError> {
        let leaf = self.leaf();
        let Some(product) = &leaf.product else { return Ok(false) };
        let bounds = |access: &Access| -> Vec<(i64, i64)> {
            let interval = |variable| self.interval(variable, &leaf.fixed, values);
            access.variables.iter().map(interval).map(|interval| (interval.low, interval.high)).collect()
        };
        let Some((Argument::View(target), operands)) = arguments.split_first_mut() else { return Ok(false) };
        let view = |access: &Access| -> Option<View<'_>> {
            let position = leaf.tensors[1..].iter().position(|tensor| *tensor == access.tensor)?;
            match operands.get(position)? {
                Argument::View(view) => Some(view.part(&bounds(access))),
                Argument::Scalar(_) => None,
            }
        };
        let (Some(left), Some(right)) = (view(&product.left), view(&product.right)) else { return Ok(false) };
        let mut target = target.part_mut(&bounds(&product.target));
        let [of_target, of_left, of_right] = [&product.target, &product.left, &product.right].map(names);
        let left = Operand { view: &left, indices: &of_left };
        let right = Operand { view: &right, indices: &of_right };
        contract(&mut target, &of_target, &left, &right, true, team)?;
        Ok(true)
    }
}

fn names(access: &Access) -> Vec<&str> {
    access.variables.iter().map(IndexVariable::name).collect()
}
