//! Whether this process is a copy, made by `fork`, of the one in which something began: a copy has none of the other
//! threads.

use std::sync::atomic::{AtomicU32, Ordering};

/// How often the process, or one that it is a copy of, was copied, as far as it is a copy itself.
static COPIES: AtomicU32 = AtomicU32::new(0);

/// The process in which something began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin(u32);

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        watch();
        Self(COPIES.load(Ordering::Relaxed))
    }

    /// Whether this process is a copy of that one.
    #[inline]
    pub(crate) fn is_elsewhere(self) -> bool {
        self.0 != COPIES.load(Ordering::Relaxed)
    }
}

/// From now on copies are counted, in the copy. Where the system is not asked, nothing counts as one.
fn watch() {
    #[cfg(target_os = "linux")]
    {
        extern "C" fn copied() {
            COPIES.fetch_add(1, Ordering::Relaxed);
        }
        static WATCHED: std::sync::Once = std::sync::Once::new();
        WATCHED.call_once(|| {
            // SAFETY: the handler has the signature that is asked for, stays for ever, and does nothing that a copy of
            // a process with several threads may not: it changes an atomic number. If it cannot be registered, for want
            // of memory, copies are not counted.
            unsafe { libc::pthread_atfork(None, None, Some(copied)) };
        });
    }
}
