//! The task of a plan.

use std::collections::VecDeque;
use std::sync::Arc;

use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value, Workers};
use maniple::{Arrangement, Error, LayoutConstraint};

use super::fields::Required;
use super::held::Held;
use super::modes::Modes;
use crate::kernel::{Argument, Executable, Team};
use crate::lower::Output;
use crate::plan::{Plan, PlanOrder};

/// The team that runs the loops over threads of a leaf: the workers of the node that have nothing else to do.
struct Helpers<'a> {
    workers: Workers<'a>,
    /// Loops are not cut where the points of the launch give all workers something to do: several parts would cost more
    /// than one.
    is_cut: bool,
}

impl Team for Helpers<'_> {
    /// As many chunks as there are workers, busy or not: sums are made chunk by chunk, and so are the same on every
    /// run.
    fn size(&self) -> usize {
        if self.is_cut { self.workers.count() } else { 1 }
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        self.workers.for_each(chunks, body);
    }
}

/// A kernel, and what it is called with.
pub(super) struct Kernel {
    pub(super) executable: Arc<Executable>,
    /// In the order of the kernel's own. Views come first of the result, if all tensors are dense of all in the order
    /// of the [leaf's](crate::plan::Leaf::tensors).
    pub(super) parameters: Vec<Parameter>,
}

/// The argument that a parameter of a kernel takes.
pub(super) enum Parameter {
    /// A view of what the task has of a tensor.
    View(Viewed),
    /// The value of a loop around the leaf, by its position.
    Fixed(usize),
    /// A number that all calls have in common.
    Number(i64),
    /// In how many parts loops are cut.
    Chunks,
    /// A view of a result that is assembled, to which the kernel writes.
    Made(Made),
}

/// A part of a result that is assembled, to which kernels write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// How many elements each row has, or where its next one goes.
    Next,
    /// Coordinates: of the dimension with this number among those whose coordinates are written.
    Coordinates(usize),
    /// Elements.
    Values,
}

/// Views of each of these, where there is something.
#[derive(Default)]
pub(super) struct MadeViews<'v> {
    pub(super) next: Option<Argument<'v>>,
    pub(super) coordinates: Vec<Option<Argument<'v>>>,
    pub(super) values: Option<Argument<'v>>,
}

impl<'v> MadeViews<'v> {
    fn take(&mut self, made: Made) -> Option<Argument<'v>> {
        match made {
            Made::Next => self.next.take(),
            Made::Values => self.values.take(),
            Made::Coordinates(number) => self.coordinates.get_mut(number)?.take(),
        }
    }
}

/// A field of what a task requires, and how it has the tensor's dimensions.
pub(super) struct Viewed {
    pub(super) required: Required,
    pub(super) modes: Modes,
}

/// The task that runs the leaf; its argument is the number of the step. The points are dealt to so many nodes.
pub(super) fn definition(nodes: usize, plan: &Arc<Plan>, order: &PlanOrder, kernel: Kernel) -> TaskDefinition {
    let (plan, order) = (Arc::clone(plan), order.clone());
    let points = (order.points() as usize).div_ceil(nodes);
    // Kernels know values by their strides, which those have not that lie in blocks of several fields.
    let layout = LayoutConstraint { arrangement: Some(Arrangement::StructOfArrays), ..LayoutConstraint::default() };
    let options = TaskOptions { layout, ..TaskOptions::default() };
    TaskDefinition::new(&plan.leaf().kernel.name.clone()).leaf(options, move |call| {
        let values = order.values(*call.arguments::<i64>()?, call.point().coords()[0]);
        run_leaf(call, &plan, &values, &kernel, points, MadeViews::default())?;
        Ok(Value::new(()))
    })
}

/// Runs a kernel for a point of a launch that has so many on each node; `made` gives what the result's rows are written
/// to.
pub(super) fn run_leaf(
    call: &LeafCall<'_>,
    plan: &Plan,
    values: &[i64],
    Kernel { executable, parameters }: &Kernel,
    points: usize,
    mut made: MadeViews<'_>,
) -> maniple::Result<()> {
    let workers = call.workers();
    let helpers = &Helpers { workers, is_cut: points < workers.count() };
    let viewed = parameters.iter().filter_map(|parameter| match parameter {
        Parameter::View(viewed) => Some(viewed),
        _ => None,
    });
    let held = viewed.clone().map(|viewed| Held::new(call, viewed.required));
    let mut held = held.collect::<maniple::Result<Vec<Held<'_>>>>()?;
    // SAFETY: the views go with `arguments`, before the call does. The kernel stays within the parts that the plan has
    // fetched, and writes to its first buffer alone, for which the task has a privilege.
    let views = held.iter_mut().zip(viewed).map(|(held, viewed)| unsafe { held.view(&viewed.modes) });
    let mut views: VecDeque<Argument<'_>> = views.map(Argument::from).collect();
    let is_in_place = matches!(plan.leaf().output, Output::Elements | Output::Beside);
    if is_in_place && matches!(views.front(), Some(Argument::View(result)) if result.is_empty()) {
        // Nothing is computed. An operand without elements is no reason to stop: other terms may have some.
        return Ok(());
    }
    let mut arguments: Vec<Argument<'_>> = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        arguments.push(match parameter {
            Parameter::View(_) => views.pop_front().expect("there is a view for each of these"),
            Parameter::Fixed(position) => Argument::from(values[*position]),
            Parameter::Number(number) => Argument::from(*number),
            Parameter::Chunks => Argument::from(helpers.size() as i64),
            Parameter::Made(part) => made.take(*part).expect("kernels that assemble are given what they write"),
        });
    }
    if !plan.substitute(values, &mut arguments, helpers).map_err(Error::from_task)? {
        // SAFETY: the plan's rectangles cover all that the kernel accesses, which is verified and has no buffers of its
        // own that are not written first; of tensors in levels it looks only at what is below their elements, which the
        // task has whole, as offsets and coordinates have been checked. Iterations of its parallel loops are
        // independent, or the schedule would have been refused.
        unsafe { executable.call(&mut arguments, helpers) }.map_err(Error::from_task)?;
    }
    held.iter().for_each(Held::put_back);
    Ok(())
}
