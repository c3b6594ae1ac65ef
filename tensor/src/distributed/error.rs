//! Why a plan cannot be run on the runtime.

use crate::format::{Format, FormatError};
use crate::generate::GenerateError;
use crate::kernel::KernelError;
use crate::placement::PlacementError;
use crate::storage::StorageError;

/// A tensor cannot be made, or a plan not be run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DistributedError {
    /// A tensor with too many dimensions.
    #[error("{tensor} has {found} dimensions: regions have at most 4")]
    Order {
        /// Its name.
        tensor: String,
        /// How many.
        found: usize,
    },
    /// Something does not fit a tensor.
    #[error("{tensor} has {expected}, but was given {found}")]
    Shape {
        /// Its name.
        tensor: String,
        /// The property of the tensor that the data do not fit.
        expected: String,
        /// The property of the given data.
        found: String,
    },
    /// A plan uses a tensor that was not given.
    #[error("the plan uses {tensor}, which is not among the tensors given: {given}")]
    Missing {
        /// Its name.
        tensor: String,
        /// The names of those given.
        given: String,
    },
    /// A tensor that has not the levels of regions.
    #[error(
        "{tensor} is stored as {format}; regions have tensors in levels some of which are not dense, and whose positions follow one another without ranges: convert it, to csr or csf for example"
    )]
    Stored {
        /// Its name.
        tensor: String,
        /// How it is stored.
        format: Format,
    },
    /// A tensor in levels where a dense one is needed.
    #[error(
        "{tensor} is stored as {format}: only elements of dense tensors are at their coordinates, to be set, read and placed"
    )]
    InLevels {
        /// Its name.
        tensor: String,
        /// How it is stored.
        format: Format,
    },
    /// A dense tensor where one in levels is needed.
    #[error("{tensor} is dense, and not in levels: cut and place it by `Tensor::place`")]
    Dense {
        /// Its name.
        tensor: String,
    },
    /// A tensor in levels is not cut in this way.
    #[error(
        "{tensor} is stored as {format}, and `{placement}` cuts it in a way that levels are not cut: cut it along one dimension of the grid alone, by the name of a dimension that a level stores for blocks of its coordinates, or by `~` before the name for parts with as many positions each; or along several by the names of as many dimensions"
    )]
    Pieces {
        /// Its name.
        tensor: String,
        /// How it is stored.
        format: Format,
        /// How it is to be cut.
        placement: String,
    },
    /// Pieces of a tensor in levels that lie apart in too many places.
    #[error(
        "the pieces of {tensor} lie apart in more than {most} places: cut it along the dimension that is stored outermost, or convert it so that the one that is cut is"
    )]
    Scattered {
        /// Its name.
        tensor: String,
        /// So many places there can be.
        most: usize,
    },
    /// A tensor that a generator does not make.
    #[error("{tensor}: {error}")]
    Generate {
        /// Its name.
        tensor: String,
        /// The error of the generator.
        error: GenerateError,
    },
    /// Elements that levels do not store.
    #[error("{tensor}: {reason}")]
    Unfit {
        /// The tensor's name.
        tensor: String,
        /// Why not.
        reason: String,
    },
    /// Levels whose stored data break the rules of their kinds.
    #[error("{tensor}: {error}")]
    Broken {
        /// Its name.
        tensor: String,
        /// The rule that is broken, and where.
        error: StorageError,
    },
    /// A tensor that is stored in another way than the plan takes it.
    #[error("the plan takes {tensor} as {expected}, but it is stored as {found}: convert it")]
    OtherFormat {
        /// Its name.
        tensor: String,
        /// How the plan takes it.
        expected: Format,
        /// How it is stored.
        found: Format,
    },
    /// A result that is not assembled by points in rows.
    #[error("{tensor} is no result whose rows points assemble: it is computed in place, by a `Computation`")]
    InPlace {
        /// Its name.
        tensor: String,
    },
    /// A result with more rows than can be counted.
    #[error(
        "{tensor} has more rows than there is memory for their lengths; declare more of its levels compressed, and compute it on one node"
    )]
    ManyRows {
        /// Its name.
        tensor: String,
    },
    /// A result that is only made by its assembly.
    #[error("how much is stored of {tensor} is not known before it is assembled: call `assemble`")]
    Unassembled {
        /// Its name.
        tensor: String,
    },
    /// Points that have several parts of a result's rows.
    #[error(
        "points have several parts of the rows of {tensor}; distribute blocks of them that are next to each other, and communicate at loops over such blocks alone"
    )]
    Rows {
        /// Its name.
        tensor: String,
    },
    /// A reduction that has no operator.
    #[error(
        "{operator} in several parts: complex numbers have no order, and a user's reduction is no operator of the runtime; do not distribute its loop"
    )]
    NoOperator {
        /// The reduction.
        operator: String,
    },
    /// A file that a tensor cannot be read from, or written to.
    #[error("{name}: {reason}")]
    File {
        /// The file.
        name: String,
        /// A description of the problem.
        reason: String,
        /// Whether it is one that is read.
        is_input: bool,
    },
    /// A format that does not fit.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A placement that does not fit.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The leaf's kernel cannot be made.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The runtime refuses something, or a task has failed.
    #[error(transparent)]
    Runtime(#[from] maniple::Error),
}

/// So that programs may use `?` where they run on the runtime.
impl From<DistributedError> for maniple::Error {
    fn from(error: DistributedError) -> Self {
        match error {
            DistributedError::Runtime(error) => error,
            other => Self::from_task(other),
        }
    }
}
