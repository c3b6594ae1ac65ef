//! Statements on sparse tensors with distributed loops: as tasks of the runtime, on all nodes.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use maniple::FieldValue;
use maniple::prelude::*;
use maniple_tensor::concrete::Statement;
use maniple_tensor::distributed::{Computation, DistributedError, Tensor, TensorMapper};
use maniple_tensor::element::Element;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::plan::{Graph, Plan};
use maniple_tensor::storage::SparseTensor;

use super::options::Options;
use super::slowest;
use crate::error::{Error as AppError, Result as AppResult};
use crate::options::place;
use crate::progress::Progress;
use crate::report::counted;

/// What tasks have computed.
pub(super) struct Outcome<T> {
    /// All tensors by name.
    pub(super) tensors: BTreeMap<String, SparseTensor<T>>,
    /// How long each run took.
    pub(super) times: Vec<Duration>,
}

impl<T> fmt::Display for Outcome<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sparse tensors\n  computed {}", counted(self.times.len(), "time", "times"))
    }
}

/// Whether a tensor differs between nodes, each of which has read or made it for itself: which one, and on which nodes.
async fn differing<T: Element>(
    cx: &Context,
    given: &BTreeMap<String, Arc<SparseTensor<T>>>,
) -> maniple::Result<Option<String>> {
    let digests: Vec<u64> = given.values().map(|tensor| digest(tensor)).collect();
    let nodes = cx.per_node(digests).all().await?;
    let Some(first) = nodes.first() else { return Ok(None) };
    let other = nodes.iter().enumerate().find_map(|(node, digests)| {
        let differs = given.keys().zip(first.iter().zip(digests)).find(|(_, (one, other))| one != other);
        differs.map(|(name, _)| (name, node))
    });
    Ok(other.map(|(name, node)| {
        format!("{name} is not the same on node {node} as on node 0: each node reads its files for itself, and all must have the same ones")
    }))
}

/// A number that is different for other extents or entries, as far as 64 bits can be.
fn digest<T: Element>(tensor: &SparseTensor<T>) -> u64 {
    let mut hasher = DefaultHasher::new();
    tensor.dimensions().hash(&mut hasher);
    tensor.for_each(|at, value| (at, value.to_scalar().bits()).hash(&mut hasher));
    hasher.finish()
}

/// What statements do as tasks.
pub(super) struct Tasks {
    plans: Vec<Arc<Plan>>,
}

impl Tasks {
    /// Of these statements; none if no loop of them is distributed.
    ///
    /// # Errors
    /// [`AppError::Usage`] if they can't run as tasks.
    pub(super) fn new<'a>(statements: impl Iterator<Item = &'a Statement>) -> AppResult<Option<Self>> {
        let statements: Vec<&Statement> = statements.collect();
        if !statements.iter().any(|statement| statement.spine().iter().any(|outer| outer.level().is_some())) {
            return Ok(None);
        }
        let plan = |statement| Plan::new(statement).map(Arc::new).map_err(|error| AppError::Usage(error.to_string()));
        let plans = statements.into_iter().map(plan).collect::<AppResult<_>>()?;
        Ok(Some(Self { plans }))
    }

    /// What is partitioned and launched.
    pub(super) fn graph(&self) -> Graph {
        if place().nodes > 1 { Graph::gathering(&self.plans) } else { Graph::new(&self.plans) }
    }

    /// Runs the statements as often as is asked for, and once more before, each time on these tensors.
    ///
    /// # Errors
    /// [`AppError::Runtime`] if a task fails.
    pub(super) fn run<T: Element + FieldValue>(
        &self,
        options: &Options,
        inputs: &BTreeMap<String, SparseTensor<T>>,
    ) -> AppResult<Outcome<T>> {
        let given: BTreeMap<String, Arc<SparseTensor<T>>> =
            inputs.iter().map(|(name, tensor)| (name.clone(), Arc::new(tensor.clone()))).collect();
        options.runtime.run_by(
            || Box::new(TensorMapper::new()),
            |runtime| {
                let outcome = runtime.run(async |cx| match differing(cx, &given).await? {
                    None => Ok(Ok(self.run_on(cx, options, &given).await?)),
                    Some(told) => Ok(Err(told)),
                })?;
                outcome.map_err(AppError::Usage)
            },
        )
    }

    async fn run_on<T: Element + FieldValue>(
        &self,
        cx: &Context,
        options: &Options,
        given: &BTreeMap<String, Arc<SparseTensor<T>>>,
    ) -> Result<Outcome<T>, DistributedError> {
        let mut variables: Vec<TensorVariable> = Vec::new();
        for variable in self.plans.iter().flat_map(|plan| plan.statement.tensors()) {
            if !variables.iter().any(|known| known.name() == variable.name()) {
                variables.push(variable.clone());
            }
        }
        let tensors = variables.iter().map(|variable| match given.get(variable.name()) {
            Some(stored) if !variable.format().is_dense() => Tensor::from_sparse(cx, variable, Arc::clone(stored)),
            // Those that are not given are results.
            _ => Tensor::new(cx, variable),
        });
        let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
        let computation = Computation::in_order(cx, &self.plans, &tensors.iter().collect::<Vec<_>>()).await?;
        let dense = || tensors.iter().filter(|tensor| tensor.variable().format().is_dense());
        let progress = Progress::steps(options.repeat + 1, &options.runtime);
        let mut times = Vec::new();
        for repeat in 0..=options.repeat {
            for tensor in dense() {
                if let Some(stored) = given.get(tensor.variable().name()) {
                    tensor.write_elements(cx, stored.elements())?;
                }
            }
            cx.execution_fence().await?;
            let started = Instant::now();
            computation.launch(cx)?.await?;
            times.push(started.elapsed());
            progress.set(repeat + 1, String::new);
        }
        drop(progress);
        let times = cx.per_node(times).fold(Vec::new(), slowest).await?;
        let mut found: BTreeMap<String, SparseTensor<T>> =
            given.iter().map(|(name, tensor)| (name.clone(), SparseTensor::clone(tensor))).collect();
        for tensor in dense() {
            let (variable, elements) = (tensor.variable(), tensor.read_elements(cx).await?);
            let fill = T::from_scalar(variable.fill()).expect("fill values have the type of their tensors");
            let stored = SparseTensor::from_elements(variable.dimensions(), fill, elements);
            let stored = stored.and_then(|stored| stored.convert(variable.format()));
            found.insert(variable.name().to_owned(), stored.map_err(maniple::Error::from_task)?);
        }
        Ok(Outcome { tensors: found, times })
    }
}
