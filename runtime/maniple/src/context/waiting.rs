//! How many operations of a task are in flight, and the waits for fewer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use maniple_realm::locks::MutexGuard;
use maniple_realm::{Event, EventStatus, UserEvent};

use super::ContextState;
use crate::support::error::Result;

/// The waits of a task for operations and forks that it has launched to end, at most one of each kind.
#[derive(Default)]
pub(super) struct Waiter {
    /// For room for the next launch.
    room: Option<UserEvent>,
    /// For fewer than so many operations in flight.
    fewer: Option<(usize, UserEvent)>,
    /// For no fork in flight.
    no_forks: Option<UserEvent>,
    /// For nothing in flight: the end of a forked task, or of what was launched for another node.
    drained: Option<Waker>,
    /// Triggers when that has come. Poisoned if the machine ends before: what was not mapped then never ends.
    end: Option<UserEvent>,
    /// The context itself, for no fork in flight: its task is gone.
    kept: Option<Arc<ContextState>>,
}

impl Waiter {
    pub(super) fn is_nobody(&self) -> bool {
        self.room.is_none()
            && self.fewer.is_none()
            && self.no_forks.is_none()
            && self.drained.is_none()
            && self.kept.is_none()
    }
}

/// A launching task that has nothing to do goes on when so large a part of its operations have ended, before half of
/// them have: one in so many.
const ROOM: usize = 80;

impl ContextState {
    /// Counts one more operation in flight.
    pub(crate) fn operation_begins(&self) {
        self.in_flight.begin_operation();
    }

    /// Counts so many more operations in flight.
    pub(crate) fn operations_begin(&self, operations: usize) {
        self.in_flight.begin_operations(operations);
    }

    /// A replay wants no more operations than this in flight.
    pub(crate) fn set_window(&self, operations: usize) {
        self.replay_window.store(operations, Ordering::Relaxed);
        // A launching task that has filled the window of an earlier replay may have all that this one needs to go on.
        self.wake_waiter();
    }

    /// How many operations may be in flight.
    fn window(&self) -> usize {
        self.window.min(self.replay_window.load(Ordering::Relaxed))
    }

    /// A launching task that has to wait goes on when fewer than this are in flight. The launches of a run that has not
    /// come to its end are always fewer.
    fn few(&self) -> usize {
        self.window().div_ceil(2)
    }

    /// Helps with other work while too many operations are in flight. If this thread has nothing to help with and must
    /// not sleep, because another task waits below this one on its stack, the limit gives way; so it does while the
    /// task has data mapped, which it could not release while it waits.
    ///
    /// # Errors
    /// If the machine has broken down. Then the operation is refused, and with it all that come after it in the task,
    /// whether or not there is room for them: a task that has handled the failure would find values without the effects
    /// of an operation that was refused.
    #[inline]
    pub(crate) fn throttle(self: &Arc<Self>) -> Result<()> {
        if self.core.realm().is_forked() {
            // Nothing that it could wait for comes here.
            return self.core.check_whole();
        }
        if self.in_flight.count() >= self.window() && self.mappings_in_use() == 0 {
            let realm = self.core.realm();
            match self.depth {
                0 => self.core.while_top_level_waits(self.is_shared, || {
                    // While workers have nothing to do, it is time for the next launches.
                    let has_room = || {
                        let window = self.window();
                        self.in_flight.count() < window - window / ROOM
                    };
                    let is_full = || self.in_flight.count() >= self.few();
                    realm.work_while(is_full, has_room) || realm.wait_if_safe(self.has_few())
                }),
                _ => realm.wait_if_safe(self.has_few()),
            };
        }
        self.core.check_whole()
    }

    /// Triggers when few operations are in flight.
    fn has_few(&self) -> Event {
        let mut waiter = self.waiter.lock();
        let event = waiter.room.get_or_insert_with(|| self.core.realm().user_event()).event();
        self.waits(waiter);
        event
    }

    /// Triggers when everything that was launched has ended.
    pub(crate) fn drained(&self) -> Event {
        self.fewer_than(1)
    }

    /// Triggers when fewer than so many operations are in flight. One caller at a time: the launching task.
    pub(super) fn fewer_than(&self, limit: usize) -> Event {
        let mut waiter = self.waiter.lock();
        let (strictest, event) = waiter.fewer.get_or_insert_with(|| (limit, self.core.realm().user_event()));
        *strictest = (*strictest).min(limit);
        let event = event.event();
        self.waits(waiter);
        event
    }

    /// Triggers when no fork is in flight.
    pub(crate) fn no_forks(&self) -> Event {
        if self.in_flight.forks() == 0 {
            return Event::NONE;
        }
        let mut waiter = self.waiter.lock();
        let event = waiter.no_forks.get_or_insert_with(|| self.core.realm().user_event()).event();
        self.waits(waiter);
        event
    }

    /// Whether everything that was launched has ended; if not, the waker is told when it has. Then no operation or fork
    /// that has been in flight touches the context any more without a reference of its own. So it is when the machine
    /// ends after a breakdown and no fork is in flight: operations that were not mapped never end.
    pub(crate) fn poll_drained(&self, waker: &Waker) -> Poll<()> {
        if self.in_flight.count() == 0 {
            return Poll::Ready(());
        }
        let mut waiter = self.waiter.lock();
        if self.has_machine_ended(&waiter) && self.in_flight.forks() == 0 {
            return Poll::Ready(());
        }
        waiter.drained = Some(waker.clone());
        let in_flight = self.in_flight.wait();
        if in_flight == 0 {
            waiter.drained = None;
            let end = waiter.end.take();
            drop(waiter);
            end.into_iter().for_each(|end| self.core.realm().trigger(end));
            return Poll::Ready(());
        }
        // The last operation or fork to end wakes the waiter, which must not go on before that: the thread that ends it
        // may be about to look at the context. Forks end whatever happens.
        if waiter.end.is_none() && in_flight > self.in_flight.forks() {
            let end = *waiter.end.insert(self.core.realm().user_event());
            drop(waiter);
            let waker = waker.clone();
            self.core.realm().when(&end.event(), move |outcome| {
                if outcome.is_err() {
                    waker.wake();
                }
            });
        }
        Poll::Pending
    }

    /// Whether the machine has ended during a wait for nothing to be in flight.
    pub(super) fn has_machine_ended(&self, waiter: &Waiter) -> bool {
        let status = waiter.end.map(|end| self.core.realm().status(end.event()));
        matches!(status, Some(EventStatus::Poisoned(_)))
    }

    /// A wait begins now.
    pub(super) fn waits(&self, waiter: MutexGuard<'_, Waiter>) {
        self.in_flight.wait();
        drop(waiter);
        // The last operation may have ended before we were seen waiting.
        self.wake_waiter();
    }

    pub(crate) fn operations_retired(&self, operations: usize) {
        if self.in_flight.end_operations(operations) {
            self.wake_waiter();
        }
    }

    /// A fork is counted off by a thread that has a reference to the context.
    pub(crate) fn fork_ended(&self) {
        if self.in_flight.end_fork() {
            self.wake_waiter();
        }
    }

    pub(super) fn wake_waiter(&self) {
        let mut waiter = self.waiter.lock();
        let (count, forks) = (self.in_flight.count(), self.in_flight.forks());
        let room = waiter.room.take_if(|_| count < self.few());
        let fewer = waiter.fewer.take_if(|(limit, _)| count < *limit).map(|(_, event)| event);
        let no_forks = waiter.no_forks.take_if(|_| forks == 0);
        let is_over = count == 0 || (forks == 0 && self.has_machine_ended(&waiter));
        let drained = waiter.drained.take_if(|_| is_over);
        let end = waiter.end.take_if(|_| count == 0);
        // The caller has a reference of its own.
        let _kept = waiter.kept.take_if(|_| forks == 0);
        if waiter.is_nobody() {
            self.in_flight.wait_no_more();
        }
        drop(waiter);
        room.into_iter().chain(fewer).chain(no_forks).chain(end).for_each(|event| self.core.realm().trigger(event));
        if let Some(waker) = drained {
            waker.wake();
        }
    }

    /// The task is gone. Forks that are in flight point to this context without a reference: the last of them lets go
    /// of it.
    pub(super) fn keep_for_forks(self: &Arc<Self>) {
        if self.in_flight.forks() > 0 {
            let mut waiter = self.waiter.lock();
            waiter.kept = Some(Arc::clone(self));
            self.waits(waiter);
        }
    }
}
