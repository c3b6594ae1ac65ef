//! Bytes from the system.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use super::SystemRefused;

/// The alignment up to which the system gives zeroed pages as they are. Asked for more, the allocator behind
/// [`alloc_zeroed`] would write all the zeros itself.
const NATURAL_ALIGN: usize = 16;

/// Blocks of so many bytes or more are in large pages, where the system has them.
const LARGE: usize = 4 << 20;

/// The bytes of a page, and of a large one.
const PAGE: usize = 4 << 10;
const LARGE_PAGE: usize = 2 << 20;

/// The bytes of the pages in which the system makes a block of so many bytes, where it has large ones.
pub(super) fn page_of(block: usize) -> usize {
    if block < LARGE { PAGE } else { LARGE_PAGE }
}

/// Asks the system for large pages: making them takes a fraction of the time that small ones take, and what is read
/// here and there is found without a walk through page tables.
#[cfg(target_os = "linux")]
fn take_large_pages(start: NonNull<u8>, size: usize) {
    let (first, end) = (start.addr().get().next_multiple_of(PAGE), (start.addr().get() + size) / PAGE * PAGE);
    if size >= LARGE && first < end {
        // SAFETY: the pages lie within the block, and the advice changes nothing that can be read there. Whether it is
        // taken does not matter.
        unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn take_large_pages(_: NonNull<u8>, _: usize) {}

/// Bytes from the system, zero at first, given back when dropped.
#[derive(Debug)]
pub struct Block {
    base: NonNull<u8>,
    /// The memory that the block is a part of; `None` if the block is empty.
    whole: Option<Whole>,
}

/// The memory that the system has given.
#[derive(Debug)]
enum Whole {
    Allocated(NonNull<u8>, Layout),
    /// So many bytes of pages.
    #[cfg(target_os = "linux")]
    Mapped(NonNull<u8>, usize),
}

impl Block {
    /// Gets zeroed bytes. Large blocks come from the system as pages that it makes real when they are first touched, by
    /// preference in the NUMA domain of the thread that touches them, and as large pages of it where it has some.
    ///
    /// # Errors
    ///
    /// If the system has no more, or the size and alignment make no sense together.
    pub fn zeroed(bytes: usize, align: usize) -> Result<Self, SystemRefused> {
        let refused = SystemRefused { bytes, align };
        if !align.is_power_of_two() {
            return Err(refused);
        }
        if bytes == 0 {
            // Never read or written, but aligned, and not null.
            let base = NonNull::new(std::ptr::without_provenance_mut(align)).ok_or(refused)?;
            return Ok(Self { base, whole: None });
        }
        let slack = align.saturating_sub(NATURAL_ALIGN);
        let size = bytes.checked_add(slack).ok_or_else(|| refused.clone())?;
        let layout = Layout::from_size_align(size, align.min(NATURAL_ALIGN)).map_err(|_| refused.clone())?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(refused)?;
        take_large_pages(start, size);
        // SAFETY: the next aligned address is at most the slack away.
        let base = unsafe { start.add(start.addr().get().next_multiple_of(align) - start.addr().get()) };
        Ok(Self { base, whole: Some(Whole::Allocated(start, layout)) })
    }

    /// Gets zeroed bytes: of a large block as large pages of which none is made before it is touched, also where the
    /// allocator has bytes that were used before and would write zeros. What is smaller comes from the allocator, which
    /// puts several blocks into a large page: computing with small pages is slower by a tenth.
    ///
    /// # Errors
    ///
    /// As of [`zeroed`](Self::zeroed).
    #[cfg(target_os = "linux")]
    pub(crate) fn untouched(bytes: usize, align: usize) -> Result<Self, SystemRefused> {
        let refused = SystemRefused { bytes, align };
        if bytes < LARGE || !align.is_power_of_two() {
            return Self::zeroed(bytes, align);
        }
        let align = align.max(LARGE_PAGE);
        let size = bytes.checked_add(align - PAGE).ok_or_else(|| refused.clone())?;
        let (access, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        // SAFETY: new pages, of no file, wherever the system puts them.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(refused);
        }
        let start = NonNull::new(start.cast::<u8>()).ok_or(refused)?;
        take_large_pages(start, size);
        // SAFETY: the pages begin at a multiple of `PAGE`, so the next aligned address is at most the slack away.
        let base = unsafe { start.add(start.addr().get().next_multiple_of(align) - start.addr().get()) };
        Ok(Self { base, whole: Some(Whole::Mapped(start, size)) })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn untouched(bytes: usize, align: usize) -> Result<Self, SystemRefused> {
        Self::zeroed(bytes, align)
    }

    /// The first byte.
    #[must_use]
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match self.whole {
            None => {}
            // SAFETY: allocated in `zeroed` with this layout, and given back here alone.
            Some(Whole::Allocated(start, layout)) => unsafe { dealloc(start.as_ptr(), layout) },
            #[cfg(target_os = "linux")]
            Some(Whole::Mapped(start, size)) => {
                // SAFETY: mapped in `untouched` with this size, and given back here alone.
                let given_back = unsafe { libc::munmap(start.as_ptr().cast(), size) };
                debug_assert_eq!(given_back, 0, "pages that were mapped are given back");
            }
        }
    }
}

// SAFETY: the block owns its bytes, and hands out no more than their address.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zero_and_aligned_and_may_be_empty() {
        let block = Block::zeroed(100, 64).unwrap();
        assert_eq!(block.base().as_ptr() as usize % 64, 0);
        // SAFETY: a hundred bytes, zeroed, of our own.
        let bytes = unsafe { std::slice::from_raw_parts(block.base().as_ptr(), 100) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        for (bytes, align, page) in [(300_000, 64, 64), (5 << 20, 64, 2 << 20), (100, 1 << 14, 1 << 14)] {
            let block = Block::untouched(bytes, align).unwrap();
            assert!(!cfg!(target_os = "linux") || (block.base().as_ptr() as usize).is_multiple_of(page));
            // SAFETY: so many bytes, zeroed, of our own.
            let bytes = unsafe { std::slice::from_raw_parts_mut(block.base().as_ptr(), bytes) };
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(1);
        }
        assert!(Block::untouched(usize::MAX, 8).is_err() && Block::untouched(8, 3).is_err());
        assert_eq!(Block::zeroed(0, 16).unwrap().base().as_ptr() as usize, 16);
        assert_eq!(Block::zeroed(usize::MAX, 8).unwrap_err(), SystemRefused { bytes: usize::MAX, align: 8 });
        assert!(Block::zeroed(8, 3).is_err());
    }
}
