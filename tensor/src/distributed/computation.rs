//! A plan as launches.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use maniple::space::{AnyRect, Rect};
use maniple::{Context, TaskLauncher};

use super::error::DistributedError;
use super::fetch::Fetch;
use super::launched::Launched;
use super::leaf::definition;
use super::place::PLACE;
use super::tensor::Tensor;
use crate::element::Scalar;
use crate::kernel::Kernels;
use crate::notation::TensorVariable;
use crate::plan::Plan;

/// Plans, one after the other, with the tensors that they run on: all that can be found out once and used for each run. Runs of one computation repeat the same launches, which the runtime
/// notices: from the third on they cost a fraction.
#[derive(Clone)]
pub struct Computation {
    parts: Vec<Part>,
}

/// A plan with its tensors.
#[derive(Clone)]
struct Part {
    /// What all elements of the result are at the beginning.
    initial: Option<(Tensor, Scalar)>,
    /// What is launched, in this order.
    launches: Vec<(AnyRect, TaskLauncher)>,
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
        Ok(Self { parts: plans.iter().map(|plan| Part::new(cx, plan, tensors)).collect::<Result<_, _>>()? })
    }

    /// Launches all that the plans say, and waits for nothing.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`].
    pub fn launch(&self, cx: &Context) -> Result<Launched, DistributedError> {
        let mut steps = Vec::new();
        for part in &self.parts {
            if let Some((result, initial)) = &part.initial {
                result.fill(cx, *initial)?;
            }
            let launches = part.launches.iter();
            steps.extend(launches.map(|(domain, launcher)| cx.index_launch(*domain, launcher.clone().typed())));
        }
        Ok(Launched { steps })
    }
}

impl Part {
    fn new(cx: &Context, plan: &Arc<Plan>, tensors: &[&Tensor]) -> Result<Self, DistributedError> {
        let (order, leaf) = (plan.order(), plan.leaf());
        let operands: Vec<&Tensor> =
            leaf.tensors.iter().map(|variable| find(tensors, variable)).collect::<Result<_, _>>()?;
        let executable = Kernels::shared().get(&leaf.kernel)?;
        let stored = operands.iter().map(|tensor| (tensor.field(), tensor.modes().clone())).collect();
        let task = Arc::new(definition(cx.nodes(), plan, &order, executable, stored));
        let domain = AnyRect::from(Rect::<1>::from(0..order.points()));
        let mut fetched: Vec<Fetch> =
            operands.iter().map(|tensor| Fetch::new(cx, plan, &order, tensor)).collect::<Result<_, _>>()?;
        let mut outer = Vec::new();
        for tensor in &operands {
            let fetches = Fetch::outer(cx, plan, &order, tensor)?.into_iter();
            outer.extend(fetches.map(|fetch| (fetch, HashMap::<usize, TaskLauncher>::new())));
        }
        let (mut steps, mut launchers) = (Vec::new(), HashMap::<Vec<usize>, TaskLauncher>::new());
        for step in 0..order.steps() {
            for (fetch, known) in outer.iter_mut().filter(|(fetch, _)| fetch.is_due(step)) {
                let (number, requirement) = fetch.requirement(step);
                let launcher =
                    known.entry(number).or_insert_with(|| TaskLauncher::new(&PLACE).requirement(requirement));
                steps.push((domain, launcher.clone()));
            }
            let (numbers, requirements): (Vec<_>, Vec<_>) =
                fetched.iter_mut().map(|fetch| fetch.requirement(step)).unzip();
            let launcher = launchers
                .entry(numbers)
                .or_insert_with(|| requirements.into_iter().fold(TaskLauncher::new(&task), TaskLauncher::requirement));
            steps.push((domain, launcher.clone().arguments(step)));
        }
        let (result, at_home) = (operands[0], plan.initial.and_then(|initial| operands[0].fill_at_home(initial)));
        let initial = plan.initial.filter(|_| at_home.is_none()).map(|initial| (result.clone(), initial));
        Ok(Self { initial, launches: at_home.into_iter().chain(steps).collect() })
    }
}

impl fmt::Debug for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let launches: usize = self.parts.iter().map(|part| part.launches.len()).sum();
        f.debug_struct("Computation").field("launches", &launches).finish_non_exhaustive()
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
