//! Matrix products, and what can be cast to them, as functions that schedules name.

use std::sync::Arc;

use super::functions::{LeafFunction, LeafLibrary, LeafViews, Nest};
use super::khatri_rao::{self, KhatriRao};
use super::product::{self, Product};
use super::{Mttkrp, Operand, SubstituteError, contract, mttkrp};
use crate::kernel::Team;
use crate::notation::{Access, IndexVariable};

/// Sums of products of two tensors, and of a tensor with a Khatri-Rao product.
#[derive(Debug)]
pub(super) struct Gemm;

impl LeafLibrary for Gemm {
    fn name(&self) -> &str {
        "Gemm"
    }

    fn computes(&self) -> &str {
        "sums of products of two tensors, A += B * C, or MTTKRP"
    }

    fn find(&self, nest: &Nest<'_>) -> Result<Arc<dyn LeafFunction>, String> {
        match khatri_rao::find(nest) {
            Some(product) => Ok(Arc::new(product)),
            None => Ok(Arc::new(product::find(nest)?)),
        }
    }
}

impl LeafFunction for Product {
    fn call(&self, views: &mut LeafViews<'_, '_>, team: &dyn Team) -> Result<(), SubstituteError> {
        let (mut target, operands) = views.split(&self.target)?;
        let (left, right) = (operands.view(&self.left)?, operands.view(&self.right)?);
        let [of_target, of_left, of_right] = [&self.target, &self.left, &self.right].map(names);
        let left = Operand { view: &left, indices: &of_left };
        let right = Operand { view: &right, indices: &of_right };
        contract(&mut target, &of_target, &left, &right, true, team)
    }
}

impl LeafFunction for KhatriRao {
    fn call(&self, views: &mut LeafViews<'_, '_>, team: &dyn Team) -> Result<(), SubstituteError> {
        let (mut target, operands) = views.split(&self.target)?;
        let [tensor, first, second] = [&self.tensor, &self.first, &self.second];
        let (of_tensor, of_first, of_second) = (operands.view(tensor)?, operands.view(first)?, operands.view(second)?);
        let [in_target, in_tensor, in_first, in_second] = [&self.target, tensor, first, second].map(names);
        let operands = Mttkrp {
            tensor: Operand { view: &of_tensor, indices: &in_tensor },
            first: Operand { view: &of_first, indices: &in_first },
            second: Operand { view: &of_second, indices: &in_second },
        };
        mttkrp(&mut target, &in_target, &operands, true, team)
    }
}

fn names(access: &Access) -> Vec<&str> {
    access.variables.iter().map(IndexVariable::name).collect()
}
