//! The table of all types, and what is made of it.

use std::fmt;

use bytemuck::{AnyBitPattern, CheckedBitPattern, NoUninit, Zeroable, bytes_of, cast, cast_vec};
use num_complex::Complex;

/// The kind of a type, which types with the same operations have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TypeKind {
    Truth,
    Unsigned,
    Signed,
    Real,
    Complex,
}

macro_rules! one {
    (Truth) => {
        true
    };
    (Real) => {
        1.0
    };
    (Complex) => {
        Complex::new(1.0, 0.0)
    };
    ($integer:ident) => {
        1
    };
}

macro_rules! extremes {
    (Truth $type:ty) => {
        Some([false, true])
    };
    (Real $type:ty) => {
        Some([<$type>::NEG_INFINITY, <$type>::INFINITY])
    };
    (Complex $type:ty) => {
        None
    };
    ($integer:ident $type:ty) => {
        Some([<$type>::MIN, <$type>::MAX])
    };
}

macro_rules! from_carrier {
    (Truth $carrier:ident) => {
        $carrier != 0
    };
    ($other:ident $carrier:ident) => {
        cast($carrier)
    };
}

macro_rules! integer {
    (Truth $number:ident) => {
        Some($number.into())
    };
    (Real $number:ident) => {
        // Those beyond are whole, and no integer of any type.
        ($number.fract() == 0.0 && $number.abs() < 1e30).then_some($number as i128)
    };
    (Complex $number:ident) => {
        None
    };
    ($integer:ident $number:ident) => {
        Some($number.into())
    };
}

macro_rules! elements {
    (
        $d:tt
        $($variant:ident: $rust:ty, $carrier:ty, $from_carriers:expr, $kind:ident,
            $name:literal, $numpy:literal, $help:literal;)*
    ) => {
        /// The type of the elements of an array, a file or a tensor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ElementType {
            $(#[doc = $help] $variant,)*
        }

        impl ElementType {
            /// All element types.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The size of an element in bytes.
            #[must_use]
            pub fn size(self) -> usize {
                match self {
                    $(Self::$variant => size_of::<$rust>(),)*
                }
            }

            fn kind(self) -> TypeKind {
                match self {
                    $(Self::$variant => TypeKind::$kind,)*
                }
            }

            /// The name of the type in options and files: `f64`, `c32`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The name that NumPy has for the type: `float64`, `complex64`.
            #[must_use]
            pub fn numpy_name(self) -> &'static str {
                match self {
                    $(Self::$variant => $numpy,)*
                }
            }
        }

        impl fmt::Display for ElementType {
            /// Writes the type as Rust names it: `f64`, `Complex<f32>`.
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(match self {
                    $(Self::$variant => stringify!($rust),)*
                })
            }
        }

        /// One element of any type.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Scalar {
            $(#[doc = concat!("An [`ElementType::", stringify!($variant), "`].")] $variant($rust),)*
        }

        impl fmt::Display for Scalar {
            /// The number, without its type.
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant(value) => value.fmt(formatter),)*
                }
            }
        }

        impl Scalar {
            /// The type of this element.
            #[must_use]
            pub fn element_type(self) -> ElementType {
                match self {
                    $(Self::$variant(_) => ElementType::$variant,)*
                }
            }

            /// The bits, which tell apart what `==` does not: zeros of both signs, and NaNs.
            #[must_use]
            pub fn bits(self) -> u128 {
                let mut bits = [0; 16];
                match &self {
                    $(Self::$variant(number) => bits[..size_of::<$rust>()].copy_from_slice(bytes_of(number)),)*
                }
                u128::from_le_bytes(bits)
            }

            /// The integer that this element is; none of fractions and of complex numbers.
            #[must_use]
            #[allow(unused_variables)] // no complex number is looked at
            pub fn as_integer(self) -> Option<i128> {
                match self {
                    $(Self::$variant(number) => integer!($kind number),)*
                }
            }
        }

        /// The Rust types, by their element types.
        #[doc(hidden)]
        pub mod rust {
            #[allow(unused_imports)] // of primitive types
            use super::*;

            $(pub type $variant = $rust;)*
        }

        $(
            impl Element for $rust {
                const TYPE: ElementType = ElementType::$variant;
                const ONE: Self = one!($kind);
                const EXTREMES: Option<[Self; 2]> = extremes!($kind $rust);
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

                fn from_carrier(carrier: $carrier) -> Self {
                    from_carrier!($kind carrier)
                }
            }

            impl From<$rust> for Scalar {
                fn from(element: $rust) -> Self {
                    Self::$variant(element)
                }
            }
        )*

        /// Does something with the number in a [`Scalar`].
        ///
        /// ```
        /// use maniple_element::{Scalar, with_scalar};
        ///
        /// assert_eq!(with_scalar!(Scalar::I16(-3), number => number.to_string()), "-3");
        /// ```
        #[macro_export]
        macro_rules! with_scalar {
            ($d scalar:expr, $d number:ident => $d body:expr) => {
                match $d scalar {
                    $($crate::Scalar::$variant($d number) => $d body,)*
                }
            };
        }

        /// Does something with the Rust type of an element type.
        ///
        /// ```
        /// use maniple_element::{Element, ElementType, with_element};
        ///
        /// let element = ElementType::F32;
        /// assert_eq!(with_element!(element, T => (size_of::<T>(), T::TYPE)), (4, ElementType::F32));
        /// ```
        #[macro_export]
        macro_rules! with_element {
            ($d element:expr, $d ty:ident => $d body:expr) => {
                match $d element {
                    $($crate::ElementType::$variant => {
                        type $d ty = $crate::rust::$variant;
                        $d body
                    })*
                }
            };
        }
    };
}

/// Truth values of their representation.
fn truth_values(carriers: Vec<u8>) -> Vec<bool> {
    carriers.into_iter().map(|carrier| carrier != 0).collect()
}

elements! {
    $
    Bool: bool, u8, truth_values, Truth, "bool", "bool",
        "Truth values, which are 0 or 1: sums are `or`, products are `and`, and other numbers than 0 are 1.";
    U8: u8, u8, cast_vec, Unsigned, "u8", "uint8", "8-bit unsigned integers, which wrap.";
    I8: i8, u8, cast_vec, Signed, "i8", "int8", "8-bit signed integers, which wrap.";
    U16: u16, i16, cast_vec, Unsigned, "u16", "uint16", "16-bit unsigned integers, which wrap.";
    I16: i16, i16, cast_vec, Signed, "i16", "int16", "16-bit signed integers, which wrap.";
    U32: u32, u32, cast_vec, Unsigned, "u32", "uint32", "32-bit unsigned integers, which wrap.";
    I32: i32, u32, cast_vec, Signed, "i32", "int32", "32-bit signed integers, which wrap.";
    U64: u64, i64, cast_vec, Unsigned, "u64", "uint64", "64-bit unsigned integers, which wrap.";
    I64: i64, i64, cast_vec, Signed, "i64", "int64", "64-bit signed integers, which wrap.";
    F32: f32, u32, cast_vec, Real, "f32", "float32", "IEEE 754 single precision.";
    F64: f64, i64, cast_vec, Real, "f64", "float64", "IEEE 754 double precision.";
    C32: Complex<f32>, Complex<f32>, cast_vec, Complex, "c32", "complex64",
        "Complex numbers of two [`F32`](Self::F32).";
    C64: Complex<f64>, Complex<f64>, cast_vec, Complex, "c64", "complex128",
        "Complex numbers of two [`F64`](Self::F64).";
}

impl ElementType {
    /// The bytes of an element, or of each of the two parts of a complex one.
    #[must_use]
    pub fn part_size(self) -> usize {
        self.size() / if self.is_complex() { 2 } else { 1 }
    }

    /// The name of the type in headers of `.npy` files, without the order of bytes: `f8`, `c16`.
    #[must_use]
    pub fn npy_name(self) -> String {
        let letter = match self.kind() {
            TypeKind::Truth => 'b',
            TypeKind::Unsigned => 'u',
            TypeKind::Signed => 'i',
            TypeKind::Real => 'f',
            TypeKind::Complex => 'c',
        };
        format!("{letter}{}", self.size())
    }

    /// Whether elements are integers, as truth values are.
    #[must_use]
    pub fn is_integer(self) -> bool {
        matches!(self.kind(), TypeKind::Truth | TypeKind::Unsigned | TypeKind::Signed)
    }

    /// Whether elements are integers of which none is below zero.
    #[must_use]
    pub fn is_unsigned(self) -> bool {
        matches!(self.kind(), TypeKind::Truth | TypeKind::Unsigned)
    }

    /// Whether elements are complex, and so without an order.
    #[must_use]
    pub fn is_complex(self) -> bool {
        self.kind() == TypeKind::Complex
    }
}

/// A Rust type that can be a tensor's element. Elements can be moved as bytes, by code that is compiled once for all
/// types.
pub trait Element:
    Copy + Send + Sync + PartialEq + fmt::Debug + Zeroable + NoUninit + CheckedBitPattern + 'static
{
    /// The element type that `Self` is.
    const TYPE: ElementType;

    /// The number 1; of truth values, true.
    const ONE: Self;

    /// The least and the greatest value, of floats the infinities. None of complex numbers.
    const EXTREMES: Option<[Self; 2]>;

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

    /// The element of its representation; of one that no element has, true.
    fn from_carrier(carrier: Self::Carrier) -> Self;
}

#[cfg(test)]
mod tests {
    use super::{Complex, Element};

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
        keep_their_bits(&[0, 1, u16::MAX]);
        keep_their_bits(&[0, -1, i16::MIN]);
        keep_their_bits(&[0, 1, u32::MAX]);
        keep_their_bits(&[0, -1, i32::MIN]);
        keep_their_bits(&[0, 1, u64::MAX]);
        keep_their_bits(&[0, -1, i64::MIN]);
        keep_their_bits(&floats);
        keep_their_bits(&doubles);
        keep_their_bits(&floats.windows(2).map(|pair| Complex::new(pair[0], pair[1])).collect::<Vec<_>>());
        keep_their_bits(&doubles.windows(2).map(|pair| Complex::new(pair[0], pair[1])).collect::<Vec<_>>());
    }
}
