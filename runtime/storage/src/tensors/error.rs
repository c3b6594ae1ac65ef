//! Why a tensor cannot be stored.

use crate::element::ElementType;
use crate::format::FormatError;
use crate::level::LevelError;

/// Why a tensor cannot be stored, or what is stored is no tensor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StorageError {
    /// A format that does not fit.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A level that cannot be stored, or is none.
    #[error("level {level} of {format}: {error}")]
    Level {
        /// The format.
        format: String,
        /// The level.
        level: usize,
        /// Why.
        error: LevelError,
    },
    /// An entry outside of the tensor.
    #[error(
        "entry {coordinates:?} is outside of a tensor of extents {dimensions:?}: give larger extents, or leave it out"
    )]
    Outside {
        /// The coordinates of the entry.
        coordinates: Vec<i64>,
        /// The extents.
        dimensions: Vec<i64>,
    },
    /// Two entries with the same coordinates, where there should be one.
    #[error("there are two entries {coordinates:?}: say whether they are added, or the first or the last counts")]
    Duplicate {
        /// The coordinates of both entries.
        coordinates: Vec<i64>,
    },
    /// A level that counts and does not store what it counts to.
    #[error(
        "level {level} of {format} counts up to a number that its components do not tell: pack the entries instead, or let it be C"
    )]
    Uncounted {
        /// The format.
        format: String,
        /// The level.
        level: usize,
    },
    /// Elements for another number of positions.
    #[error("the last level has {expected} positions, and there are {found} elements: give one for each position")]
    Elements {
        /// How many positions there are.
        expected: usize,
        /// How many elements there are.
        found: usize,
    },
    /// Extents that no tensor has.
    #[error("a tensor of {} has extents {dimensions:?}: give {rank} extents from 0 to {}", ElementType::to_string(element), i64::MAX / 4)]
    Extents {
        /// The extents that were given.
        dimensions: Vec<i64>,
        /// How many there must be.
        rank: usize,
        /// The type of the elements.
        element: ElementType,
    },
    /// The system does not give the memory for all elements.
    #[error("the elements need {0} bytes, which the system does not give: choose a format that stores less")]
    Memory(u128),
}
