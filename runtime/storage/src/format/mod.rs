//! How a tensor is stored: levels, what each of them stores, and of what kind it is.
//!
//! A tensor is a tree whose levels store its dimensions (*modes*), the first level outermost. Formats compose from few
//! [kinds of levels](crate::level). Levels may also store what is computed from dimensions: blocks, diagonals, counts
//! (Chou, Kjolstad, Amarasinghe, *Automatic generation of efficient sparse tensor format conversion routines*, PLDI
//! 2020).
//!
//! | in reading order | |
//! | --- | --- |
//! | `expression` | what levels store, and how coordinates follow from it |
//! | `dimensions` | how loops over dimensions go through diagonals |
//! | `names` | formats that have a name |
//! | `text` | formats as text |

mod dimensions;
mod expression;
mod names;
mod text;

pub use dimensions::StoredDimension;
pub use expression::{LevelExpression, Recovery};
pub use text::ParseError;

pub use crate::level::{Level, Properties};
use crate::level::{Line, Place};
use expression::NoInverse;

/// The most dimensions that formats have names for.
const MOST_DIMENSIONS: usize = 8;

/// How a tensor is stored.
///
/// ```
/// use maniple_storage::format::Format;
///
/// let columns: Format = "{D,D}(1,0)".parse()?;
/// assert_eq!(columns.strides(&[3, 4])?, [1, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    rank: usize,
    levels: Vec<Level>,
    /// Of a plain format, the mode of each level; otherwise empty.
    order: Vec<usize>,
    expressions: Vec<LevelExpression>,
    properties: Vec<Properties>,
}

/// A format that cannot be, or cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Not a mode for each level.
    #[error(
        "a format of {} needs each of the modes 0 to {levels} (excluded) once in its order, and has {order:?}",
        count(*.levels, "level")
    )]
    Order {
        /// How many levels there are.
        levels: usize,
        /// The order given.
        order: Vec<usize>,
    },
    /// A tensor with more or fewer dimensions.
    #[error(
        "a format of {} does not store a tensor of {}",
        count(*.levels, "level"),
        count(*.dimensions, "dimension")
    )]
    Rank {
        /// How many levels there are.
        levels: usize,
        /// How many dimensions the tensor has.
        dimensions: usize,
    },
    /// A level that nothing computes with yet.
    #[error("level {level} of {format} is {kind:?}, and only dense levels can be used so far: make all levels D")]
    Sparse {
        /// The format.
        format: String,
        /// The first level that is not dense.
        level: usize,
        /// The kind of the level.
        kind: Level,
    },
    /// A level that stores no whole dimension, where nothing computes with those yet.
    #[error(
        "level {level} of {format} stores {expression}, and only whole dimensions can be used so far: store each dimension in one level"
    )]
    Computed {
        /// The format.
        format: String,
        /// The first such level.
        level: usize,
        /// The expression that the level stores.
        expression: String,
    },
    /// A dimension whose coordinates do not follow from those of levels.
    #[error("nothing in {format} tells {mode}: add levels that store it, or both {mode}/b and {mode}%b")]
    Unknown {
        /// The format.
        format: String,
        /// The dimension.
        mode: String,
    },
    /// A level that stores what others tell.
    #[error("level {level} of {format} stores {expression}, which follows from other levels: leave it out")]
    Redundant {
        /// The format.
        format: String,
        /// The level.
        level: usize,
        /// The expression that the level stores.
        expression: String,
    },
    /// A kind of level that can't be where it is.
    #[error("level {level} of {format} is {kind:?}, which {rule}: use another kind")]
    Misplaced {
        /// The format.
        format: String,
        /// The level.
        level: usize,
        /// Its kind.
        kind: Level,
        /// The rule for the place of such levels.
        rule: &'static str,
    },
    /// More dimensions than there are names for.
    #[error(
        "a tensor of {0} dimensions can be stored by whole dimensions only; those of levels with other contents have at most {MOST_DIMENSIONS}"
    )]
    Dimensions(usize),
    /// More elements than can be counted.
    #[error("a tensor of extents {0:?} is too large")]
    Large(Vec<i64>),
}

/// So many things, as it is said.
fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

impl Format {
    /// Refuses tensors of another number of dimensions.
    ///
    /// # Errors
    ///
    /// [`FormatError::Rank`].
    pub fn check_rank(&self, dimensions: usize) -> Result<(), FormatError> {
        match self.rank == dimensions {
            true => Ok(()),
            false => Err(FormatError::Rank { levels: self.rank, dimensions }),
        }
    }

    /// A format of `levels`, of which level `l` stores mode `order[l]`.
    ///
    /// # Errors
    ///
    /// [`FormatError::Order`], unless `order` has each mode once.
    pub fn new(levels: impl Into<Vec<Level>>, order: impl Into<Vec<usize>>) -> Result<Self, FormatError> {
        let (levels, order) = (levels.into(), order.into());
        let complete = (0..levels.len()).all(|mode| order.contains(&mode));
        if order.len() != levels.len() || !complete {
            return Err(FormatError::Order { levels: levels.len(), order });
        }
        Self::plain(levels, order).placed()
    }

    fn plain(levels: Vec<Level>, order: Vec<usize>) -> Self {
        let expressions = order.iter().map(|&mode| LevelExpression::Mode(mode)).collect();
        Self { rank: levels.len(), properties: vec![Properties::default(); levels.len()], levels, order, expressions }
    }

    /// One level, with the coordinates in the order in which they come.
    pub fn of_workspace(level: Level) -> Self {
        let mut format = Self::plain(vec![level], vec![0]);
        format.properties[0].ordered = level != Level::Compressed;
        format
    }

    /// A format of tensors of `rank` dimensions, with for each level what it stores, its kind and its properties.
    ///
    /// # Errors
    ///
    /// [`FormatError::Unknown`], [`FormatError::Redundant`] unless coordinates and levels follow from each other;
    /// [`FormatError::Misplaced`].
    pub fn of_levels(rank: usize, levels: Vec<(LevelExpression, Level, Properties)>) -> Result<Self, FormatError> {
        let mut format = Self::plain(levels.iter().map(|(_, level, _)| *level).collect(), Vec::new());
        format.rank = rank;
        format.properties = levels.iter().map(|(_, _, properties)| *properties).collect();
        format.expressions = levels.into_iter().map(|(expression, ..)| expression).collect();
        let order = format.expressions.iter().map(|expression| match expression {
            LevelExpression::Mode(mode) => Some(*mode),
            _ => None,
        });
        match order.collect::<Option<Vec<usize>>>() {
            Some(order) if (0..rank).all(|mode| order.contains(&mode)) && order.len() == rank => format.order = order,
            _ if rank > MOST_DIMENSIONS => return Err(FormatError::Dimensions(rank)),
            _ => {}
        }
        if let Err(error) = expression::inverse(rank, &format.expressions) {
            // Not plain, so that the text tells all levels.
            format.order.clear();
            let text = format.to_string();
            return Err(match error {
                NoInverse::Unknown(mode) => {
                    FormatError::Unknown { format: text, mode: LevelExpression::Mode(mode).to_string() }
                }
                NoInverse::Redundant(level) => {
                    FormatError::Redundant { format: text, level, expression: format.expressions[level].to_string() }
                }
            });
        }
        format.placed()
    }

    /// The format, if each level is where its kind can be.
    fn placed(self) -> Result<Self, FormatError> {
        let rule = |level: usize| match self.levels[level].kind().capabilities().place {
            Place::Last if level + 1 < self.levels.len() => Some("must be the last level"),
            Place::Diagonal if self.diagonal(level).is_none() => {
                Some("must store a dimension below a level that stores a difference or sum with it")
            }
            _ => None,
        };
        match (0..self.levels.len()).find_map(|level| Some((level, rule(level)?))) {
            None => Ok(self),
            Some((level, rule)) => {
                Err(FormatError::Misplaced { format: self.to_string(), level, kind: self.levels[level], rule })
            }
        }
    }

    /// For a level that stores a mode below one that stores a difference or sum with it: that level, and the `sign`,
    /// `shift` and `other` with which `sign * mode + shift * level = other`.
    fn diagonal(&self, level: usize) -> Option<(usize, i64, i64, usize)> {
        let LevelExpression::Mode(mode) = self.expressions[level] else { return None };
        self.expressions[..level].iter().enumerate().find_map(|(above, expression)| match *expression {
            LevelExpression::Difference(first, second) if first == mode => Some((above, 1, -1, second)),
            LevelExpression::Difference(first, second) if second == mode => Some((above, 1, 1, first)),
            LevelExpression::Sum(first, second) if first == mode => Some((above, -1, 1, second)),
            LevelExpression::Sum(first, second) if second == mode => Some((above, -1, 1, first)),
            _ => None,
        })
    }

    /// The line on which the coordinates of a level may lie, of a kind that has them along a diagonal.
    pub fn line(&self, level: usize, dimensions: &[i64]) -> Option<Line> {
        let (above, sign, offset, other) = self.diagonal(level)?;
        Some(Line { level: above, sign, offset, bounds: 0..dimensions[other] })
    }

    /// Sorted coordinates with their elements: a compressed level with coordinates more than once, and singletons.
    pub fn coordinates(rank: usize) -> Self {
        let levels = (0..rank).map(|level| if level == 0 { Level::Compressed } else { Level::Singleton }).collect();
        let mut format = Self::plain(levels, (0..rank).collect());
        format.properties.iter_mut().rev().skip(1).for_each(|properties| properties.unique = false);
        format
    }

    /// All coordinates, the last dimension contiguous: what C and NumPy call row-major.
    pub fn dense(rank: usize) -> Self {
        Self::plain(vec![Level::Dense; rank], (0..rank).collect())
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The kinds of levels, outermost first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Which mode each level stores; empty unless the format [is plain](Self::is_plain).
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Whether all levels are dense: nothing but elements is stored.
    pub fn is_dense(&self) -> bool {
        self.levels().iter().all(|level| *level == Level::Dense)
    }

    /// Whether each dimension is stored by one level.
    pub fn is_plain(&self) -> bool {
        self.order.len() == self.levels.len()
    }

    /// The expression that each level stores.
    pub fn expressions(&self) -> &[LevelExpression] {
        &self.expressions
    }

    /// The properties that are chosen for each level.
    pub fn properties(&self) -> &[Properties] {
        &self.properties
    }

    /// How coordinates follow from those of levels.
    pub fn recovery(&self) -> Vec<Recovery> {
        expression::inverse(self.rank, &self.expressions).expect("formats are checked when they are made")
    }

    /// The format of the tensor that has a dimension for each level, and its extents, where levels store dimensions,
    /// blocks of them and places in blocks: its levels store what those of this one do. None for plain formats, and
    /// those that store diagonals or counts.
    pub fn reshaped(&self, dimensions: &[i64]) -> Option<(Self, Vec<i64>)> {
        let is_kept = |expression: &LevelExpression| {
            matches!(expression, LevelExpression::Mode(_) | LevelExpression::Block(..) | LevelExpression::Within(..))
        };
        if self.is_plain() || !self.expressions.iter().all(is_kept) {
            return None;
        }
        let levels = self.levels.iter().zip(&self.properties).enumerate();
        let levels = levels.map(|(mode, (level, properties))| (LevelExpression::Mode(mode), *level, *properties));
        let format = Self::of_levels(self.levels.len(), levels.collect()).ok()?;
        let extents = self.expressions.iter().map(|expression| expression.bounds(dimensions).end);
        Some((format, extents.collect()))
    }

    /// Whether entries are stored in the order of their coordinates, and each place once, but for a list of
    /// coordinates.
    pub fn is_in_order(&self) -> bool {
        let is_kind = |level: &Level| matches!(level, Level::Dense | Level::Compressed);
        let are_strict = || self.properties.iter().all(|level| level.ordered && level.unique);
        let is_by_rows = || self.is_plain() && self.order.is_sorted();
        *self == Self::coordinates(self.rank) || is_by_rows() && self.levels.iter().all(is_kind) && are_strict()
    }

    /// The level that stores `mode`.
    pub fn level_of(&self, mode: usize) -> Option<usize> {
        self.order.iter().position(|stored| *stored == mode)
    }

    /// The dimension whose elements are side by side.
    pub fn contiguous(&self) -> Option<usize> {
        self.order.last().copied()
    }

    /// Checks that this format can store a tensor of `dimensions` dimensions, and that all its levels are of a kind
    /// that can be computed with.
    ///
    /// # Errors
    ///
    /// [`FormatError::Rank`], [`FormatError::Sparse`].
    pub fn check(&self, dimensions: usize) -> Result<(), FormatError> {
        self.check_rank(dimensions)?;
        let is_computed = |expression: &LevelExpression| !matches!(expression, LevelExpression::Mode(_));
        if let Some(level) = self.expressions.iter().position(is_computed) {
            let expression = self.expressions[level].to_string();
            return Err(FormatError::Computed { format: self.to_string(), level, expression });
        }
        match self.levels.iter().position(|level| *level != Level::Dense) {
            None => Ok(()),
            Some(level) => Err(FormatError::Sparse { format: self.to_string(), level, kind: self.levels[level] }),
        }
    }

    /// How many elements lie between neighbours in each dimension of a tensor of `extents`.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check), and [`FormatError::Large`].
    pub fn strides(&self, extents: &[i64]) -> Result<Vec<i64>, FormatError> {
        self.check(extents.len())?;
        let mut strides = vec![0; extents.len()];
        let mut stride = 1_i64;
        for &mode in self.order.iter().rev() {
            strides[mode] = stride;
            stride = stride.checked_mul(extents[mode].max(1)).ok_or_else(|| FormatError::Large(extents.to_vec()))?;
        }
        Ok(strides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_follow_the_order_of_modes() {
        let strides = |order: &[usize], extents: &[i64]| {
            Format::new(vec![Level::Dense; order.len()], order).expect("complete").strides(extents).expect("dense")
        };
        assert_eq!(strides(&[0, 1, 2], &[2, 3, 4]), [12, 4, 1]);
        assert_eq!(strides(&[2, 1, 0], &[2, 3, 4]), [1, 2, 6]);
        // A cycle of three is not its own inverse.
        assert_eq!(strides(&[1, 2, 0], &[2, 3, 4]), [1, 8, 2]);
        assert_eq!(Format::dense(0).strides(&[]), Ok(vec![]));
    }

    #[test]
    fn orders_have_each_mode_once() {
        for order in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
            let error = Format::new([Level::Dense; 2], order).expect_err("incomplete");
            assert_eq!(error, FormatError::Order { levels: 2, order: order.into() });
        }
    }

    #[test]
    fn levels_find_their_modes_and_modes_their_levels() {
        let format = Format::new([Level::Dense; 3], [1, 2, 0]).expect("complete");
        for (level, mode) in format.order().iter().enumerate() {
            assert_eq!(format.level_of(*mode), Some(level));
        }
        assert_eq!((format.level_of(3), format.contiguous()), (None, Some(0)));
    }

    #[test]
    fn sparse_levels_are_refused_by_name() {
        let format: Format = "{D,C}(0,1)".parse().expect("a format");
        let error = format.strides(&[2, 2]).expect_err("sparse");
        assert_eq!(
            error.to_string(),
            "level 1 of {D,C}(0,1) is Compressed, and only dense levels can be used so far: make all levels D"
        );
    }

    #[test]
    fn tensors_have_a_dimension_for_each_level_and_a_countable_size() {
        assert_eq!(Format::dense(2).check(3), Err(FormatError::Rank { levels: 2, dimensions: 3 }));
        let extents = [1 << 40, 1 << 40];
        assert_eq!(Format::dense(2).strides(&extents), Err(FormatError::Large(extents.into())));
    }
}
