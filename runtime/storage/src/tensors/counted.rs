//! How the entries of a tensor are spread, counted.

use std::collections::HashSet;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::statistics::{DiagonalStatistics, LevelStatistics, ModeStatistics, Statistics};
use super::tensor::SparseTensor;
use crate::element::Element;

/// The sides of the blocks of which it is known how full they are.
const BLOCKS: [i64; 3] = [2, 4, 8];

/// Blocks are counted in some of the rows, which have about so many entries.
const IN_BLOCKS: usize = 1 << 18;

/// Extents up to this many times the number of entries have a counter for each coordinate.
const COUNTERS: usize = 8;

/// How often each number occurs: by a counter for each, or in a table, if there are many more numbers than there can be
/// different ones.
enum Counts {
    All { low: i64, counts: Vec<u32> },
    Some(FxHashMap<i64, u32>),
}

impl Counts {
    fn new(low: i64, extent: i64, entries: usize) -> Self {
        match usize::try_from(extent).ok().filter(|extent| *extent <= COUNTERS * entries + 1024) {
            Some(extent) => Self::All { low, counts: vec![0; extent] },
            None => Self::Some(FxHashMap::default()),
        }
    }

    fn add(&mut self, number: i64) {
        let count = match self {
            Self::All { low, counts } => &mut counts[(number - *low) as usize],
            Self::Some(counts) => counts.entry(number).or_default(),
        };
        *count = count.saturating_add(1);
    }

    /// How often a number occurs.
    fn of(&self, number: i64) -> u32 {
        match self {
            Self::All { low, counts } => usize::try_from(number - low).ok().and_then(|at| counts.get(at).copied()),
            Self::Some(counts) => counts.get(&number).copied(),
        }
        .unwrap_or(0)
    }

    /// All numbers that occur, with how often.
    fn used(&self) -> Box<dyn Iterator<Item = (i64, u32)> + '_> {
        match self {
            Self::All { low, counts } => {
                let numbered = (*low..).zip(counts.iter().copied());
                Box::new(numbered.filter(|(_, count)| *count > 0))
            }
            Self::Some(counts) => Box::new(counts.iter().map(|(number, count)| (*number, *count))),
        }
    }
}

impl<T: Element> SparseTensor<T> {
    /// How the entries are spread. They are gone through the first time that this is asked; then it is kept, whatever
    /// becomes of the elements.
    pub fn statistics(&self) -> &Arc<Statistics> {
        self.known().0.get_or_init(|| Arc::new(self.counted()))
    }

    fn counted(&self) -> Statistics {
        let (dimensions, most) = (self.dimensions(), self.values().len());
        let mut modes: Vec<Counts> = dimensions.iter().map(|&extent| Counts::new(0, extent, most)).collect();
        let mut diagonals = match *dimensions {
            [rows, columns] => Some(Counts::new(1 - rows.max(1), rows.max(1) + columns, most)),
            _ => None,
        };
        // Rows of the largest blocks that belong to the sample are spread by their hashes.
        let sampled = (most / IN_BLOCKS).max(1) as u64;
        let is_sampled = |row: i64| (row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 < (1 << 32) / sampled;
        let mut blocks: Vec<HashSet<(i64, i64), FxBuildHasher>> = BLOCKS.iter().map(|_| HashSet::default()).collect();
        let (mut entries, mut in_sample) = (0, 0);
        self.for_each(|at, _| {
            entries += 1;
            modes.iter_mut().zip(at).for_each(|(counts, &at)| counts.add(at));
            if let (Some(diagonals), [row, column]) = (&mut diagonals, at) {
                diagonals.add(column - row);
                if is_sampled(row / BLOCKS[BLOCKS.len() - 1]) {
                    in_sample += 1;
                    for (side, blocks) in BLOCKS.iter().zip(&mut blocks) {
                        blocks.insert((row / side, column / side));
                    }
                }
            }
        });
        let mode = |(counts, &extent): (&Counts, &i64)| {
            let (used, most) = counts.used().fold((0, 0), |(used, most), (_, count)| (used + 1, most.max(count)));
            ModeStatistics { extent, used, most: most as usize }
        };
        let pairs = |(counts, extent): (&Counts, i64)| -> Vec<f64> {
            let pair = |(number, count)| move |other: &Counts| f64::from(count) * f64::from(other.of(number));
            let along = modes.iter().zip(dimensions);
            let all = along.map(|(other, &other_extent)| match other_extent == extent {
                true => counts.used().map(|used| pair(used)(other)).sum(),
                false => 0.0,
            });
            all.collect()
        };
        let pairs = modes.iter().zip(dimensions.iter().copied()).map(pairs).collect();
        let diagonals = diagonals.map(|counts| {
            let empty = DiagonalStatistics { used: 0, first: i64::MAX, last: i64::MIN };
            let found = counts.used().fold(empty, |found, (number, _)| DiagonalStatistics {
                used: found.used + 1,
                first: found.first.min(number),
                last: found.last.max(number),
            });
            if found.used == 0 { DiagonalStatistics { used: 0, first: 0, last: 0 } } else { found }
        });
        let fullness = |(&side, blocks): (&i64, &HashSet<_, _>)| {
            let places = (blocks.len() as i64 * side * side).max(1);
            (side, f64::from(in_sample) / places as f64)
        };
        Statistics {
            entries,
            pairs,
            levels: self
                .levels()
                .iter()
                .map(|level| LevelStatistics { parents: level.parents, positions: level.positions })
                .collect(),
            modes: modes.iter().zip(dimensions).map(mode).collect(),
            blocks: if diagonals.is_some() { BLOCKS.iter().zip(&blocks).map(fullness).collect() } else { Vec::new() },
            diagonals,
        }
    }
}
