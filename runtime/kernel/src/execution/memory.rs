//! Elements as the interpreter sees them: each access is checked.

use std::marker::PhantomData;

use super::view::{Dimension, View, row_major};
use crate::element::{Element, ElementType, Scalar};
use crate::{with_element, with_scalar};

/// The elements of a buffer, borrowed from a view or made by the kernel.
pub(super) struct BufferMemory<'a> {
    /// The address of the element at the lowest point.
    address: *mut u8,
    element: ElementType,
    dimensions: Vec<Dimension>,
    /// The memory of a buffer made by the kernel; `u128` is aligned for all elements.
    _owned: Vec<u128>,
    /// For a buffer made without zeros: which of its elements were stored.
    stored: Option<Vec<bool>>,
    borrowed: PhantomData<&'a mut [u8]>,
}

impl<'a> BufferMemory<'a> {
    /// No elements.
    pub(super) fn nothing() -> Self {
        Self {
            address: std::ptr::null_mut(),
            element: ElementType::I64,
            dimensions: Vec::new(),
            _owned: Vec::new(),
            stored: None,
            borrowed: PhantomData,
        }
    }

    /// The elements of `view`.
    pub(super) fn borrow(view: &'a mut View<'_>) -> Self {
        Self {
            address: view.address(),
            element: view.element(),
            dimensions: view.dimensions().to_vec(),
            ..Self::nothing()
        }
    }

    /// New elements; `None` if there is no memory for so many.
    pub(super) fn allocate(element: ElementType, bounds: &[(i64, i64)], zeroed: bool) -> Option<Self> {
        let mut count = 1_usize;
        let mut extents = Vec::with_capacity(bounds.len());
        for &(low, high) in bounds {
            let extent = if high <= low { 0 } else { high.checked_sub(low)? };
            count = count.checked_mul(usize::try_from(extent).ok()?)?;
            extents.push(extent);
        }
        let words = count.checked_mul(element.size())?.div_ceil(size_of::<u128>());
        let mut owned = Vec::new();
        owned.try_reserve_exact(words).ok()?;
        owned.resize(words, 0_u128);
        let stored = if zeroed { None } else { Some(vec![false; count]) };
        let dimensions = bounds
            .iter()
            .zip(row_major(&extents))
            .map(|(&(low, high), stride)| Dimension { low, high, stride })
            .collect();
        Some(Self {
            address: owned.as_mut_ptr().cast(),
            element,
            dimensions,
            _owned: owned,
            stored,
            borrowed: PhantomData,
        })
    }

    pub(super) fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The bounds of each dimension.
    pub(super) fn bounds(&self) -> Vec<(i64, i64)> {
        self.dimensions.iter().map(|dimension| (dimension.low, dimension.high)).collect()
    }

    /// The offset in elements of the point `indices`, if it is one of the buffer's.
    pub(super) fn offset(&self, indices: &[i64]) -> Option<isize> {
        let mut offset = 0_i64;
        for (dimension, &index) in self.dimensions.iter().zip(indices) {
            if index < dimension.low || index >= dimension.high {
                return None;
            }
            // In bounds, so nothing overflows: the view's elements exist.
            offset += (index - dimension.low) * dimension.stride;
        }
        isize::try_from(offset).ok()
    }

    /// The point with the given offset, for messages: searched one dimension after the other, the largest stride first.
    pub(super) fn point(&self, offset: isize) -> Vec<i64> {
        let mut order: Vec<usize> = (0..self.dimensions.len()).collect();
        order.sort_by_key(|&dimension| std::cmp::Reverse(self.dimensions[dimension].stride.unsigned_abs()));
        let mut point: Vec<i64> = self.dimensions.iter().map(|dimension| dimension.low).collect();
        let mut rest = offset as i64;
        for dimension in order {
            let Dimension { low, stride, .. } = self.dimensions[dimension];
            if stride != 0 && self.dimensions[dimension].extent() > 1 {
                point[dimension] = low + rest / stride;
                rest %= stride;
            }
        }
        point
    }

    /// A number for the element at `offset` that differs from those of others.
    pub(super) fn address(&self, offset: isize) -> usize {
        self.at(offset).addr()
    }

    fn at(&self, offset: isize) -> *mut u8 {
        self.address.wrapping_offset(offset.wrapping_mul(self.element.size() as isize))
    }

    /// The element at an `offset` that [`offset`](Self::offset) gave; `None` if nothing was stored there.
    pub(super) fn load(&self, offset: isize) -> Option<Scalar> {
        if let Some(stored) = &self.stored
            && !stored[offset as usize]
        {
            return None;
        }
        let at = self.at(offset);
        // SAFETY: the offset is of a point in bounds, where a view has an aligned element of its type that nothing else
        // changes.
        Some(unsafe {
            match self.element {
                // Other bytes than 0 and 1 are true.
                ElementType::Bool => Scalar::Bool(at.read() != 0),
                element => with_element!(element, T => at.cast::<T>().read().to_scalar()),
            }
        })
    }

    /// Stores `value`, which has the element type, at an `offset` that [`offset`](Self::offset) gave. The verifier and
    /// [`fit`](super::view::fit) saw to it that the view is writable.
    pub(super) fn store(&mut self, offset: isize, value: Scalar) {
        debug_assert_eq!(value.element_type(), self.element);
        if let Some(stored) = &mut self.stored {
            stored[offset as usize] = true;
        }
        /// # Safety
        ///
        /// As of [`pointer::write`](std::ptr::write).
        unsafe fn write<T: Element>(at: *mut u8, value: T) {
            // SAFETY: the caller's.
            unsafe { at.cast::<T>().write(value) }
        }

        let at = self.at(offset);
        // SAFETY: as in `load`; and the view is writable, so nothing else reads its elements.
        unsafe { with_scalar!(value, value => write(at, value)) }
    }
}
