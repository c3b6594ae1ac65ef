//! Tensors in levels to other formats, by tasks on all nodes.
//!
//! Each task has the positions below a part of those of the outermost level, and lists their entries, in blocks of the coordinates of the outermost level of the new format: where the entries of
//! each block are is known when all are counted. Then each block is [packed](super::packing), on the node where a point has it. No node has all of the tensor.

use std::sync::Arc;

use maniple::space::{AnySpace, IndexSpace, Rect};
use maniple::task::{Codec, LeafCall};
use maniple::{Context, Error, FieldId, FieldMask, FieldValue, Privilege, Requirement, Target, TaskLauncher};

use super::error::DistributedError;
use super::fetch::by_color;
use super::levels::{Index, words};
use super::packing::{Blocks, Entries, Packing, only, task, without_entries};
use super::placed_levels::cut_levels;
use super::rows::blocks_for;
use super::shares::{Ends, Interval};
use super::tensor::Tensor;
use crate::element::{Element, ElementType};
use crate::format::{Level, LevelExpression};
use crate::level::{Array, Component, LevelData, Per, Stored};
use crate::notation::TensorVariable;
use crate::storage::SparseTensor;
use crate::with_element;

/// So many tasks do it, if nodes are not more.
const MOST_TASKS: usize = 64;

impl Tensor {
    /// The tensor that statements call `variable`, with what this one stores: in another format, each node converts a part. What is stored is read as it is after all that was launched before. Of
    /// one format, it is the same tensor under another name.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the variable has other extents, elements or fill values; [`DistributedError::Dense`] unless both are in levels; [`DistributedError::Stored`] if `variable` has
    /// levels that regions have not, or that count; [`DistributedError::Runtime`].
    pub async fn converted(&self, cx: &Context, variable: &TensorVariable) -> Result<Self, DistributedError> {
        let own = self.variable();
        if !(own.renamed(variable.name()).is_like(variable) && own.fill() == variable.fill()) {
            let describe = |of: &TensorVariable| {
                let (element, dimensions, fill) = (of.element(), of.dimensions(), of.fill());
                format!("{element} elements with extents {dimensions:?}, and {fill:?} where nothing is stored")
            };
            let (expected, found) = (describe(own), describe(variable));
            return Err(DistributedError::Shape { tensor: own.name().to_owned(), expected, found });
        }
        if own.format() == variable.format() {
            return Ok(self.called(variable));
        }
        if let Some(dense) = [own, variable].into_iter().find(|variable| variable.format().is_dense()) {
            return Err(DistributedError::Dense { tensor: dense.name().to_owned() });
        }
        let format = variable.format();
        let counts = format.expressions().iter().any(|level| matches!(level, LevelExpression::Count(_)));
        if counts || format.properties().iter().any(|properties| properties.ranges) {
            return Err(DistributedError::Stored { tensor: variable.name().to_owned(), format: format.clone() });
        }
        let is_narrow = own.dimensions().iter().all(|extent| i32::try_from(*extent).is_ok());
        with_element!(own.element(), T => match is_narrow {
            true => self.convert::<i32, T>(cx, variable).await,
            false => self.convert::<i64, T>(cx, variable).await,
        })
    }

    async fn convert<N: Index, T: Element + FieldValue>(
        &self,
        cx: &Context,
        variable: &TensorVariable,
    ) -> Result<Self, DistributedError> {
        let (own, order) = (self.variable().format(), variable.order());
        let bytes = self.positions(own.levels().len() - 1) as usize * (order * size_of::<N>() + size_of::<T>());
        // All nodes know how many entries each part has of each block.
        let tasks = blocks_for(cx, bytes).min(cx.nodes().max(MOST_TASKS)) as i64;
        let parts = match own.levels()[0] {
            // Where a run begins, the one before tells.
            Level::RunLength => 1,
            _ => tasks.min(self.positions(0)).max(1),
        };
        let source = Source::<T>::new(cx, self, parts).await?;
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
        let source = Arc::new(source);
        let counted = source.counted(cx, variable, (count as usize, block_of.clone())).await?;
        // Entries lie part by part, in the order of their blocks.
        let mut total = 0;
        let mut starts: Vec<Vec<i64>> = counted.clone();
        for start in starts.iter_mut().flatten() {
            total += std::mem::replace(start, total);
        }
        if total == 0 {
            return without_entries::<T>(cx, variable);
        }
        let (entries, room) = Entries::with_room::<N, T>(cx, (order, total))?;
        let part = |part: usize| starts[part][0]..starts.get(part + 1).map_or(total, |next| next[0]);
        let of_parts: Vec<AnySpace> = (0..starts.len())
            .map(|number| IndexSpace::<1>::from_rects([Rect::<1>::from(part(number))]).into())
            .collect();
        let of_parts = cx.index_partition(room.region.space(), of_parts.len(), &of_parts)?;
        let of_parts = room.region.partition(&of_parts).map_err(Error::from)?;
        let target = Target::Partition(of_parts, by_color(parts, |part| part));
        let given = Requirement::new(target, entries.mask(), Privilege::Discard);
        source.list::<N>(cx, variable, (given, &entries), (starts.clone(), block_of));

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
}

/// A component of a level that tasks are given a piece of.
struct Given {
    level: usize,
    stored: Stored,
    requirement: usize,
    field: FieldId,
    element: ElementType,
}

/// A tensor in parts, each with all that is below some neighbouring positions of the outermost level.
struct Source<T> {
    variable: TensorVariable,
    fill: T,
    parts: i64,
    /// Of each level, the coordinates that there may be.
    bounds: Vec<std::ops::Range<i64>>,
    /// Of each level, of each part: its positions.
    positions: Vec<Vec<Interval>>,
    given: Vec<Given>,
    requirements: Vec<Requirement>,
    values: FieldId,
}

impl<T: Element + FieldValue> Source<T> {
    async fn new(cx: &Context, tensor: &Tensor, parts: i64) -> Result<Self, DistributedError> {
        let variable = tensor.variable().clone();
        let positions = Ends::new(cx, tensor, (0, parts)).await?.positions;
        let runs = |level: &Vec<Interval>| level.iter().map(|run| vec![*run]).collect();
        let (levels, values) = cut_levels(cx, tensor, &positions.iter().map(runs).collect::<Vec<_>>())?;
        let (mut given, mut requirements) = (Vec::new(), Vec::new());
        let own = |partition, field| {
            let target = Target::Partition(partition, by_color(parts, |part| part + 1));
            Requirement::new(target, FieldMask::of(field), Privilege::Read)
        };
        for (level, partitions) in levels.into_iter().enumerate() {
            let components = tensor.levels().into_iter().flat_map(|levels| levels.stored(level));
            for ((stored, component), (_, partition)) in components.zip(partitions) {
                let (requirement, field, element) = (requirements.len(), component.field, component.element);
                given.push(Given { level, stored: *stored, requirement, field, element });
                requirements.push(own(partition, field));
            }
        }
        requirements.push(own(values, tensor.field()));
        let bounds = (0..positions.len()).map(|level| {
            let of_level = variable.format().expressions()[level].bounds(variable.dimensions());
            match variable.format().expressions()[level] {
                // Coordinates count up to what is there.
                LevelExpression::Count(_) => 0..i64::MAX / 4,
                _ => of_level,
            }
        });
        let bounds = bounds.collect();
        let fill = T::from_scalar(variable.fill()).expect("fill values have the type of their tensors");
        Ok(Self { variable, fill, parts, bounds, positions, given, requirements, values: tensor.field() })
    }

    /// How many entries of each block each part has.
    async fn counted(
        self: &Arc<Self>,
        cx: &Context,
        variable: &TensorVariable,
        (blocks, block_of): (usize, impl Fn(&[i64]) -> usize + Send + Sync + 'static),
    ) -> Result<Vec<Vec<i64>>, DistributedError> {
        let source = Arc::clone(self);
        let task = task(("count entries of", variable), Codec::of::<Vec<i64>>(), move |call| {
            let mut counts = vec![0_i64; blocks];
            source.part(call)?.for_each(|at, _| counts[block_of(at)] += 1);
            Ok(counts)
        });
        let launcher = self.requirements.iter().cloned().fold(TaskLauncher::new(&task), TaskLauncher::requirement);
        let domain = maniple::space::AnyRect::from(Rect::<1>::from(0..self.parts));
        Ok(cx.index_launch(domain, launcher.typed::<Vec<i64>>()).all().await?)
    }

    /// Has each part write its entries, those of each block from where they start on.
    fn list<N: Index>(
        self: &Arc<Self>,
        cx: &Context,
        variable: &TensorVariable,
        (given, entries): (Requirement, &Entries),
        (starts, block_of): (Vec<Vec<i64>>, impl Fn(&[i64]) -> usize + Send + Sync + 'static),
    ) {
        let (source, entries, requirement) = (Arc::clone(self), entries.clone(), self.requirements.len());
        let task = task(("list entries of", variable), Codec::of::<i64>(), move |call| {
            let part = source.part(call)?;
            let mut next = starts[call.point().coords()[0] as usize].clone();
            let coordinates = entries.coordinates.iter().map(|&field| call.write::<N, 1>(requirement, field));
            let mut coordinates = coordinates.collect::<maniple::Result<Vec<_>>>()?;
            let mut values = call.write::<T, 1>(requirement, entries.values)?;
            let Some(own) = only(values.space().rects()) else { return Ok(0_i64) };
            let mut spans: Vec<_> = coordinates.iter_mut().map(|all| all.span_mut(own)).collect();
            let mut values = values.span_mut(own);
            part.for_each(|at, value| {
                let next = &mut next[block_of(at)];
                let place = (*next - own.lo[0]) as usize;
                *next += 1;
                spans.iter_mut().zip(at).for_each(|(span, &at)| span[place] = N::narrowed(at));
                values[place] = value;
            });
            Ok(values.len() as i64)
        });
        let all = self.requirements.iter().cloned().chain([given]);
        let launcher = all.fold(TaskLauncher::new(&task), TaskLauncher::requirement);
        let domain = maniple::space::AnyRect::from(Rect::<1>::from(0..self.parts));
        let _launched = cx.index_launch(domain, launcher.typed::<i64>());
    }

    /// The part of a point, as a tensor that has no more than it.
    fn part(&self, call: &LeafCall<'_>) -> maniple::Result<SparseTensor<T>> {
        let (number, format) = (call.point().coords()[0] as usize, self.variable.format());
        let mut levels: Vec<LevelData> = Vec::new();
        for (level, kind) in format.levels().iter().enumerate() {
            let (first, end) = self.positions[level][number];
            let (count, mut bounds) = ((end - first).max(0), self.bounds[level].clone());
            if level == 0 && matches!(kind, Level::Dense | Level::Bitmap) {
                bounds = bounds.start + first..bounds.start + first + count;
            } else if matches!(kind, Level::Dense | Level::Bitmap | Level::Range) && bounds.end > i64::MAX / 8 {
                bounds.end = count.checked_div(levels[level - 1].positions as i64).unwrap_or(0);
            }
            let mut components = Vec::new();
            for given in self.given.iter().filter(|given| given.level == level) {
                let mut array = match given.element {
                    ElementType::I32 => Array::I32(numbers(call, given)?),
                    _ => Array::I64(numbers(call, given)?),
                };
                match given.stored.per {
                    Per::Word => array = Array::I64(moved_down(&array, (first, first + count))),
                    Per::Position | Per::Slot => {}
                    Per::Parent if level > 0 => {}
                    // From the first position of the part on; the root is told of all.
                    Per::Offset | Per::Parent => (0..array.len()).for_each(|place| {
                        array.set(place, (array.get(place) - first).clamp(0, count));
                    }),
                }
                components.push(Component { name: given.stored.name, array });
            }
            levels.push(LevelData {
                bounds,
                properties: format.properties()[level],
                line: format.line(level, self.variable.dimensions()),
                parents: levels.last().map_or(1, |above| above.positions),
                positions: count as usize,
                components,
            });
        }
        let values = call.read::<T, 1>(self.given.len(), self.values)?;
        let values = only(values.space().rects()).map(|own| values.span(own).to_vec()).unwrap_or_default();
        Ok(SparseTensor::of(format, self.variable.dimensions(), self.fill, levels, values))
    }
}

/// The numbers of a component that a task is given.
fn numbers<N: FieldValue>(call: &LeafCall<'_>, given: &Given) -> maniple::Result<Vec<N>> {
    let numbers = call.read::<N, 1>(given.requirement, given.field)?;
    Ok(only(numbers.space().rects()).map(|own| numbers.span(own).to_vec()).unwrap_or_default())
}

/// The bits of positions, of which the words are given that have them, from the first bit of the first word on.
fn moved_down(bits: &Array, (first, end): Interval) -> Vec<i64> {
    let shift = first % 64;
    let word = |place: usize| if place < bits.len() { bits.get(place) as u64 } else { 0 };
    let (_, count) = words((0, end - first));
    let moved = |place: usize| match shift {
        0 => word(place) as i64,
        _ => (word(place) >> shift | word(place + 1) << (64 - shift)) as i64,
    };
    (0..count as usize).map(moved).collect()
}
