//! A slice of leaf tasks that has come here with its data, and is to be sliced again: what of it stays, and what goes on.

use std::sync::Arc;

use bytes::Bytes;
use maniple_mapper::{NodeSlice, TaskInfo};
use maniple_realm::machine::NodeId;
use maniple_space::AnyPoint;

use super::batch::{BatchDescription, SliceOfBatch};
use super::description::Points;
use crate::core::RuntimeCore;
use crate::error::{Error, Result};
use crate::slices::ask;
use crate::task::registry::find;

/// Some tasks of a batch, and where they are to run.
pub(crate) struct Leg {
    pub(crate) to: NodeId,
    pub(crate) batch: BatchDescription,
    pub(crate) values: Vec<u8>,
    /// Which tasks of the batch they are.
    pub(crate) tasks: Vec<usize>,
}

/// Has the mapper slice a slice that has come here.
pub(crate) fn divide(core: &Arc<RuntimeCore>, batch: &BatchDescription, values: &Bytes) -> Result<Vec<Leg>> {
    let problem = |problem| move || Error::launch(&batch.path, problem);
    let no_sense = problem(
        "another node has sent a slice of this task that makes no sense here; start the same program on all nodes",
    );
    let SliceOfBatch { points, tag, hops, .. } = &batch.slice;
    let node = core.node().ok_or_else(problem("a slice has come to a job of one node"))?;
    let (definition, domain) = find(&batch.path).zip(points.rect()).ok_or_else(&no_sense)?;
    let origin = core.processor_here();
    let info = TaskInfo {
        name: definition.name(),
        point: domain.lo(),
        domain,
        is_index_launch: true,
        requirements: &[],
        variants: definition.variants(),
        origin,
        depth: 1,
        tag: *tag,
    };
    let slices = ask(core, node, origin, (&info, *hops))?;
    legs(batch, values, &slices).ok_or_else(no_sense)
}

/// The tasks of each slice. None if a task is in none, or has no values.
fn legs(batch: &BatchDescription, values: &Bytes, slices: &[NodeSlice]) -> Option<Vec<Leg>> {
    let hops = batch.slice.hops.saturating_add(1);
    let leg = |slice: &NodeSlice| {
        let (points, recurse) = (Points::of_rect(slice.domain), slice.recurse);
        let of_slice = batch.of_slice(SliceOfBatch { points, tag: batch.slice.tag, recurse, hops });
        Leg { to: slice.node, batch: of_slice, values: Vec::new(), tasks: Vec::new() }
    };
    let mut legs: Vec<Leg> = slices.iter().map(leg).collect();
    let mut rest = values.clone();
    for (number, task) in batch.tasks.iter().enumerate() {
        let point = AnyPoint::new(&task.point).ok()?;
        let leg = &mut legs[slices.iter().position(|slice| slice.domain.contains(point))?];
        if task.bytes > rest.len() {
            return None;
        }
        leg.values.extend_from_slice(&rest.split_to(task.bytes));
        leg.batch.tasks.push(task.clone());
        leg.tasks.push(number);
    }
    legs.retain(|leg| !leg.tasks.is_empty());
    Some(legs)
}
