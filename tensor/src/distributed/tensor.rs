//! Tensors whose elements are in regions.

use std::pin::Pin;
use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace};
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Context, Field, FieldId, FieldMask, FieldValue, LogicalRegion, Privilege, Region, Requirement, TaskLauncher,
};
use parking_lot::Mutex;

use super::cuts::Cuts;
use super::error::DistributedError;
use super::fields::field_type;
use super::home::Home;
use super::levels::{Component, Levels};
use super::modes::Modes;
use crate::element::{Element, ElementType, Scalar};
use crate::format::{Format, Level};
use crate::level::Component as Named;
use crate::lower::Slot;
use crate::notation::{DenseArray, TensorVariable};
use crate::plan::{Plan, Space};
use crate::rectangle::Rectangle;
use crate::storage::SparseTensor;
use crate::with_element;

/// A tensor in memories of the machine. A dense one is a region over its coordinates with one field; a scalar has one
/// row. One in levels is several regions: over the positions of its levels, and with the offsets at which what is below
/// a position begins.
///
/// Copies are the same tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    variable: TensorVariable,
    region: LogicalRegion,
    field: FieldId,
    modes: Modes,
    /// If it is not dense. Then region, field and modes are those of the values.
    levels: Option<Arc<Levels>>,
    /// The pieces of the last placement, if the tensor was placed.
    home: Arc<Mutex<Option<Home>>>,
    /// The partitions that it was cut into.
    cuts: Arc<Cuts>,
    /// Whether its elements are in a region of the program's.
    is_of_program: bool,
}

impl Tensor {
    /// A new tensor whose elements are its [fill value](TensorVariable::fill), stored as its variable says. Nothing is
    /// stored before the tensor is used.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Order`] if it has more dimensions than regions have, [`DistributedError::Runtime`].
    pub fn new(cx: &Context, variable: &TensorVariable) -> Result<Self, DistributedError> {
        Self::stored(cx, variable, variable.format())
    }

    /// The same, stored in a format: the region has the tensor's dimensions in the format's order, the outermost first.
    /// The results of computations do not depend on the format, but elements are used fastest along the dimension that
    /// is stored last, if the statement's variable has the format too.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Format`] if the format has other dimensions, or levels that are not dense; as of
    /// [`new`](Self::new).
    pub fn stored(cx: &Context, variable: &TensorVariable, format: &Format) -> Result<Self, DistributedError> {
        let modes = Modes::new(format, variable.order())?;
        let rows = modes.rect(&Rectangle::whole(variable.dimensions()));
        let rows = rows
            .ok_or_else(|| DistributedError::Order { tensor: variable.name().to_owned(), found: variable.order() })?;
        let rows = cx.index_space(&AnySpace::from(rows));
        let fields = cx.field_space(1);
        let element = variable.element();
        let field = fields.allocate(variable.name(), field_type(element)).map_err(maniple::Error::from)?;
        let region = cx.logical_region(&rows, &fields)?;
        let variable = variable.stored(format.clone());
        let tensor = Self {
            variable,
            region,
            field,
            modes,
            levels: None,
            home: Arc::default(),
            cuts: Arc::default(),
            is_of_program: false,
        };
        tensor.fill(cx, tensor.variable.fill())?;
        Ok(tensor)
    }

    /// The tensor that statements call `variable`, with what `stored` has: each of its levels in regions. Each node
    /// puts its own part in place, so all of a job's nodes are given all.
    ///
    /// Computations read it, and results can [have its levels](Self::with_levels_of). A dense one is better
    /// [written](Self::write_elements) to a tensor that has one region.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if `stored` has other extents, elements or fill values, or another format than the
    /// variable; [`DistributedError::Stored`] if a level has ranges of positions, and not offsets.
    pub fn from_sparse<T: Element + FieldValue>(
        cx: &Context,
        variable: &TensorVariable,
        stored: impl Into<Arc<SparseTensor<T>>>,
    ) -> Result<Self, DistributedError> {
        let (stored, format) = (stored.into(), variable.format());
        let fits = T::TYPE == variable.element()
            && stored.dimensions() == variable.dimensions()
            && stored.format() == format
            && stored.fill().to_scalar() == variable.fill();
        if !fits {
            let describe = |element, dimensions: &[i64], format, fill: Scalar| {
                format!(
                    "{element} elements with extents {dimensions:?} as {format}, and {fill:?} where nothing is stored"
                )
            };
            return Err(DistributedError::Shape {
                tensor: variable.name().to_owned(),
                expected: describe(variable.element(), variable.dimensions(), format, variable.fill()),
                found: describe(T::TYPE, stored.dimensions(), stored.format(), stored.fill().to_scalar()),
            });
        }
        if format.properties().iter().any(|properties| properties.ranges) {
            return Err(DistributedError::Stored { tensor: variable.name().to_owned(), format: format.clone() });
        }
        Self::in_levels(variable, Levels::new(cx, &stored)?)
    }

    /// A new tensor for the result of a plan, given its operands: a dense one, or one with the levels of the operand
    /// that has elements exactly where the result has. How much is stored of other results follows from their
    /// [assembly](super::assemble).
    ///
    /// # Errors
    ///
    /// [`DistributedError::Missing`] if that operand is not among `tensors`; as of [`new`](Self::new) and
    /// [`with_levels_of`](Self::with_levels_of).
    pub fn for_result(cx: &Context, plan: &Plan, tensors: &[&Self]) -> Result<Self, DistributedError> {
        let result = plan.statement.result();
        let Some(pattern) = plan.pattern() else { return Self::new(cx, result) };
        let found = tensors.iter().find(|tensor| tensor.variable.name() == pattern);
        let given = || tensors.iter().map(|tensor| tensor.variable.name()).collect::<Vec<_>>().join(", ");
        let operand = found.ok_or_else(|| DistributedError::Missing { tensor: pattern.clone(), given: given() })?;
        operand.with_levels_of(cx, result)
    }

    /// A new tensor with the levels of this one, or the outer ones of them, for a result that has an element wherever
    /// this one has one, or something below: `variable` has the dimensions of these levels, and the last one is
    /// compressed. All elements that are stored have the fill value. They are another field of the region that has the
    /// coordinates, and are there as long as it is; a region has room for 500 of these.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the variable has other extents, levels or elements; [`DistributedError::Stored`]
    /// if this tensor is dense.
    pub fn with_levels_of(&self, cx: &Context, variable: &TensorVariable) -> Result<Self, DistributedError> {
        let own = &self.variable;
        let rank = variable.format().rank();
        let levels_of = |of: &TensorVariable| {
            let extents = of.format().order().iter().map(|&mode| of.dimensions()[mode]);
            let levels = of.format().levels().iter().copied().zip(of.format().properties().to_vec());
            extents.zip(levels).take(rank).collect::<Vec<_>>()
        };
        let Some(levels) = &self.levels else {
            return Err(DistributedError::Stored { tensor: own.name().to_owned(), format: own.format().clone() });
        };
        let is_compressed = variable.format().levels().last() == Some(&Level::Compressed);
        if !is_compressed || levels_of(own) != levels_of(variable) || own.element() != variable.element() {
            let describe = |of: &TensorVariable| {
                format!("{} elements with extents {:?} in levels {}", of.element(), of.dimensions(), of.format())
            };
            let (expected, found) = (describe(own), describe(variable));
            return Err(DistributedError::Shape { tensor: own.name().to_owned(), expected, found });
        }
        let element = field_type(variable.element());
        let made = Self::in_levels(variable, levels.with_other_values(rank, variable.name(), element)?)?;
        made.fill(cx, variable.fill())?;
        Ok(made)
    }

    /// The tensor in these levels.
    pub(super) fn in_levels(variable: &TensorVariable, levels: Levels) -> Result<Self, DistributedError> {
        let Component { region, field, .. } = levels.values().clone();
        let modes = Modes::new(&Format::dense(1), 1)?;
        let (variable, levels) = (variable.clone(), Some(Arc::new(levels)));
        Ok(Self {
            variable,
            region,
            field,
            modes,
            levels,
            home: Arc::default(),
            cuts: Arc::default(),
            is_of_program: false,
        })
    }

    /// All that is stored of a tensor in levels, as it is after all that was launched before this call: on each of
    /// several nodes.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if elements have another type, [`DistributedError::Stored`] if the tensor is
    /// dense, [`DistributedError::Runtime`]: what has failed before.
    pub async fn read_sparse<T: Element + FieldValue>(
        &self,
        cx: &Context,
    ) -> Result<SparseTensor<T>, DistributedError> {
        self.check_type(T::TYPE)?;
        let Some(levels) = &self.levels else {
            let (tensor, format) = (self.variable.name().to_owned(), self.variable.format().clone());
            return Err(DistributedError::Stored { tensor, format });
        };
        let (components, values) = levels.read::<T>(cx).await?;
        self.with_components(components, values)
    }

    /// The tensor in memory with what its levels store, and these elements.
    pub(super) fn with_components<T: Element>(
        &self,
        components: Vec<Vec<Named>>,
        values: Vec<T>,
    ) -> Result<SparseTensor<T>, DistributedError> {
        let (variable, fill) = (&self.variable, T::from_scalar(self.variable.fill()));
        let fill = fill.expect("fill values have the type of their tensors");
        let made = SparseTensor::from_components(variable.format(), variable.dimensions(), fill, components, values);
        made.map_err(|error| DistributedError::Broken { tensor: variable.name().to_owned(), error })
    }

    /// The tensor that statements call `variable`, with its elements in a field of a region that the program has: each
    /// at its coordinates. What tasks of the program and computations do with the field takes place in the order of the
    /// program, as all is.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the region has not a row for each element, or the field another type;
    /// [`DistributedError::Format`] unless the tensor is dense.
    pub fn in_region<F, T: Element + FieldValue, const D: usize>(
        variable: &TensorVariable,
        region: &Region<F, D>,
        field: Field<F, T>,
    ) -> Result<Self, DistributedError> {
        let modes = Modes::new(variable.format(), variable.order())?;
        let rows = modes.rect(&Rectangle::whole(variable.dimensions())).map(AnySpace::from);
        let found = region.logical().space().space();
        if rows.as_ref() != Some(found) || T::TYPE != variable.element() {
            return Err(DistributedError::Shape {
                tensor: variable.name().to_owned(),
                expected: format!("{} elements with extents {:?}", variable.element(), variable.dimensions()),
                found: format!("a field of {} in a region over {found}", T::TYPE),
            });
        }
        let (region, field) = (region.logical().clone(), field.id());
        let variable = variable.clone();
        Ok(Self {
            variable,
            region,
            field,
            modes,
            levels: None,
            home: Arc::default(),
            cuts: Arc::default(),
            is_of_program: true,
        })
    }

    /// Destroys the tensor: its memory goes when all that was launched before has ended. It cannot be used any more,
    /// and neither can copies of it, nor tensors that [have its levels](Self::with_levels_of); of one that has those of
    /// another only its elements go. What is [in a region of the program's](Self::in_region) stays. Tensors that are
    /// dropped, and not destroyed, are there until the task that made them ends.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`] if it was destroyed before, or another task made it.
    pub fn destroy(&self, cx: &Context) -> Result<(), DistributedError> {
        match &self.levels {
            Some(levels) => levels.destroy(cx),
            None if self.is_of_program => Ok(()),
            None => Ok(cx.destroy_region(&self.region)?),
        }
    }

    /// The same tensor as one that has a dimension for each level: of one in
    /// `(i,j) -> (i/2: D, j/4: C, i%2: D, j%4: D)`, a tensor of order four in `{D,C,D,D}`, which computations that go
    /// through blocks as they are stored [know](crate::sparse::Computation::stored_as).
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] unless the variable is that.
    pub fn reshaped(&self, variable: &TensorVariable) -> Result<Self, DistributedError> {
        let own = &self.variable;
        let expected = own.format().reshaped(own.dimensions()).filter(|_| self.levels.is_some());
        let expected = expected
            .map(|(format, dimensions)| own.renamed(variable.name()).with_dimensions(&dimensions).stored(format));
        if expected.as_ref() == Some(variable) {
            return Ok(self.called(variable));
        }
        let describe = |of: &TensorVariable| {
            format!("{} elements with extents {:?} as {}", of.element(), of.dimensions(), of.format())
        };
        let expected = expected.as_ref().map_or_else(|| "a tensor in blocks".to_owned(), describe);
        Err(DistributedError::Shape { tensor: own.name().to_owned(), expected, found: describe(variable) })
    }

    /// The same tensor under another name. A statement that reads a tensor in several places gives each point all that
    /// any of them reads there together; where the places have different names, each is given what it reads itself, as
    /// rows that coordinates of the other name. A statement that assigns to a tensor must have it under one name alone:
    /// that it also reads it is not seen else.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] unless the variable differs in nothing but its name.
    pub fn renamed(&self, variable: &TensorVariable) -> Result<Self, DistributedError> {
        if self.variable.renamed(variable.name()) == *variable {
            return Ok(self.called(variable));
        }
        let describe = |of: &TensorVariable| {
            format!("{} elements with extents {:?} as {}", of.element(), of.dimensions(), of.format())
        };
        let (expected, found) = (describe(&self.variable), describe(variable));
        Err(DistributedError::Shape { tensor: self.variable.name().to_owned(), expected, found })
    }

    /// The same tensor under the name of a variable that differs in nothing else.
    pub(super) fn called(&self, variable: &TensorVariable) -> Self {
        Self { variable: variable.clone(), ..self.clone() }
    }

    /// The variable by which statements name the tensor.
    pub fn variable(&self) -> &TensorVariable {
        &self.variable
    }

    /// The region with its elements: over its coordinates, or over positions if it is in levels.
    pub fn region(&self) -> &LogicalRegion {
        &self.region
    }

    /// The number of elements that are stored.
    pub fn count(&self) -> usize {
        self.region.space().space().volume() as usize
    }

    /// The field of the region.
    pub fn field(&self) -> FieldId {
        self.field
    }

    /// The partitions that it was cut into.
    pub(super) fn cuts(&self) -> &Arc<Cuts> {
        &self.cuts
    }

    pub(super) fn levels(&self) -> Option<&Levels> {
        self.levels.as_deref()
    }

    /// The region over a space.
    pub(super) fn part(&self, space: Space) -> &LogicalRegion {
        self.levels.as_ref().map_or(&self.region, |levels| levels.region(space))
    }

    /// Whether it is stored in levels: otherwise it is dense.
    pub fn is_in_levels(&self) -> bool {
        self.levels.is_some()
    }

    /// How many positions a level has.
    pub(super) fn positions(&self, level: usize) -> i64 {
        match &self.levels {
            Some(levels) => levels.positions(level) as i64,
            None => level.checked_sub(1).map_or(1, |above| self.positions(above)) * self.extent(level),
        }
    }

    /// How many coordinates a level can have: the extent of the dimension that it stores, or so many blocks or
    /// diagonals.
    pub(super) fn extent(&self, level: usize) -> i64 {
        let bounds = self.variable.format().expressions()[level].bounds(self.variable.dimensions());
        bounds.end - bounds.start
    }

    /// The component that a kernel's parameter views.
    pub(super) fn component(&self, slot: &Slot) -> Component {
        let own = || Component { region: self.region.clone(), field: self.field, element: self.variable.element() };
        self.levels.as_ref().and_then(|levels| levels.component(slot)).cloned().unwrap_or_else(own)
    }

    /// An error unless elements are at their coordinates.
    pub(super) fn check_dense(&self) -> Result<(), DistributedError> {
        if self.levels.is_none() {
            return Ok(());
        }
        let (tensor, format) = (self.variable.name().to_owned(), self.variable.format().clone());
        Err(DistributedError::InLevels { tensor, format })
    }

    pub(super) fn modes(&self) -> &Modes {
        &self.modes
    }

    pub(super) fn home(&self) -> Option<Home> {
        self.home.lock().clone()
    }

    pub(super) fn settle(&self, home: Home) {
        *self.home.lock() = Some(home);
    }

    /// Sets all elements, of a tensor in levels those that are stored.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`]; among them a value of another type.
    pub fn fill(&self, cx: &Context, value: Scalar) -> Result<(), DistributedError> {
        let element = self.variable.element();
        with_element!(element, T => {
            let value = T::from_scalar(value).ok_or_else(|| self.other_type(value.element_type()))?;
            Ok(cx.fill_field(&self.region, self.field, value)?)
        })
    }

    /// Sets all elements to those of an array.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the array has another type or other extents.
    pub fn write(&self, cx: &Context, array: &DenseArray) -> Result<(), DistributedError> {
        self.check_dense()?;
        if array.element() != self.variable.element() {
            return Err(self.other_type(array.element()));
        }
        if array.dimensions() != self.variable.dimensions() {
            return Err(DistributedError::Shape {
                tensor: self.variable.name().to_owned(),
                expected: format!("extents {:?}", self.variable.dimensions()),
                found: format!("{:?}", array.dimensions()),
            });
        }
        let (field, element, modes) = (self.field, self.variable.element(), self.modes.clone());
        let copy = move |call: &LeafCall<'_>| {
            let array: &DenseArray = call.arguments::<Arc<DenseArray>>()?;
            with_element!(element, T => write_typed::<T>(call, field, array, &modes))?;
            Ok(Value::new(()))
        };
        let task = Arc::new(TaskDefinition::new("write tensor").leaf(TaskOptions::default(), copy));
        let requirement = Requirement::new(self.region.clone(), FieldMask::of(self.field), Privilege::Discard);
        cx.launch(TaskLauncher::new(&task).requirement(requirement).arguments(Arc::new(array.clone())).typed::<()>());
        Ok(())
    }

    /// All elements, as they are after all that was launched before this call.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`]: what has failed before.
    pub fn read<'t>(
        &'t self,
        cx: &Context,
    ) -> impl Future<Output = Result<DenseArray, DistributedError>> + Send + use<'t> {
        let element = self.variable.element();
        let reading: Reading<'t> = with_element!(element, T => {
            let elements = self.read_elements::<T>(cx);
            Box::pin(async {
                let elements = elements.await?;
                let array = DenseArray::from_elements(self.variable.dimensions(), &elements);
                Ok(array.expect("there are as many elements as the tensor has"))
            })
        });
        reading
    }

    /// An error unless elements have this type.
    pub(super) fn check_type(&self, found: ElementType) -> Result<(), DistributedError> {
        if found == self.variable.element() { Ok(()) } else { Err(self.other_type(found)) }
    }

    /// The part of the region with a rectangle's elements.
    pub(super) fn rect(&self, rectangle: &Rectangle) -> Result<AnyRect, DistributedError> {
        self.modes.rect(rectangle).ok_or_else(|| self.too_many_dimensions())
    }

    /// The part of the region with the elements of some rectangles.
    pub(super) fn space(&self, rectangles: &[Rectangle]) -> Result<AnySpace, DistributedError> {
        let rects: Vec<AnySpace> =
            rectangles.iter().map(|part| self.rect(part).map(AnySpace::from)).collect::<Result<_, _>>()?;
        let all = AnySpace::union_all(self.region.space().space().dim(), &rects);
        Ok(all.expect("the rectangles have the tensor's dimensions"))
    }

    pub(super) fn too_many_dimensions(&self) -> DistributedError {
        DistributedError::Order { tensor: self.variable.name().to_owned(), found: self.variable.order() }
    }

    fn other_type(&self, found: ElementType) -> DistributedError {
        DistributedError::Shape {
            tensor: self.variable.name().to_owned(),
            expected: format!("elements of type {}", self.variable.element()),
            found: found.to_string(),
        }
    }
}

/// A tensor that is being read.
type Reading<'a> = Pin<Box<dyn Future<Output = Result<DenseArray, DistributedError>> + Send + 'a>>;

fn write_typed<T: Element + FieldValue>(
    call: &LeafCall<'_>,
    field: FieldId,
    array: &DenseArray,
    modes: &Modes,
) -> maniple::Result<()> {
    call.write_rows(0, field, &mut |first, into: &mut [T]| {
        let mut coordinates = modes.coordinates(first);
        for element in into {
            if let Some(value) = array.get(coordinates.as_slice()).and_then(T::from_scalar) {
                *element = value;
            }
            if let Some(last) = modes.last() {
                coordinates.as_mut_slice()[last] += 1;
            }
        }
    })
}
