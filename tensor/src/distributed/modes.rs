//! In which order a tensor's dimensions are stored.

use std::sync::Arc;

use maniple::space::{AnyRect, Rect};

use crate::format::{Format, FormatError};
use crate::rectangle::Rectangle;

/// The dimensions (*modes*) of a tensor in the order in which its region has them: elements whose coordinates differ in
/// the last one lie side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Modes(Arc<[usize]>);

impl Modes {
    /// The modes of a tensor with so many dimensions, in a format.
    pub(super) fn new(format: &Format, dimensions: usize) -> Result<Self, FormatError> {
        format.check(dimensions)?;
        Ok(Self(format.order().into()))
    }

    /// Whether they are stored as they are counted.
    pub(super) fn are_in_order(&self) -> bool {
        self.0.iter().copied().eq(0..self.0.len())
    }

    /// The dimension along which elements lie side by side; none of a scalar.
    pub(super) fn last(&self) -> Option<usize> {
        self.0.last().copied()
    }

    /// The place of each dimension in the region.
    pub(super) fn levels(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len()).map(|mode| self.0.iter().position(|&stored| stored == mode).unwrap_or(mode))
    }

    /// How far elements of the whole tensor are apart that are neighbours in each dimension.
    pub(super) fn strides(&self, extents: &[i64]) -> Vec<i64> {
        let (mut strides, mut stride) = (vec![0; self.0.len()], 1);
        for &mode in self.0.iter().rev() {
            strides[mode] = stride;
            stride *= extents[mode];
        }
        strides
    }

    /// The part of the region with a rectangle's elements; none in too many dimensions.
    pub(super) fn rect(&self, rectangle: &Rectangle) -> Option<AnyRect> {
        let bounds: Vec<(i64, i64)> = rectangle.bounds().collect();
        rect(&self.0.iter().map(|&mode| bounds[mode]).collect::<Vec<_>>())
    }

    /// The coordinates of the element at a point of the region: as many as there are dimensions.
    pub(super) fn coordinates(&self, point: &[i64]) -> Coordinates {
        let mut values = [0; 4];
        self.0.iter().zip(point).for_each(|(&mode, &index)| values[mode] = index);
        Coordinates { values, count: self.0.len() }
    }
}

/// Whether regions have tensors of a format: dense ones, of as many dimensions.
pub(super) fn is_in_region(format: &Format) -> bool {
    format.is_dense() && format.is_plain() && (1..=4).contains(&format.order().len())
}

/// The coordinates of an element.
pub(super) struct Coordinates {
    values: [i64; 4],
    count: usize,
}

impl Coordinates {
    pub(super) fn as_slice(&self) -> &[i64] {
        &self.values[..self.count]
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [i64] {
        &mut self.values[..self.count]
    }
}

/// A rectangle for a region, from the first to before the second of each pair; none in too many dimensions.
pub(super) fn rect(bounds: &[(i64, i64)]) -> Option<AnyRect> {
    fn rect<const D: usize>(bounds: &[(i64, i64)]) -> AnyRect {
        let rect =
            Rect::new(std::array::from_fn(|d| bounds[d].0), std::array::from_fn::<i64, D, _>(|d| bounds[d].1 - 1));
        AnyRect::from(rect)
    }
    Some(match bounds.len() {
        0 => rect::<1>(&[(0, 1)]),
        1 => rect::<1>(bounds),
        2 => rect::<2>(bounds),
        3 => rect::<3>(bounds),
        4 => rect::<4>(bounds),
        _ => return None,
    })
}
