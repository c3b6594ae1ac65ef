//! Waiting: a thread of the user's sleeps, a worker runs other operations until it may go on.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::{Local, Workers};
use crate::events::{After, Event};
use crate::fault::{Abandoned, Fault};
use crate::operation::body::OperationBody;
use crate::operation::breakdown::Whom;
use crate::operation::operations::Call;
use crate::operation::settle::settling;
use crate::sync::Parker;
use crate::threads;

/// A worker was asked to wait while so many bodies on its stack were waiting already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this worker is inside {depth} waits of bodies that run on top of one another: make bodies that wait async \
     (`spawn_async`), or allow more by `RealmBuilder::help_depth`"
)]
pub struct HelpTooDeep {
    /// The waits on the stack.
    pub depth: u32,
}

thread_local! {
    /// The parker of a thread of the program that waits. Each wait takes the one token that its event gives.
    static PARKER: RefCell<Arc<Parker>> = RefCell::default();
}

/// Unparks a thread.
pub(super) struct Unpark(pub(super) Arc<Parker>);

impl OperationBody for Unpark {
    fn call(self, _: Call<'_>) -> Result<(), Arc<Fault>> {
        self.0.unpark();
        Ok(())
    }

    fn abandon(self, _: &Arc<Fault>) {
        self.0.unpark();
    }
}

/// Wakes a worker.
pub(super) struct WakeWorker(pub(super) usize);

impl OperationBody for WakeWorker {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        call.operations.presence.sleep.wake(self.0);
        Ok(())
    }
}

impl Workers {
    pub(crate) fn wait(&self, event: Event) -> Result<(), Arc<Fault>> {
        if let Some(result) = self.operations.result(event) {
            return result;
        }
        assert!(!settling(), "a callback of `when` must not wait: it runs on the thread that triggers events");
        match self.local() {
            Some(local) => {
                let depth = local.depth.get();
                if depth >= self.waiting.help_depth {
                    return Err(Arc::new(Fault::new(HelpTooDeep { depth })));
                }
                self.operations.spawn_inline(After::follows(&[event]), WakeWorker(local.index()));
                self.waiting_for(event, || local.help_while(&mut || self.operations.result(event).is_none(), false));
            }
            None => self.waiting_for(event, || self.wait_outside(event))?,
        }
        self.operations.result(event).unwrap_or_else(|| Err(self.why_waiting_is_over()))
    }

    /// Waits on a thread that is no worker.
    fn wait_outside(&self, event: Event) -> Result<(), Arc<Fault>> {
        if self.wait_as_guest(event)? {
            return Ok(());
        }
        let parker = match self.presence().is_simulated {
            // Threads of a simulation share what is the system thread's own.
            true => Arc::default(),
            // A thread that ends has none of its own any more.
            false => PARKER.try_with(|parker| Arc::clone(&parker.borrow())).unwrap_or_default(),
        };
        let watch = self.operations.breakdowns.watch(Whom::Thread(Arc::clone(&parker)))?;
        self.operations.spawn_inline(After::follows(&[event]), Unpark(Arc::clone(&parker)));
        parker.park();
        drop(watch);
        if self.operations.breakdowns.first().is_some() {
            // The event's token, or that of the breakdown, may be still to come: it must not end another wait.
            let _ = PARKER.try_with(RefCell::take);
        }
        Ok(())
    }

    /// The fault of waits that have ended without what was waited for.
    fn why_waiting_is_over(&self) -> Arc<Fault> {
        self.operations.breakdowns.first().cloned().unwrap_or_else(|| Arc::new(Fault::new(Abandoned)))
    }

    pub(crate) fn wait_if_safe(&self, event: Event) -> bool {
        match self.local() {
            Some(local) if local.depth.get() > 0 || local.nested.get() > 0 => local.help_with_ready(event),
            // A failure of the event is for others to see.
            _ => drop(self.wait(event)),
        }
        self.operations.result(event).is_some()
    }

    pub(crate) fn help_while(&self, mut condition: impl FnMut() -> bool) -> bool {
        match self.local() {
            _ if !condition() => true,
            _ if settling() => false,
            Some(local) if local.depth.get() >= self.waiting.help_depth => false,
            Some(local) => self.waiting(|| local.help_while(&mut condition, true)),
            None => self.waiting(|| self.sleep_while(&mut condition)),
        }
    }

    /// Waits, and records that.
    pub(super) fn waiting<R>(&self, wait: impl FnOnce() -> R) -> R {
        match &self.operations.profiler {
            None => wait(),
            Some(profiler) => profiler.while_waiting(wait),
        }
    }

    /// Waits for an event, and records that.
    fn waiting_for<R>(&self, event: Event, wait: impl FnOnce() -> R) -> R {
        if let Some(profiler) = &self.operations.profiler {
            profiler.awaited(event.into());
        }
        self.waiting(wait)
    }

    /// Sleeps in ever longer steps, to a millisecond: a thread outside is not worth a wake-up after each operation.
    fn sleep_while(&self, condition: &mut dyn FnMut() -> bool) -> bool {
        let mut nap = FIRST_NAP;
        while condition() {
            if self.operations.is_waiting_over() {
                return false;
            }
            nap = sleep_for(nap);
        }
        true
    }

    /// Waits, on a thread that is no worker, until all workers sleep; also after a breakdown.
    pub(crate) fn wait_until_all_sleep(&self) {
        let mut nap = FIRST_NAP;
        while !self.presence().sleep.all_asleep() && !self.operations.is_stopping() {
            nap = sleep_for(nap);
        }
    }

    /// An operation has ended on this worker: conditions may have changed.
    #[inline]
    pub(crate) fn after_run(&self, worker: usize) {
        if self.helpers.changed_by(worker) {
            self.wake_resting();
        }
    }

    pub(crate) fn nudge(&self) {
        if self.helpers.changed_outside() {
            self.wake_resting();
        }
    }

    #[cold]
    fn wake_resting(&self) {
        for worker in self.helpers.resting() {
            self.presence().sleep.wake(worker);
        }
    }
}

const FIRST_NAP: Duration = Duration::from_micros(20);

/// Sleeps; gives how long to sleep the next time.
fn sleep_for(nap: Duration) -> Duration {
    threads::nap(nap);
    (nap * 2).min(Duration::from_millis(1))
}

impl Local {
    /// Runs operations while `condition` holds; false if it still does, because the realm stops. `on_any_end` tells
    /// that the end of any operation may change the condition; otherwise a thread wakes this worker for it.
    fn help_while(&self, condition: &mut dyn FnMut() -> bool, on_any_end: bool) -> bool {
        self.depth.set(self.depth.get() + 1);
        let met = loop {
            if !condition() {
                break true;
            }
            if self.operations().is_waiting_over() {
                break false;
            }
            match self.find() {
                Some(found) => {
                    self.run(found);
                    self.operations().take_turn();
                }
                None => self.rest(condition, on_any_end),
            }
        };
        self.depth.set(self.depth.get() - 1);
        // The body that waited may go on for long: what was kept to be run next is for other workers.
        self.queue.release_next();
        met
    }

    /// Runs operations until the event triggers or none is ready.
    fn help_with_ready(&self, event: Event) {
        let depth = self.depth.get();
        if depth >= self.workers.waiting.help_depth {
            return;
        }
        self.depth.set(depth + 1);
        while self.operations().result(event).is_none() && !self.operations().is_waiting_over() {
            let Some(found) = self.find() else { break };
            self.run(found);
        }
        self.depth.set(depth);
        self.queue.release_next();
    }

    /// Searches, then sleeps, until there is work or the condition no longer holds.
    fn rest(&self, condition: &mut dyn FnMut() -> bool, on_any_end: bool) {
        self.presence().sleep.begin_search();
        self.workers.begin_polling();
        if let Some(found) = self.search_while(condition, || self.find()) {
            self.end_search();
            self.run(found);
            return;
        }
        if on_any_end {
            self.workers.helpers.begin_rest(self.index());
        }
        self.workers.rest();
        self.presence().sleep.fall_asleep(self.index());
        let may_go_on = self.has_work() || self.operations().is_waiting_over() || !condition();
        if may_go_on || self.workers.idle_found_message() || self.workers.idle_found_work() {
            self.presence().sleep.cancel(self.index());
        } else {
            self.forget_graphs();
            self.park();
        }
        if on_any_end {
            self.workers.helpers.end_rest(self.index());
        }
        self.end_search();
    }
}
