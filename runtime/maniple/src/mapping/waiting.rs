//! Code for which others wait, as that of a mapper: it must not wait for other nodes.

use std::cell::Cell;

thread_local! {
    static MUST_NOT_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs code for which others wait.
pub(crate) fn must_not_wait() -> bool {
    MUST_NOT_WAIT.get()
}

/// Runs code for which others wait.
pub(crate) fn without_waiting<R>(run: impl FnOnce() -> R) -> R {
    /// Restores the flag, also if the code panics.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            MUST_NOT_WAIT.set(self.0);
        }
    }
    let _before = Before(MUST_NOT_WAIT.replace(true));
    run()
}
