//! Entries that tasks list, each a part of them, stored in levels.
//!
//! Each task lists its entries in blocks of the coordinates of the outermost level: where the entries of each block are is known when all are counted. Then each block is
//! [packed](super::packing), on the node where a point has it. No node has all of the tensor.

use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace, IndexSpace, Rect};
use maniple::task::{Codec, LeafCall};
use maniple::{Context, Error, FieldValue, Privilege, Requirement, Target, TaskLauncher};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::DistributedError;
use super::fetch::by_color;
use super::levels::Index;
use super::modes::is_in_region;
use super::packing::{Blocks, Entries, Packing, only, task, without_entries};
use super::rows::blocks_for;
use super::shares::Interval;
use super::tensor::Tensor;
use crate::element::Element;
use crate::format::{Format, Level, LevelExpression};
use crate::notation::TensorVariable;

/// So many tasks do it, if nodes are not more.
const MOST_TASKS: usize = 64;

/// What is wrong with a file, and in which line if there are lines.
pub(super) type Wrong = (Option<u64>, String);

/// Entries in parts, of which tasks list one each.
pub(super) trait Lists<T>: Send + Sync + 'static {
    /// What tells of a part, beside its entries, whether it is right.
    type Evidence: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static;

    /// How many parts there are.
    fn parts(&self) -> i64;

    /// What tasks are given to list their parts.
    fn requirements(&self) -> &[Requirement];

    /// Visits the entries of the part of a task's point: the same ones in the same order each time.
    fn for_each(
        &self,
        call: &LeafCall<'_>,
        visit: impl FnMut(&[i64], T),
    ) -> maniple::Result<Result<Self::Evidence, Wrong>>;

    /// Checks what tells of all parts, in their order. Nodes may find other things, if they have other files.
    fn check(&self, all: &[Self::Evidence]) -> Result<(), Wrong>;

    /// What is said if a part is wrong.
    fn error(&self, wrong: Wrong) -> DistributedError;
}

/// Whether tasks can pack entries in a format: see [`Tensor::converted`].
#[must_use]
pub fn is_packed_by_tasks(format: &Format) -> bool {
    let counts = format.expressions().iter().any(|level| matches!(level, LevelExpression::Count(_)));
    !format.is_dense() && !counts && format.properties().iter().all(|properties| !properties.ranges)
}

/// Whether tasks can make a tensor of entries in a format: one in which they [pack](is_packed_by_tasks) these, or a dense one of one to four dimensions.
#[must_use]
pub fn is_made_by_tasks(format: &Format) -> bool {
    is_packed_by_tasks(format) || is_in_region(format)
}

/// Checks that tasks can pack entries as a tensor is stored.
pub(super) fn check_packed(variable: &TensorVariable) -> Result<(), DistributedError> {
    let (tensor, format) = (variable.name().to_owned(), variable.format());
    match is_packed_by_tasks(format) {
        true => Ok(()),
        false if format.is_dense() => Err(DistributedError::Dense { tensor }),
        false => Err(DistributedError::Stored { tensor, format: format.clone() }),
    }
}

/// In how many tasks entries of so many bytes are listed and packed.
pub(super) fn tasks_for(cx: &Context, bytes: usize) -> i64 {
    // All nodes know how many entries each part has of each block.
    blocks_for(cx, bytes).min(MOST_TASKS).next_multiple_of(cx.nodes()) as i64
}

/// The tensor of the entries that parts list, in the format of the variable, packed by so many tasks.
pub(super) async fn packed<N: Index, T: Element + FieldValue, L: Lists<T>>(
    cx: &Context,
    variable: &TensorVariable,
    (lists, tasks): (L, i64),
) -> Result<Tensor, DistributedError> {
    let bounds = variable.format().expressions()[0].bounds(variable.dimensions());
    let extent = bounds.end - bounds.start;
    let count = match variable.format().levels()[0] {
        Level::Dense | Level::Compressed | Level::Bitmap => tasks.min(extent).max(1),
        // What is stored of one coordinate depends on those that are stored of others.
        _ => 1,
    };
    let begin = |block: i64| bounds.start + (i128::from(extent) * i128::from(block) / i128::from(count)) as i64;
    let blocks: Vec<Interval> = (0..count).map(|block| (begin(block), begin(block + 1))).collect();
    let block_of = {
        let (ends, outermost) = (blocks.clone(), variable.format().expressions()[0].clone());
        move |at: &[i64]| ends.partition_point(|(_, end)| *end <= outermost.value(at))
    };
    let lists = Arc::new(lists);
    let (counted, evidence) = counted(cx, variable, &lists, (count as usize, block_of.clone())).await?;
    // Entries lie part by part, in the order of their blocks.
    let mut total = 0;
    let mut starts: Vec<Vec<i64>> = counted.clone();
    for start in starts.iter_mut().flatten() {
        total += std::mem::replace(start, total);
    }
    if total == 0 {
        return without_entries::<T>(cx, variable);
    }
    let (entries, room) = Entries::with_room::<N, T>(cx, (variable.order(), total))?;
    let part = |part: usize| starts[part][0]..starts.get(part + 1).map_or(total, |next| next[0]);
    let of_parts: Vec<AnySpace> =
        (0..starts.len()).map(|number| IndexSpace::<1>::from_rects([Rect::<1>::from(part(number))]).into()).collect();
    let of_parts = cx.index_partition(room.region.space(), of_parts.len(), &of_parts)?;
    let of_parts = room.region.partition(&of_parts).map_err(Error::from)?;
    let target = Target::Partition(of_parts, by_color(lists.parts(), |part| part));
    let given = Requirement::new(target, entries.mask(), Privilege::Discard);
    list::<N, T, L>(cx, variable, (&lists, evidence), (given, &entries), (starts.clone(), total, block_of));

    let of_block = |block: usize| {
        let own = starts.iter().zip(&counted).map(|(starts, counts)| starts[block]..starts[block] + counts[block]);
        IndexSpace::<1>::from_rects(own.map(Rect::<1>::from).collect::<Vec<_>>()).into()
    };
    let of_blocks: Vec<AnySpace> = (0..blocks.len()).map(of_block).collect();
    let of_blocks = cx.index_partition(room.region.space(), of_blocks.len(), &of_blocks)?;
    let of_blocks = room.region.partition(&of_blocks).map_err(Error::from)?;
    let coordinates = blocks.clone().into();
    let blocks = Blocks { cx, points: count, of_point: Arc::new(|point| point), parts: blocks };
    let packing = Packing { blocks: &blocks, variable, coordinates, entries, of_blocks };
    let positions = packing.measured::<N, T>(&[]).await?;
    let made = packing.stored::<N, T>(positions).await?;
    cx.destroy_region(&room.region)?;
    Ok(made)
}

/// How many entries of each block each part has, and what tells of the parts.
async fn counted<T: Element + FieldValue, L: Lists<T>>(
    cx: &Context,
    variable: &TensorVariable,
    lists: &Arc<L>,
    (blocks, block_of): (usize, impl Fn(&[i64]) -> usize + Send + Sync + 'static),
) -> Result<(Vec<Vec<i64>>, Vec<L::Evidence>), DistributedError> {
    let each = Arc::clone(lists);
    let codec = Codec::of::<(Vec<i64>, Result<L::Evidence, Wrong>)>();
    let task = task(("count entries of", variable), codec, move |call| {
        let mut counts = vec![0_i64; blocks];
        let evidence = each.for_each(call, |at, _| counts[block_of(at)] += 1)?;
        Ok((counts, evidence))
    });
    let launcher = lists.requirements().iter().cloned().fold(TaskLauncher::new(&task), TaskLauncher::requirement);
    let domain = AnyRect::from(Rect::<1>::from(0..lists.parts()));
    let parts = cx.index_launch(domain, launcher.typed::<(Vec<i64>, Result<L::Evidence, Wrong>)>()).all().await?;
    let (counts, evidence): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    let evidence = evidence.into_iter().collect::<Result<Vec<_>, _>>().map_err(|wrong| lists.error(wrong))?;
    let checked = cx.per_node(lists.check(&evidence)).all().await?;
    checked.into_iter().collect::<Result<(), _>>().map_err(|wrong| lists.error(wrong))?;
    Ok((counts, evidence))
}

/// Has each part write its entries, those of each block from where they start on.
fn list<N: Index, T: Element + FieldValue, L: Lists<T>>(
    cx: &Context,
    variable: &TensorVariable,
    (lists, evidence): (&Arc<L>, Vec<L::Evidence>),
    (given, entries): (Requirement, &Entries),
    (starts, total, block_of): (Vec<Vec<i64>>, i64, impl Fn(&[i64]) -> usize + Send + Sync + 'static),
) {
    let (each, entries, requirement) = (Arc::clone(lists), entries.clone(), lists.requirements().len());
    let task = task(("list entries of", variable), Codec::of::<i64>(), move |call| {
        let part = call.point().coords()[0] as usize;
        let mut next = starts[part].clone();
        let coordinates = entries.coordinates.iter().map(|&field| call.write::<N, 1>(requirement, field));
        let mut coordinates = coordinates.collect::<maniple::Result<Vec<_>>>()?;
        let mut values = call.write::<T, 1>(requirement, entries.values)?;
        let Some(own) = only(values.space().rects()) else { return Ok(0_i64) };
        let mut spans: Vec<_> = coordinates.iter_mut().map(|all| all.span_mut(own)).collect();
        let mut values = values.span_mut(own);
        let room = values.len();
        let outcome = each.for_each(call, |at, value| {
            let next = &mut next[block_of(at)];
            let place = (*next - own.lo[0]) as usize;
            *next += 1;
            if place < room {
                spans.iter_mut().zip(at).for_each(|(span, &at)| span[place] = N::narrowed(at));
                values[place] = value;
            }
        })?;
        let found = outcome.map_err(|wrong| Error::application(each.error(wrong).to_string()))?;
        // Each block ends where the next one starts.
        let after = starts.get(part + 1).map_or(total, |starts| starts[0]);
        if found != evidence[part] || !next.iter().eq(starts[part].iter().skip(1).chain([&after])) {
            let reason = "it has changed while it was read: its entries are others than those that were counted before";
            return Err(Error::application(each.error((None, reason.to_owned())).to_string()));
        }
        Ok(room as i64)
    });
    let all = lists.requirements().iter().cloned().chain([given]);
    let launcher = all.fold(TaskLauncher::new(&task), TaskLauncher::requirement);
    let domain = AnyRect::from(Rect::<1>::from(0..lists.parts()));
    let _launched = cx.index_launch(domain, launcher.typed::<i64>());
}
