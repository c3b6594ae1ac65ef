//! The numbers that tensors hold.

use std::fmt;

use bytemuck::{AnyBitPattern, CheckedBitPattern, NoUninit, Zeroable, cast_vec};
pub use num_complex::Complex;

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ElementType {
    /// Truth values, which are 0 or 1: sums are `or`, products are `and`, and other numbers than 0 are 1.
    Bool,
    /// 8-bit unsigned integers, which wrap.
    U8,
    /// 8-bit signed integers, which wrap.
    I8,
    /// 16-bit signed integers, which wrap.
    I16,
    /// 32-bit unsigned integers, which wrap.
    U32,
    /// 32-bit signed integers, which wrap.
    I32,
    /// 64-bit signed integers, which wrap.
    I64,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
    /// Complex numbers of two [`F32`](Self::F32).
    C32,
    /// Complex numbers of two [`F64`](Self::F64).
    C64,
}

impl ElementType {
    /// All element types.
    pub const ALL: [Self; 11] = [
        Self::Bool,
        Self::U8,
        Self::I8,
        Self::I16,
        Self::U32,
        Self::I32,
        Self::I64,
        Self::F32,
        Self::F64,
        Self::C32,
        Self::C64,
    ];

    /// The size of an element in bytes.
    pub fn size(self) -> usize {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 | Self::C32 => 8,
            Self::C64 => 16,
        }
    }

    /// Whether elements are integers, as truth values are.
    pub fn is_integer(self) -> bool {
        !matches!(self, Self::F32 | Self::F64) && !self.is_complex()
    }

    /// Whether elements are integers of which none is below zero.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Self::Bool | Self::U8 | Self::U32)
    }

    /// Whether elements are complex, and so without an order.
    pub fn is_complex(self) -> bool {
        matches!(self, Self::C32 | Self::C64)
    }

    /// The type in which NumPy computes with elements of both types (`numpy.result_type`): of integers, the smallest
    /// that has all values of both; with floats and complex numbers, those of 32 bits as long as the integers have at
    /// most 16. It is commutative and associative.
    ///
    /// ```
    /// use maniple_kernel::element::ElementType;
    ///
    /// assert_eq!(ElementType::U8.promoted(ElementType::I8), ElementType::I16);
    /// assert_eq!(ElementType::I64.promoted(ElementType::F32), ElementType::F64);
    /// ```
    #[must_use]
    pub fn promoted(self, other: Self) -> Self {
        if self.is_integer() && other.is_integer() {
            return self.promoted_integer(other);
        }
        let is_wide = |element: Self| match element {
            Self::Bool | Self::U8 | Self::I8 | Self::I16 | Self::F32 | Self::C32 => false,
            Self::U32 | Self::I32 | Self::I64 | Self::F64 | Self::C64 => true,
        };
        match (self.is_complex() || other.is_complex(), is_wide(self) || is_wide(other)) {
            (false, false) => Self::F32,
            (false, true) => Self::F64,
            (true, false) => Self::C32,
            (true, true) => Self::C64,
        }
    }

    fn promoted_integer(self, other: Self) -> Self {
        let (lesser, greater) = if self.size() <= other.size() { (self, other) } else { (other, self) };
        match (lesser, greater) {
            (Self::Bool, element) | (element, Self::Bool) => element,
            _ if lesser.is_unsigned() == greater.is_unsigned() => greater,
            // A signed type has all values of an unsigned one that is narrower.
            (Self::U8, signed) if signed.size() > 1 => signed,
            (Self::U8 | Self::I8, Self::U8 | Self::I8) => Self::I16,
            _ => Self::I64,
        }
    }
}

impl ElementType {
    /// The name of the type in options and files: `f64`, `c32`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::U32 => "u32",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::C32 => "c32",
            Self::C64 => "c64",
        }
    }
}

impl fmt::Display for ElementType {
    /// Writes the type as Rust names it: `f64`, `Complex<f32>`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::C32 => "Complex<f32>",
            Self::C64 => "Complex<f64>",
            real => real.name(),
        })
    }
}

/// One element of any type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// An [`ElementType::Bool`].
    Bool(bool),
    /// An [`ElementType::U8`].
    U8(u8),
    /// An [`ElementType::I8`].
    I8(i8),
    /// An [`ElementType::I16`].
    I16(i16),
    /// An [`ElementType::U32`].
    U32(u32),
    /// An [`ElementType::I32`].
    I32(i32),
    /// An [`ElementType::I64`].
    I64(i64),
    /// An [`ElementType::F32`].
    F32(f32),
    /// An [`ElementType::F64`].
    F64(f64),
    /// An [`ElementType::C32`].
    C32(Complex<f32>),
    /// An [`ElementType::C64`].
    C64(Complex<f64>),
}

impl fmt::Display for Scalar {
    /// The number, without its type.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(formatter),
            Self::U8(value) => value.fmt(formatter),
            Self::I8(value) => value.fmt(formatter),
            Self::I16(value) => value.fmt(formatter),
            Self::U32(value) => value.fmt(formatter),
            Self::I32(value) => value.fmt(formatter),
            Self::I64(value) => value.fmt(formatter),
            Self::F32(value) => value.fmt(formatter),
            Self::F64(value) => value.fmt(formatter),
            Self::C32(value) => value.fmt(formatter),
            Self::C64(value) => value.fmt(formatter),
        }
    }
}

impl Scalar {
    /// The type of this element.
    pub fn element_type(self) -> ElementType {
        match self {
            Self::Bool(_) => ElementType::Bool,
            Self::U8(_) => ElementType::U8,
            Self::I8(_) => ElementType::I8,
            Self::I16(_) => ElementType::I16,
            Self::U32(_) => ElementType::U32,
            Self::I32(_) => ElementType::I32,
            Self::I64(_) => ElementType::I64,
            Self::F32(_) => ElementType::F32,
            Self::F64(_) => ElementType::F64,
            Self::C32(_) => ElementType::C32,
            Self::C64(_) => ElementType::C64,
        }
    }
}

impl Scalar {
    /// The bits, which tell apart what `==` does not: zeros of both signs, and NaNs.
    pub fn bits(self) -> u128 {
        let pair = |re: u128, im: u128| im << 64 | re;
        match self {
            Self::Bool(value) => value.into(),
            Self::U8(value) => value.into(),
            Self::I8(value) => (value as u8).into(),
            Self::I16(value) => (value as u16).into(),
            Self::U32(value) => value.into(),
            Self::I32(value) => (value as u32).into(),
            Self::I64(value) => (value as u64).into(),
            Self::F32(value) => value.to_bits().into(),
            Self::F64(value) => value.to_bits().into(),
            Self::C32(value) => pair(value.re.to_bits().into(), value.im.to_bits().into()),
            Self::C64(value) => pair(value.re.to_bits().into(), value.im.to_bits().into()),
        }
    }
}

/// A Rust type that can be a tensor's element. Elements can be moved as bytes, by code that is compiled once for all
/// types.
pub trait Element:
    Copy + Send + Sync + PartialEq + fmt::Debug + Zeroable + NoUninit + CheckedBitPattern + 'static
{
    /// The element type that `Self` is.
    const TYPE: ElementType;

    /// A type of the same size and alignment, by which elements are represented where they are only moved: code that
    /// moves them is compiled for six types, and not for all.
    type Carrier: Element<Carrier = Self::Carrier> + AnyBitPattern;

    /// `self` as a value of any type.
    fn to_scalar(self) -> Scalar;

    /// The element in `scalar`, unless it has another type.
    fn from_scalar(scalar: Scalar) -> Option<Self>;

    /// Elements as their representation, in the same memory.
    ///
    /// # Panics
    /// If the representation has another size or alignment.
    fn into_carriers(elements: Vec<Self>) -> Vec<Self::Carrier> {
        cast_vec(elements)
    }

    /// Elements of their representation, which [`into_carriers`](Self::into_carriers) gave.
    fn from_carriers(carriers: Vec<Self::Carrier>) -> Vec<Self>;
}

macro_rules! elements {
    ($($rust:ty => $variant:ident, $carrier:ty, $from_carriers:expr;)*) => {$(
        impl Element for $rust {
            const TYPE: ElementType = ElementType::$variant;
            type Carrier = $carrier;

            fn to_scalar(self) -> Scalar {
                Scalar::$variant(self)
            }

            fn from_scalar(scalar: Scalar) -> Option<Self> {
                match scalar {
                    Scalar::$variant(value) => Some(value),
                    _ => None,
                }
            }

            fn from_carriers(carriers: Vec<$carrier>) -> Vec<Self> {
                $from_carriers(carriers)
            }
        }

        impl From<$rust> for Scalar {
            fn from(element: $rust) -> Self {
                Self::$variant(element)
            }
        }
    )*};
}

/// Truth values of their representation.
fn truth_values(carriers: Vec<u8>) -> Vec<bool> {
    carriers.into_iter().map(|carrier| carrier != 0).collect()
}

elements!(
    bool => Bool, u8, truth_values;
    u8 => U8, u8, cast_vec;
    i8 => I8, u8, cast_vec;
    i16 => I16, i16, cast_vec;
    u32 => U32, u32, cast_vec;
    i32 => I32, u32, cast_vec;
    i64 => I64, i64, cast_vec;
    f32 => F32, u32, cast_vec;
    f64 => F64, i64, cast_vec;
    Complex<f32> => C32, Complex<f32>, cast_vec;
    Complex<f64> => C64, Complex<f64>, cast_vec;
);

/// Does something with the Rust type of an element type.
///
/// ```
/// use maniple_kernel::element::{Element, ElementType};
/// use maniple_kernel::with_element;
///
/// let element = ElementType::F32;
/// assert_eq!(with_element!(element, T => (size_of::<T>(), T::TYPE)), (4, ElementType::F32));
/// ```
#[macro_export]
macro_rules! with_element {
    ($element:expr, $ty:ident => $body:expr) => {
        match $element {
            $crate::element::ElementType::Bool => {
                type $ty = bool;
                $body
            }
            $crate::element::ElementType::U8 => {
                type $ty = u8;
                $body
            }
            $crate::element::ElementType::I8 => {
                type $ty = i8;
                $body
            }
            $crate::element::ElementType::I16 => {
                type $ty = i16;
                $body
            }
            $crate::element::ElementType::U32 => {
                type $ty = u32;
                $body
            }
            $crate::element::ElementType::I32 => {
                type $ty = i32;
                $body
            }
            $crate::element::ElementType::I64 => {
                type $ty = i64;
                $body
            }
            $crate::element::ElementType::F32 => {
                type $ty = f32;
                $body
            }
            $crate::element::ElementType::F64 => {
                type $ty = f64;
                $body
            }
            $crate::element::ElementType::C32 => {
                type $ty = $crate::element::Complex<f32>;
                $body
            }
            $crate::element::ElementType::C64 => {
                type $ty = $crate::element::Complex<f64>;
                $body
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::ElementType::{self, *};
    use super::{Complex, Element};

    /// The types that NumPy 2 gives for each pair, by the order of [`ElementType::ALL`].
    const TABLE: [[ElementType; 11]; 11] = [
        [Bool, U8, I8, I16, U32, I32, I64, F32, F64, C32, C64],
        [U8, U8, I16, I16, U32, I32, I64, F32, F64, C32, C64],
        [I8, I16, I8, I16, I64, I32, I64, F32, F64, C32, C64],
        [I16, I16, I16, I16, I64, I32, I64, F32, F64, C32, C64],
        [U32, U32, I64, I64, U32, I64, I64, F64, F64, C64, C64],
        [I32, I32, I32, I32, I64, I32, I64, F64, F64, C64, C64],
        [I64, I64, I64, I64, I64, I64, I64, F64, F64, C64, C64],
        [F32, F32, F32, F32, F64, F64, F64, F32, F64, C32, C64],
        [F64, F64, F64, F64, F64, F64, F64, F64, F64, C64, C64],
        [C32, C32, C32, C32, C64, C64, C64, C32, C64, C32, C64],
        [C64, C64, C64, C64, C64, C64, C64, C64, C64, C64, C64],
    ];

    fn keep_their_bits<T: Element>(elements: &[T]) {
        let carriers = T::into_carriers(elements.to_vec());
        assert_eq!((size_of::<T>(), align_of::<T>()), (size_of::<T::Carrier>(), align_of::<T::Carrier>()));
        let bytes = bytemuck::cast_slice::<T, u8>(elements).to_vec();
        assert_eq!(bytemuck::cast_slice::<T::Carrier, u8>(&carriers), bytes);
        assert_eq!(bytemuck::cast_slice::<T, u8>(&T::from_carriers(carriers)), bytes);
    }

    #[test]
    fn elements_that_are_carried_keep_their_bits() {
        let (nan, infinite) = ([f32::NAN, -f32::NAN, -0.0, 0.0], [f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE]);
        let floats = [&nan[..], &infinite[..]].concat();
        let doubles: Vec<f64> = floats.iter().map(|&float| float.into()).collect();
        keep_their_bits(&[true, false, true]);
        keep_their_bits(&[0, 1, u8::MAX]);
        keep_their_bits(&[0, -1, i8::MIN]);
        keep_their_bits(&[0, -1, i16::MIN]);
        keep_their_bits(&[0, 1, u32::MAX]);
        keep_their_bits(&[0, -1, i32::MIN]);
        keep_their_bits(&[0, -1, i64::MIN]);
        keep_their_bits(&floats);
        keep_their_bits(&doubles);
        keep_their_bits(&floats.windows(2).map(|pair| Complex::new(pair[0], pair[1])).collect::<Vec<_>>());
        keep_their_bits(&doubles.windows(2).map(|pair| Complex::new(pair[0], pair[1])).collect::<Vec<_>>());
    }

    #[test]
    fn types_are_promoted_as_numpy_does() {
        for (one, row) in ElementType::ALL.into_iter().zip(TABLE) {
            for (other, expected) in ElementType::ALL.into_iter().zip(row) {
                assert_eq!(one.promoted(other), expected, "{one} and {other}");
            }
        }
    }

    #[test]
    fn promotion_is_commutative_and_associative() {
        for one in ElementType::ALL {
            for two in ElementType::ALL {
                assert_eq!(one.promoted(two), two.promoted(one));
                for three in ElementType::ALL {
                    assert_eq!(one.promoted(two).promoted(three), one.promoted(two.promoted(three)));
                }
            }
        }
    }
}
