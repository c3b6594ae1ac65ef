//! The task of a plan.

use std::sync::Arc;

use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value, Workers};
use maniple::{Error, FieldId};

use super::modes::Modes;
use crate::element::ElementType;
use crate::kernel::{Argument, Dimension, Executable, Team, View};
use crate::plan::{Order, Plan};
use crate::with_element;

/// Who runs the loops over threads of a leaf: those workers of the node that have nothing else to do.
struct Helpers<'a> {
    workers: Workers<'a>,
    /// Loops are not cut where the points of the launch give all workers something to do: several parts would cost more than one.
    is_cut: bool,
}

impl Team for Helpers<'_> {
    /// As many chunks as there are workers, busy or not: sums are made chunk by chunk, and so are the same on every run.
    fn size(&self) -> usize {
        if self.is_cut { self.workers.count() } else { 1 }
    }

    fn run(&self, chunks: usize, body: &(dyn Fn(usize) + Sync)) {
        self.workers.for_each(chunks, body);
    }
}

/// The task that runs the leaf; its argument is the number of the step. The points are dealt to so many nodes.
pub(super) fn definition(
    nodes: usize,
    plan: &Arc<Plan>,
    order: &Order,
    executable: Arc<Executable>,
    stored: Vec<(FieldId, Modes)>,
) -> TaskDefinition {
    let (plan, order) = (Arc::clone(plan), order.clone());
    let points = (order.points() as usize).div_ceil(nodes);
    TaskDefinition::new(&plan.leaf().kernel.name.clone()).leaf(TaskOptions::default(), move |call| {
        let values = order.values(*call.arguments::<i64>()?, call.point().coords()[0]);
        let workers = call.workers();
        let helpers = Helpers { workers, is_cut: points < workers.count() };
        run_leaf(call, &plan, &values, (&executable, &stored), &helpers)?;
        Ok(Value::new(()))
    })
}

fn run_leaf(
    call: &LeafCall<'_>,
    plan: &Plan,
    values: &[i64],
    (executable, stored): (&Executable, &[(FieldId, Modes)]),
    helpers: &Helpers<'_>,
) -> maniple::Result<()> {
    let leaf = plan.leaf();
    let mut arguments: Vec<Argument<'_>> = Vec::with_capacity(executable.kernel().parameters.len());
    for (number, (tensor, (field, modes))) in leaf.tensors.iter().zip(stored).enumerate() {
        // SAFETY: the view goes with `arguments`, before the call does; the kernel writes to its first buffer alone, for which the task has a privilege.
        let view = unsafe { view(call, (number, *field), (tensor.element(), modes)) }?;
        arguments.push(view.into());
    }
    if matches!(&arguments[0], Argument::View(result) if result.is_empty()) {
        // Nothing is computed. An operand without elements is no reason to stop: other terms may have some.
        return Ok(());
    }
    if plan.multiply(values, &mut arguments, helpers).map_err(Error::from_task)? {
        return Ok(());
    }
    arguments.extend(leaf.scalars(values).map(Argument::from));
    // SAFETY: the plan's rectangles cover all that the kernel accesses, which is verified and has no buffers of its own that are not written first; iterations of its parallel
    // loops are independent, or the schedule would have been refused.
    unsafe { executable.call(&mut arguments, helpers) }.map_err(Error::from_task)
}

/// A view of what a task has of a tensor with these dimensions.
///
/// # Safety
///
/// The view lives no longer than the call, and of the values that others may see, nothing is changed through it.
unsafe fn view<'a>(
    call: &LeafCall<'a>,
    (requirement, field): (usize, FieldId),
    (element, modes): (ElementType, &Modes),
) -> maniple::Result<View<'a>> {
    let strided = with_element!(element, T => call.strided::<T>(requirement, field))?;
    let (bounds, size) = (strided.bounds(), element.size() as isize);
    let dimension = |d: usize| Dimension {
        low: bounds.lo().coords()[d],
        high: bounds.hi().coords()[d] + 1,
        stride: (strided.strides()[d] / size) as i64,
    };
    let dimensions = modes.levels().map(dimension).collect();
    // SAFETY: the task has the field at all points of the rectangle, as values of that type; privileges say that nobody changes them, or, if they
    // may be changed, that nobody else looks.
    Ok(unsafe { View::from_raw(strided.address(), element, dimensions, strided.is_writable()) })
}
