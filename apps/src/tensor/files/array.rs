//! A tensor that was read from a file, or is to be written to one.

use std::sync::Arc;

use maniple_files::Number;
use maniple_files::npz::Values;
use maniple_tensor::distributed::element_that_is;
use maniple_tensor::element::{Complex, Element, ElementType, Scalar};
use maniple_tensor::notation::cast;
use maniple_tensor::with_element;

use crate::tensor::random::Random;

/// The elements of a tensor, in the order of their coordinates, the last dimension fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    dimensions: Vec<i64>,
    elements: Elements,
}

#[derive(Clone, Debug, PartialEq)]
#[doc(hidden)]
pub enum Elements {
    Bool(Arc<Vec<bool>>),
    U8(Arc<Vec<u8>>),
    I8(Arc<Vec<i8>>),
    I16(Arc<Vec<i16>>),
    U32(Arc<Vec<u32>>),
    I32(Arc<Vec<i32>>),
    I64(Arc<Vec<i64>>),
    F32(Arc<Vec<f32>>),
    F64(Arc<Vec<f64>>),
    C32(Arc<Vec<Complex<f32>>>),
    C64(Arc<Vec<Complex<f64>>>),
}

/// An element type whose values can be in files.
pub trait Stored: Random + Number {
    #[doc(hidden)]
    fn wrap(elements: Arc<Vec<Self>>) -> Elements;
    #[doc(hidden)]
    fn unwrap(elements: &Elements) -> Option<&Arc<Vec<Self>>>;
    /// Elements as those of a `.npz` file.
    fn values(elements: Vec<Self>) -> Values;
}

macro_rules! stored {
    ($($type:ty => $variant:ident),*) => {$(
        impl Stored for $type {
            fn wrap(elements: Arc<Vec<Self>>) -> Elements {
                Elements::$variant(elements)
            }

            fn unwrap(elements: &Elements) -> Option<&Arc<Vec<Self>>> {
                match elements {
                    Elements::$variant(elements) => Some(elements),
                    _ => None,
                }
            }

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
    pub fn new<T: Stored>(dimensions: Vec<i64>, elements: Vec<T>) -> Self {
        debug_assert_eq!(dimensions.iter().product::<i64>(), elements.len() as i64);
        Self { dimensions, elements: T::wrap(Arc::new(elements)) }
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
        match &self.elements {
            Elements::Bool(_) => ElementType::Bool,
            Elements::U8(_) => ElementType::U8,
            Elements::I8(_) => ElementType::I8,
            Elements::I16(_) => ElementType::I16,
            Elements::U32(_) => ElementType::U32,
            Elements::I32(_) => ElementType::I32,
            Elements::I64(_) => ElementType::I64,
            Elements::F32(_) => ElementType::F32,
            Elements::F64(_) => ElementType::F64,
            Elements::C32(_) => ElementType::C32,
            Elements::C64(_) => ElementType::C64,
        }
    }

    /// The elements, if they have this type.
    #[must_use]
    pub fn elements<T: Stored>(&self) -> Option<&Arc<Vec<T>>> {
        T::unwrap(&self.elements)
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
    /// What is lost, if not all elements have a value there.
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

    /// The coordinates of the element with this number, counted from 0.
    fn place(&self, mut number: usize) -> String {
        let mut place = Vec::new();
        for &extent in self.dimensions.iter().rev() {
            place.push((number % extent.max(1) as usize).to_string());
            number /= extent.max(1) as usize;
        }
        place.reverse();
        format!("[{}]", place.join(", "))
    }
}

/// What is said where complex elements would lose their imaginary parts.
pub fn no_imaginary_parts(own: ElementType, wanted: ElementType) -> String {
    let (own, wanted) = (name(own), name(wanted));
    format!("its elements are {own}, and {wanted} has no imaginary parts: say --type {own}")
}

/// An element type as `--type` has it.
fn name(element: ElementType) -> &'static str {
    match element {
        ElementType::Bool => "bool",
        ElementType::U8 => "u8",
        ElementType::I8 => "i8",
        ElementType::I16 => "i16",
        ElementType::U32 => "u32",
        ElementType::I32 => "i32",
        ElementType::I64 => "i64",
        ElementType::F32 => "f32",
        ElementType::F64 => "f64",
        ElementType::C32 => "c32",
        ElementType::C64 => "c64",
    }
}

fn shown(value: Scalar) -> String {
    match value {
        Scalar::Bool(value) => u8::from(value).to_string(),
        Scalar::U8(value) => value.to_string(),
        Scalar::I8(value) => value.to_string(),
        Scalar::I16(value) => value.to_string(),
        Scalar::U32(value) => value.to_string(),
        Scalar::I32(value) => value.to_string(),
        Scalar::I64(value) => value.to_string(),
        Scalar::F32(value) => format!("{value:e}"),
        Scalar::F64(value) => format!("{value:e}"),
        Scalar::C32(value) => format!("{value:e}"),
        Scalar::C64(value) => format!("{value:e}"),
    }
}

/// The zero of a type.
#[must_use]
pub fn zero<T: Element>() -> T {
    T::from_scalar(cast(Scalar::F64(0.0), T::TYPE)).expect("all types have a zero")
}
