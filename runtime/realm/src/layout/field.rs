//! The places of one field's values in an instance of any points.
//!
//! An instance stores the rectangles of an index space one after the other: each point has a rank, and the ranks of a
//! rectangle follow the ranks of the rectangle before it. One formula gives the places of all ranks of the field
//! ([`FieldAddress`]); only the way from a point to its rank differs from rectangle to rectangle.

use std::sync::Arc;

use maniple_space::{AnyPoint, AnySpace, IndexSpace, Point, Rect, for_dimension};

use super::{DimensionOrder, FieldAddress, LayoutError, MAX_DIMENSIONS};

/// The places of the values of one field, for all points stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLayout {
    /// Of the points of the first rectangle.
    address: FieldAddress,
    /// Absent where there is one rectangle, or none.
    ranks: Option<Arc<Ranks>>,
}

/// The ranks of the points of several rectangles.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ranks {
    points: AnySpace,
    order: DimensionOrder,
    /// The rank of the lowest point of each rectangle.
    firsts: Box<[usize]>,
}

impl FieldLayout {
    pub(super) fn new(address: FieldAddress, ranks: Option<&Arc<Ranks>>) -> Self {
        Self { address, ranks: ranks.cloned() }
    }

    /// The bytes of one value.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        self.address.size
    }

    /// The address of every point, where all points stored are one rectangle.
    #[inline]
    #[must_use]
    pub fn single(&self) -> Option<&FieldAddress> {
        self.ranks.is_none().then_some(&self.address)
    }

    /// The formula for the places of ranks. It knows the ranks of the first rectangle's points, and no others.
    #[inline]
    pub(crate) fn ranked(&self) -> &FieldAddress {
        &self.address
    }

    /// The offset of the value of a point, in bytes. Meaningless for a point that is not stored. Where several
    /// rectangles are stored, the point's is searched for: logarithmic in their number.
    #[inline]
    #[must_use]
    pub fn offset<const D: usize>(&self, point: Point<D>) -> usize {
        match &self.ranks {
            None => self.address.offset(point),
            Some(ranks) => self.address.offset_of_linear(ranks.of(point)),
        }
    }

    /// As [`offset`](Self::offset), of a point whose dimension is not in its type.
    #[must_use]
    pub fn offset_any(&self, point: AnyPoint) -> usize {
        match &self.ranks {
            None => self.address.offset_any(point),
            Some(_) => {
                for_dimension!(point.dim(), D => point.typed::<D>().map_or(usize::MAX, |point| self.offset(point)))
            }
        }
    }

    /// Calls `visit` with the parts of a rectangle that lie in one stored rectangle each, in the order of those, and
    /// the address of the points of each. A row is visited in the order of its points. What is not stored is left out,
    /// except where one rectangle is stored: that is not compared.
    #[inline]
    pub fn for_each_part<const D: usize>(&self, rect: Rect<D>, visit: impl FnMut(Rect<D>, &FieldAddress)) {
        self.for_each_part_near(rect, &mut 0, visit);
    }

    /// As [`for_each_part`](Self::for_each_part), for one of many rectangles in order: `near` is the number of the
    /// stored rectangle that the one before was in.
    #[inline]
    pub(crate) fn for_each_part_near<const D: usize>(
        &self,
        rect: Rect<D>,
        near: &mut usize,
        mut visit: impl FnMut(Rect<D>, &FieldAddress),
    ) {
        let Some(ranks) = &self.ranks else { return visit(rect, &self.address) };
        let Ok(points) = ranks.points.typed::<D>() else { return };
        let rects = points.rects();
        let mut visit =
            |number: usize, part| visit(part, &self.in_rect(&rects[number], ranks.firsts[number], ranks.order));
        // Mostly it is in the same one, or in the next.
        if let Some(number) = (*near..rects.len().min(*near + 2)).find(|&number| rects[number].contains_rect(&rect)) {
            *near = number;
            return visit(number, rect);
        }
        points.for_each_touching(&rect, |number| {
            *near = number;
            visit(number, rects[number].intersection(&rect));
        });
    }

    /// Whether the values of a row along the last dimension lie next to each other with nothing between.
    #[must_use]
    pub fn is_slice<const D: usize>(&self, row: &Rect<D>) -> bool {
        let mut is_slice = false;
        self.for_each_part(*row, |part, address| is_slice = part == *row && address.contiguous_along(D - 1));
        is_slice
    }

    fn in_rect<const D: usize>(&self, rect: &Rect<D>, first: usize, order: DimensionOrder) -> FieldAddress {
        let strides = strides(rect, order).map_or([0; MAX_DIMENSIONS], |(strides, _)| strides);
        FieldAddress { strides, origin: origin(rect, &strides).wrapping_sub(first as i64), ..self.address }
    }
}

impl Ranks {
    /// Of several rectangles, and the number of all their points.
    fn new<const D: usize>(points: &IndexSpace<D>, order: DimensionOrder) -> Result<(Self, usize), LayoutError> {
        let mut volume = 0usize;
        let mut firsts = Vec::with_capacity(points.rects().len());
        for rect in points.rects() {
            firsts.push(volume);
            volume = (strides(rect, order).and_then(|(_, points)| volume.checked_add(points)))
                .ok_or_else(|| LayoutError::TooLarge { bounds: points.bounds().into() })?;
        }
        Ok((Self { points: points.clone().into(), order, firsts: firsts.into() }, volume))
    }

    #[inline]
    fn of<const D: usize>(&self, point: Point<D>) -> usize {
        let Ok(points) = self.points.typed::<D>() else { return usize::MAX };
        let Some(number) = points.locate(point) else { return usize::MAX };
        let rect = &points.rects()[number];
        let within = self.order.slowest_first[..D].iter().fold(0usize, |rank, &dimension| {
            let d = usize::from(dimension);
            rank.wrapping_mul(rect.extent(d) as usize).wrapping_add(point.0[d].wrapping_sub(rect.lo.0[d]) as usize)
        });
        self.firsts[number].wrapping_add(within)
    }
}

/// The ranks of all points of a space: the strides and origin of the first rectangle, the others' ranks if there are
/// any, and the number of points.
pub(super) struct Ranking {
    pub(super) strides: [i64; MAX_DIMENSIONS],
    pub(super) origin: i64,
    pub(super) others: Option<Arc<Ranks>>,
    pub(super) volume: usize,
}

impl Ranking {
    pub(super) fn of(points: &AnySpace, order: DimensionOrder) -> Result<Self, LayoutError> {
        for_dimension!(points, |points| Self::of_typed(points, order))
    }

    fn of_typed<const D: usize>(points: &IndexSpace<D>, order: DimensionOrder) -> Result<Self, LayoutError> {
        let Some(first) = points.rects().first() else {
            return Ok(Self { strides: [0; MAX_DIMENSIONS], origin: 0, others: None, volume: 0 });
        };
        let too_large = || LayoutError::TooLarge { bounds: points.bounds().into() };
        let (strides, volume) = strides(first, order).ok_or_else(too_large)?;
        let origin = origin(first, &strides);
        if points.is_dense() {
            return Ok(Self { strides, origin, others: None, volume });
        }
        let (ranks, volume) = Ranks::new(points, order)?;
        Ok(Self { strides, origin, others: Some(Arc::new(ranks)), volume })
    }
}

/// The rank that the strides alone give to the lowest point.
fn origin<const D: usize>(rect: &Rect<D>, strides: &[i64; MAX_DIMENSIONS]) -> i64 {
    (0..D).fold(0, |sum: i64, d| sum.wrapping_add(rect.lo.0[d].wrapping_mul(strides[d])))
}

/// How many ranks apart neighbours are in each dimension, and the number of points. `None` if they cannot be counted.
fn strides<const D: usize>(rect: &Rect<D>, order: DimensionOrder) -> Option<([i64; MAX_DIMENSIONS], usize)> {
    let mut strides = [0; MAX_DIMENSIONS];
    let mut volume = 1i64;
    for &dimension in order.slowest_first[..D].iter().rev() {
        let d = usize::from(dimension);
        strides[d] = volume;
        let extent = rect.hi.0[d].checked_sub(rect.lo.0[d]).and_then(|last| last.checked_add(1))?;
        volume = volume.checked_mul(extent)?;
    }
    Some((strides, usize::try_from(volume).ok()?))
}
