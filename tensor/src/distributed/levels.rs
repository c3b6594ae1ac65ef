//! Tensors in levels, in regions: one over the positions of each level with its coordinates, and the elements beside those of the last; and one with the offsets of each compressed level.

use std::sync::Arc;

use maniple::space::{AnyPoint, AnyRect, AnySpace, IndexSpace, Point, Rect};
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{
    Context, Error, Field, FieldId, FieldMask, FieldType, FieldValue, LogicalRegion, Privilege, Projection, Region,
    Requirement, Target, TaskLauncher,
};

use super::error::DistributedError;
use super::rows::{blocks_for, set_rows};
use crate::element::{Element, ElementType};
use crate::format::{Format, Level};
use crate::level::{Array, Component as Named, with_numbers};
use crate::lower::Slot;
use crate::plan::Space;
use crate::rectangle::Rectangle;
use crate::storage::SparseTensor;
use crate::with_element;

/// More intervals of positions are not told apart: a piece has what is between them too.
const MOST_INTERVALS: usize = 1 << 12;

/// So many fields a region of a level can have: its coordinates, its elements, and those of results that have its levels.
const MOST_FIELDS: usize = 512;

/// A field of a region.
#[derive(Clone, Debug)]
pub(super) struct Component {
    pub(super) region: LogicalRegion,
    pub(super) field: FieldId,
    pub(super) element: ElementType,
}

impl Component {
    /// All of it, as it is after all that was launched before.
    async fn read<T: FieldValue>(&self, cx: &Context) -> Result<Vec<T>, DistributedError> {
        if self.region.space().space().volume() == 0 {
            return Ok(Vec::new());
        }
        let region: Region<(), 1> = Region::try_from_logical(self.region.clone())?;
        Ok(cx.map_read(&region, Field::<(), T>::new(self.field)).await?.to_vec())
    }
}

/// What is stored of a tensor in levels.
#[derive(Debug)]
pub(super) struct Levels {
    /// Whether offsets and coordinates have 32 bits, and not 64.
    pub(super) is_narrow: bool,
    /// Of each level, if it is compressed: its offsets and its coordinates.
    levels: Vec<Option<[Component; 2]>>,
    values: Component,
}

impl Levels {
    /// Puts into regions what `stored` has, which is in dense and compressed levels of whole dimensions.
    pub(super) fn new<T: Element + FieldValue>(
        cx: &Context,
        stored: &Arc<SparseTensor<T>>,
    ) -> Result<Self, DistributedError> {
        let numbers = || stored.levels().iter().flat_map(|level| &level.components).map(|component| &component.array);
        let is_narrow = numbers().all(|array| !matches!(array, Array::I64(_)));
        let kinds = stored.format().levels().iter().map(|level| *level == Level::Compressed);
        let positions = stored.levels().iter().map(|level| level.positions);
        let made = Self::with_room(cx, T::TYPE, is_narrow, kinds.zip(positions))?;
        for (level, components) in made.levels.iter().enumerate() {
            for (to, component) in components.iter().flatten().zip(["pos", "crd"]) {
                let numbers = Numbers { stored: Arc::clone(stored), level, component };
                match is_narrow {
                    true => numbers.write::<i32>(cx, to)?,
                    false => numbers.write::<i64>(cx, to)?,
                }
            }
        }
        let elements = Arc::clone(stored);
        put(cx, &made.values, elements.values().len(), move |first, into: &mut [T]| {
            into.copy_from_slice(&elements.values()[first..first + into.len()]);
        })?;
        Ok(made)
    }

    /// Regions for levels, each of which is compressed or not and has so many positions, and for elements below the last one: nothing in them has a value.
    pub(super) fn with_room(
        cx: &Context,
        element: ElementType,
        is_narrow: bool,
        levels: impl Iterator<Item = (bool, usize)>,
    ) -> Result<Self, DistributedError> {
        let index = if is_narrow { ElementType::I32 } else { ElementType::I64 };
        let field = |name, element| (name, with_element!(element, T => FieldType::of::<T>()), element);
        let mut levels = levels.peekable();
        let (mut made, mut values, mut parents) = (Vec::new(), None, 1);
        while let Some((is_compressed, positions)) = levels.next() {
            let mut fields = Vec::new();
            if is_compressed {
                fields.push(field("crd", index));
            }
            if levels.peek().is_none() {
                fields.push(field("values", element));
            }
            let mut found = components(cx, positions, &fields)?.into_iter();
            let crd = found.by_ref().take(usize::from(is_compressed)).next();
            let pos = if is_compressed { components(cx, parents + 1, &[field("pos", index)])?.pop() } else { None };
            made.push(pos.zip(crd).map(|(pos, crd)| [pos, crd]));
            (values, parents) = (found.next(), positions);
        }
        let values = match values {
            Some(values) => values,
            // A scalar has no levels.
            None => components(cx, 1, &[field("values", element)])?.remove(0),
        };
        Ok(Self { is_narrow, levels: made, values })
    }

    /// So many of the levels, from the outermost to a compressed one, with other elements, none of which has a value: another field of the region that has the coordinates.
    pub(super) fn with_other_values(&self, rank: usize, name: &str, ty: FieldType) -> Result<Self, DistributedError> {
        let last = rank.checked_sub(1).and_then(|last| self.coordinates(last)).unwrap_or(&self.values);
        let field = last.region.fields().allocate(&format!("values of {name}"), ty).map_err(Error::from)?;
        let values = Component { region: last.region.clone(), field, element: self.values.element };
        Ok(Self { is_narrow: self.is_narrow, levels: self.levels[..rank].to_vec(), values })
    }

    /// Dense levels, and below them a compressed one with these offsets, coordinates and elements.
    pub(super) fn of_rows(is_narrow: bool, rank: usize, [pos, crd]: [Component; 2], values: Component) -> Self {
        let mut levels = vec![None; rank - 1];
        levels.push(Some([pos, crd]));
        Self { is_narrow, levels, values }
    }

    /// The offsets and coordinates of each level that is compressed, and the elements, as they are after all that was launched before.
    pub(super) async fn read<T: Element + FieldValue>(
        &self,
        cx: &Context,
    ) -> Result<(Vec<Vec<Named>>, Vec<T>), DistributedError> {
        let mut levels = Vec::new();
        for level in &self.levels {
            let mut components = Vec::new();
            for (component, name) in level.iter().flatten().zip(["pos", "crd"]) {
                let array = match component.element {
                    ElementType::I32 => Array::I32(component.read(cx).await?),
                    _ => Array::I64(component.read(cx).await?),
                };
                components.push(Named { name, array });
            }
            levels.push(components);
        }
        Ok((levels, self.values.read(cx).await?))
    }

    /// The coordinates of a level, if it is compressed.
    pub(super) fn coordinates(&self, level: usize) -> Option<&Component> {
        self.levels.get(level)?.as_ref().map(|[_, crd]| crd)
    }

    /// The elements.
    pub(super) fn values(&self) -> &Component {
        &self.values
    }

    /// What a kernel's parameter is a view of.
    pub(super) fn component(&self, slot: &Slot) -> Option<&Component> {
        match slot {
            Slot::Positions(_, level) => self.levels[*level].as_ref().map(|[pos, _]| pos),
            Slot::Coordinates(_, level) => self.levels[*level].as_ref().map(|[_, crd]| crd),
            Slot::Values(_) => Some(&self.values),
            _ => None,
        }
    }

    /// The region over a space.
    pub(super) fn region(&self, space: Space) -> &LogicalRegion {
        let level = |level: usize| self.levels.get(level).and_then(Option::as_ref);
        match space {
            Space::Offsets(number) => level(number).map_or(&self.values.region, |[pos, _]| &pos.region),
            Space::Positions(number) => level(number).map_or(&self.values.region, |[_, crd]| &crd.region),
            Space::Elements => &self.values.region,
        }
    }
}

/// The points of the offsets of a compressed level, below dense ones alone, that parts of a tensor's coordinates need.
pub(super) fn offsets_of(parts: &[Rectangle], (format, dimensions): (&Format, &[i64]), level: usize) -> IndexSpace<1> {
    let rects = parts.iter().filter(|part| !part.is_empty()).flat_map(|part| {
        let bounds: Vec<(i64, i64)> = part.bounds().collect();
        let mut intervals = vec![(0, 1)];
        for &mode in &format.order()[..level] {
            let ((low, high), extent) = (bounds[mode], dimensions[mode]);
            let count = intervals.iter().fold(0_i64, |sum, (first, end)| sum.saturating_add(end - first));
            intervals = match (low, high) {
                whole if whole == (0, extent) => {
                    intervals.into_iter().map(|(first, end)| (first * extent, end * extent)).collect()
                }
                _ if count > MOST_INTERVALS as i64 => match (intervals.first(), intervals.last()) {
                    (Some((first, _)), Some((_, end))) => vec![(first * extent + low, (end - 1) * extent + high)],
                    _ => Vec::new(),
                },
                _ => {
                    let all = intervals.into_iter().flat_map(|(first, end)| first..end);
                    all.map(|position| (position * extent + low, position * extent + high)).collect()
                }
            };
        }
        intervals
    });
    // One more ends the last.
    IndexSpace::from_rects(rects.map(|(first, end)| Rect::from(first..end + 1)).collect::<Vec<_>>())
}

/// A region with these fields over so many positions.
pub(super) fn components(
    cx: &Context,
    positions: usize,
    fields: &[(&str, FieldType, ElementType)],
) -> Result<Vec<Component>, DistributedError> {
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let rows = cx.index_space(&AnySpace::from(AnyRect::from(Rect::<1>::from(0..positions as i64))));
    let space = cx.field_space(MOST_FIELDS);
    let region = cx.logical_region(&rows, &space)?;
    let component = |(name, field_type, element): &(&str, FieldType, ElementType)| {
        let field = space.allocate(name, *field_type).map_err(Error::from)?;
        Ok(Component { region: region.clone(), field, element: *element })
    };
    fields.iter().map(component).collect()
}

/// The numbers of a component in memory.
struct Numbers<T> {
    stored: Arc<SparseTensor<T>>,
    level: usize,
    component: &'static str,
}

impl<T: Element> Numbers<T> {
    fn write<N: FieldValue + Element + Narrowed>(self, cx: &Context, to: &Component) -> Result<(), DistributedError> {
        let count = self.stored.levels()[self.level].component(self.component).len();
        #[allow(clippy::useless_conversion)] // of one width of four
        put(cx, to, count, move |first, into: &mut [N]| {
            let array = self.stored.levels()[self.level].component(self.component);
            with_numbers!(array, numbers => {
                let from = &numbers[first..first + into.len()];
                into.iter_mut().zip(from).for_each(|(into, from)| *into = N::narrowed(i64::from(*from)));
            });
        })
    }
}

/// A type of positions and coordinates in kernels.
pub(super) trait Narrowed {
    /// A number that fits it.
    fn narrowed(number: i64) -> Self;
}

impl Narrowed for i32 {
    fn narrowed(number: i64) -> Self {
        number as Self
    }
}

impl Narrowed for i64 {
    fn narrowed(number: i64) -> Self {
        number
    }
}

/// Has tasks set all of a component, which has so many rows: `set` is given the number of the first row of a part, and where its values go.
fn put<T: Element + FieldValue>(
    cx: &Context,
    to: &Component,
    rows: usize,
    set: impl Fn(usize, &mut [T]) + Send + Sync + 'static,
) -> Result<(), DistributedError> {
    if rows == 0 {
        return Ok(());
    }
    let field = to.field;
    let task = TaskDefinition::new("make elements").leaf(TaskOptions::default(), move |call| {
        set_rows(call, field, |at: &[i64], into: &mut [T]| set(at[0] as usize, into))?;
        Ok(Value::new(()))
    });
    let count = blocks_for(cx, rows * size_of::<T>()).min(rows);
    let block = |number: usize| (rows as u128 * number as u128 / count as u128) as i64;
    let pieces: Vec<AnySpace> =
        (0..count).map(|number| AnyRect::from(Rect::<1>::from(block(number)..block(number + 1))).into()).collect();
    let partitioning = cx.index_partition(to.region.space(), count, &pieces)?;
    let partition = to.region.partition(&partitioning).map_err(Error::from)?;
    let own = Projection::Color(Arc::new(|point: AnyPoint| Point([point[0]]).into()));
    let requirement = Requirement::new(Target::Partition(partition, own), FieldMask::of(field), Privilege::Discard);
    let domain = AnyRect::from(Rect::<1>::from(0..count as i64));
    cx.index_launch(domain, TaskLauncher::new(&Arc::new(task)).requirement(requirement).typed::<()>());
    Ok(())
}
