//! Errors of sparse computations.

use crate::element::{ElementType, Scalar};
use crate::format::Format;
use crate::kernel::{KernelError, ViewError};
use crate::notation::{DivisorError, NotationError};
use crate::schedule::ScheduleError;
use crate::storage::StorageError;

/// A sparse computation that cannot be, or that failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SparseError {
    /// Tensors of several types.
    #[error(
        "{tensor} has elements of type {found}, and the result has {expected}: sparse kernels compute with one type"
    )]
    Types {
        /// The tensor.
        tensor: String,
        /// Its type.
        found: ElementType,
        /// The type of the result.
        expected: ElementType,
    },
    /// An assignment that the notation does not allow.
    #[error(transparent)]
    Notation(#[from] NotationError),
    /// A tensor whose elements that are not stored have another value than the assignment says.
    #[error("{tensor} has fill value {expected} in the assignment, and {found} as it is given")]
    OtherFill {
        /// The tensor.
        tensor: String,
        /// Its fill value in the assignment.
        expected: Scalar,
        /// The fill value of the given tensor.
        found: Scalar,
    },
    /// Elements would be combined after they were appended, and not added to zeros.
    #[error(
        "elements of {tensor} would be computed in parts, which only sums are put together of, in a tensor filled with 0: put the loops that reduce inside of those over its variables"
    )]
    Parts {
        /// The result.
        tensor: String,
    },
    /// The schedule is illegal.
    #[error(transparent)]
    Schedule(Box<ScheduleError>),
    /// A tensor that is not given.
    #[error("no tensor is given for {0}")]
    Missing(String),
    /// A tensor that is not what the assignment says.
    #[error("{tensor} has extents {expected:?} in the assignment, and {found:?} as it is given")]
    Extents {
        /// The tensor.
        tensor: String,
        /// Its extents in the assignment.
        expected: Vec<i64>,
        /// The extents of the given tensor.
        found: Vec<i64>,
    },
    /// Something is divided by an element that does not give zero for zero.
    #[error(transparent)]
    Divisor(#[from] DivisorError),
    /// A tensor for the result that is stored in another way.
    #[error("{tensor} is stored as {expected} in the assignment, and what is given for it as {found}")]
    OtherFormat {
        /// The tensor.
        tensor: String,
        /// Its format in the assignment.
        expected: Format,
        /// The format of the given tensor.
        found: Format,
    },
    /// A tensor could not be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The kernel could not be made, or failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// A component is too large.
    #[error(transparent)]
    View(#[from] ViewError),
}
