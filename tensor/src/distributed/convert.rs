//! Tensors in levels to other formats, by tasks on all nodes.
//!
//! Each task has the positions below a part of those of the outermost level, and [lists](super::lists) their entries.
//! No node has all of the tensor.

use std::sync::Arc;

use maniple::task::LeafCall;
use maniple::{Context, FieldId, FieldMask, FieldValue, Privilege, Requirement, Target};

use super::batches::Batches;
use super::error::DistributedError;
use super::fetch::by_color;
use super::fields::only;
use super::levels::words;
use super::lists::{Evidence, FileProblem, Lists, check_packed, packed, tasks_for};
use super::modes::is_in_region;
use super::pending::Pending;
use super::placed_levels::cut_levels;
use super::shares::{Ends, Interval};
use super::tensor::Tensor;
use crate::element::{Element, ElementType};
use crate::format::{Format, Level, LevelExpression};
use crate::level::{Array, Component, LevelData, Per, Stored};
use crate::notation::{TensorVariable, is_zero};
use crate::storage::SparseTensor;
use crate::with_element;

impl Tensor {
    /// The tensor that statements call `variable`, with what this one stores: in another format, each node converts a
    /// part. What is stored is read as it is after all that was launched before. Of one format, it is the same tensor
    /// under another name.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the variable has other extents, elements or fill values;
    /// [`DistributedError::Dense`] if this one is dense and `variable` is in levels, or has other elements than zeros
    /// that are not stored and `variable` is dense; [`DistributedError::Stored`] if `variable` has levels that regions
    /// have not, or that count; [`DistributedError::Runtime`].
    pub fn converted<'a>(&'a self, cx: &'a Context, variable: &'a TensorVariable) -> Pending<'a, Self> {
        Box::pin(async move {
            let own = self.variable();
            check_alike(own, variable)?;
            if own.format() == variable.format() {
                return Ok(self.called(variable));
            }
            if is_in_region(variable.format()) && is_zero(own.fill()) {
                return self.made_dense(cx, variable).await;
            }
            if own.format().is_dense() {
                return Err(DistributedError::Dense { tensor: own.name().to_owned() });
            }
            check_packed(variable)?;
            let (source, tasks) = ConversionSource::of(cx, self).await?;
            packed(cx, variable, Arc::new(source), tasks).await
        })
    }

    /// The same as a dense tensor.
    async fn made_dense(&self, cx: &Context, variable: &TensorVariable) -> Result<Self, DistributedError> {
        let (own, dense) = (self.variable(), Self::new(cx, variable)?);
        let is_usual = |level: &Level| matches!(level, Level::Dense | Level::Compressed | Level::Singleton);
        if own.format().is_plain() && own.format().levels().iter().all(is_usual) {
            dense.copy_from(cx, self).await?;
            return Ok(dense);
        }
        let listed = Box::pin(self.converted(cx, &own.stored(Format::coordinates(own.order())))).await?;
        dense.copy_from(cx, &listed).await?;
        listed.destroy(cx)?;
        Ok(dense)
    }
}

/// Refuses variables of which one can't stand for the other but for its name and format.
pub(super) fn check_alike(own: &TensorVariable, other: &TensorVariable) -> Result<(), DistributedError> {
    if own.renamed(other.name()).is_like(other) && own.fill() == other.fill() {
        return Ok(());
    }
    let describe = |of: &TensorVariable| {
        let (element, dimensions, fill) = (of.element(), of.dimensions(), of.fill());
        format!("{element} elements with extents {dimensions:?}, and {fill:?} where nothing is stored")
    };
    let (expected, found) = (describe(own), describe(other));
    Err(DistributedError::Shape { tensor: own.name().to_owned(), expected, found })
}

/// A component of a level that tasks are given a piece of.
struct GivenComponent {
    level: usize,
    stored: Stored,
    requirement: usize,
    field: FieldId,
    element: ElementType,
}

/// A tensor in parts, each with all that is below some neighbouring positions of the outermost level.
pub(super) struct ConversionSource {
    variable: TensorVariable,
    parts: i64,
    /// Of each level, the coordinates that there may be.
    bounds: Vec<std::ops::Range<i64>>,
    /// Of each level, of each part: its positions.
    positions: Vec<Vec<Interval>>,
    given: Vec<GivenComponent>,
    requirements: Vec<Requirement>,
    values: FieldId,
}

impl ConversionSource {
    /// In as many parts as its size wants; and how many tasks pack as much.
    pub(super) async fn of(cx: &Context, tensor: &Tensor) -> Result<(Self, i64), DistributedError> {
        let levels = tensor.variable().format().levels();
        let of_entry = tensor.variable().order() * size_of::<i32>() + tensor.variable().element().size();
        let tasks = tasks_for(cx, tensor.positions(levels.len() - 1) as usize * of_entry);
        let parts = match levels[0] {
            // Where a run begins, the one before tells.
            Level::RunLength => 1,
            _ => tasks.min(tensor.positions(0)).max(1),
        };
        Ok((Self::new(cx, tensor, parts).await?, tasks))
    }

    async fn new(cx: &Context, tensor: &Tensor, parts: i64) -> Result<Self, DistributedError> {
        let variable = tensor.variable().clone();
        let positions = Ends::new(cx, tensor, 0, parts).await?.positions;
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
                given.push(GivenComponent { level, stored: *stored, requirement, field, element });
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
        Ok(Self { variable, parts, bounds, positions, given, requirements, values: tensor.field() })
    }

    /// The type of the elements.
    pub(super) fn element(&self) -> ElementType {
        self.variable.element()
    }

    /// The part of a point, as a tensor that has no more than it.
    pub(super) fn part<T: Element>(&self, call: &LeafCall<'_>) -> maniple::Result<SparseTensor<T>> {
        let levels = self.levels_of_part(call)?;
        let fill = T::from_scalar(self.variable.fill()).expect("fill values have the type of their tensors");
        let values = call.read::<T, 1>(self.given.len(), self.values)?;
        let values = only(values.space().rects()).map(|own| values.span(own).to_vec()).unwrap_or_default();
        Ok(SparseTensor::of(self.variable.format(), self.variable.dimensions(), fill, levels, values))
    }

    fn levels_of_part(&self, call: &LeafCall<'_>) -> maniple::Result<Vec<LevelData>> {
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
                    Per::Word => array = Array::I64(moved_down(&array, first, count)),
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
        Ok(levels)
    }
}

impl Lists for ConversionSource {
    fn parts(&self) -> i64 {
        self.parts
    }

    fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    fn list(&self, call: &LeafCall<'_>, into: &mut Batches<'_>) -> maniple::Result<Result<Evidence, FileProblem>> {
        // What is stored was checked when it was.
        with_element!(self.element(), T => self.part::<T>(call)?.for_each(|at, value| into.push(at, value)));
        Ok(Ok(Evidence::default()))
    }

    fn error(&self, problem: FileProblem) -> DistributedError {
        maniple::Error::application(problem.reason).into()
    }
}

/// The numbers of a component that a task is given.
fn numbers<N: FieldValue>(call: &LeafCall<'_>, given: &GivenComponent) -> maniple::Result<Vec<N>> {
    let numbers = call.read::<N, 1>(given.requirement, given.field)?;
    Ok(only(numbers.space().rects()).map(|own| numbers.span(own).to_vec()).unwrap_or_default())
}

/// The bits of so many positions from the first on, of which the words are given that have them, from the first bit of
/// the first word on.
fn moved_down(bits: &Array, first: i64, count: i64) -> Vec<i64> {
    let shift = first % 64;
    let word = |place: usize| if place < bits.len() { bits.get(place) as u64 } else { 0 };
    let (_, words) = words(0, count);
    let moved = |place: usize| match shift {
        0 => word(place) as i64,
        _ => (word(place) >> shift | word(place + 1) << (64 - shift)) as i64,
    };
    (0..words as usize).map(moved).collect()
}
