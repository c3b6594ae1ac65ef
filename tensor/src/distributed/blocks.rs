//! Results assembled in blocks of the coordinates of their outermost level, whatever levels are below.
//!
//! A first launch counts what each point computes. Where there is room for it, a second one writes it, as coordinates and elements in any order, and tells how many positions each level gets for
//! them. The sums of these are where each point's positions begin, in each level; there is room for all of them then, and a third launch writes what the levels store. Blocks of the outermost
//! level have nothing in common below it, so that what a level stores of all is what it stores of one block after the other, and the result is the same for any number of points.

use std::sync::Arc;

use maniple::space::Rect;
use maniple::task::{Codec, LeafCall, TaskDefinition};
use maniple::{Error, FieldId, FieldMask, FieldType, FieldValue, Privilege, Region, Requirement, Target, TaskLauncher};

use super::assemble::{Assembly, Index, only, updated};
use super::error::DistributedError;
use super::leaf::{Kernel, MadeViews};
use super::levels::{Component, Levels, Narrowed, components};
use super::tensor::Tensor;
use crate::element::{Element, ElementType};
use crate::kernel::Serial;
use crate::level::{Array, Per, Stored};
use crate::lower::Output;
use crate::notation::TensorVariable;
use crate::storage::{Duplicates, EntryList, SparseTensor, pack, pack_by};

/// From the first to before the last, for each color.
type Intervals = Arc<[(i64, i64)]>;

/// What a point has computed, before it is in levels: the fields of coordinates, one for each dimension, and that of elements, of a requirement.
#[derive(Clone)]
struct Entries {
    requirement: usize,
    coordinates: Vec<FieldId>,
    values: FieldId,
}

/// A component of a level that points write: which one it is, where its numbers of each color are moved to, and the requirement.
struct Written {
    level: usize,
    stored: Stored,
    moved: Intervals,
    requirement: usize,
    field: FieldId,
    element: ElementType,
}

impl Assembly<'_> {
    pub(super) async fn run_in_blocks<N: Index, T: Element + FieldValue>(&self) -> Result<Tensor, DistributedError> {
        let result = self.launching.plan.statement.result();
        let blocks: Intervals = self.tiled(result).into();
        let counting = self.counting(self.kernel(Output::Counts, N::TYPE)?, Arc::clone(&blocks));
        let counted = self.launcher(&counting, Vec::new())?;
        let totals = self.cx.index_launch(self.domain(), counted.typed::<i64>()).all().await?;
        let (of_entries, total) = self.intervals(&totals);
        if total == 0 {
            return self.without_entries::<T>(result);
        }
        let names: Vec<String> = (0..result.order()).map(|mode| format!("coordinates {mode}")).collect();
        let coordinates = names.iter().map(|name| (name.as_str(), FieldType::of::<N>(), N::TYPE));
        let fields: Vec<_> = coordinates.chain([("values", FieldType::of::<T>(), T::TYPE)]).collect();
        let found = components(self.cx, total as usize, &fields)?;
        let by_points = self.partition(&found[0], &of_entries)?;
        let entries = Entries {
            requirement: self.launching.fetches.len(),
            coordinates: found[..result.order()].iter().map(|component| component.field).collect(),
            values: found[result.order()].field,
        };
        let mask = found.iter().map(|component| FieldMask::of(component.field));
        let mask = mask.reduce(|all, field| all.union(&field)).unwrap_or_default();
        let given = |privilege| {
            let target = Target::Partition(by_points.clone(), self.projection());
            Requirement::new(target, mask.clone(), privilege)
        };
        let kernel = self.kernel(Output::Entries, N::TYPE)?;
        let writing = self.writing::<N, T>(kernel, (entries.clone(), Arc::clone(&blocks)));
        let launcher = self.launcher(&writing, vec![given(Privilege::Discard)])?;
        let positions = self.cx.index_launch(self.domain(), launcher.typed::<Vec<i64>>()).all().await?;

        let rank = result.format().rank();
        let of_level = |level: usize| positions.iter().map(|all| all[level]).collect::<Vec<i64>>();
        let levels: Vec<(Intervals, i64)> = (0..rank)
            .map(|level| self.intervals(&of_level(level)))
            .map(|(intervals, total)| (intervals.into(), total))
            .collect();
        let is_narrow = self.is_narrow && levels.iter().all(|(_, total)| i32::try_from(*total).is_ok());
        let totals = levels.iter().map(|(_, total)| *total as usize).collect();
        let made = Levels::with_room(self.cx, (T::TYPE, is_narrow), result.format().levels(), totals)?;
        // The root is above the outermost level, and the first block's.
        let first = self.in_order().into_iter().find(|&color| blocks[color].0 < blocks[color].1);
        let root: Intervals = (0..blocks.len()).map(|color| (0, i64::from(Some(color) == first))).collect();
        let still: Intervals = vec![(0, 0); blocks.len()].into();
        let (mut all, mut given) = (Vec::new(), vec![given(Privilege::Read)]);
        for level in 0..rank {
            let own = &levels[level].0;
            let above = if level == 0 { &root } else { &levels[level - 1].0 };
            for (stored, component) in made.stored(level) {
                let (pieces, moved) = match stored.per {
                    Per::Offset => (above, own),
                    Per::Position | Per::Slot if level == 0 => (own, &blocks),
                    _ => (own, &still),
                };
                if stored.per == Per::Offset {
                    self.end_of(component, levels[level].1)?;
                }
                let (moved, requirement) = (Arc::clone(moved), given.len());
                let (field, element) = (component.field, component.element);
                all.push(Written { level, stored: *stored, moved, requirement, field, element });
                given.push(self.own(&self.partition(component, pieces)?, field, Privilege::Discard));
            }
        }
        let (values, of_values) = (made.values(), given.len());
        let pieces = levels.last().map_or(&root, |(intervals, _)| intervals);
        given.push(self.own(&self.partition(values, pieces)?, values.field, Privilege::Discard));
        let entries = Entries { requirement: 0, ..entries };
        let task = self.storing::<N, T>((entries, blocks), (all, of_values, values.field));
        let launcher = given.into_iter().fold(TaskLauncher::new(&task), TaskLauncher::requirement);
        let _launched = self.cx.index_launch(self.domain(), launcher.typed::<i64>());
        Tensor::in_levels(result, made)
    }

    /// The result, if nothing is stored in it.
    fn without_entries<T: Element + FieldValue>(&self, result: &TensorVariable) -> Result<Tensor, DistributedError> {
        let none = pack(
            result.format(),
            result.dimensions(),
            fill::<T>(result),
            EntryList::new(result.order()),
            Duplicates::Sum,
        );
        let none = none.map_err(|error| DistributedError::Broken { tensor: result.name().to_owned(), error })?;
        Tensor::from_sparse(self.cx, result, none.tensor)
    }

    /// The blocks of all colors, of which those that have coordinates have those before them too that no point computes, up to the block before, and the last one all that are left.
    fn tiled(&self, result: &TensorVariable) -> Vec<(i64, i64)> {
        let mut blocks = vec![(0, 0); self.parts.len()];
        let (mut end, mut last) = (0, None);
        for color in self.in_order() {
            if self.parts[color].0 < self.parts[color].1 {
                blocks[color] = (end, self.parts[color].1);
                (end, last) = (self.parts[color].1, Some(color));
            }
        }
        if let (Some(last), Some(&outermost)) = (last, result.format().order().first()) {
            blocks[last].1 = result.dimensions()[outermost];
        }
        blocks
    }

    /// The task that counts what a point computes.
    fn counting(&self, kernel: Kernel, blocks: Intervals) -> Arc<TaskDefinition> {
        let (leaf, color) = (self.leaf(kernel), self.color());
        self.task(("count", Codec::of::<i64>()), move |call| {
            let (first, end) = blocks[color(call.point().coords()[0]) as usize];
            let mut next = [0_i64];
            if first < end {
                leaf(call, MadeViews { next: Some(updated(&mut next, Rect::from(0..1))?), ..MadeViews::default() })?;
            }
            Ok(next[0])
        })
    }

    /// The task that writes what a point computes, and gives how many positions each level has for it.
    fn writing<N: Index, T: Element + FieldValue>(
        &self,
        kernel: Kernel,
        (entries, blocks): (Entries, Intervals),
    ) -> Arc<TaskDefinition> {
        let (leaf, color) = (self.leaf(kernel), self.color());
        let result = self.launching.plan.statement.result().clone();
        self.task(("compute", Codec::of::<Vec<i64>>()), move |call| {
            let block = blocks[color(call.point().coords()[0]) as usize];
            if block.0 == block.1 {
                return Ok(vec![0_i64; result.format().rank()]);
            }
            let coordinates = entries.coordinates.iter().map(|&field| call.write::<N, 1>(entries.requirement, field));
            let mut coordinates = coordinates.collect::<maniple::Result<Vec<_>>>()?;
            let mut values = call.write::<T, 1>(entries.requirement, entries.values)?;
            let mut list = EntryList::new(result.order());
            if let Some(own) = only(values.space().rects()) {
                let mut next = [own.lo[0]];
                let mut spans: Vec<_> = coordinates.iter_mut().map(|all| all.span_mut(own)).collect();
                let mut values = values.span_mut(own);
                let written = spans.iter_mut().map(|span| updated(span, own).map(Some));
                let made = MadeViews {
                    next: Some(updated(&mut next, Rect::from(0..1))?),
                    coordinates: written.collect::<maniple::Result<_>>()?,
                    values: Some(updated(&mut values, own)?),
                };
                leaf(call, made)?;
                let numbers = |span: &[N]| span.iter().map(|&at| at.into()).collect();
                list.coordinates = spans.iter().map(|span| numbers(span)).collect();
                list.values = values.to_vec();
            }
            let packed = packed(list, (&result, block))?;
            Ok(packed.levels().iter().map(|level| level.positions as i64).collect())
        })
    }

    /// The task that stores what a point has computed.
    fn storing<N: Index, T: Element + FieldValue>(
        &self,
        (entries, blocks): (Entries, Intervals),
        (all, of_values, values): (Vec<Written>, usize, FieldId),
    ) -> Arc<TaskDefinition> {
        let color = self.color();
        let result = self.launching.plan.statement.result().clone();
        self.task(("assemble", Codec::of::<i64>()), move |call| {
            let color = color(call.point().coords()[0]) as usize;
            let block = blocks[color];
            if block.0 == block.1 {
                return Ok(0_i64);
            }
            let packed = packed(read::<N, T>(call, &entries)?, (&result, block))?;
            for written in &all {
                let array = packed.levels()[written.level].component(written.stored.name);
                match written.element {
                    ElementType::I32 => write::<i32>(call, written, (array, color))?,
                    _ => write::<i64>(call, written, (array, color))?,
                }
            }
            let mut values = call.write::<T, 1>(of_values, values)?;
            if let Some(own) = only(values.space().rects()) {
                values.span_mut(own).copy_from_slice(packed.values());
            }
            Ok(packed.values().len() as i64)
        })
    }

    /// Has offsets end at a number: where positions begin is written by the points.
    fn end_of(&self, offsets: &Component, end: i64) -> Result<(), DistributedError> {
        let region: Region<(), 1> = Region::try_from_logical(offsets.region.clone())?;
        match offsets.element {
            ElementType::I32 => self.cx.fill_field(&region, offsets.field, end as i32)?,
            _ => self.cx.fill_field(&region, offsets.field, end)?,
        }
        Ok(())
    }
}

/// What a point has computed.
fn read<N: Index, T: Element + FieldValue>(call: &LeafCall<'_>, entries: &Entries) -> maniple::Result<EntryList<T>> {
    let mut list = EntryList::new(entries.coordinates.len());
    for (into, &field) in list.coordinates.iter_mut().zip(&entries.coordinates) {
        let coordinates = call.read::<N, 1>(entries.requirement, field)?;
        if let Some(own) = only(coordinates.space().rects()) {
            *into = coordinates.span(own).iter().map(|&at| at.into()).collect();
        }
    }
    let values = call.read::<T, 1>(entries.requirement, entries.values)?;
    if let Some(own) = only(values.space().rects()) {
        list.values = values.span(own).to_vec();
    }
    Ok(list)
}

/// What a point has computed, in levels: its block of the outermost dimension alone, from 0 on.
fn packed<T: Element>(
    mut list: EntryList<T>,
    (result, block): (&TensorVariable, (i64, i64)),
) -> maniple::Result<SparseTensor<T>> {
    let (format, mut dimensions) = (result.format(), result.dimensions().to_vec());
    let outermost = format.order()[0];
    dimensions[outermost] = block.1 - block.0;
    list.coordinates[outermost].iter_mut().for_each(|at| *at -= block.0);
    let packed = pack_by(&Serial, format, &dimensions, fill(result), list, Duplicates::Sum);
    packed.map(|packed| packed.tensor).map_err(Error::from_task)
}

/// Writes a component of a level of a block to where it belongs.
fn write<N: Element + FieldValue + Narrowed>(
    call: &LeafCall<'_>,
    Written { stored, moved, requirement, field, .. }: &Written,
    (array, color): (&Array, usize),
) -> maniple::Result<()> {
    let mut numbers = call.write::<N, 1>(*requirement, *field)?;
    let Some(own) = only(numbers.space().rects()) else { return Ok(()) };
    let nothing = (stored.per == Per::Slot).then(|| array.width().greatest());
    for (place, number) in numbers.span_mut(own).iter_mut().enumerate() {
        let found = array.get(place);
        *number = if Some(found) == nothing { N::GREATEST } else { N::narrowed(found + moved[color].0) };
    }
    Ok(())
}

fn fill<T: Element>(result: &TensorVariable) -> T {
    T::from_scalar(result.fill()).expect("fill values have the type of their tensors")
}
