//! Where the values of a field are, for code that is given addresses.

use std::marker::PhantomData;
use std::ptr::NonNull;

use maniple_realm::instance::Instance;
use maniple_realm::layout::FieldId;
use maniple_space::{AnyRect, AnySpace, MAX_DIMENSIONS};
use smallvec::SmallVec;

/// The values of a field at all points of a rectangle, for kernels that are compiled when the program runs or come from libraries: see
/// [`LeafCall::strided`](crate::task::LeafCall::strided).
#[derive(Clone, Debug)]
pub struct Strided<'a> {
    address: NonNull<u8>,
    bounds: AnyRect,
    strides: SmallVec<[isize; MAX_DIMENSIONS]>,
    is_writable: bool,
    marker: PhantomData<&'a [u8]>,
}

impl<'a> Strided<'a> {
    /// None if the instance does not have the field at such places, or the points are no rectangle.
    pub(crate) fn new(instance: &'a Instance, field: FieldId, space: &AnySpace, is_writable: bool) -> Option<Self> {
        let bounds = space.bounds();
        if bounds.is_empty() {
            let strides = SmallVec::from_elem(0, bounds.dim());
            return Some(Self { address: NonNull::dangling(), bounds, strides, is_writable, marker: PhantomData });
        }
        let affine = instance.layout().field(field)?.affine()?;
        if !space.is_dense() {
            return None;
        }
        let strides: SmallVec<[isize; MAX_DIMENSIONS]> = affine.strides[..bounds.dim()].into();
        let lowest = bounds.lo();
        let offset = lowest.coords().iter().zip(&strides).map(|(&index, &stride)| index as isize * stride);
        let base = instance.base()?.as_ptr().wrapping_offset(affine.bias);
        let address = NonNull::new(offset.fold(base, |address, offset| address.wrapping_offset(offset)))?;
        Some(Self { address, bounds, strides, is_writable, marker: PhantomData })
    }

    /// Where the value at the lowest point is. Not to be used if there are no points.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.address.as_ptr()
    }

    /// The points.
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
