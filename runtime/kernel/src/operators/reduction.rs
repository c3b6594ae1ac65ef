//! Operators in which many values are combined.

use std::fmt;
use std::hash::{Hash, Hasher};

use super::formula::Formula;
use super::properties::Special;
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
    /// 1 if any value is other than zero, else 0; identity 0.
    Or,
    /// 0 if any value is zero, else 1; identity 1.
    And,
    /// A user's own: see [`Reduction::custom`].
    Custom(&'static Custom),
}

/// A user's own reduction.
#[derive(Debug)]
pub struct Custom {
    name: String,
    label: String,
    formula: Formula,
    identity: Special,
}

impl PartialEq for Custom {
    /// By what is computed: the same reduction may be made twice.
    fn eq(&self, other: &Self) -> bool {
        self.label == other.label && self.identity == other.identity
    }
}

impl Eq for Custom {}

impl Hash for Custom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.label.hash(state);
    }
}

impl Custom {
    /// That of a formula, kept for as long as the process runs; unchecked.
    pub(crate) fn kept(name: &str, identity: Special, formula: Formula) -> &'static Self {
        let label = format!("{name}[{formula}]");
        Box::leak(Box::new(Self { name: name.to_owned(), label, formula, identity }))
    }

    /// The formula that combines two values.
    pub fn formula(&self) -> &Formula {
        &self.formula
    }

    /// The name with the formula.
    pub fn label(&self) -> &str {
        &self.label
    }
}

impl Reduction {
    /// All of them, but users' own.
    pub const ALL: &[Self] = &[Self::Sum, Self::Product, Self::Minimum, Self::Maximum, Self::Or, Self::And];

    /// The operator that combines two values; none for users' own.
    pub fn operator(self) -> Option<BinaryOperator> {
        Some(match self {
            Self::Sum => BinaryOperator::Add,
            Self::Product => BinaryOperator::Multiply,
            Self::Minimum => BinaryOperator::Minimum,
            Self::Maximum => BinaryOperator::Maximum,
            Self::Or => BinaryOperator::Or,
            Self::And => BinaryOperator::And,
            Self::Custom(_) => return None,
        })
    }

    /// The name of the operator that combines two values: `+`, `*`, `min`, `max`, `or`, `and`, or the name of a user's
    /// own.
    pub fn name(self) -> &'static str {
        match self {
            Self::Custom(custom) => &custom.name,
            Self::Or | Self::And => self.operator().map_or("", |operator| operator.properties().stem),
            _ => self.operator().map_or("", BinaryOperator::name),
        }
    }

    /// The operator called `name` in texts, where `sum` and `product` can stand for `+` and `*`, and `any` for `or`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "sum" => Some(Self::Sum),
            "product" => Some(Self::Product),
            "any" => Some(Self::Or),
            _ => Self::ALL.iter().copied().find(|reduction| reduction.name() == name),
        }
    }

    /// Whether the operator is defined for elements of this type.
    pub fn is_defined_for(self, element: ElementType) -> bool {
        match (self, self.operator()) {
            (Self::Custom(custom), _) => custom.formula.is_defined_for(element) && self.identity(element).is_some(),
            (_, Some(operator)) if operator.is_logical() => !element.is_complex(),
            (_, operator) => operator.is_some_and(|operator| operator.is_defined_for(element)),
        }
    }

    /// The identity of elements of type `element`; none for the least and greatest of complex numbers.
    pub fn identity(self, element: ElementType) -> Option<Scalar> {
        match (self, self.operator()) {
            (Self::Custom(custom), _) => custom.identity.of(element),
            (_, operator) => operator?.properties().identity?.of(element),
        }
    }

    /// Whether several threads can combine values in one element at the same time.
    pub fn is_atomic_for(self, element: ElementType) -> bool {
        !matches!(self, Self::Custom(_)) && (!element.is_complex() || self == Self::Sum)
    }

    /// Whether the first value is combined with the identity, which changes it: a sum of negative zeros is zero, and
    /// `or` of any number is 0 or 1. Others leave the first value as it is.
    pub fn starts_with_identity(self) -> bool {
        matches!(self, Self::Sum | Self::Or | Self::And | Self::Custom(_))
    }

    /// Whether the identity leaves any value as it is, also one that the operator did not make.
    pub fn keeps_any(self) -> bool {
        !matches!(self, Self::Or | Self::And | Self::Custom(_))
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
