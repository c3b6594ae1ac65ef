//! A program's plans as launches.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use maniple::space::{AnyRect, Rect};
use maniple::task::TaskDefinition;
use maniple::{Context, FieldMask, LogicalPartition, LogicalRegion, TaskLauncher};

use super::cuts::Cuts;
use super::divisors::checking;
use super::error::DistributedError;
use super::fetch::{Fetching, GivenPieces, below, partition};
use super::fields::Required;
use super::launched::Launched;
use super::leaf::{Kernel, Made, Parameter, Viewed, definition};
use super::levels::Component;
use super::mapper::passing;
use super::named::Named;
use super::pending::Pending;
use super::place::PLACE;
use super::shares::{Ends, below_each};
use super::tensor::Tensor;
use crate::bounds::Colors;
use crate::element::Scalar;
use crate::kernel::Kernels;
use crate::loops::Kernel as LoopKernel;
use crate::lower::{Output, Slot};
use crate::notation::TensorVariable;
use crate::plan::{Fetch, Graph, GraphOperation, Launching, Partition, Pieces, Plan, Shares, Space, rows_of};

/// Plans, one after the other, with the tensors that they run on: all that can be found out once and used for each run.
/// Runs of one computation repeat the same launches, which the runtime notices: from the third on they cost a fraction.
#[derive(Clone)]
pub struct Computation {
    operations: Vec<Prepared>,
}

/// An operation of a computation. Operations are carried out in their order.
#[derive(Clone)]
enum Prepared {
    /// All elements of a tensor become a value.
    Fill(Tensor, Scalar),
    /// A launch over a domain, and its tag if it is one of steps.
    Launch(AnyRect, TaskLauncher, u64),
    /// Another step of a loop is given other parts of these.
    Passed(Vec<(LogicalRegion, FieldMask)>),
}

impl Computation {
    /// Prepares to run a plan on tensors, and compiles its kernel. The result is collected where it [is
    /// placed](Tensor::place) now. Of tensors in levels, it waits for which positions pieces have.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Missing`] if a tensor of the plan is not among `tensors`, [`DistributedError::Shape`] if it
    /// has other extents, and what keeps the kernel from being made.
    pub fn new<'a>(cx: &'a Context, plan: &'a Arc<Plan>, tensors: &'a [&'a Tensor]) -> Pending<'a, Self> {
        Box::pin(async move { Self::in_order(cx, std::slice::from_ref(plan), tensors).await })
    }

    /// Prepares to run the plans of a program, one after the other. Where they use different tensors they run at the
    /// same time.
    ///
    /// # Errors
    ///
    /// As of [`new`](Self::new).
    pub fn in_order<'a>(cx: &'a Context, plans: &'a [Arc<Plan>], tensors: &'a [&'a Tensor]) -> Pending<'a, Self> {
        Box::pin(async move {
            if let Some(plan) = plans.iter().find(|plan| plan.leaf().output == Output::Entries) {
                return Err(DistributedError::Unassembled { tensor: plan.statement.result().name().to_owned() });
            }
            let (graph, mut preparation) = Preparation::new(cx, plans, tensors).await?;
            graph.run(&mut |operation, step| preparation.add(operation, step))?;
            Ok(Self { operations: preparation.operations })
        })
    }

    /// Launches all that the plans say, and waits for nothing.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`].
    pub fn launch(&self, cx: &Context) -> Result<Launched, DistributedError> {
        let mut steps = Vec::new();
        for operation in &self.operations {
            match operation {
                Prepared::Fill(tensor, value) => tensor.fill(cx, *value)?,
                Prepared::Launch(domain, launcher, _) => steps.push(cx.index_launch(*domain, launcher.clone().typed())),
                Prepared::Passed(_) => {}
            }
        }
        Ok(Launched { steps })
    }

    /// Runs all that the plans say in little memory, and waits for its end: after each step of a loop nodes
    /// [forget](Context::forget_copies) what they got from others for this step alone, and a step begins when the one
    /// before the last has ended. So a node needs no room for all of an operand of which it uses one block after the
    /// other, but for two blocks and a copy of each; and each run moves the blocks again.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`].
    pub fn run_in_steps<'a>(&'a self, cx: &'a Context) -> Pending<'a, ()> {
        Box::pin(async move {
            let (mut before, mut now) = (Launched::default(), Launched::default());
            for operation in &self.operations {
                match operation {
                    Prepared::Fill(tensor, value) => tensor.fill(cx, *value)?,
                    Prepared::Launch(domain, launcher, tag) => {
                        now.steps.push(cx.index_launch(*domain, launcher.clone().tag(*tag).typed()));
                    }
                    Prepared::Passed(passed) => {
                        passed.iter().try_for_each(|(region, fields)| cx.forget_copies(region, fields))?;
                        std::mem::replace(&mut before, std::mem::take(&mut now)).await?;
                    }
                }
            }
            before.await?;
            now.await
        })
    }
}

impl<'a> Preparation<'a> {
    /// The graph of plans, with its partitions.
    pub(super) async fn new(
        cx: &'a Context,
        plans: &[Arc<Plan>],
        tensors: &[&Tensor],
    ) -> Result<(Graph, Self), DistributedError> {
        let graph = if cx.nodes() > 1 { Graph::gathering(plans) } else { Graph::new(plans) };
        let tensors = graph.tensors.iter().map(|variable| find(tensors, variable).cloned());
        let tensors = tensors.collect::<Result<Vec<Tensor>, _>>()?;
        let mut partitions: Vec<LogicalPartition> = Vec::with_capacity(graph.partitions.len());
        let mut ends: HashMap<Shares, Ends> = HashMap::new();
        let mut rows: Vec<(TensorVariable, Arc<Colors>, Ends)> = Vec::new();
        let cuts = Cuts::of_graph(&graph, |position| tensors[position].cuts());
        for (Partition { tensor, space, pieces }, cut) in graph.partitions.iter().zip(cuts) {
            let tensor = &tensors[*tensor];
            if let Some(known) = tensor.cuts().find(&cut) {
                partitions.push(known);
                continue;
            }
            let made = match (pieces, space) {
                // Partitions come before those that follow from them.
                (Pieces::Below(offsets), Space::Positions(level) | Space::Offsets(level)) => {
                    let has_offsets = tensor.levels().is_some_and(|levels| levels.offsets(*level).is_some());
                    match &graph.partitions[*offsets].pieces {
                        Pieces::Bounds(colors) if !has_offsets => partition(cx, tensor, *space, colors)?,
                        _ => below(cx, tensor, *level, &partitions[*offsets]).await?,
                    }
                }
                (Pieces::Below(offsets), Space::Elements | Space::Words(_)) => partitions[*offsets].clone(),
                (Pieces::Named { positions, dimension }, space) => {
                    let Partition { tensor: of, space: level, .. } = &graph.partitions[*positions];
                    let named = Named {
                        of: (&tensors[*of], *level),
                        positions: &partitions[*positions],
                        colors: graph.colors(*positions),
                    };
                    named.pieces(cx, tensor, *space, *dimension).await?
                }
                (Pieces::Shares(shares), space) => {
                    let whole = Shares { rows: None, ..*shares };
                    let known = match ends.entry(whole) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(place) => {
                            place.insert(Ends::new(cx, &tensors[shares.tensor], shares.level, shares.parts).await?)
                        }
                    };
                    known.partition(cx, tensor, *space, shares.rows)?
                }
                (Pieces::Rows(colors), space) => {
                    let name = tensor.variable();
                    let is_known = |(of, known, _): &&(TensorVariable, Arc<Colors>, Ends)| {
                        of == name && known.has_parts_of(colors)
                    };
                    if !rows.iter().any(|known| is_known(&known)) {
                        let outermost = name.format().order()[0];
                        let own = (0..colors.count()).map(|color| rows_of(colors, color, outermost)).collect();
                        rows.push((name.clone(), Arc::clone(colors), Ends::of_rows(cx, tensor, own).await?));
                    }
                    let (_, _, known) = rows.iter().find(is_known).expect("it was made");
                    known.partition(cx, tensor, *space, None)?
                }
                (Pieces::Bounds(colors), space) => partition(cx, tensor, *space, colors)?,
            };
            tensor.cuts().remember(cut, &made);
            partitions.push(made);
        }
        let (launches, operations) = (HashMap::new(), Vec::new());
        Ok((graph, Self { cx, tensors, partitions, launches, operations }))
    }
}

/// A graph that is being prepared.
pub(super) struct Preparation<'a> {
    cx: &'a Context,
    tensors: Vec<Tensor>,
    /// By their positions.
    partitions: Vec<LogicalPartition>,
    /// By their numbers.
    launches: HashMap<usize, GraphLaunch>,
    operations: Vec<Prepared>,
}

/// A launch of the graph.
struct GraphLaunch {
    task: Arc<TaskDefinition>,
    fetches: Vec<Fetching>,
    /// By the numbers of what they ask for.
    launchers: HashMap<Vec<usize>, TaskLauncher>,
}

impl Preparation<'_> {
    fn add(&mut self, operation: &GraphOperation, step: i64) -> Result<(), DistributedError> {
        match operation {
            GraphOperation::Loop { .. } | GraphOperation::Partition(_) => {}
            GraphOperation::Fill { tensor, value } => {
                let tensor = &self.tensors[*tensor];
                self.operations.push(match tensor.fill_at_home(*value) {
                    Some((domain, launcher)) => Prepared::Launch(domain, launcher, 0),
                    None => Prepared::Fill(tensor.clone(), *value),
                });
            }
            GraphOperation::Launch(launching) => {
                if launching.runs_leaf && !self.launches.contains_key(&launching.number) {
                    for divisor in &launching.plan.statement.divisors {
                        let checks = checking(self.cx, find(&self.tensors.iter().collect::<Vec<_>>(), divisor)?)?;
                        self.operations.extend(checks.map(|(domain, launcher)| Prepared::Launch(domain, launcher, 0)));
                    }
                }
                let launcher = self.launcher(launching, step)?;
                let domain = AnyRect::from(Rect::<1>::from(0..launching.order.points()));
                let passes = self.launches[&launching.number].fetches.iter().map(Fetching::passes);
                let (numbers, passed): (Vec<usize>, Vec<_>) =
                    passes.enumerate().filter_map(|(number, passed)| Some((number, passed?))).unzip();
                self.operations.push(Prepared::Launch(domain, launcher, passing(numbers)));
                if !passed.is_empty() {
                    self.operations.push(Prepared::Passed(passed));
                }
            }
        }
        Ok(())
    }

    fn launcher(&mut self, launching: &Launching, step: i64) -> Result<TaskLauncher, DistributedError> {
        if !self.launches.contains_key(&launching.number) {
            let launch = self.launch(launching)?;
            self.launches.insert(launching.number, launch);
        }
        let GraphLaunch { task, fetches, launchers } =
            &mut self.launches.get_mut(&launching.number).expect("it is there");
        let requirements = fetches.iter_mut().map(|fetch| fetch.requirement(step)).collect::<Result<Vec<_>, _>>()?;
        let (numbers, requirements): (Vec<_>, Vec<_>) = requirements.into_iter().unzip();
        let launcher = launchers
            .entry(numbers)
            .or_insert_with(|| requirements.into_iter().fold(TaskLauncher::new(task), TaskLauncher::requirement));
        Ok(if launching.runs_leaf { launcher.clone().arguments(step) } else { launcher.clone() })
    }

    /// The tensor at a position of the graph.
    pub(super) fn tensor(&self, position: usize) -> &Tensor {
        &self.tensors[position]
    }

    /// The pieces of tensors that the points of a launch are given.
    pub(super) fn fetches(&self, launching: &Launching) -> Vec<Fetching> {
        let (plan, mut fetches) = (&launching.plan, Vec::new());
        for fetch in &launching.fetches {
            let tensor = &self.tensors[fetch.tensor];
            let given = match fetch.partition {
                Some(partition) => GivenPieces::Piece(self.partitions[partition].clone()),
                None => GivenPieces::All(tensor.part(fetch.space).clone()),
            };
            let slots = plan.leaf().slots.iter();
            let slots = slots.filter(|slot| Space::of(slot, tensor.variable()) == Some(fetch.space));
            let (mut fields, mut bytes) = (FieldMask::default(), 0);
            for Component { field, element, .. } in slots.map(|slot| tensor.component(slot)) {
                if !fields.contains(field) {
                    (fields, bytes) = (fields.union(&FieldMask::of(field)), bytes + element.size() as u64);
                }
            }
            fetches.push(Fetching::new(launching, fetch, tensor.variable().element(), fields, bytes, given));
        }
        fetches
    }

    fn launch(&self, launching: &Launching) -> Result<GraphLaunch, DistributedError> {
        let (plan, fetches) = (&launching.plan, self.fetches(launching));
        let task = match launching.runs_leaf {
            false => Arc::clone(&PLACE),
            true => Arc::new(definition(self.cx.nodes(), plan, &launching.order, self.leaf(launching)?)),
        };
        Ok(GraphLaunch { task, fetches, launchers: HashMap::new() })
    }

    /// Whether positions and coordinates of an operand of a launch have 32 bits.
    pub(super) fn is_narrow(&self, launching: &Launching, name: &str) -> bool {
        self.given(launching, name).and_then(Tensor::levels).is_none_or(|levels| levels.is_narrow)
    }

    /// The tensor that a launch knows under a name; others may know another one.
    fn given(&self, launching: &Launching, name: &str) -> Option<&Tensor> {
        let mut tensors = launching.fetches.iter().map(|fetch| &self.tensors[fetch.tensor]);
        tensors.find(|tensor| tensor.variable().name() == name)
    }

    /// The kernel of a launch, and what it is called with.
    fn leaf(&self, launching: &Launching) -> Result<Kernel, DistributedError> {
        let (plan, leaf) = (&launching.plan, launching.plan.leaf());
        match leaf.tensors.iter().all(|tensor| self.is_narrow(launching, tensor.name())) {
            true => self.called(launching, &leaf.kernel, &leaf.slots),
            false => {
                let made = plan.kernel(&|name| self.is_narrow(launching, name));
                self.called(launching, &made.kernel, &made.slots)
            }
        }
    }

    /// A kernel, and what it is called with by a launch.
    pub(super) fn called(
        &self,
        launching: &Launching,
        kernel: &LoopKernel,
        slots: &[Slot],
    ) -> Result<Kernel, DistributedError> {
        let (plan, leaf) = (&launching.plan, launching.plan.leaf());
        let tensor = |name: &str| self.given(launching, name);
        let given = |slot: &Slot| {
            let find = |(requirement, fetch): (usize, &Fetch)| {
                let tensor = &self.tensors[fetch.tensor];
                (Space::of(slot, tensor.variable())? == fetch.space).then_some((requirement, tensor))
            };
            let (requirement, tensor) = launching.fetches.iter().enumerate().find_map(find)?;
            let Component { field, element, .. } = tensor.component(slot);
            Some(Viewed { required: Required { requirement, field, element }, modes: tensor.modes().clone() })
        };
        let argument = |slot: &Slot| match slot {
            Slot::Fixed(variable) => leaf.fixed.iter().position(|fixed| fixed == variable).map(Parameter::Fixed),
            Slot::Size(variable) => plan.statement.extent(variable).map(Parameter::Number),
            Slot::Extent(name, level) => tensor(name).map(|tensor| Parameter::Number(tensor.extent(*level))),
            Slot::Slots(name, level) => tensor(name).map(|tensor| Parameter::Number(below_each(tensor, *level))),
            Slot::Count(name, level) => tensor(name).map(|tensor| Parameter::Number(tensor.positions(*level))),
            Slot::Chunks => Some(Parameter::Chunks),
            Slot::Next => Some(Parameter::Made(Made::Next)),
            Slot::ResultCoordinates(_) => {
                let mut written = slots.iter().filter(|other| matches!(other, Slot::ResultCoordinates(_)));
                written.position(|other| other == slot).map(|number| Parameter::Made(Made::Coordinates(number)))
            }
            Slot::ResultValues => Some(Parameter::Made(Made::Values)),
            _ => given(slot).map(Parameter::View),
        };
        let parameters = slots.iter().map(|slot| argument(slot).expect("plans name what they fetch")).collect();
        Ok(Kernel { executable: Kernels::shared().get(kernel)?, parameters })
    }
}

impl fmt::Debug for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computation").field("operations", &self.operations.len()).finish_non_exhaustive()
    }
}

/// Runs a plan on tensors: launches all that it says. To run one several times, keep a [`Computation`].
///
/// # Errors
///
/// As of [`Computation::new`].
pub fn compute<'a>(cx: &'a Context, plan: &'a Arc<Plan>, tensors: &'a [&'a Tensor]) -> Pending<'a, Launched> {
    Box::pin(async move { Computation::new(cx, plan, tensors).await?.launch(cx) })
}

pub(super) fn find<'a>(tensors: &[&'a Tensor], variable: &TensorVariable) -> Result<&'a Tensor, DistributedError> {
    let is_named = |tensor: &&&Tensor| tensor.variable().name() == variable.name();
    // There may be one for each format in which plans use it.
    let alike = |tensor: &&&Tensor| is_named(tensor) && tensor.variable().format() == variable.format();
    let found = tensors.iter().find(alike).or_else(|| tensors.iter().find(is_named));
    let found = found.ok_or_else(|| DistributedError::Missing {
        tensor: variable.name().to_owned(),
        given: tensors.iter().map(|tensor| tensor.variable().name()).collect::<Vec<_>>().join(", "),
    })?;
    if !found.variable().is_like(variable) {
        let describe = |variable: &TensorVariable| {
            format!("{} elements with extents {:?}", variable.element(), variable.dimensions())
        };
        return Err(DistributedError::Shape {
            tensor: variable.name().to_owned(),
            expected: describe(variable),
            found: describe(found.variable()),
        });
    }
    // Dense ones are views, whatever the order of their dimensions.
    if found.is_in_levels() == variable.format().is_dense()
        || found.is_in_levels() && found.variable().format() != variable.format()
    {
        let (expected, found) = (variable.format().clone(), found.variable().format().clone());
        return Err(DistributedError::OtherFormat { tensor: variable.name().to_owned(), expected, found });
    }
    Ok(found)
}
