//! The contents of a file: entries, whatever their type is.

use maniple_files::npz::ArrayValues;
use maniple_files::{Complex, Number};

use crate::element::{ElementType, Scalar};
use crate::notation::cast;
use crate::storage::DynamicEntries;

/// The entries of a tensor that were read from a file.
#[derive(Debug)]
pub struct Contents {
    /// The extent of each dimension.
    pub dimensions: Vec<i64>,
    /// The value of all elements that are not stored.
    pub fill: Scalar,
    /// The stored entries.
    pub entries: DynamicEntries,
}

impl Contents {
    /// The same in another type, which elements are cast to.
    pub(super) fn cast(self, element: ElementType) -> Self {
        let entries = self.entries.cast(element, &|number| Some(cast(number, element)));
        let entries = entries.expect("numbers of all types are cast to all types");
        Self { fill: cast(self.fill, element), entries, ..self }
    }
}

/// An element type whose values can be in files.
pub(super) trait StoredElement: Number {
    /// Elements as those of a `.npz` file.
    fn values(elements: Vec<Self>) -> ArrayValues;
}

macro_rules! stored {
    ($($type:ty => $variant:ident),*) => {$(
        impl StoredElement for $type {
            fn values(elements: Vec<Self>) -> ArrayValues {
                ArrayValues::$variant(elements)
            }
        }
    )*};
}

stored!(
    bool => Bool,
    u8 => U8,
    i8 => I8,
    u16 => U16,
    i16 => I16,
    u32 => U32,
    i32 => I32,
    u64 => U64,
    i64 => I64,
    f32 => F32,
    f64 => F64,
    Complex<f32> => C32,
    Complex<f64> => C64
);

/// The zero of a type.
pub(super) fn zero(element: ElementType) -> Scalar {
    cast(Scalar::F64(0.0), element)
}
