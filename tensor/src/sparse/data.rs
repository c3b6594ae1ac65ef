//! What kernels are given of tensors in memory.

use std::borrow::Cow;

use super::error::SparseError;
use crate::element::Element;
use crate::format::Format;
use crate::kernel::{View, row_major};
use crate::level::{Array, LevelData};
use crate::storage::SparseTensor;

/// A tensor, and its positions and coordinates in one of the widths that kernels have.
pub(super) struct Data<'a, T: Clone> {
    pub(super) tensor: Cow<'a, SparseTensor<T>>,
    /// Whether positions and coordinates have 32 bits.
    pub(super) is_narrow: bool,
}

/// Numbers in a width that kernels have.
pub(super) enum Numbers<'a> {
    Narrow(Cow<'a, [i32]>),
    Wide(Cow<'a, [i64]>),
}

impl<'a, T: Element> Data<'a, T> {
    pub(super) fn new(tensor: Cow<'a, SparseTensor<T>>) -> Self {
        let is_narrow =
            |level: &LevelData| level.components.iter().all(|component| !matches!(component.array, Array::I64(_)));
        let is_narrow = tensor.levels().iter().all(is_narrow);
        Self { tensor, is_narrow }
    }

    /// A component of a level.
    pub(super) fn numbers(&self, level: usize, component: &str) -> Numbers<'_> {
        Numbers::of(self.tensor.levels()[level].component(component), self.is_narrow)
    }

    /// The elements of a tensor whose levels are dense.
    pub(super) fn elements(&self) -> Result<View<'_>, SparseError> {
        let (dimensions, values) = (self.tensor.dimensions(), self.tensor.values());
        Ok(View::read(values, &whole(dimensions), &strides(self.tensor.format(), dimensions))?)
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
    pub(super) fn of(array: &'a Array, narrow: bool) -> Self {
        let all = || (0..array.len()).map(|place| array.get(place));
        match array {
            Array::I32(numbers) if narrow => Self::Narrow(Cow::Borrowed(numbers)),
            Array::I64(numbers) => Self::Wide(Cow::Borrowed(numbers)),
            _ if narrow => Self::Narrow(all().map(|number| number as i32).collect()),
            _ => Self::Wide(all().collect()),
        }
    }

    pub(super) fn view(&self) -> Result<View<'_>, SparseError> {
        Ok(match self {
            Self::Narrow(numbers) => View::dense(numbers, &[numbers.len() as i64])?,
            Self::Wide(numbers) => View::dense(numbers, &[numbers.len() as i64])?,
        })
    }
}
