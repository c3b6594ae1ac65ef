//! The tensors of a program, in the formats in which its statements use them.

use maniple::Context;

use super::planned::{Planned, Statements};
use crate::distributed::{Computation, DistributedError, Pending, Rehearsal, Tensor, assemble, assemble_in_steps};
use crate::lower::Output;
use crate::notation::TensorVariable;

/// The tensors that statements use and make.
#[derive(Clone)]
pub struct Tensors {
    /// Under their names in the program; of each format in which one is used there may be one.
    all: Vec<Tensor>,
    /// Tensors that statements have made, in their order.
    made: Vec<Tensor>,
    /// Dense ones that statements assign to, beside what they had before.
    kept: Vec<(Tensor, Tensor)>,
    /// Whether nodes forget what they got from others when it has been used.
    forgets: bool,
}

impl Tensors {
    /// These. If `forgets`, statements run in little memory: see [`Computation::run_in_steps`].
    pub(super) fn new(tensors: Vec<Tensor>, forgets: bool) -> Self {
        Self { all: tensors, made: Vec::new(), kept: Vec::new(), forgets }
    }

    /// All that there are.
    #[must_use]
    pub fn all(&self) -> &[Tensor] {
        &self.all
    }

    /// Whether statements run in little memory.
    pub(super) fn forgets(&self) -> bool {
        self.forgets
    }

    /// Adds one.
    pub(super) fn add(&mut self, tensor: Tensor) {
        self.all.push(tensor);
    }

    /// Whether there is one of a name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.all.iter().any(|tensor| tensor.variable().name() == name)
    }

    /// The tensor of a variable's name: in its format, if there is one in it.
    pub(super) fn find(&self, variable: &TensorVariable) -> Option<&Tensor> {
        let is_named = |tensor: &&Tensor| tensor.variable().name() == variable.name();
        let is_alike = |tensor: &&Tensor| is_named(tensor) && tensor.variable().format() == variable.format();
        self.all.iter().find(is_alike).or_else(|| self.all.iter().find(is_named))
    }

    /// Converts the tensor of a variable's name to its format, if there is one and none is in it.
    pub(super) async fn convert(&mut self, cx: &Context, variable: &TensorVariable) -> Result<(), DistributedError> {
        let Some(found) = self.find(variable).filter(|tensor| tensor.variable().format() != variable.format()) else {
            return Ok(());
        };
        let converted = found.converted(cx, variable).await?;
        self.made.push(converted.clone());
        self.all.push(converted);
        Ok(())
    }

    /// Lets all that there is now stay until it is destroyed by other means.
    pub(super) fn keep_all(&mut self) {
        self.made.clear();
    }

    /// Destroys those that are not wanted.
    pub(super) fn retain(&mut self, cx: &Context, is_wanted: impl Fn(&Tensor) -> bool) -> Result<(), DistributedError> {
        self.all.iter().filter(|tensor| !is_wanted(tensor)).try_for_each(|tensor| tensor.destroy(cx))?;
        self.all.retain(is_wanted);
        Ok(())
    }

    /// Keeps the elements of dense tensors of some names, which [`restore`](Self::restore) gives them again.
    pub(super) async fn keep(&mut self, cx: &Context, is_kept: impl Fn(&str) -> bool) -> Result<(), DistributedError> {
        for tensor in self.all.iter().filter(|tensor| tensor.variable().format().is_dense()) {
            if is_kept(tensor.variable().name()) {
                let before = tensor.variable().renamed(&format!("{}_before", tensor.variable().name()));
                self.kept.push((tensor.clone(), tensor.snapshot(cx, &before).await?));
            }
        }
        Ok(())
    }

    /// Gives tensors the elements that were [kept](Self::keep).
    pub(super) async fn restore(&self, cx: &Context) -> Result<(), DistributedError> {
        for (tensor, before) in &self.kept {
            tensor.copy_from(cx, before).await?;
        }
        Ok(())
    }

    /// Destroys what statements have made, so that there is room for what they make next.
    pub(super) fn forget(&mut self, cx: &Context) -> Result<(), DistributedError> {
        // Those that have the levels of others were made after them.
        self.made.drain(..).rev().try_for_each(|made| made.destroy(cx))
    }

    /// Destroys what statements have made, but for tensors of these variables.
    pub(super) fn forget_others(&mut self, cx: &Context, kept: &[TensorVariable]) -> Result<(), DistributedError> {
        let is_kept = |tensor: &Tensor| kept.iter().any(|variable| variable == tensor.variable());
        let (_, others): (Vec<Tensor>, Vec<Tensor>) = self.made.drain(..).partition(is_kept);
        self.all.retain(|tensor| !others.iter().any(|other| other.region() == tensor.region()));
        others.into_iter().rev().try_for_each(|made| made.destroy(cx))
    }

    /// Prepares statements whose results are there, or have the levels of an operand.
    pub(super) fn prepared<'a>(&'a mut self, cx: &'a Context, statements: &'a Statements) -> Pending<'a, Computation> {
        Box::pin(async move { self.prepare(cx, statements.all(), &[]).await })
    }

    /// Prepares statements, and counts what they move.
    pub(super) async fn rehearsed(
        &mut self,
        cx: &Context,
        statements: &[Planned],
    ) -> Result<Rehearsal, DistributedError> {
        let mut old = Vec::new();
        for planned in statements {
            old.extend(self.old(cx, planned).await?);
        }
        let used = self.used(cx, statements, &old).await?;
        let plans: Vec<_> = statements.iter().map(|planned| planned.plan().clone()).collect();
        Rehearsal::new(cx, &plans, &used.iter().collect::<Vec<_>>()).await
    }

    /// Prepares and runs a statement, or has its result assembled; and has it converted, if it is declared in another
    /// format.
    pub(super) fn compute<'a>(&'a mut self, cx: &'a Context, planned: &'a Planned) -> Pending<'a, ()> {
        Box::pin(async move {
            for stored in planned.operands() {
                self.convert(cx, stored).await?;
            }
            let old = self.old(cx, planned).await?;
            if planned.plan().leaf().output == Output::Entries {
                let used = self.of(cx, planned, &old).await?;
                let used: Vec<&Tensor> = used.iter().collect();
                let made = match self.forgets {
                    true => assemble_in_steps(cx, planned.plan(), &used).await?,
                    false => assemble(cx, planned.plan(), &used).await?,
                };
                self.put(made);
            } else {
                let computation = self.prepare(cx, std::slice::from_ref(planned), &old).await?;
                self.run(cx, &computation).await?;
            }
            if planned.is_converted()
                && let Some(made) = self.made.pop()
            {
                let converted = made.converted(cx, planned.declared()).await?;
                made.destroy(cx)?;
                self.put(converted);
            }
            Ok(())
        })
    }

    /// Runs what was prepared.
    pub(super) async fn run(&self, cx: &Context, computation: &Computation) -> Result<(), DistributedError> {
        match self.forgets {
            true => computation.run_in_steps(cx).await,
            false => computation.launch(cx)?.await,
        }
    }

    /// The old elements of a statement's result that it reads, under its names.
    async fn old(&mut self, cx: &Context, planned: &Planned) -> Result<Vec<Tensor>, DistributedError> {
        let mut old = Vec::new();
        for variable in planned.old() {
            if let Some(tensor) = self.find(&variable.renamed(planned.declared().name())).cloned() {
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

    /// The tensors that a statement uses, under its names: beside `old`, the old elements of its result.
    async fn of(&self, cx: &Context, planned: &Planned, old: &[Tensor]) -> Result<Vec<Tensor>, DistributedError> {
        let mut used: Vec<Tensor> = self.find(planned.plan().statement.result()).cloned().into_iter().collect();
        used.extend_from_slice(old);
        let others = planned.used().iter().filter(|(_, stored)| stored.name() != planned.declared().name());
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

    /// Puts one that a statement has made in the place of those with its name.
    fn put(&mut self, tensor: Tensor) {
        self.all.retain(|other| other.variable().name() != tensor.variable().name());
        self.made.push(tensor.clone());
        self.all.push(tensor);
    }

    /// The tensors that statements with results that there are use; `old` are the old elements of these.
    async fn used(
        &mut self,
        cx: &Context,
        planned: &[Planned],
        old: &[Tensor],
    ) -> Result<Vec<Tensor>, DistributedError> {
        let mut used = Vec::new();
        for planned in planned.iter().filter(|planned| planned.plan().pattern().is_some()) {
            let tensors = self.of(cx, planned, old).await?;
            let made = Tensor::for_result(cx, planned.plan(), &tensors.iter().collect::<Vec<_>>())?;
            self.put(made);
        }
        for planned in planned {
            used.extend(self.of(cx, planned, old).await?);
        }
        Ok(used)
    }

    async fn prepare(
        &mut self,
        cx: &Context,
        planned: &[Planned],
        old: &[Tensor],
    ) -> Result<Computation, DistributedError> {
        let used = self.used(cx, planned, old).await?;
        let plans: Vec<_> = planned.iter().map(|planned| planned.plan().clone()).collect();
        Computation::in_order(cx, &plans, &used.iter().collect::<Vec<_>>()).await
    }
}
