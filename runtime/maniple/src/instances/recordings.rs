//! Whether traces are being recorded.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many recordings are under way: as long as there are any, no use is forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recordings(Arc<AtomicUsize>);

impl Recordings {
    pub(crate) fn are_under_way(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    pub(crate) fn begin(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn end(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
