//! The elements that a task has of a tensor, as kernels see them.

use maniple::access::Strided;
use maniple::task::LeafCall;

use super::fields::Required;
use super::modes::Modes;
use crate::element::ElementType;
use crate::kernel::{Dimension, View};
use crate::with_element;

/// The elements that a task has of a tensor: the smallest rectangle around them is viewed where it lies, or, if the
/// parts lie apart, in a copy.
pub(super) struct Held<'a> {
    element: ElementType,
    is_writable: bool,
    /// The lowest index and the one after the highest, in the order of the region's dimensions.
    bounds: Vec<(i64, i64)>,
    /// Bytes from one index to the next.
    strides: Vec<isize>,
    /// The address at which the element at the lowest point is, or would be.
    address: *mut u8,
    /// The copy, in words, and what was copied.
    copied: Option<(Vec<u64>, Vec<Strided<'a>>)>,
}

impl<'a> Held<'a> {
    pub(super) fn new(
        call: &LeafCall<'a>,
        Required { requirement, field, element }: Required,
    ) -> maniple::Result<Self> {
        // Points may be many rectangles, which are looked at one by one only where they lie apart.
        let parts = with_element!(element, T => match call.strided_around::<T>(requirement, field) {
            Ok((around, _)) => Ok(vec![around]),
            Err(_) => call.strided_parts::<T>(requirement, field),
        })?;
        let mut bounds = bounds_of(&parts[0]);
        for part in &parts[1..] {
            for (hull, own) in bounds.iter_mut().zip(bounds_of(part)) {
                *hull = (hull.0.min(own.0), hull.1.max(own.1));
            }
        }
        let lowest = |part: &Strided<'_>| part.address().wrapping_offset(-offset(part, &bounds));
        let (first, others) = (&parts[0], &parts[1..]);
        let address = if others.is_empty() { first.address() } else { lowest(first) };
        let lie_apart = others.iter().any(|part| part.strides() != first.strides() || lowest(part) != address);
        let (strides, is_writable) = (first.strides().to_vec(), first.is_writable());
        let mut held = Self { element, is_writable, bounds, strides, address, copied: None };
        if lie_apart {
            held.copy(parts);
        }
        Ok(held)
    }

    fn copy(&mut self, parts: Vec<Strided<'a>>) {
        let mut size = self.element.size() as isize;
        for (stride, (low, high)) in self.strides.iter_mut().zip(&self.bounds).rev() {
            (*stride, size) = (size, size * (high - low) as isize);
        }
        let mut words = vec![0_u64; (size as usize).div_ceil(size_of::<u64>())];
        self.address = words.as_mut_ptr().cast();
        // SAFETY: the part's elements are there, and no other view has the copy.
        parts.iter().for_each(|part| self.each(part, |there, here| unsafe { self.put(here, there) }));
        self.copied = Some((words, parts));
    }

    /// Puts what was computed in a copy to where it belongs.
    pub(super) fn put_back(&self) {
        for part in self.copied.iter().filter(|_| self.is_writable).flat_map(|(_, parts)| parts) {
            // SAFETY: as in `copy`; the task may change the part's elements.
            self.each(part, |there, here| unsafe { self.put(there, here) });
        }
    }

    /// # Safety
    ///
    /// Both are elements of this type.
    unsafe fn put(&self, to: *mut u8, from: *const u8) {
        // SAFETY: as promised; one is in the copy and the other is not.
        unsafe { to.copy_from_nonoverlapping(from, self.element.size()) };
    }

    /// Calls a function for each element of a part, with its address there and in the copy.
    fn each(&self, part: &Strided<'_>, visit: impl Fn(*mut u8, *mut u8)) {
        let own = bounds_of(part);
        let first = own.iter().zip(&self.bounds).zip(&self.strides);
        let first: isize = first.map(|((own, all), stride)| (own.0 - all.0) as isize * stride).sum();
        for number in 0..own.iter().map(|(low, high)| high - low).product() {
            let (mut rest, mut there, mut here) = (number, 0, first);
            for (dimension, (low, high)) in own.iter().enumerate().rev() {
                let index = (rest % (high - low)) as isize;
                rest /= high - low;
                there += index * part.strides()[dimension];
                here += index * self.strides[dimension];
            }
            visit(part.address().wrapping_offset(there), self.address.wrapping_offset(here));
        }
    }

    /// A view of the smallest rectangle with all elements that the task has.
    ///
    /// # Safety
    ///
    /// Of the rectangle, nothing is looked at but those elements; and nothing of those that others may see is changed.
    /// The view lives no longer than the call.
    pub(super) unsafe fn view(&mut self, modes: &Modes) -> View<'a> {
        let size = self.element.size() as isize;
        let dimension = |d: usize| {
            let (low, high) = self.bounds[d];
            Dimension { low, high, stride: (self.strides[d] / size) as i64 }
        };
        let dimensions = modes.levels().map(dimension).collect();
        // SAFETY: the task has the field at all points that are looked at, as values of that type; privileges say that
        // no other task changes them, or, if they may be changed, that no other task looks.
        unsafe { View::from_raw(self.address, self.element, dimensions, self.is_writable) }
    }
}

/// How many bytes the first element of a part lies after the lowest point of a rectangle around it.
fn offset(part: &Strided<'_>, bounds: &[(i64, i64)]) -> isize {
    let lows = bounds_of(part).into_iter().zip(bounds).zip(part.strides());
    lows.map(|((own, all), stride)| ((own.0 - all.0) as isize).wrapping_mul(*stride)).sum()
}

fn bounds_of(part: &Strided<'_>) -> Vec<(i64, i64)> {
    let bounds = part.bounds();
    bounds.lo().coords().iter().zip(bounds.hi().coords()).map(|(&lo, &hi)| (lo, hi + 1)).collect()
}
