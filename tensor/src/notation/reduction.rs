//! Operators that combine many elements into one.

use std::fmt;

use num_complex::Complex;

use crate::element::{ElementType, Scalar};

/// A commutative and associative operator, with an identity. (Sums and products of floating-point numbers are associative up to
/// rounding.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The product.
    Product,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Reduction {
    /// All operators.
    pub const ALL: [Self; 4] = [Self::Sum, Self::Product, Self::Min, Self::Max];

    /// The operator called `name` in texts, where `sum` and `product` can stand for `+` and `*`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "+" | "sum" => Some(Self::Sum),
            "*" | "product" => Some(Self::Product),
            "min" => Some(Self::Min),
            "max" => Some(Self::Max),
            _ => None,
        }
    }

    /// Whether the operator is defined for elements of this type.
    pub fn is_defined_for(self, element: ElementType) -> bool {
        matches!(self, Self::Sum | Self::Product) || !element.is_complex()
    }

    /// The element that changes nothing. Complex numbers have no smallest or largest; for them it is zero.
    pub fn identity(self, element: ElementType) -> Scalar {
        match (self, element) {
            (Self::Sum, ElementType::I32) => Scalar::I32(0),
            (Self::Product, ElementType::I32) => Scalar::I32(1),
            (Self::Min, ElementType::I32) => Scalar::I32(i32::MAX),
            (Self::Max, ElementType::I32) => Scalar::I32(i32::MIN),
            (Self::Sum, ElementType::I64) => Scalar::I64(0),
            (Self::Product, ElementType::I64) => Scalar::I64(1),
            (Self::Min, ElementType::I64) => Scalar::I64(i64::MAX),
            (Self::Max, ElementType::I64) => Scalar::I64(i64::MIN),
            (_, ElementType::F32) => Scalar::F32(self.real_identity() as f32),
            (_, ElementType::F64) => Scalar::F64(self.real_identity()),
            (Self::Product, ElementType::C32) => Scalar::C32(Complex::new(1.0, 0.0)),
            (_, ElementType::C32) => Scalar::C32(Complex::new(0.0, 0.0)),
            (Self::Product, ElementType::C64) => Scalar::C64(Complex::new(1.0, 0.0)),
            (_, ElementType::C64) => Scalar::C64(Complex::new(0.0, 0.0)),
        }
    }

    fn real_identity(self) -> f64 {
        match self {
            Self::Sum => 0.0,
            Self::Product => 1.0,
            Self::Min => f64::INFINITY,
            Self::Max => f64::NEG_INFINITY,
        }
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Sum => "+",
            Self::Product => "*",
            Self::Min => "min",
            Self::Max => "max",
        })
    }
}
