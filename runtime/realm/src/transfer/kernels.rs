//! The innermost loops: copying and filling one run.
//!
//! Values are opaque: they may have padding, so they are moved as [`MaybeUninit`] and never looked at. The usual sizes
//! get loops of their own, in which a value is one or two registers.

use std::mem::MaybeUninit;

/// A value of a field, as opaque bytes.
pub(super) type Opaque<const SIZE: usize> = MaybeUninit<[u8; SIZE]>;

/// Runs an expression with a size in bytes as a constant, if it is one of the usual, and otherwise another.
macro_rules! with_usual_size {
    ($size:expr, $constant:ident => $usual:expr, otherwise => $other:expr) => {
        with_usual_size!(@ $size, $constant, $usual, $other, 1 2 4 8 12 16 24 32)
    };
    (@ $size:expr, $constant:ident, $usual:expr, $other:expr, $($known:literal)*) => {
        match $size {
            $($known => { const $constant: usize = $known; $usual })*
            _ => $other,
        }
    };
}
pub(super) use with_usual_size;

/// Copies `count` values of `size` bytes; strides are in bytes.
///
/// # Safety
///
/// Every `from + n * from_stride` is readable and every `to + n * to_stride` writable for `size` bytes, nothing else
/// touches them meanwhile, and none of the former overlap the latter.
#[inline]
pub(super) unsafe fn copy_run(
    to: *mut u8,
    to_stride: isize,
    from: *const u8,
    from_stride: isize,
    count: usize,
    size: usize,
) {
    if to_stride == size as isize && from_stride == size as isize && count > 1 {
        // SAFETY: `count` adjacent values on both sides, disjoint, by the caller's promise.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, count * size) };
    }
    with_usual_size!(size, SIZE => {
        for index in 0..count as isize {
            // SAFETY: one value on each side, by the caller's promise; an array of bytes needs no alignment.
            unsafe {
                let value = from.offset(index * from_stride).cast::<Opaque<SIZE>>().read();
                to.offset(index * to_stride).cast::<Opaque<SIZE>>().write(value);
            }
        }
    }, otherwise => {
        for index in 0..count as isize {
            // SAFETY: as above.
            unsafe {
                std::ptr::copy_nonoverlapping(from.offset(index * from_stride), to.offset(index * to_stride), size);
            }
        }
    });
}

/// Writes one value `count` times; the stride is in bytes.
///
/// # Safety
///
/// Every `to + n * stride` is writable for as many bytes as the value has, nothing else touches them meanwhile, and
/// they do not overlap the value.
#[inline]
pub(super) unsafe fn fill_run(to: *mut u8, stride: isize, count: usize, value: &[MaybeUninit<u8>]) {
    let size = value.len();
    with_usual_size!(size, SIZE => {
        // SAFETY: the value has this many bytes, which may all be uninitialised.
        let value = unsafe { value.as_ptr().cast::<Opaque<SIZE>>().read() };
        if stride == SIZE as isize {
            // SAFETY: `count` adjacent values, by the caller's promise; an array of bytes needs no alignment.
            let slice = unsafe { std::slice::from_raw_parts_mut(to.cast::<Opaque<SIZE>>(), count) };
            return slice.fill(value);
        }
        for index in 0..count as isize {
            // SAFETY: one value, by the caller's promise.
            unsafe { to.offset(index * stride).cast::<Opaque<SIZE>>().write(value) };
        }
    }, otherwise => {
        for index in 0..count as isize {
            // SAFETY: one value, by the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(value.as_ptr().cast(), to.offset(index * stride), size) };
        }
    });
}
