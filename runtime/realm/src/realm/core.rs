//! What all threads of a realm share, and how it ends.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::locks::{Mutex, RwLock};

use super::breakdown::Breakdowns;
use crate::barrier::Barriers;
use crate::event::faults::Faults;
use crate::event::future::IdleWaiters;
use crate::event::slot::{Kind, Slot, Table};
use crate::event::word::Phase;
use crate::event::{After, AlreadyTriggered, Event, EventStatus, UserEvent};
use crate::fault::{self, Abandoned, Fault};
use crate::graph::registry::Registry;
use crate::machine::{Machine, ProcessorId};
use crate::memory::MemoryPool;
use crate::net::Polled;
use crate::operation::job::Job;
use crate::operation::settle::settling;
use crate::profile::Profiler;
use crate::scheduler::presence::Presence;
use crate::scheduler::queue::{OwnDeques, Queues};
use crate::threads::{Thread, simulated};
use crate::worker::Local;
use crate::worker::helpers::Helpers;

/// What all threads of a realm share.
pub(crate) struct Core {
    this: Weak<Core>,
    /// Unlike any other realm's of this process.
    pub(crate) id: u32,
    pub(crate) table: Table,
    /// The faults of poisoned events, and those that have reached pending operations.
    pub(crate) faults: Faults,
    /// Operations that waited for events to wake futures that are gone.
    pub(crate) idle_waiters: IdleWaiters,
    pub(crate) queues: Queues<Job>,
    pub(crate) graphs: Registry,
    pub(crate) presence: Presence,
    pub(crate) helpers: Helpers,
    /// The worker whose [place](Presence::seat) goes from hand to hand, once it has been lent.
    pub(crate) lent: AtomicPtr<Local>,
    /// Whether a thread of the program's may do a worker's work while it waits: where one more than the workers would take the core of one.
    pub(crate) lends_place: bool,
    /// The stack that such a thread must have left, in bytes.
    pub(crate) stack_of_guests: usize,
    /// How many helps may nest on one stack.
    pub(crate) help_depth: u32,
    /// Whether its workers are threads of [a simulation](crate::simulation).
    pub(crate) is_simulated: bool,
    pub(crate) machine: Machine,
    pub(crate) pools: Vec<Arc<MemoryPool>>,
    pub(crate) profiler: Option<Profiler>,
    pub(crate) barriers: Barriers,
    /// Asked for work when nobody has any: see [`Realm::on_idle`](crate::Realm::on_idle).
    pub(super) idle: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Called by a worker before it sleeps: see [`Realm::on_rest`](crate::Realm::on_rest).
    pub(super) rest: OnceLock<fn()>,
    /// What workers look at besides queues: see [`Realm::poll`](crate::Realm::poll).
    pub(super) polled: OnceLock<Arc<dyn Polled>>,
    pub(crate) breakdowns: Breakdowns,
    /// Why what is pending is discarded, if it is: see [`Realm::shut_down`](crate::Realm::shut_down).
    discarding: OnceLock<Arc<Fault>>,
    stopping: AtomicBool,
    /// Workers whose threads have not ended.
    live: AtomicUsize,
    /// Held for reading by those who touch slots without a handle that keeps the realm up; for writing while the last
    /// worker begins to abandon what is pending.
    pub(crate) gate: RwLock<()>,
}

/// What the builder decides of a [`Core`].
pub(super) struct Setting {
    pub(super) machine: Machine,
    pub(super) profiler: Option<Profiler>,
    pub(super) help_depth: u32,
    pub(super) stack_size: usize,
    /// How many cores it has, if that is not what the system says.
    pub(super) cores: Option<usize>,
}

impl Core {
    /// A worker that is about to park asks for work in the name of all, if all sleep.
    pub(crate) fn idle_found_work(&self) -> bool {
        let asks = |ask: &(dyn Fn() -> bool + Send + Sync)| {
            self.unheard(|| "looking for work that waits for room".to_owned(), ask).unwrap_or(false)
        };
        self.idle.get().is_some_and(|ask| self.presence.sleep.all_asleep() && asks(ask))
    }

    /// A worker begins to search: it looks at the network meanwhile.
    #[inline]
    pub(crate) fn begin_polling(&self) {
        if let Some(polled) = self.polled.get() {
            polled.begin();
        }
    }

    /// Whether workers look at the network.
    #[inline]
    pub(crate) fn is_polling(&self) -> bool {
        self.polled.get().is_some()
    }

    /// Receives what the network has at hand; whether that was anything.
    #[inline]
    pub(crate) fn poll(&self) -> bool {
        let poll = |polled: &Arc<dyn Polled>| {
            self.unheard(|| "receiving what other nodes sent".to_owned(), || polled.poll()).unwrap_or(false)
        };
        self.polled.get().is_some_and(poll)
    }

    /// The same, between two other things: if that costs next to nothing.
    #[inline]
    pub(crate) fn poll_in_passing(&self) -> bool {
        self.polls_cheaply() && self.poll()
    }

    /// Whether to look costs next to nothing.
    #[inline]
    pub(crate) fn polls_cheaply(&self) -> bool {
        self.polled.get().is_some_and(|polled| polled.is_cheap())
    }

    /// A worker that is about to park leaves the network to others, if all sleep; whether something has come just then.
    pub(crate) fn idle_found_message(&self) -> bool {
        let end = |polled: &Arc<dyn Polled>| {
            self.presence.sleep.all_asleep()
                && self.unheard(|| "receiving what other nodes sent".to_owned(), || polled.end()).unwrap_or(false)
        };
        self.polled.get().is_some_and(end)
    }

    /// In a simulation, lets others have a turn. The caller holds no lock.
    #[inline]
    pub(crate) fn take_turn(&self) {
        if self.is_simulated && !settling() {
            simulated::turn();
        }
    }

    /// A worker, which is this thread, has run out of work.
    pub(crate) fn rest(&self) {
        if let Some(rest) = self.rest.get() {
            rest();
        }
    }

    /// The shared part of a realm whose workers serve these processors and own these deques.
    pub(super) fn new(setting: Setting, processors: &[ProcessorId], own: &[OwnDeques<Job>]) -> Arc<Self> {
        /// Tells the realms of a process apart, so that a handle to the one is not used on the other.
        static REALMS: AtomicU32 = AtomicU32::new(0);
        let pools = MemoryPool::for_machine(&setting.machine);
        let is_simulated = simulated::is_inside();
        let cores = setting.cores.or_else(|| std::thread::available_parallelism().ok().map(usize::from));
        let cores = cores.filter(|_| !is_simulated).unwrap_or(processors.len());
        if let Some(profiler) = &setting.profiler {
            pools.iter().for_each(|pool| pool.record_to(profiler.clone()));
        }
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            id: REALMS.fetch_add(1, Ordering::Relaxed),
            table: Table::new(),
            faults: Faults::default(),
            idle_waiters: IdleWaiters::default(),
            queues: Queues::new(own),
            graphs: Registry::default(),
            helpers: Helpers::new(processors.len()),
            lent: AtomicPtr::new(ptr::null_mut()),
            lends_place: processors.len() >= cores,
            stack_of_guests: setting.stack_size / 4 * 3,
            help_depth: setting.help_depth,
            presence: Presence::new(processors, cores),
            is_simulated,
            pools,
            machine: setting.machine,
            profiler: setting.profiler,
            barriers: Barriers::default(),
            idle: OnceLock::new(),
            rest: OnceLock::new(),
            polled: OnceLock::new(),
            breakdowns: Breakdowns::default(),
            discarding: OnceLock::new(),
            stopping: AtomicBool::new(false),
            live: AtomicUsize::new(processors.len()),
            gate: RwLock::new(()),
        })
    }

    /// So many workers' threads could not be started: they count as ended.
    pub(super) fn never_started(&self, workers: usize) {
        self.live.fetch_sub(workers, Ordering::AcqRel);
    }

    pub(crate) fn weak(&self) -> Weak<Core> {
        self.this.clone()
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether nobody waits for anything any more.
    #[inline]
    pub(crate) fn is_waiting_over(&self) -> bool {
        self.is_stopping() || self.breakdowns.first().is_some()
    }

    /// An event that has triggered, poisoned.
    pub(crate) fn poisoned_event(&self, fault: impl Into<Arc<Fault>>) -> Event {
        let user = self.user_event();
        self.first_trigger(self.poison(user, fault.into()));
        user.event()
    }

    /// Nobody triggers an event of the realm's own before the realm does, but for the realm's own end: see
    /// [`Realm::shut_down`](crate::Realm::shut_down).
    pub(crate) fn first_trigger(&self, triggered: Result<(), AlreadyTriggered>) {
        if let Err(error) = triggered {
            assert!(self.discarding().is_some(), "{error}");
        }
    }

    pub(crate) fn user_event(&self) -> UserEvent {
        let index = self.take_slot();
        let slot = self.table.slot(index);
        // SAFETY: the slot was just taken.
        unsafe { slot.header_mut() }.kind = Kind::Event;
        slot.word.promise();
        UserEvent { event: slot.pending_event(index), realm: self.id }
    }

    /// The slot of a user event.
    ///
    /// # Panics
    /// If it is another realm's, where the slot may be in use by anything.
    fn user_slot(&self, user: UserEvent) -> &Slot {
        assert_eq!(user.realm, self.id, "{user:?} belongs to another realm: trigger it there");
        self.table.slot(user.event.slot())
    }

    pub(crate) fn trigger(&self, user: UserEvent) -> Result<(), AlreadyTriggered> {
        let event = user.event();
        let slot = self.user_slot(user);
        let head = slot.word.claim_and_trigger(event.generation(), false).ok_or(AlreadyTriggered { event })?;
        self.note_trigger(event);
        self.after_trigger(event.slot(), event.generation(), false, head);
        Ok(())
    }

    pub(crate) fn poison(&self, user: UserEvent, fault: Arc<Fault>) -> Result<(), AlreadyTriggered> {
        let event = user.event();
        let slot = self.user_slot(user);
        if !slot.word.claim(event.generation()) {
            return Err(AlreadyTriggered { event });
        }
        self.note_trigger(event);
        self.complete(event.slot(), slot, Err(fault));
        Ok(())
    }

    /// Why bodies that become ready are not run any more, if they are not.
    #[inline]
    pub(crate) fn discarding(&self) -> Option<&Arc<Fault>> {
        self.discarding.get()
    }

    /// Poisons, on a thread that is no worker, all that is pending, and tells bodies so instead of running them.
    fn discard_pending(&self, why: &Arc<Fault>) {
        let _ = self.discarding.set(Arc::clone(why));
        // Whoever is told may have begun something else.
        while self.break_promises(why) {
            self.wait_until_all_sleep();
        }
    }

    /// Poisons the user events that nobody has triggered: all that is pending waits for one of them, or for what does. Whether there were any.
    fn break_promises(&self, why: &Arc<Fault>) -> bool {
        let promised = self.table.all().filter(|(_, slot)| slot.word.claim_promised());
        promised.map(|(index, slot)| self.complete(index, slot, Err(Arc::clone(why)))).count() > 0
    }

    #[inline]
    fn note_trigger(&self, event: Event) {
        if let Some(profiler) = &self.profiler {
            profiler.triggered(event.into());
        }
    }

    pub(crate) fn trigger_after(&self, user: UserEvent, after: After<'_>) -> Result<(), AlreadyTriggered> {
        let event = user.event();
        let slot = self.user_slot(user);
        if !slot.word.claim(event.generation()) {
            return Err(AlreadyTriggered { event });
        }
        if let Some(profiler) = &self.profiler {
            profiler.came_after(event.into(), after.names());
        }
        if let Some(ready) = self.arm(event.slot(), slot, after) {
            // Nothing is left to wait for, so it happens because somebody says so.
            self.note_trigger(event);
            self.trigger_slot(event.slot(), slot, ready.poisoned);
        }
        Ok(())
    }

    pub(crate) fn status(&self, event: Event) -> EventStatus {
        match self.phase(event) {
            Phase::Pending => EventStatus::Pending,
            Phase::Triggered => EventStatus::Triggered,
            Phase::Poisoned => EventStatus::Poisoned(self.fault_of(event)),
            Phase::Past => self.faults.get(event).map_or(EventStatus::Triggered, EventStatus::Poisoned),
        }
    }

    /// The result of an event that has triggered.
    pub(crate) fn result(&self, event: Event) -> Option<Result<(), Arc<Fault>>> {
        match self.status(event) {
            EventStatus::Pending => None,
            EventStatus::Triggered => Some(Ok(())),
            EventStatus::Poisoned(fault) => Some(Err(fault)),
        }
    }

    /// A worker's thread is about to end; the last one abandons what is pending.
    pub(crate) fn worker_ended(&self) {
        if self.live.fetch_sub(1, Ordering::AcqRel) == 1 {
            // What was discarded is not pending, and handles may be left.
            if self.discarding().is_none() {
                drop(self.gate.write());
                self.abandon_pending();
            }
            if let Some(profiler) = &self.profiler {
                profiler.end();
            }
        }
    }

    /// Drops the bodies that never ran, telling those who wait for them.
    fn abandon_pending(&self) {
        let fault = Arc::new(Fault::new(Abandoned));
        for (_, slot) in self.table.all() {
            // SAFETY: the workers are gone, no handle is left, and who has none stops at the gate: nobody else uses
            // slots.
            let header = unsafe { slot.header_mut() };
            let kind = std::mem::take(&mut header.kind);
            if let (Kind::Inline | Kind::Queued, Some(table)) = (kind, header.body.take()) {
                // SAFETY: the slot's kind says that its body is there; the kind was taken away just now.
                let abandon = || unsafe { (table.abandon)(slot.body(), &fault) };
                // A destructor that panics has nobody to tell.
                let _ = fault::catch(abandon);
            }
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // What was spawned through a borrowed handle after the workers' end.
        self.abandon_pending();
    }
}

/// Stops the realm when the last user handle goes away.
pub(crate) struct Keeper {
    core: Arc<Core>,
    threads: Mutex<Vec<Thread>>,
}

impl Keeper {
    pub(super) fn new(core: Arc<Core>) -> Arc<Self> {
        Arc::new(Self { core, threads: Mutex::default() })
    }

    pub(super) fn add(&self, thread: Thread) {
        self.threads.lock().push(thread);
    }
}

impl Keeper {
    /// See [`Realm::shut_down`](crate::Realm::shut_down).
    pub(super) fn shut_down(&self, why: &Arc<Fault>) {
        self.core.discard_pending(why);
        self.stop();
    }

    /// Has the workers end, and waits for them.
    fn stop(&self) {
        if let Some(profiler) = &self.core.profiler {
            profiler.write_thread();
        }
        self.core.stopping.store(true, Ordering::SeqCst);
        self.core.presence.sleep.wake_all();
        self.core.presence.seat.call_back();
        if self.core.local().is_some() {
            // The last handle was dropped by a body: its worker cannot wait for itself.
            return;
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        threads.into_iter().for_each(Thread::join);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}
