//! Fetching cache lines before they are needed.

/// Begins to fetch the line at this address, to be written soon: it was last written by another core, and the way from there is long. A hint, for any
/// address.
#[inline]
pub fn prefetch_for_writing<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch is a hint and accesses nothing.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
