//! How the entries of a tensor are spread.

use std::sync::{Arc, OnceLock};

/// How the entries of a tensor are spread, as far as costs of loops depend on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// How many entries there are.
    pub entries: usize,
    /// Each level of the format.
    pub levels: Vec<LevelStatistics>,
    /// Each dimension.
    pub modes: Vec<ModeStatistics>,
    /// For each dimension, and each that is as long: how many pairs of entries, which may be the same, have the
    /// coordinate of the one along the first where the other has it along the second. Of a matrix, `[1][0]` is how many
    /// products of entries its square takes. 0 for dimensions of different lengths.
    pub pairs: Vec<Vec<f64>>,
    /// Of matrices: where entries lie around the diagonal.
    pub diagonals: Option<DiagonalStatistics>,
    /// Of matrices: the side of square blocks, and which part of the elements of those that have an entry are entries,
    /// in a sample of the rows.
    pub blocks: Vec<(i64, f64)>,
}

/// The numbers of positions of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelStatistics {
    /// How many positions the level above has.
    pub parents: usize,
    /// How many positions this one has.
    pub positions: usize,
}

/// The entries along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeStatistics {
    /// How many coordinates there are.
    pub extent: i64,
    /// How many have an entry.
    pub used: usize,
    /// The most entries that one has.
    pub most: usize,
}

impl ModeStatistics {
    /// How many entries a coordinate has on average, those without any too.
    pub fn mean(&self, entries: usize) -> f64 {
        entries as f64 / (self.extent as f64).max(1.0)
    }
}

/// The diagonals of a matrix that have entries: those of the main diagonal are on diagonal 0, and those to the right of
/// it on diagonals above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiagonalStatistics {
    /// How many have entries.
    pub used: usize,
    /// The lowest.
    pub first: i64,
    /// The highest.
    pub last: i64,
}

/// The statistics of a tensor, once they were asked for. They follow from the structure, and do not count in
/// comparisons.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(pub(super) OnceLock<Arc<Statistics>>);

impl PartialEq for Known {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
