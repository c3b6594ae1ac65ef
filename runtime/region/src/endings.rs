//! Whether anything may have ended since one looked.

use std::sync::atomic::{AtomicU64, Ordering};

static ENDINGS: AtomicU64 = AtomicU64::new(0);

/// A number that changes whenever a space, a partition or a region of this process is destroyed or ends with its run,
/// or a field's id is freed or given to a new field. As long as it is the same, whatever was alive is.
#[must_use]
#[inline]
pub fn endings() -> u64 {
    ENDINGS.load(Ordering::Acquire)
}

/// Something has ended: called after that can be seen.
#[doc(hidden)]
pub fn count() {
    ENDINGS.fetch_add(1, Ordering::AcqRel);
}
