//! Fetching cache lines before they are needed.
//!
//! Both are hints, for any address, and nothing on machines for which they are not written. In assembly, as there is no
//! intrinsic for writing that the compiler would turn into the instruction: on a processor of which it does not know
//! that it has `prefetchw`, it fetches for reading, and the line, which another core keeps too, must be asked for once
//! more.

/// Begins to fetch the line at this address, to be read soon.
#[inline(always)]
pub fn prefetch_for_reading<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint and accesses nothing.
    unsafe {
        std::arch::asm!("prefetcht0 [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    let _ = address;
}

/// Begins to fetch the line at this address, to be written soon: it was last written by another core, and the way from
/// there is long.
#[inline(always)]
pub fn prefetch_for_writing<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch is a hint and accesses nothing. All processors of this architecture take the instruction:
    // those that don't have it do nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    let _ = address;
}
