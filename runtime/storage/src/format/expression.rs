//! Expressions that levels store: dimensions, or numbers that are computed from them.

use std::fmt;
use std::ops::Range;

/// The coordinates of a level, given the coordinates of an element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LevelExpression {
    /// The coordinates of a dimension.
    Mode(usize),
    /// `i / b`: the number of the block that a coordinate is in, rounded down.
    Block(usize, i64),
    /// `i % b`: the place in the block.
    Within(usize, i64),
    /// `j - i`: the diagonal.
    Difference(usize, usize),
    /// `i + j`: the antidiagonal.
    Sum(usize, usize),
    /// `#i`: how many elements with the same coordinates in these dimensions come before, in the order of the other
    /// levels.
    Count(Vec<usize>),
}

/// The names that dimensions have in texts.
pub(super) const NAMES: [&str; 8] = ["i", "j", "k", "l", "m", "n", "o", "p"];

impl LevelExpression {
    /// The dimensions in the expression.
    pub fn modes(&self) -> Vec<usize> {
        match self {
            Self::Mode(mode) | Self::Block(mode, _) | Self::Within(mode, _) => vec![*mode],
            Self::Difference(first, second) | Self::Sum(first, second) => vec![*first, *second],
            Self::Count(modes) => modes.clone(),
        }
    }

    /// The coordinate of an element in the level; 0 for a count, which depends on other elements.
    pub fn value(&self, coordinates: &[i64]) -> i64 {
        match self {
            Self::Mode(mode) => coordinates[*mode],
            Self::Block(mode, size) => coordinates[*mode].div_euclid(*size),
            Self::Within(mode, size) => coordinates[*mode].rem_euclid(*size),
            Self::Difference(first, second) => coordinates[*first] - coordinates[*second],
            Self::Sum(first, second) => coordinates[*first] + coordinates[*second],
            Self::Count(_) => 0,
        }
    }

    /// The coordinates that the level of a tensor of these extents may have; of a count, those of an empty tensor.
    pub fn bounds(&self, dimensions: &[i64]) -> Range<i64> {
        let extent = |mode: &usize| dimensions[*mode];
        let is_empty = self.modes().iter().any(|mode| extent(mode) == 0);
        match self {
            Self::Count(_) => 0..0,
            _ if is_empty => 0..0,
            Self::Mode(mode) => 0..extent(mode),
            Self::Block(mode, size) => 0..(extent(mode) - 1) / size + 1,
            Self::Within(_, size) => 0..*size,
            Self::Difference(first, second) => 1 - extent(second)..extent(first),
            Self::Sum(first, second) => 0..extent(first) + extent(second) - 1,
        }
    }
}

impl fmt::Display for LevelExpression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |mode: &usize| NAMES.get(*mode).copied().unwrap_or("?");
        match self {
            Self::Mode(mode) => formatter.write_str(name(mode)),
            Self::Block(mode, size) => write!(formatter, "{}/{size}", name(mode)),
            Self::Within(mode, size) => write!(formatter, "{}%{size}", name(mode)),
            Self::Difference(first, second) => write!(formatter, "{}-{}", name(first), name(second)),
            Self::Sum(first, second) => write!(formatter, "{}+{}", name(first), name(second)),
            Self::Count(modes) => match modes[..] {
                [mode] => write!(formatter, "#{}", name(&mode)),
                _ => write!(formatter, "#({})", modes.iter().map(name).collect::<Vec<_>>().join(",")),
            },
        }
    }
}

/// How the coordinate of a dimension follows from those of levels, and of dimensions that are known before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// `level * size + within`.
    Blocks {
        /// The dimension.
        mode: usize,
        /// The level of the number of the block.
        block: usize,
        /// The level of the place in the block.
        within: usize,
        /// The size of blocks.
        size: i64,
    },
    /// `sign * level + shift * other`, where `other` is a dimension.
    Linear {
        /// The dimension.
        mode: usize,
        /// The level.
        level: usize,
        /// 1 or -1.
        sign: i64,
        /// 1, -1, or 0 if there is no other dimension.
        shift: i64,
        /// The other dimension.
        other: usize,
    },
}

impl Recovery {
    /// Sets the coordinate of a dimension.
    pub fn apply(&self, levels: &[i64], coordinates: &mut [i64]) {
        match *self {
            Self::Blocks { mode, block, within, size } => coordinates[mode] = levels[block] * size + levels[within],
            Self::Linear { mode, level, sign, shift, other } => {
                let other = if shift == 0 { 0 } else { shift * coordinates[other] };
                coordinates[mode] = sign * levels[level] + other;
            }
        }
    }

    fn mode(&self) -> usize {
        match self {
            Self::Blocks { mode, .. } | Self::Linear { mode, .. } => *mode,
        }
    }
}

/// Why coordinates do not follow from those of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoInverse {
    /// Nothing tells the coordinate of a dimension.
    Unknown(usize),
    /// A level that tells nothing new.
    Redundant(usize),
}

/// How all coordinates follow from those of levels, each step from the ones before.
pub(super) fn inverse(rank: usize, expressions: &[LevelExpression]) -> Result<Vec<Recovery>, NoInverse> {
    let mut steps: Vec<Recovery> = Vec::new();
    let mut used = vec![false; expressions.len()];
    loop {
        let is_known = |mode: &usize| steps.iter().any(|step| step.mode() == *mode);
        let found = expressions.iter().enumerate().find_map(|(level, expression)| {
            let linear =
                |mode, sign, shift, other| Some((Recovery::Linear { mode, level, sign, shift, other }, level, level));
            match expression {
                _ if used[level] => None,
                LevelExpression::Mode(mode) if !is_known(mode) => linear(*mode, 1, 0, 0),
                LevelExpression::Block(mode, size) if !is_known(mode) => {
                    let is_other = |other: &LevelExpression| *other == LevelExpression::Within(*mode, *size);
                    let within = expressions.iter().position(is_other)?;
                    Some((Recovery::Blocks { mode: *mode, block: level, within, size: *size }, level, within))
                }
                LevelExpression::Difference(first, second) => match (is_known(first), is_known(second)) {
                    (false, true) => linear(*first, 1, 1, *second),
                    (true, false) => linear(*second, -1, 1, *first),
                    _ => None,
                },
                LevelExpression::Sum(first, second) => match (is_known(first), is_known(second)) {
                    (false, true) => linear(*first, 1, -1, *second),
                    (true, false) => linear(*second, 1, -1, *first),
                    _ => None,
                },
                _ => None,
            }
        });
        let Some((step, first, second)) = found else { break };
        (used[first], used[second]) = (true, true);
        steps.push(step);
    }
    if let Some(mode) = (0..rank).find(|mode| steps.iter().all(|step| step.mode() != *mode)) {
        return Err(NoInverse::Unknown(mode));
    }
    let is_redundant = |level: &usize| !used[*level] && !matches!(expressions[*level], LevelExpression::Count(_));
    (0..expressions.len()).find(is_redundant).map_or(Ok(steps), |level| Err(NoInverse::Redundant(level)))
}
