//! The decisions of a mapper about forking tasks, one for each task.

use std::sync::OnceLock;

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
    /// The known decision about a task, or else the one that `decide` makes.
    #[inline]
    pub(crate) fn get_or_decide<T>(&self, task: &'static T, decide: impl FnOnce() -> bool) -> bool {
        let (name, first) = place_of(task);
        match self.0[first].get() {
            Some(&(known, decision)) if known == name => decision,
            _ => self.search(task, decide),
        }
    }

    #[cold]
    fn search<T>(&self, task: &'static T, decide: impl FnOnce() -> bool) -> bool {
        let (name, first) = place_of(task);
        let mut decide = Some(decide);
        for step in 0..MOST {
            let mine = || (name, decide.take().is_some_and(|decide| decide()));
            let &(known, decision) = self.0[(first + step) % MOST].get_or_init(mine);
            if known == name {
                return decision;
            }
        }
        decide.is_some_and(|decide| decide())
    }
}

/// The address of a task, which identifies it as the task is there as long as the program; and the slot where the
/// search for it begins.
#[inline]
fn place_of<T>(task: &'static T) -> (usize, usize) {
    let name = std::ptr::from_ref(task).addr();
    (name, name / align_of::<T>() % MOST)
}
