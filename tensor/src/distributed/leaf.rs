//! The task of a plan.

use std::sync::Arc;

use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value, Workers};
use maniple::{Error, FieldId};

use super::held::Held;
use super::modes::Modes;
use crate::kernel::{Argument, Executable, Team};
use crate::plan::{Order, Plan};

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
    let mut held = Vec::with_capacity(leaf.tensors.len());
    for (number, (tensor, (field, _))) in leaf.tensors.iter().zip(stored).enumerate() {
        held.push(Held::new(call, (number, *field), tensor.element())?);
    }
    let mut arguments: Vec<Argument<'_>> = Vec::with_capacity(executable.kernel().parameters.len());
    for (held, (_, modes)) in held.iter_mut().zip(stored) {
        // SAFETY: the view goes with `arguments`, before the call does. The kernel stays within the parts that the plan has fetched, and writes to its first buffer alone, for
        // which the task has a privilege.
        arguments.push(unsafe { held.view(modes) }.into());
    }
    if matches!(&arguments[0], Argument::View(result) if result.is_empty()) {
        // Nothing is computed. An operand without elements is no reason to stop: other terms may have some.
        return Ok(());
    }
    if !plan.multiply(values, &mut arguments, helpers).map_err(Error::from_task)? {
        arguments.extend(leaf.scalars(values).map(Argument::from));
        // SAFETY: the plan's rectangles cover all that the kernel accesses, which is verified and has no buffers of its own that are not written first; iterations of its
        // parallel loops are independent, or the schedule would have been refused.
        unsafe { executable.call(&mut arguments, helpers) }.map_err(Error::from_task)?;
    }
    held.iter().for_each(Held::put_back);
    Ok(())
}
