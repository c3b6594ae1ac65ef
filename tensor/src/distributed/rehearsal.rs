//! Rehearsals of plans, which count the bytes that plans move between nodes by moving them: all launches of the plans,
//! with tasks that compute nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple::space::{AnyRect, Rect};
use maniple::{Context, FieldMask, LogicalRegion, TaskLauncher};

use super::computation::Preparation;
use super::error::DistributedError;
use super::fetch::Fetching;
use super::pending::Pending;
use super::place::PLACE;
use super::tensor::Tensor;
use crate::element::Scalar;
use crate::lower::Output;
use crate::plan::{GraphOperation, Launching, Plan};

/// Plans, one after the other, of which each launch asks for what it would compute with and on, and computes nothing.
/// So each moves what it would; what has been written moves as it is. Of a result of which it is not known before how
/// much it stores, nothing is asked for.
pub struct Rehearsal {
    operations: Vec<Rehearsed>,
    /// Whether points assemble the result.
    assembles: bool,
    /// By the names of tensors.
    passing: BTreeMap<Arc<str>, u64>,
}

/// The fetches of a launch for a tensor, by the tensor's name.
type OfTensor = (Arc<str>, Vec<Fetching>);

/// An operation of a rehearsal. Operations are carried out in their order.
enum Rehearsed {
    Fill(Tensor, Scalar),
    /// One after the other what a launch asks for of each tensor.
    Launch(AnyRect, Vec<(Arc<str>, TaskLauncher)>),
    /// As of a [`Computation`](super::Computation) that is run in steps.
    Passed(Vec<(LogicalRegion, FieldMask)>),
}

impl Rehearsal {
    /// Prepares plans on tensors.
    ///
    /// # Errors
    ///
    /// As of [`Computation::new`](super::Computation::new).
    pub fn new<'a>(cx: &'a Context, plans: &'a [Arc<Plan>], tensors: &'a [&'a Tensor]) -> Pending<'a, Self> {
        Box::pin(async move {
            let (graph, preparation) = Preparation::new(cx, plans, tensors).await?;
            let mut known: BTreeMap<usize, Vec<OfTensor>> = BTreeMap::new();
            let mut operations = Vec::new();
            graph.run(&mut |operation, step| -> Result<(), DistributedError> {
                match operation {
                    GraphOperation::Loop { .. } | GraphOperation::Partition(_) => {}
                    GraphOperation::Fill { tensor, value } => {
                        operations.push(Rehearsed::Fill(preparation.tensor(*tensor).clone(), *value));
                    }
                    GraphOperation::Launch(launching) => {
                        let fetches = known
                            .entry(launching.number)
                            .or_insert_with(|| by_tensors(launching, preparation.fetches(launching), &preparation));
                        let passed: Vec<_> =
                            fetches.iter().flat_map(|(_, all)| all).filter_map(Fetching::passes).collect();
                        let launcher = |(name, all): &mut OfTensor| {
                            let requirements = all.iter_mut().map(|fetch| Ok(fetch.requirement(step)?.1));
                            let launcher = requirements.collect::<Result<Vec<_>, DistributedError>>()?.into_iter();
                            let launcher = launcher.fold(TaskLauncher::new(&PLACE), TaskLauncher::requirement);
                            Ok((Arc::clone(name), launcher))
                        };
                        let launchers = fetches.iter_mut().map(launcher).collect::<Result<_, DistributedError>>()?;
                        let domain = AnyRect::from(Rect::<1>::from(0..launching.order.points()));
                        operations.push(Rehearsed::Launch(domain, launchers));
                        if !passed.is_empty() {
                            operations.push(Rehearsed::Passed(passed));
                        }
                    }
                }
                Ok(())
            })?;
            let mut passing: BTreeMap<Arc<str>, u64> = BTreeMap::new();
            for of_launch in known.values() {
                for (name, all) in of_launch {
                    let most: u64 = all.iter().map(|fetch| fetch.most_at_two_steps(cx.nodes())).sum();
                    let most = 3 * most;
                    if most > 0 {
                        let known = passing.entry(Arc::clone(name)).or_default();
                        *known = most.max(*known);
                    }
                }
            }
            let assembles = plans.iter().any(|plan| plan.leaf().output == Output::Entries);
            Ok(Self { operations, assembles, passing })
        })
    }

    /// The bytes of each tensor that is read in one part after the other: the most bytes of it that a node ever has
    /// beside those that it had before, if plans [run in steps](super::Computation::run_in_steps), or results are
    /// [assembled](super::assemble_in_steps) so, by the [mapper](super::TensorMapper) for tensors. That is three times
    /// the bytes that the points of one node are given at two steps that follow one another: the parts that they use,
    /// the parts that come for them, and the parts that go to others.
    pub fn passing(&self) -> &BTreeMap<Arc<str>, u64> {
        &self.passing
    }

    /// Runs all that the plans would, as [`launch`](super::Computation::launch) or
    /// [`run_in_steps`](super::Computation::run_in_steps) does. Gives what this node has sent of each tensor, by the
    /// difference of what `sent` says before and after.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`].
    pub async fn run(
        &self,
        cx: &Context,
        in_steps: bool,
        sent: impl Fn() -> u64,
    ) -> Result<BTreeMap<Arc<str>, u64>, DistributedError> {
        let mut all: BTreeMap<Arc<str>, u64> = BTreeMap::new();
        // What is assembled in steps is counted in all of them, and then written in all of them.
        let turns = if in_steps && self.assembles { 2 } else { 1 };
        for operation in (0..turns).flat_map(|_| &self.operations) {
            match operation {
                Rehearsed::Fill(tensor, value) => match tensor.fill_at_home(*value) {
                    Some((domain, launcher)) => _ = cx.index_launch(domain, launcher.typed::<()>()),
                    None => tensor.fill(cx, *value)?,
                },
                Rehearsed::Launch(domain, launchers) => {
                    for (name, launcher) in launchers {
                        cx.execution_fence().await?;
                        let before = sent();
                        cx.index_launch(*domain, launcher.clone().typed::<()>()).await?;
                        cx.execution_fence().await?;
                        *all.entry(Arc::clone(name)).or_default() += sent() - before;
                    }
                }
                Rehearsed::Passed(passed) => {
                    if in_steps {
                        passed.iter().try_for_each(|(region, fields)| cx.forget_copies(region, fields))?;
                    }
                }
            }
        }
        Ok(all)
    }
}

/// The fetches of a launch, by tensors.
fn by_tensors(launching: &Launching, fetches: Vec<Fetching>, preparation: &Preparation<'_>) -> Vec<OfTensor> {
    let mut all: Vec<OfTensor> = Vec::new();
    for (fetch, fetching) in launching.fetches.iter().zip(fetches) {
        let name = preparation.tensor(fetch.tensor).variable().name();
        match all.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, own)) => own.push(fetching),
            None => all.push((name.into(), vec![fetching])),
        }
    }
    all
}
