//! More workers than cores, or graphs: one of those that sleep looks now and then whether those that are awake get on.
//! The protocol is described in the crate's `README.md`.

use std::cell::RefCell;
use std::time::Duration;

use super::Local;
use super::helpers::Helpers;

/// After this the worker on watch looks for the first time: far more than waking a worker takes, and than most bodies
/// do.
const FIRST_NAP: Duration = Duration::from_millis(1);

/// So long it sleeps at a time when all goes well.
const LONGEST_NAP: Duration = Duration::from_millis(8);

/// The observations of a worker on watch.
pub(super) struct Watch {
    /// How much each worker had ended when it last looked.
    ends: RefCell<Box<[u64]>>,
}

impl Watch {
    /// Of so many workers.
    pub(super) fn new(workers: usize) -> Self {
        Self { ends: RefCell::new(vec![0; workers].into()) }
    }

    /// How many workers have ended anything since the last look.
    fn look(&self, helpers: &Helpers) -> usize {
        let mut before = self.ends.borrow_mut();
        let advanced = |(before, now): (&mut u64, u64)| std::mem::replace(before, now) != now;
        before.iter_mut().zip(helpers.ends()).map(advanced).filter(|&advanced| advanced).count()
    }
}

impl Local {
    /// Parks, not yet having done so since it fell asleep. Until it is woken; or, if it is the one on watch, until
    /// there is work that the workers awake do not come to.
    pub(super) fn park_or_watch(&self) {
        let graphs_run = !self.graphs.is_empty() && !self.presence().is_simulated;
        if !self.presence().sleep.begin_watch(self.index(), graphs_run) {
            return self.presence().sleep.park(self.index());
        }
        self.watch.look(&self.workers.helpers);
        let mut nap = FIRST_NAP;
        loop {
            if self.presence().sleep.park_for(self.index(), nap) {
                return self.presence().sleep.end_watch();
            }
            let advanced = self.watch.look(&self.workers.helpers);
            // Without any the realm may be idle, and needs no watch. With fewer than there are cores, some of those
            // awake may be waiting for what the realm knows nothing of, or are at long bodies.
            if advanced == 0 || (!self.presence().has_as_many_as_cores(advanced) && self.finds_work_on_watch()) {
                break;
            }
            nap = LONGEST_NAP.min(nap * 2);
        }
        self.presence().sleep.end_watch();
        if self.finds_work_on_watch() {
            self.presence().sleep.cancel(self.index());
            if self.rescues.get() {
                // What this one runs may wait for another that no worker comes to.
                self.presence().sleep.see_to_watch();
            }
        } else {
            self.presence().sleep.park(self.index());
        }
    }

    fn finds_work_on_watch(&self) -> bool {
        let has_work = self.has_work();
        self.rescues.set(!has_work && self.has_left_node());
        if !has_work && !self.rescues.get() {
            self.forget_graphs();
        }
        has_work || self.rescues.get()
    }
}
