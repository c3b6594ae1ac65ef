//! How the entries of a tensor are spread.

use std::sync::{Arc, OnceLock};

use crate::format::Format;

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

impl Statistics {
    /// The part of all elements that are entries.
    pub fn density(&self) -> f64 {
        let all = self.modes.iter().map(|mode| mode.extent as f64).product::<f64>();
        if all > 0.0 { self.entries as f64 / all } else { 0.0 }
    }

    /// Formats that suit the tensor, the best first, each with the reason in words.
    pub fn formats(&self) -> Vec<(String, &'static str)> {
        let (entries, order) = (self.entries, self.modes.len());
        let dense = (self.density() > 0.3, Format::dense(order).to_string(), "most elements are there");
        let coordinates = (true, "coo".to_owned(), "to build and to sort");
        let [row, _] = &self.modes[..] else {
            let levels = if order == 1 { "{C}".to_owned() } else { format!("csf:{order}") };
            return fitting([dense, (true, levels, "what is not there takes no room"), coordinates]);
        };
        let (rows, mean) = (row.extent, row.mean(entries));
        let diagonals = self.diagonals.map_or(0, |found| found.used) as f64;
        // The largest blocks of which those with entries are nearly full.
        let block = self.blocks.iter().rev().find(|(_, full)| *full >= 0.8).map_or(0, |(side, _)| *side);
        let all = [
            dense,
            (diagonals * rows as f64 <= 1.5 * entries as f64, "dia".to_owned(), "few full diagonals"),
            (block > 0, format!("bcsr:{block}x{block}"), "entries lie in blocks"),
            (mean >= 1.0 && row.most as f64 <= 1.25 * mean, "ell".to_owned(), "rows are equally long"),
            (2 * row.used as i64 <= rows, "dcsr".to_owned(), "most rows are empty"),
            (2 * row.used as i64 > rows, "csr".to_owned(), "for products by rows"),
            coordinates,
        ];
        if entries > 0 { fitting(all) } else { Vec::new() }
    }
}

/// The formats that fit.
fn fitting<const N: usize>(formats: [(bool, String, &'static str); N]) -> Vec<(String, &'static str)> {
    formats.into_iter().filter(|(fits, ..)| *fits).map(|(_, name, reason)| (name, reason)).collect()
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
