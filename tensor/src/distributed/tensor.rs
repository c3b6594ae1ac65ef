//! Tensors whose elements are in regions.

use std::pin::Pin;
use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace};
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Context, Field, FieldId, FieldMask, FieldType, FieldValue, LogicalRegion, Privilege, Region, Requirement,
    TaskLauncher,
};
use parking_lot::Mutex;

use super::error::DistributedError;
use super::home::Home;
use super::modes::Modes;
use super::rows::set_rows;
use crate::element::{Element, ElementType, Scalar};
use crate::format::Format;
use crate::notation::{DenseArray, TensorVariable};
use crate::rectangle::Rectangle;
use crate::with_element;

/// A tensor in memories of the machine: a region over its coordinates with one field. A scalar has one row.
///
/// Copies are the same tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    variable: TensorVariable,
    region: LogicalRegion,
    field: FieldId,
    modes: Modes,
    /// Where it was placed last.
    home: Arc<Mutex<Option<Home>>>,
}

impl Tensor {
    /// A new tensor of what [fills](TensorVariable::fill) it, stored as its variable says. Nothing is stored before somebody looks.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Order`] if it has more dimensions than regions have, [`DistributedError::Runtime`].
    pub fn new(cx: &Context, variable: &TensorVariable) -> Result<Self, DistributedError> {
        Self::stored(cx, variable, variable.format())
    }

    /// The same, stored in a format: the region has the tensor's dimensions in the format's order, the outermost first. What is computed does not depend on it, but elements are
    /// used fastest along the dimension that is stored last, if the statement's variable has the format too.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Format`] if the format has other dimensions, or levels that are not dense; as of [`new`](Self::new).
    pub fn stored(cx: &Context, variable: &TensorVariable, format: &Format) -> Result<Self, DistributedError> {
        let modes = Modes::new(format, variable.order())?;
        let rows = modes.rect(&Rectangle::whole(variable.dimensions()));
        let rows = rows
            .ok_or_else(|| DistributedError::Order { tensor: variable.name().to_owned(), found: variable.order() })?;
        let rows = cx.index_space(&AnySpace::from(rows));
        let fields = cx.field_space(1);
        let element = variable.element();
        let field_type = with_element!(element, T => FieldType::of::<T>());
        let field = fields.allocate(variable.name(), field_type).map_err(maniple::Error::from)?;
        let region = cx.logical_region(&rows, &fields)?;
        let tensor = Self { variable: variable.stored(format.clone()), region, field, modes, home: Arc::default() };
        tensor.fill(cx, variable.fill())?;
        Ok(tensor)
    }

    /// What statements call it.
    pub fn variable(&self) -> &TensorVariable {
        &self.variable
    }

    /// The region with its elements.
    pub fn region(&self) -> &LogicalRegion {
        &self.region
    }

    /// The field of the region.
    pub fn field(&self) -> FieldId {
        self.field
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

    /// Sets all elements.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`]; among them a value of another type.
    pub fn fill(&self, cx: &Context, value: Scalar) -> Result<(), DistributedError> {
        let element = self.variable.element();
        with_element!(element, T => {
            let value = T::from_scalar(value).ok_or_else(|| self.other_type(value.element_type()))?;
            self.fill_typed(cx, value)
        })
    }

    fn fill_typed<T: FieldValue>(&self, cx: &Context, value: T) -> Result<(), DistributedError> {
        match self.region.space().space().dim() {
            1 => cx.fill_field(&self.typed::<1>()?, self.field, value)?,
            2 => cx.fill_field(&self.typed::<2>()?, self.field, value)?,
            3 => cx.fill_field(&self.typed::<3>()?, self.field, value)?,
            _ => cx.fill_field(&self.typed::<4>()?, self.field, value)?,
        }
        Ok(())
    }

    /// Sets all elements to those of an array.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the array has another type or other extents.
    pub fn write(&self, cx: &Context, array: &DenseArray) -> Result<(), DistributedError> {
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
            with_element!(element, T => write_typed::<T>(call, field, (array, &modes)))?;
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
    pub fn read(&self, cx: &Context) -> impl Future<Output = Result<DenseArray, DistributedError>> + Send {
        let element = self.variable.element();
        let reading: Reading<'_> = with_element!(element, T => match self.region.space().space().dim() {
            1 => Box::pin(self.read_typed::<T, 1>(cx)),
            2 => Box::pin(self.read_typed::<T, 2>(cx)),
            3 => Box::pin(self.read_typed::<T, 3>(cx)),
            _ => Box::pin(self.read_typed::<T, 4>(cx)),
        });
        reading
    }

    fn read_typed<T: Element + FieldValue, const D: usize>(
        &self,
        cx: &Context,
    ) -> impl Future<Output = Result<DenseArray, DistributedError>> + Send + use<'_, T, D> {
        let mapping = self.typed::<D>().map(|region| cx.map_read(&region, Field::<(), T>::new(self.field)));
        async move {
            let values = mapping?.await?;
            let value = |coordinates: &[i64]| values[self.modes.point::<D>(coordinates)].to_scalar();
            Ok(DenseArray::from_fn(T::TYPE, self.variable.dimensions(), value))
        }
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

    pub(super) fn typed<const D: usize>(&self) -> Result<Region<(), D>, DistributedError> {
        Ok(Region::try_from_logical(self.region.clone())?)
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
    (array, modes): (&DenseArray, &Modes),
) -> maniple::Result<()> {
    set_rows(call, field, |first: &[i64], into: &mut [T]| {
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
