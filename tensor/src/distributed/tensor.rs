//! Tensors whose elements are in regions.

use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace, Rect};
use maniple::task::{LeafCall, TaskDefinition, TaskOptions};
use maniple::{
    Context, Field, FieldId, FieldMask, FieldType, FieldValue, LogicalRegion, Privilege, Region, Requirement,
    TaskLauncher,
};
use num_complex::Complex;

use super::error::DistributedError;
use crate::element::{Element, ElementType, Scalar};
use crate::kernel::{Dimension, View};
use crate::notation::{DenseArray, TensorVariable};

/// Does something with the Rust type of an element type.
macro_rules! with_element {
    ($element:expr, $ty:ident => $body:expr) => {
        match $element {
            ElementType::I32 => {
                type $ty = i32;
                $body
            }
            ElementType::I64 => {
                type $ty = i64;
                $body
            }
            ElementType::F32 => {
                type $ty = f32;
                $body
            }
            ElementType::F64 => {
                type $ty = f64;
                $body
            }
            ElementType::C32 => {
                type $ty = Complex<f32>;
                $body
            }
            ElementType::C64 => {
                type $ty = Complex<f64>;
                $body
            }
        }
    };
}

/// A tensor in memories of the machine: a region over its coordinates with one field. A scalar has one row.
///
/// Copies are the same tensor.
#[derive(Clone, Debug)]
pub struct Tensor {
    variable: TensorVariable,
    region: LogicalRegion,
    field: FieldId,
}

impl Tensor {
    /// A new tensor of zeros. Nothing is stored before somebody looks.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Order`] if it has more dimensions than regions have, [`DistributedError::Runtime`].
    pub fn new(cx: &Context, variable: &TensorVariable) -> Result<Self, DistributedError> {
        let rows = cx.index_space(&AnySpace::from(rectangle(variable)?));
        let fields = cx.field_space(1);
        let element = variable.element();
        let field_type = with_element!(element, T => FieldType::of::<T>());
        let field = fields.allocate(variable.name(), field_type).map_err(maniple::Error::from)?;
        let region = cx.logical_region(&rows, &fields)?;
        let tensor = Self { variable: variable.clone(), region, field };
        let zero = crate::notation::cast(Scalar::I32(0), element);
        tensor.fill(cx, zero)?;
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
        let (field, element) = (self.field, self.variable.element());
        let copy = move |call: &LeafCall<'_>| {
            let array: &DenseArray = call.arguments::<Arc<DenseArray>>()?;
            with_element!(element, T => write_typed::<T>(call, field, array))?;
            Ok(Box::new(()) as maniple::task::Value)
        };
        let task = Arc::new(TaskDefinition::new("write tensor").leaf(TaskOptions::default(), copy));
        let requirement = Requirement::new(self.region.clone(), FieldMask::of(self.field), Privilege::Discard);
        cx.launch(TaskLauncher::new(&task).requirement(requirement).arguments(Arc::new(array.clone())).typed::<()>());
        Ok(())
    }

    /// All elements, once what was launched before has ended.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`]: what has failed before.
    pub async fn read(&self, cx: &Context) -> Result<DenseArray, DistributedError> {
        let element = self.variable.element();
        with_element!(element, T => match self.region.space().space().dim() {
            1 => self.read_typed::<T, 1>(cx).await,
            2 => self.read_typed::<T, 2>(cx).await,
            3 => self.read_typed::<T, 3>(cx).await,
            _ => self.read_typed::<T, 4>(cx).await,
        })
    }

    async fn read_typed<T: Element + FieldValue, const D: usize>(
        &self,
        cx: &Context,
    ) -> Result<DenseArray, DistributedError> {
        let values = cx.map_read(&self.typed::<D>()?, Field::<(), T>::new(self.field)).await?;
        let value = |coordinates: &[i64]| {
            let mut point = [0; D];
            // A scalar has one row, and no coordinates.
            point[..coordinates.len()].copy_from_slice(coordinates);
            values[maniple::space::Point(point)].to_scalar()
        };
        Ok(DenseArray::from_fn(T::TYPE, self.variable.dimensions(), value))
    }

    fn typed<const D: usize>(&self) -> Result<Region<(), D>, DistributedError> {
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

/// The points of a tensor's region.
fn rectangle(variable: &TensorVariable) -> Result<AnyRect, DistributedError> {
    bounds(&variable.dimensions().iter().map(|&extent| (0, extent)).collect::<Vec<_>>())
        .ok_or_else(|| DistributedError::Order { tensor: variable.name().to_owned(), found: variable.order() })
}

/// A rectangle for a region, from the first to before the second of each pair; none in too many dimensions.
pub(super) fn bounds(bounds: &[(i64, i64)]) -> Option<AnyRect> {
    fn rect<const D: usize>(bounds: &[(i64, i64)]) -> AnyRect {
        let rect =
            Rect::new(std::array::from_fn(|d| bounds[d].0), std::array::from_fn::<i64, D, _>(|d| bounds[d].1 - 1));
        AnyRect::from(rect)
    }
    Some(match bounds.len() {
        0 => rect::<1>(&[(0, 1)]),
        1 => rect::<1>(bounds),
        2 => rect::<2>(bounds),
        3 => rect::<3>(bounds),
        4 => rect::<4>(bounds),
        _ => return None,
    })
}

/// A view of what a task has of a tensor of `order` dimensions.
///
/// # Safety
///
/// The view lives no longer than the call, and of the values that others may see, nothing is changed through it.
pub(super) unsafe fn view<'a>(
    call: &LeafCall<'a>,
    (requirement, field): (usize, FieldId),
    (element, order): (ElementType, usize),
) -> maniple::Result<View<'a>> {
    let strided = with_element!(element, T => call.strided::<T>(requirement, field))?;
    let (bounds, size) = (strided.bounds(), element.size() as isize);
    let dimension = |d: usize| Dimension {
        low: bounds.lo().coords()[d],
        high: bounds.hi().coords()[d] + 1,
        stride: (strided.strides()[d] / size) as i64,
    };
    let dimensions = (0..order).map(dimension).collect();
    // SAFETY: the task has the field at all points of the rectangle, as values of that type; privileges say that nobody changes them, or, if they
    // may be changed, that nobody else looks.
    Ok(unsafe { View::from_raw(strided.address(), element, dimensions, strided.is_writable()) })
}

fn write_typed<T: Element + FieldValue>(
    call: &LeafCall<'_>,
    field: FieldId,
    array: &DenseArray,
) -> maniple::Result<()> {
    fn write<T: Element + FieldValue, const D: usize>(
        call: &LeafCall<'_>,
        field: FieldId,
        array: &DenseArray,
    ) -> maniple::Result<()> {
        let mut into = call.write::<T, D>(0, field)?;
        let points: Vec<_> = into.space().points().collect();
        for (point, value) in points.into_iter().zip(array.values()) {
            if let Some(value) = T::from_scalar(*value) {
                into[point] = value;
            }
        }
        Ok(())
    }
    match array.dimensions().len() {
        0 | 1 => write::<T, 1>(call, field, array),
        2 => write::<T, 2>(call, field, array),
        3 => write::<T, 3>(call, field, array),
        _ => write::<T, 4>(call, field, array),
    }
}
