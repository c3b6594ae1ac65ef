//! Operators that combine many elements into one, as index notation writes them.

use std::fmt;

use crate::element::ElementType;
use crate::loops::Reduction;

impl Reduction {
    /// The operator called `name` in texts, where `sum` and `product` can stand for `+` and `*`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "+" | "sum" => Some(Self::Sum),
            "*" | "product" => Some(Self::Product),
            "min" => Some(Self::Minimum),
            "max" => Some(Self::Maximum),
            _ => None,
        }
    }

    /// Whether the operator is defined for elements of this type.
    pub fn is_defined_for(self, element: ElementType) -> bool {
        self.identity(element).is_some()
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Sum => "+",
            Self::Product => "*",
            Self::Minimum => "min",
            Self::Maximum => "max",
        })
    }
}
