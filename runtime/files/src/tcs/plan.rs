//! How entries become a file, and why they cannot.

use std::ops::Range;

use super::layout::{TcsLevelKind, Width};
use crate::error::{Problem, ReadError};

/// Why entries cannot become a file.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// Entries cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An entry is at the wrong place.
    #[error("line {line}: {problem}")]
    Entry {
        /// The line, from 1; of entries that are in no lines, their number.
        line: u64,
        /// The problem of the entry.
        problem: EntryProblem,
    },
    /// Entries are not the same when they are read a second time.
    #[error("the entries changed while they were read: leave the file alone until it is converted")]
    Changed,
    /// The tensor is too large for the file.
    #[error("{0}")]
    Large(Problem),
    /// The file cannot be written, or one for sorting.
    #[error("cannot be written: {0}")]
    Write(std::io::Error),
}

/// Why an entry is at the wrong place. Coordinates are counted from 0; messages count from 1, as text does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    /// It is less than the one before it.
    #[error("entry {} comes after {}, and lines must be sorted by {}: sort them first", place(.found), place(.last), dimensions(.order))]
    Unsorted {
        /// The coordinates of the entry.
        found: Vec<u64>,
        /// The coordinates of the entry before it.
        last: Vec<u64>,
        /// The dimensions by which lines are sorted, the first one first.
        order: Vec<usize>,
    },
    /// Another one is at the same place.
    #[error("entry {} is there twice: leave one out, or add them", place(.found))]
    Duplicate {
        /// The coordinates of both entries.
        found: Vec<u64>,
    },
    /// It is outside of the tensor.
    #[error("entry {} is outside of the tensor: its coordinates {dimension} go from {} to {}", place(.found), .range.start + 1, .range.end)]
    Outside {
        /// The coordinates of the entry.
        found: Vec<u64>,
        /// The dimension.
        dimension: usize,
        /// The coordinates that there may be.
        range: Range<u64>,
    },
}

/// A place, counted from 1 as in text.
fn place(at: &[u64]) -> String {
    let numbers: Vec<String> = at.iter().map(|at| (at + 1).to_string()).collect();
    format!("({})", numbers.join(", "))
}

/// The order of dimensions, as it is said.
fn dimensions(order: &[usize]) -> String {
    let names: Vec<String> = order.iter().map(|mode| format!("coordinate {mode}")).collect();
    names.join(", then ")
}

/// The treatment of entries at the same place.
#[derive(Clone, Copy, Debug, Default)]
pub enum Duplicates<T> {
    /// They are an error.
    #[default]
    Refuse,
    /// They become one, by this sum.
    Add(fn(T, T) -> T),
}

/// The coordinates that a dimension has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// These, and entries with others are refused.
    Given(Range<u64>),
    /// The coordinates from 0 to the greatest one of an entry.
    FromZero,
    /// The coordinates from the least one to the greatest one of an entry.
    Tight,
}

/// How entries are to be stored.
#[derive(Clone, Debug)]
pub struct StoragePlan<T> {
    /// How the coordinates of each level are stored, outermost first.
    pub kinds: Vec<TcsLevelKind>,
    /// The dimension of each level: by these, in this order, entries are sorted.
    pub order: Vec<usize>,
    /// The coordinates of each dimension.
    pub extents: Vec<Extent>,
    /// The bytes of each position and coordinate.
    pub width: Width,
    /// The treatment of entries at the same place.
    pub duplicates: Duplicates<T>,
}

impl<T> StoragePlan<T> {
    /// Refuses a plan whose levels do not store each dimension once.
    pub(super) fn check(&self) -> Result<(), ConvertError> {
        let rank = self.kinds.len();
        let is_whole = (0..rank).all(|mode| self.order.contains(&mode));
        match is_whole && self.order.len() == rank && self.extents.len() == rank {
            true => Ok(()),
            false => {
                let reason = format!(
                    "{rank} levels store the dimensions {:?}, of {}: each must be stored once",
                    self.order,
                    self.extents.len()
                );
                Err(ConvertError::Large(Problem::Malformed(reason)))
            }
        }
    }
}
