//! The local queue of a worker: the waiting work that belongs to its thread alone, and the queueing of ready work.

use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::context::Worker;
use super::job::{Job, JobHead, JobTable};
use super::operations::{Operations, Slot};
use crate::events::slot::{SlotCache, SlotHeader};
use crate::scheduler::destination::Destination;
use crate::scheduler::presence::LENT;
use crate::scheduler::queue::{OwnDeques, Queued, Taker};
use crate::scheduler::{Class, Rank};

/// The work that waits for one worker, on its own thread.
pub(crate) struct LocalQueue {
    pub(crate) operations: Arc<Operations>,
    pub(crate) worker: Worker,
    pub(crate) deques: OwnDeques<Job>,
    pub(crate) slots: RefCell<SlotCache>,
    /// An operation that the end of the last one made ready, to be run next without going through a queue; 0 for none.
    pub(crate) next: Cell<u32>,
    /// The same of a job.
    pub(crate) next_job: Cell<Option<Job>>,
}

thread_local! {
    /// That of the worker that this thread is.
    static CURRENT: Cell<*const LocalQueue> = const { Cell::new(ptr::null()) };
    /// The slots kept by a thread that is no worker.
    static OUTSIDE: RefCell<OutsideSlots> = const { RefCell::new(OutsideSlots { operations: None, slots: None }) };
}

/// Makes this thread another worker, or none. The caller sees to it that the queue is there until this is called again.
pub(crate) fn set_current(queue: *const LocalQueue) {
    CURRENT.set(queue);
}

/// A cache of slots of the realm that an outside thread used last.
struct OutsideSlots {
    /// Weak, yet its address cannot come to mean another realm: the allocation stays.
    operations: Option<Weak<Operations>>,
    slots: Option<SlotCache>,
}

impl OutsideSlots {
    #[inline]
    fn of(&mut self, operations: &Operations) -> &mut SlotCache {
        if !self.operations.as_ref().is_some_and(|kept| ptr::eq(kept.as_ptr(), operations)) {
            self.give_back();
            self.operations = Some(operations.weak());
        }
        self.slots.get_or_insert_default()
    }

    fn give_back(&mut self) {
        if let (Some(operations), Some(slots)) =
            (self.operations.take().and_then(|operations| operations.upgrade()), &mut self.slots)
        {
            slots.give_back(&operations.table);
        }
        self.slots = None;
    }
}

impl Drop for OutsideSlots {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Operations {
    /// That of the worker that this thread is, if it is one of this realm's.
    #[inline]
    pub(crate) fn local(&self) -> Option<&LocalQueue> {
        // SAFETY: a worker sets `CURRENT` to its own and resets it before that goes away; the reference given out
        // is bound to `self`, which it keeps alive, and does not leave the thread as a `LocalQueue` is not `Sync`.
        let local = unsafe { CURRENT.get().as_ref() }?;
        ptr::eq(Arc::as_ptr(&local.operations), self).then_some(local)
    }

    /// A slot for a new operation.
    #[inline]
    pub(crate) fn take_slot(&self) -> u32 {
        match self.local() {
            Some(local) => local.slots.borrow_mut().take(&self.table),
            None => self.with_outside_slots(|slots| slots.take(&self.table)),
        }
    }

    /// Frees a slot whose event has triggered.
    #[inline]
    pub(crate) fn put_slot(&self, index: u32) {
        match self.local() {
            Some(local) => local.slots.borrow_mut().put(&self.table, index),
            None => self.with_outside_slots(|slots| slots.put(&self.table, index)),
        }
    }

    /// Uses this thread's cache of slots; or one for the moment, when the thread is ending, or is just letting go of
    /// another realm.
    #[inline]
    fn with_outside_slots<R>(&self, mut using: impl FnMut(&mut SlotCache) -> R) -> R {
        let used = OUTSIDE.try_with(|outside| Some(using(outside.try_borrow_mut().ok()?.of(self))));
        used.ok().flatten().unwrap_or_else(|| {
            let mut slots = SlotCache::default();
            let result = using(&mut slots);
            slots.give_back(&self.table);
            result
        })
    }

    /// Queues a ready operation where its target wants it, and wakes a worker for it.
    #[inline]
    pub(crate) fn enqueue(&self, index: u32, slot: &Slot) {
        // SAFETY: the caller has made the slot ready, and owns it until it is queued.
        let &SlotHeader { class, priority, .. } = unsafe { slot.header() };
        let rank = Rank::new(class, priority);
        match Destination::decode(slot.target.load(Ordering::Relaxed)) {
            Destination::Any if priority == 0 => match self.local() {
                Some(local) if local.keep_next(class, index) => {}
                Some(local) => {
                    local.deques.push(class, index);
                    self.announce_pushed();
                }
                None => {
                    self.queues.push_shared(class, index);
                    self.announce_pushed();
                }
            },
            Destination::Near(worker) if priority == 0 => match self.local() {
                Some(local) if local.worker.index == worker && local.keep_next(class, index) => {}
                Some(local) if local.worker.index == worker => {
                    local.deques.push(class, index);
                    self.announce_pushed();
                }
                _ => {
                    self.queues.push_inbox(worker, class, index);
                    if !self.presence.sleep.wake(worker) {
                        self.announce_pushed();
                    }
                }
            },
            Destination::Any | Destination::Near(_) => {
                self.queues.push_by_rank(rank, index);
                self.announce_queued();
            }
            Destination::On(worker) => {
                self.queues.push_pinned(worker, class, priority, index);
                if !self.presence.sleep.wake(worker) && worker == LENT && self.presence.seat.is_unattended() {
                    self.presence.seat.give_back();
                }
            }
            Destination::Group(group) => {
                let group = self.queues.push_group(group, rank, index);
                let (members, presence) = (group.members(), &self.presence);
                let is_woken = members.iter().any(|&worker| presence.sleep.wake(worker));
                if !is_woken && members.contains(&LENT) && presence.seat.is_unattended() {
                    presence.seat.give_back();
                }
            }
        }
    }

    /// The oldest job of some queue, if it is of this kind.
    pub(crate) fn steal_job(&self, table: &'static JobTable) -> Option<NonNull<JobHead>> {
        match self.queues.steal_oldest_job()?.into_raw_of(table) {
            Ok(head) => Some(head),
            Err(other) => {
                self.queue_job(other);
                None
            }
        }
    }

    /// Queues a job with the worker that this thread is, or for any.
    #[inline]
    pub(crate) fn queue_job(&self, job: Job) {
        match self.local() {
            Some(local) => local.queue_job(job),
            None if self.is_stopping() => {}
            None => {
                self.queues.push_shared_job(job);
                self.announce_queued();
            }
        }
    }
}

impl LocalQueue {
    /// That of a worker with these deques, in which nothing waits.
    pub(crate) fn new(operations: Arc<Operations>, worker: Worker, deques: OwnDeques<Job>) -> Self {
        let (next, next_job) = (Cell::new(0), Cell::new(None));
        Self { operations, worker, deques, slots: RefCell::default(), next, next_job }
    }

    /// Keeps the operation to run it next, when it may overtake whatever is queued.
    #[inline]
    pub(crate) fn keep_next(&self, class: Class, index: u32) -> bool {
        let keep = self.worker.completing.get()
            && self.next.get() == 0
            && (class == Class::Runtime || !self.deques.has_runtime_work());
        if keep {
            self.next.set(index);
        }
        keep
    }

    /// Queues what was kept to run next, because something else comes first.
    #[inline]
    pub(crate) fn release_next(&self) {
        while let Some(next) = self.take_next() {
            self.release(next);
        }
    }

    pub(crate) fn release(&self, kept: Queued<Job>) {
        match kept {
            Queued::Operation(index) => {
                // SAFETY: the kept operation is ready and this worker's.
                let class = unsafe { self.operations.table.slot(index).header() }.class;
                self.deques.push(class, index);
            }
            Queued::Job(job) => self.deques.push_job(job),
        }
        self.operations.presence.sleep.announce();
    }

    /// This worker, as one that takes something from the queues.
    #[inline]
    pub(crate) fn taker(&self) -> Taker<'_, Job, impl Fn(u32)> {
        let table = &self.operations.table;
        Taker { worker: self.worker.index, own: &self.deques, prefetch: |index| table.prefetch(index) }
    }

    /// Takes the work that was kept to be run next. If that is an operation and a job, they take turns with the queues.
    #[inline]
    pub(crate) fn take_next(&self) -> Option<Queued<Job>> {
        match self.next.replace(0) {
            0 => self.next_job.take().map(Queued::Job),
            index => Some(Queued::Operation(index)),
        }
    }

    /// Queues a job with this worker; or keeps it to run it next.
    #[inline]
    pub(crate) fn queue_job(&self, job: Job) {
        let kept = self.next_job.take();
        if self.worker.completing.get() && kept.is_none() {
            self.next_job.set(Some(job));
            return;
        }
        self.next_job.set(kept);
        self.deques.push_job(job);
        self.operations.announce_queued();
    }
}
