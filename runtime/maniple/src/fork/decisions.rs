//! What a mapper has said about forking tasks, once for each.

use std::sync::{Arc, OnceLock};

use crate::task::TaskDefinition;

/// More tasks than most programs fork. About those beyond, the mapper is asked each time.
const MOST: usize = 64;

/// For each task that `#[task]` declares, whether it may be forked: found without a lock.
#[derive(Debug)]
pub(crate) struct ForkDecisions([OnceLock<(usize, bool)>; MOST]);

impl Default for ForkDecisions {
    fn default() -> Self {
        Self([const { OnceLock::new() }; MOST])
    }
}

impl ForkDecisions {
    /// What was decided for a task, or else what `decide` says.
    #[inline]
    pub(crate) fn get_or_decide(&self, task: &'static Arc<TaskDefinition>, decide: impl FnOnce() -> bool) -> bool {
        // Never another task's: this one is there as long as the program.
        let name = Arc::as_ptr(task) as usize;
        let places = (0..MOST).map(|step| &self.0[(name / align_of::<TaskDefinition>() + step) % MOST]);
        let mut decide = Some(decide);
        for place in places {
            let mine = || (name, decide.take().is_some_and(|decide| decide()));
            let &(known, decision) = place.get_or_init(mine);
            if known == name {
                return decision;
            }
        }
        decide.is_some_and(|decide| decide())
    }
}
