//! How a tensor is stored: a kind of level for each dimension, and in which order.
//!
//! A tensor is a tree with one level for each dimension (*mode*), the first one stored outermost. Formats compose from few kinds of levels
//! (Chou, Kjolstad, Amarasinghe, *Format abstraction for sparse tensor algebra compilers*, OOPSLA 2018).

mod text;

pub use text::ParseError;

/// How one level is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// All coordinates, one after the other.
    Dense,
    /// The coordinates that are there, for each parent: segments of an array of coordinates.
    Compressed,
    /// One coordinate for each parent.
    Singleton,
}

/// How a tensor is stored.
///
/// ```
/// use maniple_tensor::format::Format;
///
/// let columns: Format = "{D,D}(1,0)".parse()?;
/// assert_eq!(columns.strides(&[3, 4])?, [1, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    levels: Vec<Level>,
    order: Vec<usize>,
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
        /// What it is.
        kind: Level,
    },
    /// More elements than can be counted.
    #[error("a tensor of extents {0:?} is too large")]
    Large(Vec<i64>),
}

/// So many things, as it is said.
fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

impl Format {
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
        Ok(Self { levels, order })
    }

    /// All coordinates, the last dimension contiguous: what C and NumPy call row-major.
    pub fn dense(rank: usize) -> Self {
        Self { levels: vec![Level::Dense; rank], order: (0..rank).collect() }
    }

    /// The kinds of levels, outermost first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Which mode each level stores.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The level that stores `mode`.
    pub fn level_of(&self, mode: usize) -> Option<usize> {
        self.order.iter().position(|stored| *stored == mode)
    }

    /// The dimension whose elements are side by side.
    pub fn contiguous(&self) -> Option<usize> {
        self.order.last().copied()
    }

    /// Checks that this format can store a tensor of `dimensions` dimensions, and that all its levels are of a kind that can be computed with.
    ///
    /// # Errors
    ///
    /// [`FormatError::Rank`], [`FormatError::Sparse`].
    pub fn check(&self, dimensions: usize) -> Result<(), FormatError> {
        if self.levels.len() != dimensions {
            return Err(FormatError::Rank { levels: self.levels.len(), dimensions });
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
