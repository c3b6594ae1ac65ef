//! Why an assignment has no value here.

use crate::element::ElementType;
use crate::notation::DivisionByZero;

/// An assignment could not be evaluated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OracleError {
    /// A tensor has no elements.
    #[error("no elements are given for {0}")]
    Missing(String),
    /// Elements of another type or other extents.
    #[error(
        "{tensor} has elements of type {expected} and extents {extents:?}; given are {found} and {found_extents:?}"
    )]
    Mismatch {
        /// The tensor.
        tensor: String,
        /// Its type.
        expected: ElementType,
        /// Its extents.
        extents: Vec<i64>,
        /// The type of the elements.
        found: ElementType,
        /// The extents of the elements.
        found_extents: Vec<i64>,
    },
    /// An integer is divided by zero.
    #[error(transparent)]
    DivisionByZero(#[from] DivisionByZero),
    /// A part of the assignment has different values at too many points.
    #[error(
        "`{expression}` has values at more than {most} points: use smaller extents, or fill values with which it has fewer"
    )]
    Large {
        /// The part.
        expression: String,
        /// The most points.
        most: u64,
    },
}
