//! The task of a plan.

use std::sync::Arc;

use maniple::task::{LeafCall, TaskDefinition, TaskOptions};
use maniple::{Error, FieldId};

use super::modes::Modes;
use super::tensor::view;
use crate::kernel::{Argument, Executable, Serial};
use crate::plan::{Order, Plan};

/// The task that runs the leaf; its argument is the number of the step.
pub(super) fn definition(
    plan: &Arc<Plan>,
    order: &Order,
    executable: Arc<Executable>,
    stored: Vec<(FieldId, Modes)>,
) -> TaskDefinition {
    let (plan, order) = (Arc::clone(plan), order.clone());
    TaskDefinition::new(&plan.leaf().kernel.name.clone()).leaf(TaskOptions::default(), move |call| {
        let values = order.values(*call.arguments::<i64>()?, call.point().coords()[0]);
        run_leaf(call, &plan, &values, (&executable, &stored))?;
        Ok(Box::new(()))
    })
}

fn run_leaf(
    call: &LeafCall<'_>,
    plan: &Plan,
    values: &[i64],
    (executable, stored): (&Executable, &[(FieldId, Modes)]),
) -> maniple::Result<()> {
    let leaf = plan.leaf();
    let mut arguments: Vec<Argument<'_>> = Vec::with_capacity(leaf.tensors.len() + values.len());
    for (number, (tensor, (field, modes))) in leaf.tensors.iter().zip(stored).enumerate() {
        // SAFETY: the view goes with `arguments`, before the call does; the kernel writes to its first buffer alone, for which the task has a privilege.
        let view = unsafe { view(call, (number, *field), (tensor.element(), modes)) }?;
        arguments.push(view.into());
    }
    if matches!(&arguments[0], Argument::View(result) if result.is_empty()) {
        // Nothing is computed. An operand without elements is no reason to stop: other terms may have some.
        return Ok(());
    }
    if plan.multiply(values, &mut arguments, &Serial).map_err(Error::from_task)? {
        return Ok(());
    }
    arguments.extend(values.iter().map(|&value| Argument::from(value)));
    // SAFETY: the plan's rectangles cover all that the kernel accesses, which is verified and has no buffers of its own that are not written first; iterations of its parallel
    // loops are independent, or the schedule would have been refused.
    unsafe { executable.call(&mut arguments, &Serial) }.map_err(Error::from_task)
}
