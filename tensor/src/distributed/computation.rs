//! A program's plans as launches.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use maniple::space::{AnyRect, Rect};
use maniple::task::TaskDefinition;
use maniple::{Context, LogicalPartition, TaskLauncher};

use super::error::DistributedError;
use super::fetch::{Fetching, partition};
use super::launched::Launched;
use super::leaf::definition;
use super::place::PLACE;
use super::tensor::Tensor;
use crate::element::Scalar;
use crate::kernel::Kernels;
use crate::notation::TensorVariable;
use crate::plan::{Graph, Launching, Operation, Partition, Plan};

/// Plans, one after the other, with the tensors that they run on: all that can be found out once and used for each run. Runs of one computation repeat the same launches, which the runtime
/// notices: from the third on they cost a fraction.
#[derive(Clone)]
pub struct Computation {
    operations: Vec<Prepared>,
}

/// What is done, in this order.
#[derive(Clone)]
enum Prepared {
    /// All elements of a tensor become a value.
    Fill(Tensor, Scalar),
    /// A launch over a domain.
    Launch(AnyRect, TaskLauncher),
}

impl Computation {
    /// Prepares to run a plan on tensors, and compiles its kernel. The result is collected where it [is placed](Tensor::place) now.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Missing`] if a tensor of the plan is not among `tensors`, [`DistributedError::Shape`] if it has other extents, and what keeps the kernel from being
    /// made.
    pub fn new(cx: &Context, plan: &Arc<Plan>, tensors: &[&Tensor]) -> Result<Self, DistributedError> {
        Self::in_order(cx, std::slice::from_ref(plan), tensors)
    }

    /// Prepares to run the plans of a program, one after the other. Where they use different tensors they run at the same time.
    ///
    /// # Errors
    ///
    /// As of [`new`](Self::new).
    pub fn in_order(cx: &Context, plans: &[Arc<Plan>], tensors: &[&Tensor]) -> Result<Self, DistributedError> {
        let graph = Graph::new(plans);
        let tensors = graph.tensors.iter().map(|variable| find(tensors, variable).cloned());
        let tensors = tensors.collect::<Result<Vec<Tensor>, _>>()?;
        let (partitions, launches) = (HashMap::new(), HashMap::new());
        let mut preparation = Preparation { cx, graph: &graph, tensors, partitions, launches, operations: Vec::new() };
        graph.run(&mut |operation, step| preparation.add(operation, step))?;
        Ok(Self { operations: preparation.operations })
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
                Prepared::Launch(domain, launcher) => steps.push(cx.index_launch(*domain, launcher.clone().typed())),
            }
        }
        Ok(Launched { steps })
    }
}

/// A graph that is being prepared.
struct Preparation<'a> {
    cx: &'a Context,
    graph: &'a Graph,
    tensors: Vec<Tensor>,
    /// By their positions, as far as they are made.
    partitions: HashMap<usize, LogicalPartition>,
    /// By their numbers.
    launches: HashMap<usize, Launch>,
    operations: Vec<Prepared>,
}

/// A launch of the graph.
struct Launch {
    task: Arc<TaskDefinition>,
    fetches: Vec<Fetching>,
    /// By the numbers of what they ask for.
    launchers: HashMap<Vec<usize>, TaskLauncher>,
}

impl Preparation<'_> {
    fn add(&mut self, operation: &Operation, step: i64) -> Result<(), DistributedError> {
        match operation {
            Operation::Loop { .. } => {}
            Operation::Partition(number) => {
                let Partition { tensor, colors } = &self.graph.partitions[*number];
                self.partitions.insert(*number, partition(self.cx, &self.tensors[*tensor], colors)?);
            }
            Operation::Fill { tensor, value } => {
                let tensor = &self.tensors[*tensor];
                self.operations.push(match tensor.fill_at_home(*value) {
                    Some((domain, launcher)) => Prepared::Launch(domain, launcher),
                    None => Prepared::Fill(tensor.clone(), *value),
                });
            }
            Operation::Launch(launching) => {
                let launcher = self.launcher(launching, step)?;
                let domain = AnyRect::from(Rect::<1>::from(0..launching.order.points()));
                self.operations.push(Prepared::Launch(domain, launcher));
            }
        }
        Ok(())
    }

    fn launcher(&mut self, launching: &Launching, step: i64) -> Result<TaskLauncher, DistributedError> {
        if !self.launches.contains_key(&launching.number) {
            let launch = self.launch(launching)?;
            self.launches.insert(launching.number, launch);
        }
        let Launch { task, fetches, launchers } = &mut self.launches.get_mut(&launching.number).expect("it is there");
        let requirements = fetches.iter_mut().map(|fetch| fetch.requirement(step)).collect::<Result<Vec<_>, _>>()?;
        let (numbers, requirements): (Vec<_>, Vec<_>) = requirements.into_iter().unzip();
        let launcher = launchers
            .entry(numbers)
            .or_insert_with(|| requirements.into_iter().fold(TaskLauncher::new(task), TaskLauncher::requirement));
        Ok(if launching.runs_leaf { launcher.clone().arguments(step) } else { launcher.clone() })
    }

    fn launch(&self, launching: &Launching) -> Result<Launch, DistributedError> {
        let (plan, mut fetches, mut stored) = (&launching.plan, Vec::new(), Vec::new());
        for fetch in &launching.fetches {
            let tensor = &self.tensors[self.graph.partitions[fetch.partition].tensor];
            // Partitions come before what uses them.
            fetches.push(Fetching::new(launching, fetch, (tensor, &self.partitions[&fetch.partition])));
            stored.push((tensor.field(), tensor.modes().clone()));
        }
        let task = match launching.runs_leaf {
            false => Arc::clone(&PLACE),
            true => {
                let executable = Kernels::shared().get(&plan.leaf().kernel)?;
                Arc::new(definition(self.cx.nodes(), plan, &launching.order, executable, stored))
            }
        };
        Ok(Launch { task, fetches, launchers: HashMap::new() })
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
pub fn compute(cx: &Context, plan: &Arc<Plan>, tensors: &[&Tensor]) -> Result<Launched, DistributedError> {
    Computation::new(cx, plan, tensors)?.launch(cx)
}

fn find<'a>(tensors: &[&'a Tensor], variable: &TensorVariable) -> Result<&'a Tensor, DistributedError> {
    let found = tensors.iter().find(|tensor| tensor.variable().name() == variable.name());
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
    Ok(found)
}
