//! The one formula that turns a point into an offset.

use std::ops::Range;

use maniple_space::{AnyPoint, Point, Rect};

use super::MAX_DIMENSIONS;

/// The formula for the places of one field's values in an instance.
///
/// The rank of a point among those stored is `linear = sum(p[d] * strides[d]) - origin`. Its value lies at
///
/// ```text
/// base + (linear >> shift) * outer + (linear & mask) * inner
/// ```
///
/// which is all three arrangements at once: in a struct of arrays the mask is all ones (and `outer` zero), in an array
/// of structs it is zero, and in blocks of 2^`shift` points it is 2^`shift` - 1. The arithmetic wraps, so that bounds
/// near the ends of `i64` are fine; for a point that is stored the result is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldAddress {
    /// The offset of the value of the first point, in bytes.
    pub base: usize,
    /// How many elements apart neighbours are in each dimension.
    pub strides: [i64; MAX_DIMENSIONS],
    /// The rank that the strides alone give to the lowest point, to be subtracted.
    pub origin: i64,
    /// The binary logarithm of the points of a block; 63 if there is one block only.
    pub shift: u32,
    /// Selects the place within a block.
    pub mask: usize,
    /// The bytes of a block.
    pub outer: usize,
    /// The bytes from one value to the next within a block.
    pub inner: usize,
    /// The bytes of one value.
    pub size: usize,
}

/// A field whose offsets are linear in the coordinates: every one but that of an instance in blocks.
///
/// The offset of a point is `bias + sum(p[d] * strides[d])`, wrapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffineAddress {
    /// The offset of the origin of coordinates, which itself may not be stored.
    pub bias: isize,
    /// How many bytes apart neighbours are in each dimension.
    pub strides: [isize; MAX_DIMENSIONS],
}

impl FieldAddress {
    /// `block` gives the points and bytes of a block; `None` stands for one array.
    pub(super) fn new(
        base: usize,
        size: usize,
        strides: [i64; MAX_DIMENSIONS],
        origin: i64,
        block: Option<(usize, usize)>,
    ) -> Self {
        let (shift, mask, outer) = match block {
            None => (63, usize::MAX, 0),
            Some((points, bytes)) => (points.ilog2(), points - 1, bytes),
        };
        Self { base, strides, origin, shift, mask, outer, inner: size, size }
    }

    /// The rank of a point among those stored. Meaningless for one that is not.
    #[inline]
    #[must_use]
    pub fn linear<const D: usize>(&self, point: Point<D>) -> usize {
        let mut sum = self.origin.wrapping_neg();
        for d in 0..D {
            sum = sum.wrapping_add(point.0[d].wrapping_mul(self.strides[d]));
        }
        sum as usize
    }

    /// The offset of the value of a point of the given rank.
    #[inline]
    #[must_use]
    pub fn offset_of_linear(&self, linear: usize) -> usize {
        let block = (linear >> self.shift).wrapping_mul(self.outer);
        self.base.wrapping_add(block).wrapping_add((linear & self.mask).wrapping_mul(self.inner))
    }

    /// The offset of the value of a point, in bytes. Meaningless for a point that is not stored.
    #[inline]
    #[must_use]
    pub fn offset<const D: usize>(&self, point: Point<D>) -> usize {
        self.offset_of_linear(self.linear(point))
    }

    /// As [`offset`](Self::offset), of a point whose dimension is not in its type.
    #[inline]
    #[must_use]
    pub fn offset_any(&self, point: AnyPoint) -> usize {
        let terms = point.coords().iter().zip(self.strides).map(|(at, stride)| at.wrapping_mul(stride));
        self.offset_of_linear(terms.fold(self.origin.wrapping_neg(), i64::wrapping_add) as usize)
    }

    /// The bytes from one value to the one of the next rank, except from block to block.
    #[inline]
    #[must_use]
    pub fn pitch(&self) -> usize {
        if self.mask == 0 { self.outer } else { self.inner }
    }

    /// Whether equal steps of rank are equal steps of offset, as in all arrangements but blocks.
    #[inline]
    #[must_use]
    pub fn is_affine(&self) -> bool {
        self.mask == 0 || self.mask == usize::MAX
    }

    /// The same addresses without shift and mask, where possible. What tight loops should use.
    #[must_use]
    pub fn affine(&self) -> Option<AffineAddress> {
        let pitch = self.pitch() as isize;
        self.is_affine().then(|| AffineAddress {
            bias: (self.base as isize).wrapping_sub((self.origin as isize).wrapping_mul(pitch)),
            strides: self.strides.map(|stride| (stride as isize).wrapping_mul(pitch)),
        })
    }

    /// Whether neighbours along a dimension lie next to each other with nothing between, so that rows along it are
    /// slices.
    #[inline]
    #[must_use]
    pub fn contiguous_along(&self, dimension: usize) -> bool {
        self.is_affine() && self.strides[dimension] == 1 && self.pitch() == self.size
    }

    /// From the point of rank `linear`, in steps of `step` ranks: how many points lie at equal steps of offset, the
    /// first included. Where offsets are affine, no end is known.
    #[inline]
    #[must_use]
    pub(crate) fn straight_run(&self, linear: usize, step: i64) -> usize {
        if self.is_affine() || step == 0 {
            return usize::MAX;
        }
        (self.mask - (linear & self.mask)) / step.unsigned_abs() as usize + 1
    }

    /// Calls `visit` with the ranges of bytes in which the values of a rectangle of points lie. Ranges that begin at
    /// most `gap` bytes after each other are visited as one.
    pub(crate) fn for_each_run<const D: usize>(&self, part: Rect<D>, gap: usize, visit: &mut impl FnMut(Range<usize>)) {
        let mut dimensions: [(usize, usize); D] =
            std::array::from_fn(|d| (self.strides[d] as usize, part.extent(d) as usize));
        dimensions.sort_unstable();
        let first = self.linear(part.lo);
        // How many ranks there are from the first to the last of a run, of which there is one for each place in the
        // other dimensions.
        let (mut length, mut within) = (1, 0);
        for &(stride, extent) in &dimensions {
            let is_next = || self.offset_of_linear(first + stride) - self.offset_of_linear(first) <= gap;
            if extent > 1 && stride != length && !is_next() {
                break;
            }
            length += stride * (extent - 1);
            within += 1;
        }
        self.visit_runs(first, length, &dimensions[within..], visit);
    }

    fn visit_runs(&self, first: usize, length: usize, around: &[(usize, usize)], visit: &mut impl FnMut(Range<usize>)) {
        let Some((&(stride, extent), rest)) = around.split_last() else {
            let last = self.offset_of_linear(first + length - 1);
            return visit(self.offset_of_linear(first)..last + self.size);
        };
        (0..extent).for_each(|place| self.visit_runs(first + place * stride, length, rest, visit));
    }
}

impl AffineAddress {
    /// The offset of the value of a point, in bytes. Meaningless for a point that is not stored.
    #[inline]
    #[must_use]
    pub fn offset<const D: usize>(&self, point: Point<D>) -> isize {
        let mut offset = self.bias;
        for d in 0..D {
            offset = offset.wrapping_add((point.0[d] as isize).wrapping_mul(self.strides[d]));
        }
        offset
    }
}
