//! Errors in a request for a partition.

use crate::AnyRect;

/// Why a partition cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionError {
    /// A partition into no pieces was asked for.
    #[error("expected at least one piece, found 0; ask for one piece or more")]
    NoPieces,
    /// More pieces were asked for than a partition can have.
    #[error("expected at most {limit} pieces, found {found}; make the pieces larger")]
    TooManyPieces {
        /// The number of pieces, at most `u64::MAX`.
        found: u64,
        /// The largest number of pieces.
        limit: u64,
    },
    /// Pieces were asked for by their share of points that cannot be counted.
    #[error(
        "expected a space of fewer than 2^64 points, found more within {bounds}; cut it by sizes, such as into blocks"
    )]
    TooManyPoints {
        /// The bounds of the space.
        bounds: Box<AnyRect>,
    },
    /// A block or tile has no extent in some dimension.
    #[error(
        "expected a positive block size in dimension {dimension}, found {found}; every block size must be at least 1"
    )]
    BlockSize {
        /// The dimension at fault.
        dimension: usize,
        /// The size given for it.
        found: i64,
    },
    /// A halo is negative in some dimension.
    #[error("expected a halo of 0 or more in dimension {dimension}, found {found}; use smaller tiles to shrink pieces")]
    NegativeHalo {
        /// The dimension at fault.
        dimension: usize,
        /// The halo given for it.
        found: i64,
    },
    /// No piece has a weight.
    #[error("expected a positive weight, found that all {pieces} weights are 0")]
    WeightsAllZero {
        /// The number of weights.
        pieces: usize,
    },
    /// Two partitions to be combined piece by piece have different numbers of pieces.
    #[error(
        "expected partitions with the same number of pieces, found {left} and {right}; use partitions over the same colors"
    )]
    LengthsDiffer {
        /// The number of pieces of the first.
        left: usize,
        /// The number of pieces of the second.
        right: usize,
    },
    /// A rectangle was given a color that does not exist.
    #[error("expected a color below {colors}, found {color}")]
    ColorOutOfRange {
        /// The color given.
        color: usize,
        /// The number of colors.
        colors: usize,
    },
    /// A piece has points that the space to be partitioned lacks.
    #[error(
        "expected the points of color {color} to lie in the parent, found points of {rect} outside; the parent's bounds are {bounds}"
    )]
    OutsideParent {
        /// The color of the piece.
        color: usize,
        /// The rectangle given for it.
        rect: Box<AnyRect>,
        /// The bounds of the space to be partitioned.
        bounds: Box<AnyRect>,
    },
}

/// More pieces than this are surely a mistake, and would take all memory.
pub(crate) const MAX_PIECES: u64 = 1 << 26;

/// The number of pieces, if it is allowed.
///
/// # Errors
/// When there are none, or more than 2^26.
pub fn checked_pieces(found: u64) -> Result<usize, PartitionError> {
    match found {
        0 => Err(PartitionError::NoPieces),
        1..=MAX_PIECES => Ok(found as usize),
        _ => Err(PartitionError::TooManyPieces { found, limit: MAX_PIECES }),
    }
}
