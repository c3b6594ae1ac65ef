//! Operators in which many values are combined.

use std::fmt;

use super::table::BinaryOperator;
use crate::element::{ElementType, Scalar};

/// A commutative and associative operator with an identity, in which many values may be combined in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum; identity 0.
    Sum,
    /// The product; identity 1.
    Product,
    /// The least; identity the greatest value of the type (infinity for floats). A NaN wins.
    Minimum,
    /// The greatest; identity the least value of the type (minus infinity for floats). A NaN wins.
    Maximum,
}

impl Reduction {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Sum, Self::Product, Self::Minimum, Self::Maximum];

    /// The operator that combines two values.
    pub fn operator(self) -> BinaryOperator {
        match self {
            Self::Sum => BinaryOperator::Add,
            Self::Product => BinaryOperator::Multiply,
            Self::Minimum => BinaryOperator::Minimum,
            Self::Maximum => BinaryOperator::Maximum,
        }
    }

    /// The operator called `name` in texts, where `sum` and `product` can stand for `+` and `*`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "sum" => Some(Self::Sum),
            "product" => Some(Self::Product),
            _ => Self::ALL.iter().copied().find(|reduction| reduction.operator().name() == name),
        }
    }

    /// Whether the operator is defined for elements of this type.
    pub fn is_defined_for(self, element: ElementType) -> bool {
        self.operator().is_defined_for(element)
    }

    /// The identity of elements of type `element`; none for the least and greatest of complex numbers.
    pub fn identity(self, element: ElementType) -> Option<Scalar> {
        self.operator().properties().identity?.of(element)
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operator().fmt(formatter)
    }
}
