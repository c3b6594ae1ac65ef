//! The addresses of the values of a field, for code that is given addresses.

use std::marker::PhantomData;
use std::ptr::NonNull;

use maniple_realm::instance::Instance;
use maniple_realm::layout::{FieldAddress, FieldId};
use maniple_space::{AnyRect, AnySpace, MAX_DIMENSIONS, Rect, for_dimension};
use smallvec::SmallVec;

/// The values of a field at all points of a rectangle, for kernels that are compiled when the program runs or come from
/// libraries: see [`LeafCall::strided`](crate::task::LeafCall::strided),
/// [`LeafCall::strided_around`](crate::task::LeafCall::strided_around) and
/// [`LeafCall::strided_parts`](crate::task::LeafCall::strided_parts).
#[derive(Clone, Debug)]
pub struct Strided<'a> {
    address: NonNull<u8>,
    bounds: AnyRect,
    strides: SmallVec<[isize; MAX_DIMENSIONS]>,
    is_writable: bool,
    marker: PhantomData<&'a [u8]>,
}

impl<'a> Strided<'a> {
    /// The values at all points of a space, a rectangle after the other: of each of its rectangles the parts that lie
    /// together in the instance. One without points if there are none. None if the instance does not have the field at
    /// such places.
    pub(crate) fn of(
        instance: &'a Instance,
        field: FieldId,
        space: &AnySpace,
        is_writable: bool,
    ) -> Option<SmallVec<[Self; 1]>> {
        let (layout, bounds) = (instance.layout().field(field)?, space.bounds());
        if bounds.is_empty() {
            let strides = SmallVec::from_elem(0, bounds.dim());
            let none = Self { address: NonNull::dangling(), bounds, strides, is_writable, marker: PhantomData };
            return Some(SmallVec::from_iter([none]));
        }
        let base = instance.base()?.as_ptr();
        for_dimension!(space, |space| {
            let mut parts = SmallVec::<[_; 1]>::new();
            for rect in space.rects() {
                layout.for_each_part(*rect, |part, address| parts.push(Self::at(part, base, address, is_writable)));
            }
            parts.into_iter().collect()
        })
    }

    /// The values at the points of a space, seen as those of the rectangle around them. None if the instance does not
    /// store that in one piece.
    pub(crate) fn around(instance: &'a Instance, field: FieldId, space: &AnySpace, is_writable: bool) -> Option<Self> {
        let (layout, base) = (instance.layout().field(field)?, instance.base()?.as_ptr());
        if space.is_empty() {
            return Self::of(instance, field, space, is_writable)?.pop();
        }
        for_dimension!(space, |space| Self::at(space.bounds(), base, layout.single()?, is_writable))
    }

    /// The values at all points of a rectangle, which have this address from the instance's first byte on.
    fn at<const D: usize>(rect: Rect<D>, base: *mut u8, address: &FieldAddress, is_writable: bool) -> Option<Self> {
        let affine = address.affine()?;
        let lowest = base.wrapping_offset(affine.offset(rect.lo));
        let (address, strides) = (NonNull::new(lowest)?, affine.strides[..D].into());
        Some(Self { address, bounds: rect.into(), strides, is_writable, marker: PhantomData })
    }

    /// The address of the value at the lowest corner of the [bounds](Self::bounds), if that corner is one of the
    /// points. Not to be used if there are no points.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.address.as_ptr()
    }

    /// The points, or the rectangle around them.
    #[must_use]
    pub fn bounds(&self) -> AnyRect {
        self.bounds
    }

    /// How many bytes apart neighbours are in each dimension.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// Whether the values may be changed; otherwise others may be reading them.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }
}
