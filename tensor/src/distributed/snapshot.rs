//! Tensors as they were, for statements that assign to them too.

use std::sync::Arc;

use maniple::Context;

use super::computation::compute;
use super::convert::check_alike;
use super::pending::Pending;
use super::rows::blocks_for;
use super::tensor::Tensor;
use crate::concrete::Statement;
use crate::notation::{Access, Assignment, Expression, IndexVariable, TensorVariable, TextPlace};
use crate::plan::Plan;

impl Tensor {
    /// The tensor that statements call `variable`, with what this one has after all that was launched before, whatever
    /// becomes of this one later: for statements that read what they assign, as `Computation::operand_of` tells of
    /// their operands. A dense one is copied, by tasks in blocks of its first dimension. What is in levels stays where
    /// it is, as results in levels are new tensors, and is [converted](Self::converted) if the variable has another
    /// format.
    ///
    /// # Errors
    ///
    /// [`Shape`](super::DistributedError::Shape) if the variable has other extents, elements or fill values; as of
    /// [`converted`](Self::converted) and [`compute`].
    pub fn snapshot<'a>(&'a self, cx: &'a Context, variable: &'a TensorVariable) -> Pending<'a, Self> {
        Box::pin(async move {
            let own = self.variable();
            let is_copied = !self.is_in_levels() && variable.format().is_dense();
            if !is_copied || !own.renamed(variable.name()).is_like(variable) {
                return self.converted(cx, variable).await;
            }
            let copy = Self::stored(cx, variable, own.format())?;
            copy.copy_from(cx, self).await?;
            Ok(copy)
        })
    }

    /// Gives this tensor, which is dense, all that another one has after what was launched before, by tasks in blocks
    /// of the first dimension.
    ///
    /// # Errors
    ///
    /// [`Shape`](super::DistributedError::Shape) if the other one has other extents, elements or fill values;
    /// [`Dense`](super::DistributedError::Dense) if this one is not dense; as of [`compute`].
    pub fn copy_from<'a>(&'a self, cx: &'a Context, other: &'a Self) -> Pending<'a, ()> {
        Box::pin(async move {
            self.check_dense()?;
            let (own, given) = (self.variable(), other.variable());
            check_alike(own, given)?;
            if own.dimensions().contains(&0) {
                return Ok(());
            }
            let variables: Vec<IndexVariable> =
                (0..own.order()).map(|dimension| IndexVariable::new(&format!("i{dimension}"))).collect();
            let access = |tensor: &TensorVariable| Access {
                tensor: tensor.clone(),
                variables: variables.clone(),
                place: TextPlace::default(),
            };
            // Of two names.
            let from = other.called(&given.renamed(&format!("{}_old", own.name())));
            let value = Expression::Access(access(from.variable()));
            let assigned = Assignment::new(access(own), false, value).map_err(maniple::Error::from_task)?;
            let statement = Statement::new(&assigned);
            let blocks =
                blocks_for(cx, own.dimensions().iter().product::<i64>() as usize * own.element().size()) as i64;
            let distributed = match (variables.first(), own.dimensions().first()) {
                (Some(first), Some(&extent)) => statement
                    .distribute([first.clone()], ["block"], ["within"], &[blocks.min(extent)])
                    .map_err(maniple::Error::from_task)?,
                _ => statement,
            };
            let plan = Arc::new(Plan::new(&distributed).map_err(maniple::Error::from_task)?);
            let _launched = compute(cx, &plan, &[self, &from]).await?;
            Ok(())
        })
    }
}
