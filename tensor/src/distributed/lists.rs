//! Entries that tasks list, each a part of them, stored in levels.
//!
//! Each task lists its entries in blocks of the coordinates of the outermost level: where the entries of each block are
//! is known when all are counted. Then each block is [packed](super::packing), on the node where a point has it. No
//! node has all of the tensor.

use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace, IndexSpace, Rect};
use maniple::task::LeafCall;
use maniple::{Context, Error, Privilege, Requirement, Target, TaskLauncher};
use serde::{Deserialize, Serialize};

use super::batches::{Batches, Take};
use super::error::DistributedError;
use super::fetch::by_color;
use super::fields::{index_type, is_narrow, narrowed};
use super::kept::Kept;
use super::modes::is_in_region;
use super::packing::{Blocks, EntryFields, Packing, task, without_entries};
use super::rows::blocks_for;
use super::shares::Interval;
use super::tensor::Tensor;
use crate::element::ElementType;
use crate::format::{Format, Level, LevelExpression};
use crate::notation::TensorVariable;

/// So many tasks do it, if nodes are not more.
const MOST_TASKS: usize = 64;

/// A problem with a file, and its line if the file has lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FileProblem {
    pub(super) line: Option<u64>,
    pub(super) reason: String,
}

impl From<String> for FileProblem {
    fn from(reason: String) -> Self {
        Self { line: None, reason }
    }
}

/// The evidence, beside its entries, that a part is right: the number of entries that the lines of a file list, and the
/// checksums of its arrays. Entries that come from no file have no evidence.
pub(super) type Evidence = (u64, Vec<(u32, u64)>);

/// Entries in parts, of which tasks list one each.
pub(super) trait Lists: Send + Sync {
    /// How many parts there are.
    fn parts(&self) -> i64;

    /// The requirements of the tasks that list parts.
    fn requirements(&self) -> &[Requirement] {
        &[]
    }

    /// Lists the entries of the part of a task's point: the same ones in the same order each time, with elements of the
    /// type of the tensor that they become.
    fn list(&self, call: &LeafCall<'_>, into: &mut Batches<'_>) -> maniple::Result<Result<Evidence, FileProblem>>;

    /// Whether to list takes so long that entries are kept, where there is room, from when they are counted until they
    /// are written.
    fn are_kept(&self) -> bool {
        false
    }

    /// Checks what tells of all parts, in their order. Nodes may find other things, if they have other files.
    fn check(&self, _all: &[Evidence]) -> Result<(), FileProblem> {
        Ok(())
    }

    /// The error for a part that is wrong.
    fn error(&self, problem: FileProblem) -> DistributedError;
}

/// Whether tasks can pack entries in a format: see [`Tensor::converted`].
#[must_use]
pub fn is_packed_by_tasks(format: &Format) -> bool {
    let counts = format.expressions().iter().any(|level| matches!(level, LevelExpression::Count(_)));
    !format.is_dense() && !counts && format.properties().iter().all(|properties| !properties.ranges)
}

/// Whether tasks can make a tensor of entries in a format: one in which they [pack](is_packed_by_tasks) these, or a
/// dense one of one to four dimensions.
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

/// Blocks of coordinates of the outermost level.
struct Outermost {
    level: LevelExpression,
    /// The end of each block.
    ends: Vec<i64>,
}

impl Outermost {
    /// The block of each of some entries, whose coordinates of each dimension are given.
    fn blocks_of(&self, coordinates: &[Vec<i64>], blocks: &mut Vec<usize>) {
        let block = |at: i64| self.ends.partition_point(|end| *end <= at);
        blocks.clear();
        if let LevelExpression::Mode(mode) = self.level {
            blocks.extend(coordinates[mode].iter().map(|&at| block(at)));
            return;
        }
        let mut one = vec![0; coordinates.len()];
        blocks.extend((0..coordinates[0].len()).map(|entry| {
            one.iter_mut().zip(coordinates).for_each(|(one, all)| *one = all[entry]);
            block(self.level.value(&one))
        }));
    }
}

/// The tensor of the entries that parts list, in the format of the variable, packed by so many tasks.
pub(super) async fn packed(
    cx: &Context,
    variable: &TensorVariable,
    lists: Arc<dyn Lists>,
    tasks: i64,
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
    let ends = blocks.iter().map(|(_, end)| *end).collect();
    let outermost = Arc::new(Outermost { level: variable.format().expressions()[0].clone(), ends });
    let passes = Passes { cx, variable, lists, outermost, kept: Kept::new(cx) };
    let (counted, evidence) = passes.count().await?;
    // Entries lie part by part, in the order of their blocks.
    let mut total = 0;
    let mut starts: Vec<Vec<i64>> = counted.clone();
    for start in starts.iter_mut().flatten() {
        total += std::mem::replace(start, total);
    }
    if total == 0 {
        return without_entries(cx, variable);
    }
    let index = index_type(is_narrow(variable.dimensions()));
    let (entries, room) = EntryFields::with_room(cx, variable, total, index)?;
    let part = |part: usize| starts[part][0]..starts.get(part + 1).map_or(total, |next| next[0]);
    let of_parts: Vec<AnySpace> =
        (0..starts.len()).map(|number| IndexSpace::<1>::from_rects([Rect::<1>::from(part(number))]).into()).collect();
    let of_parts = cx.index_partition(room.region.space(), of_parts.len(), &of_parts)?;
    let of_parts = room.region.partition(&of_parts).map_err(Error::from)?;
    let target = Target::Partition(of_parts, by_color(passes.lists.parts(), |part| part));
    let given = Requirement::new(target, entries.mask(), Privilege::Discard);
    passes.write(evidence, given, &entries, starts.clone(), total);

    let of_block = |block: usize| {
        let own = starts.iter().zip(&counted).map(|(starts, counts)| starts[block]..starts[block] + counts[block]);
        IndexSpace::<1>::from_rects(own.map(Rect::<1>::from).collect::<Vec<_>>()).into()
    };
    let of_blocks: Vec<AnySpace> = (0..blocks.len()).map(of_block).collect();
    let of_blocks = cx.index_partition(room.region.space(), of_blocks.len(), &of_blocks)?;
    let of_blocks = room.region.partition(&of_blocks).map_err(Error::from)?;
    let coordinates = blocks.clone().into();
    let blocks = Blocks { cx, points: count, of_point: Arc::new(|point| point), parts: blocks };
    let packing = Packing { blocks: &blocks, variable, coordinates, entries, of_blocks, kept: Kept::new(cx) };
    let positions = packing.measured(&[]).await?;
    let made = packing.stored(positions).await?;
    cx.destroy_region(&room.region)?;
    Ok(made)
}

/// Lists the entries of the part of a task's point, some at a time.
fn list_batches(
    lists: &dyn Lists,
    order: usize,
    element: Option<ElementType>,
    call: &LeafCall<'_>,
    take: &mut Take<'_>,
) -> maniple::Result<Result<Evidence, FileProblem>> {
    let mut batches = Batches::new(order, element, take);
    let evidence = lists.list(call, &mut batches)?;
    batches.finish();
    Ok(evidence)
}

/// The entries of a part in the batches in which they were listed, and what tells of the part.
struct Listing {
    batches: Vec<(Vec<Vec<i64>>, Vec<u8>)>,
    bytes: usize,
    evidence: Evidence,
}

impl Listing {
    /// Adds a batch, if there is room for it.
    fn add(&mut self, coordinates: &[Vec<i64>], elements: &[u8], kept: &Kept<Self>) -> bool {
        let entries = coordinates.first().map_or(0, Vec::len);
        let bytes = coordinates.len() * entries * size_of::<i64>() + elements.len();
        let has_room = kept.reserve(bytes);
        if has_room {
            self.bytes += bytes;
            self.batches.push((coordinates.to_vec(), elements.to_vec()));
        }
        has_room
    }
}

/// The two passes in which all parts list their entries: one counts them, the other one writes them.
struct Passes<'a> {
    cx: &'a Context,
    variable: &'a TensorVariable,
    lists: Arc<dyn Lists>,
    outermost: Arc<Outermost>,
    /// The entries that are kept between the passes.
    kept: Arc<Kept<Listing>>,
}

impl Passes<'_> {
    /// How many entries of each block each part has, and what tells of the parts.
    async fn count(&self) -> Result<(Vec<Vec<i64>>, Vec<Evidence>), DistributedError> {
        let Self { cx, variable, lists, .. } = self;
        let (each, order, outermost) = (Arc::clone(lists), variable.order(), Arc::clone(&self.outermost));
        let (kept, element) = (Arc::clone(&self.kept), variable.element());
        let task = task("count entries of", variable, move |call| {
            let (mut counts, mut blocks) = (vec![0_i64; outermost.ends.len()], Vec::new());
            let new = || Listing { batches: Vec::new(), bytes: 0, evidence: Evidence::default() };
            let mut listing = each.are_kept().then(new);
            let element = listing.is_some().then_some(element);
            let evidence = list_batches(&*each, order, element, call, &mut |coordinates, elements| {
                outermost.blocks_of(coordinates, &mut blocks);
                blocks.iter().for_each(|&block| counts[block] += 1);
                if let Some(dropped) = listing.take_if(|listing| !listing.add(coordinates, elements, &kept)) {
                    kept.release(dropped.bytes);
                }
            })?;
            if let Some(listing) = listing {
                let bytes = listing.bytes;
                kept.release(bytes);
                if let Ok(evidence) = &evidence {
                    kept.put(call.point().coords()[0], Listing { evidence: evidence.clone(), ..listing }, bytes);
                }
            }
            Ok((counts, evidence))
        });
        let launcher = lists.requirements().iter().cloned().fold(TaskLauncher::new(&task), TaskLauncher::requirement);
        let domain = AnyRect::from(Rect::<1>::from(0..lists.parts()));
        let parts =
            cx.index_launch(domain, launcher.typed::<(Vec<i64>, Result<Evidence, FileProblem>)>()).all().await?;
        let (counts, evidence): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let evidence = evidence.into_iter().collect::<Result<Vec<_>, _>>().map_err(|problem| lists.error(problem))?;
        let checked = cx.per_node(lists.check(&evidence)).all().await?;
        checked.into_iter().collect::<Result<(), _>>().map_err(|problem| lists.error(problem))?;
        Ok((counts, evidence))
    }

    /// Has each part write its entries, those of each block from where they start on.
    fn write(
        &self,
        evidence: Vec<Evidence>,
        given: Requirement,
        entries: &EntryFields,
        starts: Vec<Vec<i64>>,
        total: i64,
    ) {
        let Self { cx, variable, lists, .. } = self;
        let (each, order, element) = (Arc::clone(lists), variable.order(), variable.element());
        let (kept, outermost) = (Arc::clone(&self.kept), Arc::clone(&self.outermost));
        let entries = EntryFields { requirement: lists.requirements().len(), ..entries.clone() };
        let task = task("list entries of", variable, move |call| {
            let part = call.point().coords()[0] as usize;
            let mut next = starts[part].clone();
            let Some(own) = entries.of_values().only(call)? else { return Ok(0_i64) };
            let coordinates = entries.of_coordinates().map(|field| field.write(call));
            let (mut coordinates, mut values) =
                (coordinates.collect::<maniple::Result<Vec<_>>>()?, entries.of_values().write(call)?);
            let mut coordinates: Vec<_> = coordinates.iter_mut().map(|all| all.row(own)).collect();
            let mut values = values.row(own);
            let (mut places, mut narrow) = (Vec::new(), Vec::new());
            let mut take = |at: &[Vec<i64>], elements: &[u8]| {
                outermost.blocks_of(at, &mut places);
                for place in &mut places {
                    let next = &mut next[*place];
                    *place = (*next - own.lo[0]) as usize;
                    *next += 1;
                }
                for (coordinates, at) in coordinates.iter_mut().zip(at) {
                    coordinates.set(&places, narrowed(at, entries.index, &mut narrow));
                }
                values.set(&places, elements);
            };
            let outcome = match kept.take(part as i64) {
                Some(Listing { batches, evidence, .. }) => {
                    batches.iter().for_each(|(coordinates, elements)| take(coordinates, elements));
                    Ok(evidence)
                }
                None => list_batches(&*each, order, Some(element), call, &mut take)?,
            };
            let found = outcome.map_err(|problem| Error::application(each.error(problem).to_string()))?;
            // Each block ends where the next one starts.
            let after = starts.get(part + 1).map_or(total, |starts| starts[0]);
            if found != evidence[part] || !next.iter().eq(starts[part].iter().skip(1).chain([&after])) {
                let reason =
                    "it has changed while it was read: its entries are others than those that were counted before";
                return Err(Error::application(each.error(reason.to_owned().into()).to_string()));
            }
            Ok(own.hi[0] - own.lo[0] + 1)
        });
        let all = lists.requirements().iter().cloned().chain([given]);
        let launcher = all.fold(TaskLauncher::new(&task), TaskLauncher::requirement);
        let domain = AnyRect::from(Rect::<1>::from(0..lists.parts()));
        let _launched = cx.index_launch(domain, launcher.typed::<i64>());
    }
}
