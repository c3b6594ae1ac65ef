//! A tensor that was read from a file, or is to be written to one.

use std::any::Any;
use std::sync::Arc;

use maniple_files::Number;
use maniple_files::npz::Values;
use maniple_tensor::distributed::element_that_is;
use maniple_tensor::element::{Complex, Element, ElementType, Scalar};
use maniple_tensor::notation::cast;
use maniple_tensor::storage::{DynamicEntries, EntryList};
use maniple_tensor::with_element;

use crate::tensor::random::Random;

/// The elements of a tensor, in the order of their coordinates, the last dimension fastest. Copies share them.
#[derive(Clone, Debug)]
pub struct Array {
    dimensions: Vec<i64>,
    element: ElementType,
    /// A vector of elements of this type.
    elements: Arc<dyn Any + Send + Sync>,
}

/// An element type whose values can be in files.
pub trait Stored: Random + Number {
    /// Elements as those of a `.npz` file.
    fn values(elements: Vec<Self>) -> Values;
}

macro_rules! stored {
    ($($type:ty => $variant:ident),*) => {$(
        impl Stored for $type {
            fn values(elements: Vec<Self>) -> Values {
                Values::$variant(elements)
            }
        }
    )*};
}

stored!(
    bool => Bool,
    u8 => U8,
    i8 => I8,
    i16 => I16,
    u32 => U32,
    i32 => I32,
    i64 => I64,
    f32 => F32,
    f64 => F64,
    Complex<f32> => C32,
    Complex<f64> => C64
);

impl Array {
    /// A tensor with these extents, and as many elements as it has then.
    #[must_use]
    pub fn new<T: Element>(dimensions: Vec<i64>, elements: Vec<T>) -> Self {
        debug_assert_eq!(dimensions.iter().product::<i64>(), elements.len() as i64);
        Self { dimensions, element: T::TYPE, elements: Arc::new(elements) }
    }

    /// The extent of each dimension.
    #[must_use]
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// The same elements with other extents, if they are as many.
    #[must_use]
    pub fn reshaped(self, dimensions: Vec<i64>) -> Option<Self> {
        let same = dimensions.iter().product::<i64>() == self.dimensions.iter().product::<i64>();
        same.then_some(Self { dimensions, ..self })
    }

    /// The type of the elements.
    #[must_use]
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The elements, if they have this type.
    #[must_use]
    pub fn elements<T: Element>(&self) -> Option<&Vec<T>> {
        self.elements.downcast_ref()
    }

    /// The elements, shared, if they have this type.
    #[must_use]
    pub fn shared<T: Element>(&self) -> Option<Arc<Vec<T>>> {
        Arc::clone(&self.elements).downcast().ok()
    }

    /// The element with this number.
    #[must_use]
    pub fn get(&self, number: usize) -> Option<Scalar> {
        with_element!(self.element(), T => {
            Some(self.elements::<T>()?.get(number)?.to_scalar())
        })
    }

    /// The element at these coordinates.
    #[must_use]
    pub fn at(&self, coordinates: &[i64]) -> Option<Scalar> {
        let number = self.dimensions.iter().zip(coordinates).fold(0, |number, (extent, index)| number * extent + index);
        self.get(number as usize)
    }

    /// The same elements in another type; fractions may be rounded, and integers may not.
    ///
    /// # Errors
    /// A description of the loss, if not all elements have a value in that type.
    pub fn converted(&self, element: ElementType) -> Result<Self, String> {
        let own = self.element();
        if element == own {
            return Ok(self.clone());
        }
        let (own_name, wanted) = (name(own), name(element));
        if own.is_complex() && !element.is_complex() {
            return Err(no_imaginary_parts(own, element));
        }
        if !own.is_integer() && element.is_integer() {
            return Err(format!("its elements are {own_name}, and {wanted} has no fractions: say --type {own_name}"));
        }
        let count = self.dimensions.iter().product::<i64>() as usize;
        with_element!(element, T => {
            let one = |number: usize| element_that_is::<T>(self.get(number)?);
            let elements: Result<Vec<T>, String> = (0..count).map(|number| one(number).ok_or(number)).collect::<Result<_, _>>().map_err(|number| {
                let place = self.place(number);
                let value = self.get(number).map_or_else(String::new, shown);
                let problem = if own.is_integer() && !element.is_integer() { "no" } else { "too large for" };
                format!("element {place} is {value}, which is {problem} {wanted}: say --type {own_name}")
            });
            Ok(Self::new(self.dimensions.clone(), elements?))
        })
    }

    /// The elements that are not zero, as entries.
    #[must_use]
    pub fn entries(&self) -> DynamicEntries {
        with_element!(self.element, T => self.listed::<T>().into())
    }

    fn listed<T: Element>(&self) -> EntryList<T> {
        let mut entries = EntryList::new(self.dimensions.len());
        let mut at = vec![0; self.dimensions.len()];
        let elements = self.elements::<T>().into_iter().flatten().enumerate();
        for (number, element) in elements.filter(|(_, element)| **element != T::zeroed()) {
            self.locate(number, &mut at);
            entries.push(&at, *element);
        }
        entries
    }

    /// The coordinates of the element with this number, counted from 0.
    fn locate(&self, number: usize, at: &mut [i64]) {
        let mut rest = number as i64;
        for (at, &extent) in at.iter_mut().zip(&self.dimensions).rev() {
            (*at, rest) = (rest % extent.max(1), rest / extent.max(1));
        }
    }

    fn place(&self, number: usize) -> String {
        let mut at = vec![0; self.dimensions.len()];
        self.locate(number, &mut at);
        format!("{at:?}")
    }
}

/// The message of the error that complex elements would lose their imaginary parts.
pub fn no_imaginary_parts(own: ElementType, wanted: ElementType) -> String {
    let (own, wanted) = (name(own), name(wanted));
    format!("its elements are {own}, and {wanted} has no imaginary parts: say --type {own}")
}

/// An element type as `--type` has it.
fn name(element: ElementType) -> String {
    match element {
        ElementType::C32 => "c32".to_owned(),
        ElementType::C64 => "c64".to_owned(),
        real => real.to_string(),
    }
}

fn shown(value: Scalar) -> String {
    match value {
        Scalar::Bool(value) => u8::from(value).to_string(),
        Scalar::F32(value) => format!("{value:e}"),
        Scalar::F64(value) => format!("{value:e}"),
        Scalar::C32(value) => format!("{value:e}"),
        Scalar::C64(value) => format!("{value:e}"),
        integer => integer.to_string(),
    }
}

/// The zero of a type.
#[must_use]
pub fn zero(element: ElementType) -> Scalar {
    cast(Scalar::F64(0.0), element)
}
