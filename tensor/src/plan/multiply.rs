//! Leaves that a library of matrix products computes.

use super::step::{Leaf, Plan};
use crate::kernel::{Argument, Team, View};
use crate::notation::{Access, IndexVariable};
use crate::substitute::{Mttkrp, Operand, SubstituteError, contract, mttkrp};

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
        let Some((Argument::View(target), operands)) = arguments.split_first_mut() else { return Ok(false) };
        let parts = Parts { plan: self, leaf, values, operands };
        if let Some(product) = &leaf.product {
            let (Some(left), Some(right)) = (parts.part(&product.left), parts.part(&product.right)) else {
                return Ok(false);
            };
            let [of_target, of_left, of_right] = [&product.target, &product.left, &product.right].map(names);
            let mut target = target.part_mut(&parts.bounds(&product.target));
            let left = Operand { view: &left, indices: &of_left };
            let right = Operand { view: &right, indices: &of_right };
            contract(&mut target, &of_target, &left, &right, true, team)?;
        } else if let Some(product) = &leaf.khatri_rao {
            let [tensor, first, second] = [&product.tensor, &product.first, &product.second];
            let (Some(of_tensor), Some(of_first), Some(of_second)) =
                (parts.part(tensor), parts.part(first), parts.part(second))
            else {
                return Ok(false);
            };
            let [in_target, in_tensor, in_first, in_second] = [&product.target, tensor, first, second].map(names);
            let mut target = target.part_mut(&parts.bounds(&product.target));
            let operands = Mttkrp {
                tensor: Operand { view: &of_tensor, indices: &in_tensor },
                first: Operand { view: &of_first, indices: &in_first },
                second: Operand { view: &of_second, indices: &in_second },
            };
            mttkrp(&mut target, &in_target, &operands, true, team)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// The operands of a leaf, of which it uses parts.
struct Parts<'a, 'v> {
    plan: &'a Plan,
    leaf: &'a Leaf,
    values: &'a [i64],
    /// Views of all tensors but the first.
    operands: &'a [Argument<'v>],
}

impl Parts<'_, '_> {
    /// The values of an access's variables.
    fn bounds(&self, access: &Access) -> Vec<(i64, i64)> {
        let interval = |variable| self.plan.interval(variable, &self.leaf.fixed, self.values);
        access.variables.iter().map(interval).map(|interval| (interval.low, interval.high)).collect()
    }

    /// What an access reads.
    fn part(&self, access: &Access) -> Option<View<'_>> {
        let position = self.leaf.tensors[1..].iter().position(|tensor| *tensor == access.tensor)?;
        match self.operands.get(position)? {
            Argument::View(view) => Some(view.part(&self.bounds(access))),
            Argument::Scalar(_) => None,
        }
    }
}

fn names(access: &Access) -> Vec<&str> {
    access.variables.iter().map(IndexVariable::name).collect()
}
