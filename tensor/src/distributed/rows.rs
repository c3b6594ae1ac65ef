//! Rows of elements, as tasks write them.

use std::sync::Arc;

use maniple::space::{AnyPoint, AnyRect, AnySpace, Point, Rect};
use maniple::task::{LeafCall, TaskDefinition, Value};
use maniple::{
    Context, Error, FieldId, FieldMask, LogicalRegion, Privilege, Projection, Requirement, Target, TaskLauncher,
};

use super::error::DistributedError;

/// Bytes that a task should write, so that it is worth its cost.
const WRITTEN_AT_ONCE: usize = 256 << 10;

/// More tasks than this, for each node, write no faster.
const MOST_WRITERS: usize = 16;

/// In how many tasks so many bytes are written: by what all nodes know, not by the processors, of which each may have
/// another number.
pub(super) fn blocks_for(cx: &Context, bytes: usize) -> usize {
    (bytes / WRITTEN_AT_ONCE).clamp(cx.nodes(), MOST_WRITERS * cx.nodes())
}

/// The body of a task.
pub(super) type Body = dyn Fn(&LeafCall<'_>) -> maniple::Result<Value> + Send + Sync;

/// The launch of a task for each of these pieces of a region, none of which is empty: it is given a field of its piece.
pub(super) fn in_pieces(
    cx: &Context,
    region: &LogicalRegion,
    field: FieldId,
    privilege: Privilege,
    pieces: &[AnySpace],
    task: TaskDefinition,
) -> Result<(AnyRect, TaskLauncher), DistributedError> {
    let partitioning = cx.index_partition(region.space(), pieces.len(), pieces)?;
    let partition = region.partition(&partitioning).map_err(Error::from)?;
    let own = Projection::Color(Arc::new(|point: AnyPoint| Point([point[0]]).into()));
    let requirement = Requirement::new(Target::Partition(partition, own), FieldMask::of(field), privilege);
    let domain = AnyRect::from(Rect::<1>::from(0..pieces.len() as i64));
    Ok((domain, TaskLauncher::new(&Arc::new(task)).requirement(requirement)))
}
