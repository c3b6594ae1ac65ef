//! The data of tensors in memory that kernels are given.

use std::borrow::Cow;

use super::error::SparseError;
use crate::element::{Element, ElementType};
use crate::format::Format;
use crate::kernel::{View, row_major};
use crate::level::{Array, LevelData, Width, with_numbers};
use crate::storage::SparseTensor;

/// A tensor that kernels read.
pub(super) trait Operand {
    /// How it is stored.
    fn format(&self) -> &Format;

    /// Its levels.
    fn levels(&self) -> &[LevelData];

    /// The elements of a tensor whose levels are dense, by their coordinates.
    fn elements(&self) -> Result<View<'_>, SparseError>;

    /// The elements by their positions.
    fn values(&self) -> Result<View<'_>, SparseError>;
}

/// A tensor that kernels read.
pub(super) struct Data<'a, T: Clone> {
    pub(super) tensor: Cow<'a, SparseTensor<T>>,
    /// How kernels see it: what is in blocks has a dimension for each level.
    pub(super) format: &'a Format,
    pub(super) dimensions: &'a [i64],
}

/// Numbers of a component, as kernels read them.
pub(super) enum Numbers<'a> {
    /// As they are stored.
    Stored(&'a Array),
    /// Few narrow ones, in 32 bits: a kernel is not worth its making for these.
    Widened(Vec<i32>),
}

/// Of so many narrow numbers or more, kernels read them as they are stored. Fewer are widened for each run, so that
/// tensors of a few sizes, of which each would have another width, need one kernel.
const MANY: usize = 1 << 14;

impl<T: Element> Operand for Data<'_, T> {
    fn format(&self) -> &Format {
        self.tensor.format()
    }

    fn levels(&self) -> &[LevelData] {
        self.tensor.levels()
    }

    fn elements(&self) -> Result<View<'_>, SparseError> {
        let values = self.tensor.values();
        Ok(View::read(values, &whole(self.dimensions), &strides(self.format, self.dimensions))?)
    }

    fn values(&self) -> Result<View<'_>, SparseError> {
        let values = self.tensor.values();
        Ok(View::dense(values, &[values.len() as i64])?)
    }
}

/// All coordinates of some extents.
pub(super) fn whole(dimensions: &[i64]) -> Vec<(i64, i64)> {
    dimensions.iter().map(|&extent| (0, extent)).collect()
}

/// How far apart neighbours are in each mode of a tensor whose levels are dense.
pub(super) fn strides(format: &Format, dimensions: &[i64]) -> Vec<i64> {
    let of_levels: Vec<i64> = format.order().iter().map(|&mode| dimensions[mode]).collect();
    let mut strides = vec![1; dimensions.len()];
    format.order().iter().zip(row_major(&of_levels)).for_each(|(&mode, stride)| strides[mode] = stride);
    strides
}

impl<'a> Numbers<'a> {
    pub(super) fn of(array: &'a Array) -> Self {
        match array.width() {
            Width::U8 | Width::I16 if array.len() < MANY => {
                Self::Widened((0..array.len()).map(|place| array.get(place) as i32).collect())
            }
            _ => Self::Stored(array),
        }
    }

    /// The type that a kernel reads the numbers of `array` in.
    pub(super) fn type_of(array: &Array) -> ElementType {
        match array.width() {
            Width::U8 | Width::I16 if array.len() < MANY => ElementType::I32,
            Width::U8 => ElementType::U8,
            Width::I16 => ElementType::I16,
            Width::I32 => ElementType::I32,
            Width::I64 => ElementType::I64,
        }
    }

    pub(super) fn view(&self) -> Result<View<'_>, SparseError> {
        Ok(match self {
            Self::Stored(array) => with_numbers!(array, numbers => View::dense(numbers, &[numbers.len() as i64])?),
            Self::Widened(numbers) => View::dense(numbers, &[numbers.len() as i64])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_narrow_numbers_are_not_widened() {
        let array = |width, count| Array::filled(width, 7, count).unwrap();
        for (width, many) in [(Width::U8, ElementType::U8), (Width::I16, ElementType::I16)] {
            for (count, expected) in [(MANY - 1, ElementType::I32), (MANY, many)] {
                let array = array(width, count);
                assert_eq!(Numbers::type_of(&array), expected);
                assert_eq!(matches!(Numbers::of(&array), Numbers::Stored(_)), count == MANY);
            }
        }
        assert_eq!(Numbers::type_of(&array(Width::I32, 1)), ElementType::I32);
        assert_eq!(Numbers::type_of(&array(Width::I64, 1)), ElementType::I64);
    }
}
