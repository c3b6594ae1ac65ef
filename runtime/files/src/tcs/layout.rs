//! Levels and arrays: how many elements each array has, and where it begins.

use std::fmt;
use std::ops::Range;

use maniple_element::ElementType;

use crate::error::Problem;

/// The most levels that a tensor has.
pub const MOST_LEVELS: usize = 8;

/// How the coordinates of a level are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TcsLevelKind {
    /// All coordinates of the range, for each position of the level above; nothing is stored.
    Dense,
    /// The coordinates that are there: segments of `idx`, whose bounds are in `pos`.
    Sparse,
}

/// The bytes of each number of `pos` and `idx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// Four; numbers are below 2^31.
    Four,
    /// Eight; numbers are below 2^63.
    Eight,
}

impl Width {
    /// The bytes of a number.
    #[must_use]
    pub fn bytes(self) -> u64 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    /// The greatest number.
    #[must_use]
    pub fn greatest(self) -> u64 {
        match self {
            Self::Four => i32::MAX as u64,
            Self::Eight => i64::MAX as u64,
        }
    }
}

/// Which of the ranges that a dimension is split into the coordinates of a block are in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The coordinates.
    pub range: Range<u64>,
    /// The number of the range, from 0.
    pub index: u64,
    /// How many ranges there are.
    pub count: u64,
}

/// One level: a dimension of the tensor, and how its coordinates are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// How coordinates are stored.
    pub kind: TcsLevelKind,
    /// The dimension.
    pub mode: usize,
    /// The coordinates that there may be.
    pub range: Range<u64>,
    /// Of a block, where it lies.
    pub split: Option<Split>,
}

impl Level {
    /// A level with the coordinates from 0 to `extent`, excluded.
    #[must_use]
    pub fn new(kind: TcsLevelKind, mode: usize, extent: u64) -> Self {
        Self { kind, mode, range: 0..extent, split: None }
    }

    /// How many coordinates there may be.
    #[must_use]
    pub fn extent(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Whether the level has arrays.
    #[must_use]
    pub fn is_sparse(&self) -> bool {
        self.kind == TcsLevelKind::Sparse
    }
}

/// An array of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TcsPart {
    /// The bounds of the segments of a level.
    Pos(usize),
    /// The coordinates of a level.
    Idx(usize),
    /// The elements.
    Values,
}

impl fmt::Display for TcsPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pos(level) => write!(f, "pos of level {level}"),
            Self::Idx(level) => write!(f, "idx of level {level}"),
            Self::Values => f.write_str("val"),
        }
    }
}

/// How many elements each array has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Of each level, how many bounds; none of dense ones.
    pub pos: Vec<u64>,
    /// Of each level, how many coordinates; none of dense ones.
    pub idx: Vec<u64>,
    /// How many elements.
    pub values: u64,
}

impl Lengths {
    /// The lengths for levels that have as many nodes as `counts` says, where they are sparse.
    ///
    /// # Errors
    /// [`Problem`] as of [`nodes`].
    pub fn of(levels: &[Level], counts: &[u64]) -> Result<Self, Problem> {
        let nodes = nodes(levels, counts)?;
        let mut lengths = Self { pos: vec![0; levels.len()], idx: vec![0; levels.len()], values: 1 };
        for (number, level) in levels.iter().enumerate() {
            if level.is_sparse() {
                (lengths.pos[number], lengths.idx[number]) = (lengths.values + 1, nodes[number]);
            }
            lengths.values = nodes[number];
        }
        Ok(lengths)
    }

    /// The length of an array.
    #[must_use]
    pub fn length(&self, part: TcsPart) -> u64 {
        match part {
            TcsPart::Pos(level) => self.pos[level],
            TcsPart::Idx(level) => self.idx[level],
            TcsPart::Values => self.values,
        }
    }
}

/// How many nodes each level has: of a sparse one as many as `counts` says, of a dense one as the levels above and its
/// range say.
///
/// # Errors
/// [`Problem::TooLarge`] if that is 2^63 or more; [`Problem::Malformed`] if a sparse level has more than there are
/// coordinates.
pub fn nodes(levels: &[Level], counts: &[u64]) -> Result<Vec<u64>, Problem> {
    let mut above = 1_u64;
    let node = |(number, level): (usize, &Level)| {
        let (extent, most) = (level.extent(), above.checked_mul(level.extent()));
        let count = match level.kind {
            TcsLevelKind::Sparse => Some(counts.get(number).copied().unwrap_or(0)),
            TcsLevelKind::Dense => most,
        };
        if let (Some(count), Some(most)) = (count, most)
            && count > most
        {
            let reason = format!(
                "level {number} has {count} nodes: {above} nodes above, with {extent} coordinates each, have {most} at most"
            );
            return Err(Problem::Malformed(reason));
        }
        above = count.filter(|count| *count < i64::MAX as u64).ok_or_else(|| {
            let reason = format!("level {number} has 2^63 nodes or more: {above} nodes above, and {extent} coordinates in each; make it sparse");
            Problem::TooLarge(reason)
        })?;
        Ok(above)
    };
    levels.iter().enumerate().map(node).collect()
}

/// The arrays of levels, in the order of a file.
pub fn parts(levels: &[Level]) -> impl Iterator<Item = TcsPart> {
    let sparse = levels.iter().enumerate().filter(|(_, level)| level.is_sparse());
    let arrays = sparse.flat_map(|(number, _)| [TcsPart::Pos(number), TcsPart::Idx(number)]);
    arrays.chain([TcsPart::Values])
}

/// The bytes of each element of an array.
pub(super) fn size_of_part(part: TcsPart, width: Width, number: ElementType) -> u64 {
    match part {
        TcsPart::Pos(_) | TcsPart::Idx(_) => width.bytes(),
        TcsPart::Values => number.size() as u64,
    }
}

/// Refuses levels that no file has: none, more than [`MOST_LEVELS`], a dimension twice, a range that ends before it
/// starts, or beyond 2^62.
pub(super) fn check_levels(levels: &[Level]) -> Result<(), (usize, Problem)> {
    let malformed = |level, reason| Err((level, Problem::Malformed(reason)));
    if !(1..=MOST_LEVELS).contains(&levels.len()) {
        return malformed(0, format!("a tensor has 1 to {MOST_LEVELS} levels, and this one has {}", levels.len()));
    }
    for (number, level) in levels.iter().enumerate() {
        let Level { mode, range, split, .. } = level;
        if *mode >= levels.len() || levels[..number].iter().any(|above| above.mode == *mode) {
            return malformed(
                number,
                format!(
                    "level {number} stores dimension {mode}, which is not one of {}, or the dimension of another level",
                    levels.len()
                ),
            );
        }
        if range.start > range.end || range.end > 1 << 62 {
            return malformed(
                number,
                format!(
                    "level {number} has coordinates from {} to {}, and they are from 0 to 2^62",
                    range.start, range.end
                ),
            );
        }
        if let Some(split) = split {
            if split.range != *range {
                return malformed(
                    number,
                    format!("level {number} has coordinates {range:?}, and the block has {:?}", split.range),
                );
            }
            if split.index >= split.count {
                return malformed(
                    number,
                    format!("level {number} is in range {} of {}, which are counted from 0", split.index, split.count),
                );
            }
        }
    }
    let blocks = levels.iter().filter(|level| level.split.is_some()).count();
    match blocks == 0 || blocks == levels.len() {
        true => Ok(()),
        false => malformed(0, format!("{blocks} of {} levels are those of a block: all or none must be", levels.len())),
    }
}
