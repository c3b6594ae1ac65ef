//! The tensors of a program, in the formats in which its statements use them.

use maniple::prelude::*;
use maniple_tensor::distributed::{Computation, DistributedError, Rehearsal, Tensor, assemble, assemble_in_steps};
use maniple_tensor::lower::Output;
use maniple_tensor::notation::TensorVariable;

use super::{Given, Planned, machine, plans};
use crate::tensor::options::Options;

/// The tensors of a program.
pub(super) struct Tensors<'g> {
    pub(super) given: &'g Given,
    /// Under their names in the program; of each format in which one is used there may be one.
    pub(super) all: Vec<Tensor>,
    /// Those that statements have made, in their order.
    pub(super) made: Vec<Tensor>,
    /// Dense ones that statements assign to, beside what they had before.
    pub(super) kept: Vec<(Tensor, Tensor)>,
    /// Whether nodes forget what passes by, as they are given so much memory and no more.
    pub(super) is_short: bool,
}

impl Tensors<'_> {
    /// Makes one that is given, in the format of the variable, or dense.
    pub(super) fn add(&mut self, cx: &Context, variable: &TensorVariable) -> Result<(), DistributedError> {
        match self.given.get(variable.name()) {
            Some(stored) if !variable.format().is_dense() => {
                let stored = stored.convert(variable.format()).map_err(maniple::Error::from_task)?;
                self.all.push(Tensor::from_dynamic(cx, variable, &stored)?);
            }
            _ if variable.format().is_dense() => self.all.push(Tensor::new(cx, variable)?),
            _ => {}
        }
        Ok(())
    }

    /// The tensor of a variable's name: in its format, if there is one in it.
    pub(super) fn find(&self, variable: &TensorVariable) -> Option<&Tensor> {
        let is_named = |tensor: &&Tensor| tensor.variable().name() == variable.name();
        let is_alike = |tensor: &&Tensor| is_named(tensor) && tensor.variable().format() == variable.format();
        self.all.iter().find(is_alike).or_else(|| self.all.iter().find(is_named))
    }

    /// Has the tensor of a variable's name in its format, if there is one of this name.
    pub(super) async fn convert(&mut self, cx: &Context, variable: &TensorVariable) -> Result<(), DistributedError> {
        let Some(found) = self.find(variable).filter(|tensor| tensor.variable().format() != variable.format()) else {
            return Ok(());
        };
        let converted = found.converted(cx, variable).await?;
        self.made.push(converted.clone());
        self.all.push(converted);
        Ok(())
    }

    /// What a statement reads of what its result was before, under its names.
    pub(super) async fn old(&mut self, cx: &Context, planned: &Planned) -> Result<Vec<Tensor>, DistributedError> {
        let mut old = Vec::new();
        for variable in planned.old() {
            if let Some(tensor) = self.find(&variable.renamed(planned.declared.name())).cloned() {
                let snapshot = tensor.snapshot(cx, variable).await?;
                // What is in levels shares them with the tensor.
                if snapshot.variable().format().is_dense() {
                    self.made.push(snapshot.clone());
                }
                old.push(snapshot);
            }
        }
        Ok(old)
    }

    /// What a statement uses, under its names: beside `old`, that of what its result was before.
    pub(super) async fn of(
        &self,
        cx: &Context,
        planned: &Planned,
        old: &[Tensor],
    ) -> Result<Vec<Tensor>, DistributedError> {
        let mut used: Vec<Tensor> = self.find(planned.plan.statement.result()).cloned().into_iter().collect();
        used.extend_from_slice(old);
        let others = planned.operands.iter().filter(|(_, stored)| stored.name() != planned.declared.name());
        for (variable, stored) in others {
            if let Some(tensor) = self.find(stored) {
                used.push(match variable.dimensions() == stored.dimensions() {
                    true => tensor.converted(cx, variable).await?,
                    false => tensor.converted(cx, stored).await?.reshaped(variable)?,
                });
            }
        }
        Ok(used)
    }

    /// Brings tensors to where they are placed.
    pub(super) async fn place(&self, cx: &Context, options: &Options) -> Result<(), DistributedError> {
        let machine = machine(options, cx.nodes()).map_err(maniple::Error::from_task)?;
        for (name, placement) in &options.place {
            for tensor in self.all.iter().filter(|tensor| tensor.variable().name() == name) {
                match tensor.variable().format().is_dense() {
                    true => tensor.place(cx, placement, &machine)?.await?,
                    false => tensor.place_levels(cx, placement, &machine).await?.await?,
                }
            }
        }
        Ok(())
    }

    /// Puts one that a statement has made in the place of those with its name.
    pub(super) fn put(&mut self, tensor: Tensor) {
        self.all.retain(|other| other.variable().name() != tensor.variable().name());
        self.made.push(tensor.clone());
        self.all.push(tensor);
    }

    /// Destroys what statements have made, so that there is room for what they make next.
    pub(super) fn forget(&mut self, cx: &Context) -> Result<(), DistributedError> {
        // Those that have the levels of others were made after them.
        self.made.drain(..).rev().try_for_each(|made| made.destroy(cx))
    }

    /// Makes the result of a plan, if it has the levels of an operand.
    pub(super) async fn make(
        &mut self,
        cx: &Context,
        planned: &Planned,
        old: &[Tensor],
    ) -> Result<(), DistributedError> {
        if planned.plan.pattern().is_some() {
            let used = self.of(cx, planned, old).await?;
            let made = Tensor::for_result(cx, &planned.plan, &used.iter().collect::<Vec<_>>())?;
            self.put(made);
        }
        Ok(())
    }

    /// What plans with results that there are use; `old` is what they read of what these were before.
    async fn used(
        &mut self,
        cx: &Context,
        planned: &[Planned],
        old: &[Tensor],
    ) -> Result<Vec<Tensor>, DistributedError> {
        let mut used = Vec::new();
        for planned in planned {
            self.make(cx, planned, old).await?;
        }
        for planned in planned {
            used.extend(self.of(cx, planned, old).await?);
        }
        Ok(used)
    }

    /// Prepares plans whose results there are.
    pub(super) async fn prepared(
        &mut self,
        cx: &Context,
        planned: &[Planned],
        old: &[Tensor],
    ) -> Result<Computation, DistributedError> {
        let used = self.used(cx, planned, old).await?;
        Computation::in_order(cx, &plans(planned), &used.iter().collect::<Vec<_>>()).await
    }

    /// The same, to count what they move.
    pub(super) async fn rehearsed(
        &mut self,
        cx: &Context,
        planned: &[Planned],
        old: &[Tensor],
    ) -> Result<Rehearsal, DistributedError> {
        let used = self.used(cx, planned, old).await?;
        Rehearsal::new(cx, &plans(planned), &used.iter().collect::<Vec<_>>()).await
    }

    /// Keeps what dense tensors of some names have: a statement assigns to them, and is to find the same each time.
    pub(super) async fn keep(&mut self, cx: &Context, is_kept: impl Fn(&str) -> bool) -> Result<(), DistributedError> {
        for tensor in self.all.iter().filter(|tensor| tensor.variable().format().is_dense()) {
            if is_kept(tensor.variable().name()) {
                let before = tensor.variable().renamed(&format!("{}_before", tensor.variable().name()));
                self.kept.push((tensor.clone(), tensor.snapshot(cx, &before).await?));
            }
        }
        Ok(())
    }

    /// Gives dense tensors the elements that are given.
    pub(super) async fn write(&self, cx: &Context) -> Result<(), DistributedError> {
        for (tensor, before) in &self.kept {
            tensor.copy_from(cx, before).await?;
        }
        for tensor in self.all.iter().filter(|tensor| tensor.variable().format().is_dense()) {
            if let Some(stored) = self.given.get(tensor.variable().name()) {
                tensor.write_dynamic(cx, stored)?;
            }
        }
        Ok(())
    }

    /// Prepares and launches a plan, or has its result assembled; and has it converted, if it is declared in another format.
    pub(super) async fn compute(&mut self, cx: &Context, planned: &Planned) -> Result<(), DistributedError> {
        for (_, stored) in &planned.operands {
            self.convert(cx, stored).await?;
        }
        let old = self.old(cx, planned).await?;
        if planned.plan.leaf().output == Output::Entries {
            let used = self.of(cx, planned, &old).await?;
            let used: Vec<&Tensor> = used.iter().collect();
            let made = match self.is_short {
                true => assemble_in_steps(cx, &planned.plan, &used).await?,
                false => assemble(cx, &planned.plan, &used).await?,
            };
            self.put(made);
        } else {
            let computation = self.prepared(cx, std::slice::from_ref(planned), &old).await?;
            self.run(cx, &computation).await?;
        }
        if planned.is_converted()
            && let Some(made) = self.made.pop()
        {
            let converted = made.converted(cx, &planned.declared).await?;
            made.destroy(cx)?;
            self.put(converted);
        }
        Ok(())
    }

    pub(super) async fn run(&self, cx: &Context, computation: &Computation) -> Result<(), DistributedError> {
        match self.is_short {
            true => computation.run_in_steps(cx).await,
            false => computation.launch(cx)?.await,
        }
    }
}
