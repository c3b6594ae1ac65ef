//! Entries that lie in blocks, stored in levels.
//!
//! Each block has the entries of some neighbouring coordinates of the outermost level, and is packed by a task of its
//! own. Blocks of the outermost level have nothing in common below it, so that what a level stores of all is what it
//! stores of one block after the other, and the result is the same for any number of blocks. Where the positions of
//! each block begin in each level follows from how many there are of all blocks before.

use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace, Rect};
use maniple::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Arrangement, Context, Error, FieldId, FieldMask, FieldValue, LayoutConstraint, LogicalPartition, Privilege,
    Projection, Region, Requirement, Target, TaskLauncher,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::DistributedError;
use super::fetch::by_color;
use super::fields::{Required, field_type, only};
use super::kept::Kept;
use super::levels::{Component, Levels, Narrowed, components, words};
use super::operators::{Adds, operator};
use super::rows::Body;
use super::tensor::Tensor;
use crate::element::{Element, ElementType};
use crate::format::Level;
use crate::kernel::Serial;
use crate::level::{Array, Per, Stored};
use crate::loops::Reduction;
use crate::notation::TensorVariable;
use crate::storage::{Duplicates, DynamicEntries, DynamicTensor, EntryList, Packer, StorageError};
use crate::with_element;

/// From the first to before the last, for each block.
pub(super) type Intervals = Arc<[(i64, i64)]>;

/// Blocks, and which of them each point of a launch has.
#[derive(Clone)]
pub(super) struct Blocks<'a> {
    pub(super) cx: &'a Context,
    /// How many points there are.
    pub(super) points: i64,
    /// The block of a point.
    pub(super) of_point: Arc<dyn Fn(i64) -> i64 + Send + Sync>,
    /// The rows of each block, or its coordinates of the outermost level: from the first to before the last.
    pub(super) parts: Vec<(i64, i64)>,
}

impl Blocks<'_> {
    pub(super) fn domain(&self) -> AnyRect {
        AnyRect::from(Rect::<1>::from(0..self.points))
    }

    pub(super) fn projection(&self) -> Projection {
        let of_point = Arc::clone(&self.of_point);
        by_color(self.points, move |point| of_point(point))
    }

    /// A partition of a component into the piece of each block.
    pub(super) fn partition(
        &self,
        of: &Component,
        pieces: &[(i64, i64)],
    ) -> Result<LogicalPartition, DistributedError> {
        let piece = |(first, end): &(i64, i64)| AnyRect::from(Rect::<1>::from(*first..*end)).into();
        let pieces: Vec<AnySpace> = pieces.iter().map(piece).collect();
        let partitioning = self.cx.index_partition(of.region.space(), pieces.len(), &pieces)?;
        Ok(of.region.partition(&partitioning).map_err(Error::from)?)
    }

    /// The requirement of a field by which each point is given the piece of its block.
    pub(super) fn own(&self, partition: &LogicalPartition, field: FieldId, privilege: Privilege) -> Requirement {
        let target = Target::Partition(partition.clone(), self.projection());
        Requirement::new(target, FieldMask::of(field), privilege)
    }

    /// The interval of each block, and the sum of all lengths, given the length that each point has: blocks follow one
    /// another, whichever points have them.
    pub(super) fn intervals(&self, totals: &[i64]) -> (Vec<(i64, i64)>, i64) {
        let mut of_blocks = vec![0; self.parts.len()];
        for (point, total) in (0..).zip(totals) {
            of_blocks[(self.of_point)(point) as usize] = *total;
        }
        let (mut intervals, mut total) = (vec![(0, 0); self.parts.len()], 0);
        for block in self.in_order() {
            intervals[block] = (total, total + of_blocks[block]);
            total += of_blocks[block];
        }
        (intervals, total)
    }

    /// The blocks in the order of their parts.
    pub(super) fn in_order(&self) -> Vec<usize> {
        let mut in_order: Vec<usize> = (0..self.parts.len()).collect();
        in_order.sort_by_key(|&block| (self.parts[block].0, block));
        in_order
    }
}

/// The fields with entries of a requirement: one for the coordinates of each dimension, and that of the elements.
#[derive(Clone)]
pub(super) struct EntryFields {
    pub(super) requirement: usize,
    pub(super) coordinates: Vec<FieldId>,
    pub(super) values: FieldId,
    /// The type of coordinates, of 32 or 64 bits, and that of elements.
    pub(super) index: ElementType,
    pub(super) element: ElementType,
}

impl EntryFields {
    /// Room for so many entries, as fields of one region: coordinates of a type for each dimension, and elements.
    pub(super) fn with_room(
        cx: &Context,
        variable: &TensorVariable,
        total: i64,
        index: ElementType,
    ) -> Result<(Self, Component), DistributedError> {
        let (order, element) = (variable.order(), variable.element());
        let names: Vec<String> = (0..order).map(|mode| format!("coordinates {mode}")).collect();
        let coordinates = names.iter().map(|name| (name.as_str(), field_type(index), index));
        let fields: Vec<_> = coordinates.chain([("values", field_type(element), element)]).collect();
        let found = components(cx, total as usize, &fields)?;
        let coordinates = found[..order].iter().map(|component| component.field).collect();
        let values = &found[order];
        Ok((Self { requirement: 0, coordinates, values: values.field, index, element }, values.clone()))
    }

    /// The field with the coordinates of each dimension.
    pub(super) fn of_coordinates(&self) -> impl Iterator<Item = Required> {
        let (requirement, element) = (self.requirement, self.index);
        self.coordinates.iter().map(move |&field| Required { requirement, field, element })
    }

    /// The field with the elements.
    pub(super) fn of_values(&self) -> Required {
        Required { requirement: self.requirement, field: self.values, element: self.element }
    }

    /// All fields.
    pub(super) fn mask(&self) -> FieldMask {
        let fields = self.coordinates.iter().chain([&self.values]).map(|&field| FieldMask::of(field));
        fields.reduce(|all, field| all.union(&field)).unwrap_or_default()
    }

    /// Packs the entries of a block, which a point is given.
    fn packed(&self, call: &LeafCall<'_>, block: &Block<'_>) -> maniple::Result<Result<DynamicTensor, StorageError>> {
        let coordinates = self.of_coordinates().map(|field| field.numbers(call));
        let coordinates = coordinates.collect::<maniple::Result<Vec<_>>>()?;
        with_element!(self.element, T => {
            Ok(block.packed(EntryList::of(coordinates, self.of_values().read::<T, T>(call)?).into()))
        })
    }
}

/// A block of a tensor that is packed: the coordinates of its outermost level, and how many positions levels have at
/// least.
pub(super) struct Block<'a> {
    pub(super) variable: &'a TensorVariable,
    pub(super) rows: (i64, i64),
    pub(super) least: &'a [usize],
}

impl Block<'_> {
    /// The block in levels.
    fn packed(&self, entries: DynamicEntries) -> Result<DynamicTensor, StorageError> {
        let (format, dimensions) = (self.variable.format(), self.variable.dimensions());
        let rows = Some(self.rows.0..self.rows.1);
        let packer = Packer { team: &Serial, format, dimensions, rows, least: self.least };
        Ok(entries.pack_by(&packer, self.variable.fill(), Duplicates::Sum)?.0)
    }

    /// The block in levels, of entries of which the elements are there as bytes.
    pub(super) fn packed_of(&self, coordinates: Vec<Vec<i64>>, values: &[u8]) -> Result<DynamicTensor, StorageError> {
        with_element!(self.variable.element(), T => {
            let values = values.chunks_exact(size_of::<T>()).map(bytemuck::checked::pod_read_unaligned);
            self.packed(EntryList::<T>::of(coordinates, values.collect()).into())
        })
    }
}

/// Blocks that were packed to measure them, each with how many positions levels had to have at least.
pub(super) type KeptBlocks = Kept<(Vec<usize>, DynamicTensor)>;

/// How many positions each level of a block has, or why there are no levels. The block is kept.
pub(super) fn measured(
    kept: &KeptBlocks,
    number: i64,
    least: &[usize],
    packed: Result<DynamicTensor, StorageError>,
) -> Measured {
    let packed = packed.map_err(|error| error.to_string())?;
    let positions = packed.levels().iter().map(|level| level.positions as i64).collect();
    let bytes = packed.bytes();
    kept.put(number, (least.to_vec(), packed), bytes);
    Ok(positions)
}

/// A component of a level that points write: which one it is, its numbers of each block and what is added to these, and
/// the requirement.
struct WrittenComponent {
    level: usize,
    stored: Stored,
    moved: Intervals,
    requirement: usize,
    field: FieldId,
    element: ElementType,
}

/// Entries in blocks, and the tensor that they become.
pub(super) struct Packing<'a> {
    pub(super) blocks: &'a Blocks<'a>,
    pub(super) variable: &'a TensorVariable,
    /// The coordinates of the outermost level of each block.
    pub(super) coordinates: Intervals,
    pub(super) entries: EntryFields,
    /// The entries of each block.
    pub(super) of_blocks: LogicalPartition,
    /// The blocks that were packed to measure them.
    pub(super) kept: Arc<KeptBlocks>,
}

impl Packing<'_> {
    /// How many positions each level has for each point.
    pub(super) async fn measured(&self, least: &[usize]) -> Result<Vec<Vec<i64>>, DistributedError> {
        let (variable, entries) = (self.variable.clone(), self.entries.clone());
        let (coordinates, of_point) = (Arc::clone(&self.coordinates), Arc::clone(&self.blocks.of_point));
        let (least, kept): (Vec<usize>, _) = (least.to_vec(), Arc::clone(&self.kept));
        let task = task("measure", self.variable, move |call| {
            let number = of_point(call.point().coords()[0]);
            let rows = coordinates[number as usize];
            if rows.0 == rows.1 {
                return Ok(Ok(vec![0; variable.format().levels().len()]));
            }
            let packed = entries.packed(call, &Block { variable: &variable, rows, least: &least })?;
            Ok(measured(&kept, number, &least, packed))
        });
        let launcher = TaskLauncher::new(&task).requirement(self.given());
        let measured = self.blocks.cx.index_launch(self.blocks.domain(), launcher.typed::<Measured>()).all().await?;
        all_measured(measured, self.variable)
    }

    fn given(&self) -> Requirement {
        let target = Target::Partition(self.of_blocks.clone(), self.blocks.projection());
        Requirement::new(target, self.entries.mask(), Privilege::Read)
    }

    /// The tensor, given how many positions each level has for each point.
    pub(super) async fn stored(&self, mut positions: Vec<Vec<i64>>) -> Result<Tensor, DistributedError> {
        let (cx, format, rank) = (self.blocks.cx, self.variable.format(), self.variable.format().levels().len());
        // All have as many slots as the one that needs most.
        let slots = |level: usize, positions: &[i64]| {
            let above = level.checked_sub(1).map_or(1, |above| positions[above]);
            positions[level].checked_div(above).unwrap_or(0) as usize
        };
        let most = |level: usize| match format.levels()[level] {
            Level::Counter => positions.iter().map(|positions| slots(level, positions)).max().unwrap_or(0),
            _ => 0,
        };
        let mut least: Vec<usize> = (0..rank).map(most).collect();
        match least.iter().any(|&least| least > 0) {
            true => positions = self.measured(&least).await?,
            false => least.clear(),
        }
        let of_level = |level: usize| positions.iter().map(|all| all[level]).collect::<Vec<i64>>();
        let levels: Vec<(Intervals, i64)> = (0..rank)
            .map(|level| self.blocks.intervals(&of_level(level)))
            .map(|(intervals, total)| (intervals.into(), total))
            .collect();
        let made = Levels::with_room(
            cx,
            self.variable.element(),
            self.is_narrow(levels.iter().map(|(_, total)| *total)),
            format.levels(),
            levels.iter().map(|(_, total)| *total as usize).collect(),
        )?;
        // The root is above the outermost level, and the first block's.
        let count = self.coordinates.len();
        let first =
            self.blocks.in_order().into_iter().find(|&block| self.coordinates[block].0 < self.coordinates[block].1);
        let root: Intervals = (0..count).map(|block| (0, i64::from(Some(block) == first))).collect();
        let still: Intervals = vec![(0, 0); count].into();
        let (mut all, mut given) = (Vec::new(), vec![self.given()]);
        for level in 0..rank {
            let own = &levels[level].0;
            let above = if level == 0 { &root } else { &levels[level - 1].0 };
            for (stored, component) in made.stored(level) {
                let moved = if matches!(stored.per, Per::Offset | Per::Word) { own } else { &still };
                let pieces = match stored.per {
                    Per::Offset | Per::Parent => Arc::clone(above),
                    Per::Position | Per::Slot => Arc::clone(own),
                    Per::Word => own.iter().map(|&(first, end)| words(first, end)).collect(),
                };
                let mut privilege = Privilege::Discard;
                match stored.per {
                    Per::Offset => set_all(cx, component, levels[level].1)?,
                    // Neighbours may have bits of one word, which add up.
                    Per::Word => {
                        set_all(cx, component, 0)?;
                        let added = operator(Reduction::Sum, component.element);
                        privilege = Privilege::Reduce(added.expect("numbers have sums"));
                    }
                    _ => {}
                }
                let (moved, requirement) = (Arc::clone(moved), given.len());
                let (field, element) = (component.field, component.element);
                all.push(WrittenComponent { level, stored: *stored, moved, requirement, field, element });
                given.push(self.blocks.own(&self.blocks.partition(component, &pieces)?, field, privilege));
            }
        }
        let (values, of_values) = (made.values(), given.len());
        let pieces = levels.last().map_or(&root, |(intervals, _)| intervals);
        given.push(self.blocks.own(&self.blocks.partition(values, pieces)?, values.field, Privilege::Discard));
        let of_values = Required { requirement: of_values, field: values.field, element: values.element };
        let task = self.storing(least, all, of_values);
        let launcher = given.into_iter().fold(TaskLauncher::new(&task), TaskLauncher::requirement);
        let _launched = cx.index_launch(self.blocks.domain(), launcher.typed::<i64>());
        Tensor::in_levels(self.variable, made)
    }

    /// Whether positions and coordinates have 32 bits.
    fn is_narrow(&self, mut positions: impl Iterator<Item = i64>) -> bool {
        let dimensions = self.variable.dimensions();
        let mut bounds = self.variable.format().expressions().iter().map(|level| level.bounds(dimensions));
        let fits = |number: i64| i32::try_from(number).is_ok();
        positions.all(fits) && bounds.all(|bounds| fits(bounds.start) && fits(bounds.end))
    }

    /// The task that stores a block.
    fn storing(&self, least: Vec<usize>, all: Vec<WrittenComponent>, values: Required) -> Arc<TaskDefinition> {
        let (variable, entries) = (self.variable.clone(), self.entries.clone());
        let (coordinates, of_point) = (Arc::clone(&self.coordinates), Arc::clone(&self.blocks.of_point));
        let kept = Arc::clone(&self.kept);
        task("assemble", self.variable, move |call| {
            let number = of_point(call.point().coords()[0]) as usize;
            let rows = coordinates[number];
            if rows.0 == rows.1 {
                return Ok(0_i64);
            }
            let block = Block { variable: &variable, rows, least: &least };
            let packed = match kept.take(number as i64).filter(|(own, _)| *own == least) {
                Some((_, packed)) => packed,
                None => entries.packed(call, &block)?.map_err(Error::from_task)?,
            };
            put(call, values, &packed)?;
            let levels = packed.levels();
            for written in &all {
                let array = levels[written.level].component(written.stored.name);
                match (written.stored.per, written.element) {
                    (Per::Word, _) => add_bits(call, written, array, number)?,
                    (_, ElementType::I32) => write::<i32>(call, written, array, number)?,
                    _ => write::<i64>(call, written, array, number)?,
                }
            }
            Ok(levels.last().map_or(1, |last| last.positions) as i64)
        })
    }
}

/// How many positions each level has for the entries of a block, or why levels do not store them.
pub(super) type Measured = Result<Vec<i64>, String>;

/// The measurements of all points, or the error of a point whose entries levels do not store.
pub(super) fn all_measured(
    measured: Vec<Measured>,
    variable: &TensorVariable,
) -> Result<Vec<Vec<i64>>, DistributedError> {
    let unfit = |reason| DistributedError::Unfit { tensor: variable.name().to_owned(), reason };
    measured.into_iter().collect::<Result<_, String>>().map_err(unfit)
}

/// A tensor in which nothing is stored.
pub(super) fn without_entries(cx: &Context, variable: &TensorVariable) -> Result<Tensor, DistributedError> {
    let broken = |error| DistributedError::Broken { tensor: variable.name().to_owned(), error };
    let none = DynamicEntries::new(variable.element(), variable.order());
    let none = none.pack(variable.format(), variable.dimensions(), variable.fill(), Duplicates::Sum);
    Tensor::from_dynamic(cx, variable, &none.map_err(broken)?.0)
}

/// A task of a tensor's.
pub(super) fn task<R: Serialize + DeserializeOwned + Send + Sync + 'static>(
    what: &str,
    variable: &TensorVariable,
    run: impl Fn(&LeafCall<'_>) -> maniple::Result<R> + Send + Sync + 'static,
) -> Arc<TaskDefinition> {
    task_with(what, variable, Codec::of::<R>(), Box::new(move |call| Ok(Value::new(run(call)?))))
}

/// [`task`] for all bodies, so that it is compiled once.
fn task_with(what: &str, variable: &TensorVariable, codec: Codec, body: Box<Body>) -> Arc<TaskDefinition> {
    let layout = LayoutConstraint { arrangement: Some(Arrangement::StructOfArrays), ..LayoutConstraint::default() };
    let options = TaskOptions { layout, ..TaskOptions::default() };
    let task = TaskDefinition::new(&format!("{what} {}", variable.name())).codec(codec);
    Arc::new(task.leaf(options, body))
}

/// Sets all numbers of a component.
pub(super) fn set_all(cx: &Context, component: &Component, number: i64) -> Result<(), DistributedError> {
    if component.region.space().space().volume() == 0 {
        return Ok(());
    }
    let region: Region<(), 1> = Region::try_from_logical(component.region.clone())?;
    match component.element {
        ElementType::I32 => cx.fill_field(&region, component.field, number as i32)?,
        _ => cx.fill_field(&region, component.field, number)?,
    }
    Ok(())
}

/// Writes the elements of a block to where they belong.
fn put(
    call: &LeafCall<'_>,
    Required { requirement, field, .. }: Required,
    packed: &DynamicTensor,
) -> maniple::Result<()> {
    with_element!(packed.element(), T => {
        let mut values = call.write::<T, 1>(requirement, field)?;
        if let (Some(own), Some(found)) = (only(values.space().rects()), packed.values::<T>()) {
            values.span_mut(own).copy_from_slice(found);
        }
        Ok(())
    })
}

/// Writes a component of a level of a block to where it belongs.
fn write<N: Element + FieldValue + Narrowed>(
    call: &LeafCall<'_>,
    WrittenComponent { stored, moved, requirement, field, .. }: &WrittenComponent,
    array: &Array,
    block: usize,
) -> maniple::Result<()> {
    let mut numbers = call.write::<N, 1>(*requirement, *field)?;
    let Some(own) = only(numbers.space().rects()) else { return Ok(()) };
    let nothing = (stored.per == Per::Slot).then(|| array.width().greatest());
    for (place, number) in numbers.span_mut(own).iter_mut().enumerate() {
        let found = array.get(place);
        *number = if Some(found) == nothing { N::GREATEST } else { N::narrowed(found + moved[block].0) };
    }
    Ok(())
}

/// Adds the bits of a block to where they belong, which may begin in the middle of a word.
fn add_bits(
    call: &LeafCall<'_>,
    WrittenComponent { moved, requirement, field, .. }: &WrittenComponent,
    array: &Array,
    block: usize,
) -> maniple::Result<()> {
    let mut bits = call.reduce::<Adds, i64, 1>(*requirement, *field)?;
    let (begin, end) = moved[block];
    let (shift, (first, end)) = (begin % 64, words(begin, end));
    let word = |place: i64| if (0..array.len() as i64).contains(&place) { array.get(place as usize) as u64 } else { 0 };
    for place in 0..end - first {
        let below = if shift == 0 { 0 } else { word(place - 1) >> (64 - shift) };
        bits.fold(first + place, ((word(place) << shift) | below) as i64);
    }
    Ok(())
}
