//! Tensors in levels, in regions: one for what each level stores, as one over its positions with its coordinates, and
//! one with where the positions begin that are below those of the level above. The elements are beside the coordinates
//! of the last level.

use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace, Rect};
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{Context, Error, FieldId, FieldType, FieldValue, LogicalRegion, Privilege};

use super::error::DistributedError;
use super::fields::field_type;
use super::pending::Pending;
use super::rows::{Body, blocks_for, in_pieces};
use crate::element::{Element, ElementType};
use crate::format::{Format, Level};
use crate::level::{Array, Component as Named, LevelData, Per, Stored, with_numbers};
use crate::lower::Slot;
use crate::plan::Space;
use crate::rectangle::Rectangle;
use crate::storage::SparseTensor;

/// More intervals of positions are not told apart: a piece has what is between them too.
const MOST_INTERVALS: usize = 1 << 12;

/// So many fields a region of a level can have: its coordinates, its elements, and those of results that have its
/// levels.
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
    pub(super) async fn read<T: FieldValue>(&self, cx: &Context) -> Result<Vec<T>, DistributedError> {
        if self.region.space().space().volume() == 0 {
            return Ok(Vec::new());
        }
        Ok(cx.read_field(&self.region, self.field).await?)
    }
}

/// The stored data of a tensor in levels.
#[derive(Debug)]
pub(super) struct Levels {
    /// Whether offsets and coordinates have 32 bits, and not 64.
    pub(super) is_narrow: bool,
    /// How many positions each level has.
    positions: Vec<usize>,
    /// The components that each level stores.
    levels: Vec<Vec<(Stored, Component)>>,
    values: Component,
    /// Whether the regions are those of another tensor, and only the field of the elements is its own.
    are_shared: bool,
}

impl Levels {
    /// Puts into regions what `stored` has.
    pub(super) fn new<T: Element + FieldValue>(
        cx: &Context,
        stored: &Arc<SparseTensor<T>>,
    ) -> Result<Self, DistributedError> {
        let components = stored.levels().iter().flat_map(|level| &level.components);
        let is_narrow = components
            .filter(|component| component.name != "bits")
            .all(|component| !matches!(component.array, Array::I64(_)));
        let positions = stored.levels().iter().map(|level| level.positions).collect();
        let made = Self::with_room(cx, T::TYPE, is_narrow, stored.format().levels(), positions)?;
        for (level, components) in made.levels.iter().enumerate() {
            for (component, to) in components {
                let numbers = Numbers { levels: Arc::clone(stored.shared_levels()), level, component: *component };
                match to.element {
                    ElementType::I32 => numbers.write::<i32>(cx, to)?,
                    _ => numbers.write::<i64>(cx, to)?,
                }
            }
        }
        let elements = Arc::clone(stored);
        put(cx, &made.values, elements.values().len(), move |first, into: &mut [T]| {
            into.copy_from_slice(&elements.values()[first..first + into.len()]);
        })?;
        Ok(made)
    }

    /// Regions for levels of these kinds, which have so many positions, and for elements below the last one: nothing in
    /// them has a value. Offsets and coordinates are narrow or not.
    pub(super) fn with_room(
        cx: &Context,
        element: ElementType,
        is_narrow: bool,
        kinds: &[Level],
        positions: Vec<usize>,
    ) -> Result<Self, DistributedError> {
        let field = |name, element| (name, field_type(element), element);
        let elements = field("values", element);
        let (mut levels, mut values, mut parents) = (Vec::new(), None, 1);
        for (level, (kind, &positions_here)) in kinds.iter().zip(&positions).enumerate() {
            let mut made = Vec::new();
            for component in kind.kind().components() {
                let is_wide = !is_narrow || component.per == Per::Word;
                let mut fields = vec![field(component.name, if is_wide { ElementType::I64 } else { ElementType::I32 })];
                if level + 1 == kinds.len() && matches!(component.per, Per::Position | Per::Slot) {
                    fields.push(elements);
                }
                let mut found = components(cx, component.per.count(parents, positions_here), &fields)?;
                values = found.drain(1..).next().or(values);
                made.extend(found.pop().map(|found| (*component, found)));
            }
            levels.push(made);
            parents = positions_here;
        }
        let values = match values {
            Some(values) => values,
            // Of levels that store no coordinates, and of a scalar, which has none.
            None => components(cx, parents, &[elements])?.remove(0),
        };
        Ok(Self { is_narrow, positions, levels, values, are_shared: false })
    }

    /// So many of the levels, from the outermost to a compressed one, with other elements, none of which has a value:
    /// another field of the region that has the coordinates.
    pub(super) fn with_other_values(&self, rank: usize, name: &str, ty: FieldType) -> Result<Self, DistributedError> {
        let last = rank.checked_sub(1).and_then(|last| self.coordinates(last)).unwrap_or(&self.values);
        let field = last.region.fields().allocate(&format!("values of {name}"), ty).map_err(Error::from)?;
        let values = Component { region: last.region.clone(), field, element: self.values.element };
        let (positions, levels) = (self.positions[..rank].to_vec(), self.levels[..rank].to_vec());
        Ok(Self { is_narrow: self.is_narrow, positions, levels, values, are_shared: true })
    }

    /// Destroys the regions, or the field of elements in those of another tensor.
    pub(super) fn destroy(&self, cx: &Context) -> Result<(), DistributedError> {
        if self.are_shared {
            cx.free_field(self.values.region.fields(), self.values.field)?;
            return Ok(());
        }
        let mut destroyed = Vec::new();
        for component in self.levels.iter().flatten().map(|(_, component)| component).chain([&self.values]) {
            let tree = component.region.tree().id();
            if !destroyed.contains(&tree) {
                cx.destroy_region(&component.region)?;
                destroyed.push(tree);
            }
        }
        Ok(())
    }

    /// The contents of each level, as they are after all that was launched before.
    pub(super) async fn read_levels(&self, cx: &Context) -> Result<Vec<Vec<Named>>, DistributedError> {
        let mut levels = Vec::new();
        for level in &self.levels {
            let mut components = Vec::new();
            for (Stored { name, .. }, component) in level {
                let array = match component.element {
                    ElementType::I32 => Array::I32(component.read(cx).await?),
                    _ => Array::I64(component.read(cx).await?),
                };
                components.push(Named { name, array });
            }
            levels.push(components);
        }
        Ok(levels)
    }

    /// The contents of each level and the elements, as they are after all that was launched before.
    pub(super) async fn read<T: Element + FieldValue>(
        &self,
        cx: &Context,
    ) -> Result<(Vec<Vec<Named>>, Vec<T>), DistributedError> {
        // Boxed: it is one future for all types of elements.
        let levels: Pending<'_, Vec<Vec<Named>>> = Box::pin(self.read_levels(cx));
        Ok((levels.await?, self.values.read(cx).await?))
    }

    /// How many positions a level has.
    pub(super) fn positions(&self, level: usize) -> usize {
        self.positions.get(level).copied().unwrap_or(1)
    }

    /// The components that a level stores.
    pub(super) fn stored(&self, level: usize) -> &[(Stored, Component)] {
        self.levels.get(level).map_or(&[], |level| level)
    }

    fn one(&self, level: usize, is_it: impl Fn(Per) -> bool) -> Option<&Component> {
        self.stored(level).iter().find(|(stored, _)| is_it(stored.per)).map(|(_, component)| component)
    }

    /// The offsets of a level, if it has some.
    pub(super) fn offsets(&self, level: usize) -> Option<&Component> {
        self.one(level, |per| per == Per::Offset)
    }

    /// The component that tells which positions are below those of the level above: offsets, or how many there are.
    fn beginnings(&self, level: usize) -> Option<&Component> {
        self.one(level, |per| matches!(per, Per::Offset | Per::Parent))
    }

    /// The coordinates of a level, or the ends of its runs, if it stores some.
    pub(super) fn coordinates(&self, level: usize) -> Option<&Component> {
        self.one(level, |per| matches!(per, Per::Position | Per::Slot))
    }

    /// The words with the bits of a level, if it has some.
    fn bits(&self, level: usize) -> Option<&Component> {
        self.one(level, |per| per == Per::Word)
    }

    /// The elements.
    pub(super) fn values(&self) -> &Component {
        &self.values
    }

    /// The component that a kernel's parameter views.
    pub(super) fn component(&self, slot: &Slot) -> Option<&Component> {
        match slot {
            Slot::Positions(_, level) => self.beginnings(*level),
            Slot::Coordinates(_, level) => self.coordinates(*level),
            Slot::Bits(_, level) => self.bits(*level),
            Slot::Values(_) => Some(&self.values),
            _ => None,
        }
    }

    /// The region over a space.
    pub(super) fn region(&self, space: Space) -> &LogicalRegion {
        let component = match space {
            Space::Offsets(level) => self.beginnings(level),
            Space::Words(level) => self.bits(level),
            Space::Positions(level) => self.coordinates(level),
            Space::Elements => None,
        };
        &component.unwrap_or(&self.values).region
    }
}

/// The positions above a level, all of which are dense, that parts of a tensor's coordinates have.
pub(super) fn parents_of(parts: &[Rectangle], format: &Format, dimensions: &[i64], level: usize) -> Vec<(i64, i64)> {
    let of_parts = parts.iter().filter(|part| !part.is_empty()).flat_map(|part| {
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
    of_parts.collect()
}

/// The words with the bits of these positions.
pub(super) fn words(first: i64, end: i64) -> (i64, i64) {
    if first < end { (first / 64, (end - 1) / 64 + 1) } else { (0, 0) }
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
struct Numbers {
    levels: Arc<Vec<LevelData>>,
    level: usize,
    component: Stored,
}

impl Numbers {
    fn write<N: FieldValue + Element + Narrowed>(self, cx: &Context, to: &Component) -> Result<(), DistributedError> {
        let Stored { name, per } = self.component;
        let count = self.levels[self.level].component(name).len();
        #[allow(clippy::useless_conversion)] // of one width of four
        put(cx, to, count, move |first, into: &mut [N]| {
            let array = self.levels[self.level].component(name);
            // What marks slots without anything is the greatest number of any width.
            let nothing = (per == Per::Slot).then(|| array.width().greatest());
            with_numbers!(array, numbers => {
                let from = numbers[first..first + into.len()].iter().map(|number| i64::from(*number));
                into.iter_mut().zip(from).for_each(|(into, from)| {
                    *into = if Some(from) == nothing { N::GREATEST } else { N::narrowed(from) };
                });
            });
        })
    }
}

/// A type of positions and coordinates in kernels.
pub(super) trait Narrowed {
    /// The greatest number.
    const GREATEST: Self;

    /// A number that fits it.
    fn narrowed(number: i64) -> Self;
}

impl Narrowed for i32 {
    const GREATEST: Self = Self::MAX;

    fn narrowed(number: i64) -> Self {
        number as Self
    }
}

impl Narrowed for i64 {
    const GREATEST: Self = Self::MAX;

    fn narrowed(number: i64) -> Self {
        number
    }
}

/// Has tasks set all of a component, which has so many rows: `set` is given the number of the first row of a part, and
/// where its values go.
fn put<T: Element + FieldValue>(
    cx: &Context,
    to: &Component,
    rows: usize,
    set: impl Fn(usize, &mut [T]) + Send + Sync + 'static,
) -> Result<(), DistributedError> {
    let field = to.field;
    let body = move |call: &LeafCall<'_>| {
        call.write_rows(0, field, &mut |at, into: &mut [T]| set(at[0] as usize, into))?;
        Ok(Value::new(()))
    };
    put_with(cx, to, rows, Box::new(body))
}

/// [`put`] for elements of all types.
fn put_with(cx: &Context, to: &Component, rows: usize, body: Box<Body>) -> Result<(), DistributedError> {
    if rows == 0 {
        return Ok(());
    }
    let task = TaskDefinition::new("make elements").leaf(TaskOptions::default(), body);
    let count = blocks_for(cx, rows * to.element.size()).min(rows);
    let block = |number: usize| (rows as u128 * number as u128 / count as u128) as i64;
    let pieces: Vec<AnySpace> =
        (0..count).map(|number| AnyRect::from(Rect::<1>::from(block(number)..block(number + 1))).into()).collect();
    let (domain, launcher) = in_pieces(cx, &to.region, to.field, Privilege::Discard, &pieces, task)?;
    cx.index_launch(domain, launcher.typed::<()>());
    Ok(())
}
