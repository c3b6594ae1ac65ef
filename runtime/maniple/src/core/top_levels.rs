//! How many top-level tasks may be about to release something.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of top-level tasks that do not wait where the runtime sees it.
#[derive(Debug, Default)]
pub(crate) struct TopLevels(AtomicUsize);

/// A top-level task, which runs until this is dropped.
pub(crate) struct TopLevelRuns(Arc<TopLevels>);

impl Drop for TopLevelRuns {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl TopLevels {
    /// A top-level task begins.
    pub(super) fn begin(self: &Arc<Self>) -> TopLevelRuns {
        self.0.fetch_add(1, Ordering::SeqCst);
        TopLevelRuns(Arc::clone(self))
    }

    /// Whether one may release something at any time.
    pub(super) fn are_running(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    /// A thread of a top-level task waits: the task releases nothing meanwhile, unless it has other threads.
    pub(super) fn while_waiting<R>(&self, has_other_threads: bool, wait: impl FnOnce() -> R) -> R {
        if has_other_threads {
            return wait();
        }
        self.0.fetch_sub(1, Ordering::SeqCst);
        let result = wait();
        self.0.fetch_add(1, Ordering::SeqCst);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_one_thread_does_not_run_while_it_waits_and_one_of_several_does() {
        let all = Arc::<TopLevels>::default();
        assert!(!all.are_running());
        let one = all.begin();
        assert!(all.are_running());
        all.while_waiting(false, || assert!(!all.are_running()));
        // However many threads of it wait, another may be running.
        all.while_waiting(true, || all.while_waiting(true, || assert!(all.are_running())));
        let other = all.begin();
        all.while_waiting(false, || all.while_waiting(true, || assert!(all.are_running())));
        drop((one, other));
        assert!(!all.are_running());
    }
}
