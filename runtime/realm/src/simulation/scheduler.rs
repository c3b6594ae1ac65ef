//! The scheduler, which chooses the next turn: coroutines, one for each thread, and a seed.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::Ordering;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use fastrand::Rng;
use rustc_hash::FxHasher;

use super::{Disk, Hang, Report};
use crate::fault;
use crate::net::loopback::Network;
use crate::operation::task;
use crate::threads::simulated::{self, DiskUse, Home, NewThread, Pause};
use crate::worker::{self, Local};

type Body = Coroutine<(), Pause, ()>;

/// A thread that is not running.
struct Sleeper {
    name: String,
    process: Process,
    /// Whether it is the first of its process.
    is_first: bool,
    body: Body,
    pause: Pause,
    /// The place where it waits, if that is captured.
    place: Option<Backtrace>,
    state: ThreadState,
}

impl Sleeper {
    fn waits_for(&self) -> &'static str {
        match self.pause {
            Pause::Turn => "its turn",
            Pause::Nap => "time to pass",
            Pause::Until(what, _) => what,
        }
    }
}

/// The state that the crate keeps for each thread, and that a thread would find changed after a turn of another one.
struct ThreadState {
    worker: *const Local,
    catching: u32,
    is_stranded: bool,
}

impl ThreadState {
    const NEW: Self = Self { worker: ptr::null(), catching: 0, is_stranded: false };

    /// Puts this in place of what there is.
    fn exchange(self) -> Self {
        Self {
            worker: worker::exchange_current(self.worker),
            catching: fault::exchange_catching(self.catching),
            is_stranded: task::exchange_stranded(self.is_stranded),
        }
    }
}

/// A process: a thread of the program, and all threads that were started by it or by others of the process. They end
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process(usize);

/// An event between two turns.
pub(super) enum Happening {
    Call(Box<dyn FnOnce()>),
    Death(Process),
}

pub(super) struct Scheduler {
    random: RefCell<Rng>,
    /// How likely the thread that ran last runs on if it can, of 256: some runs change threads at each turn, and some
    /// rarely.
    persistence: u8,
    threads: RefCell<Vec<Option<Sleeper>>>,
    /// Processes that there have been.
    processes: usize,
    /// That of the thread whose turn it is.
    running: Cell<Option<Process>>,
    /// The disks of processes, with how much they have been used and written.
    disks: RefCell<BTreeMap<usize, UsedDisk>>,
    network: Option<Network>,
    happenings: BTreeMap<u64, Vec<Happening>>,
    turns: Cell<u64>,
    /// Whether it is captured where threads wait; and where the one does that has just paused.
    captures: bool,
    captured: Cell<Option<Backtrace>>,
}

thread_local! {
    /// Whether a scheduler runs on this system thread.
    static REIGNS: Cell<bool> = const { Cell::new(false) };
    /// The yielder of the coroutine that is running.
    static YIELDER: Cell<*const Yielder<(), Pause>> = const { Cell::new(ptr::null()) };
}

impl simulated::Scheduler for Scheduler {
    fn turns(&self) -> u64 {
        self.turns.get()
    }

    fn running(&self) -> Option<Home> {
        self.running.get().map(|process| Home(process.0))
    }

    fn pause(&self, pause: Pause) {
        if self.captures && matches!(pause, Pause::Until(..)) {
            self.captured.set(Some(Backtrace::force_capture()));
        }
        let yielder = YIELDER.get();
        // SAFETY: a coroutine sets its own when it begins and whenever it goes on: so this is that of the coroutine
        // which runs this, whose stack it is on.
        unsafe { &*yielder }.suspend(pause);
        YIELDER.set(yielder);
    }

    fn ask_disk(&self, what: DiskUse) -> (u32, io::Result<()>) {
        let mut disks = self.disks.borrow_mut();
        let disk = self.running.get().and_then(|process| disks.get_mut(&process.0));
        disk.map_or((1, Ok(())), |disk| (self.random.borrow_mut().u32(1..=disk.of.turns.max(1)), disk.ask(what)))
    }

    fn start(&self, home: Home, thread: NewThread) -> io::Result<()> {
        let NewThread { name, stack, has_ended, body } = thread;
        let body = move || {
            body();
            has_ended.store(true, Ordering::Relaxed);
        };
        self.add_to(Process(home.0), false, name, stack, body)
    }
}

/// A disk, and what it was used for.
struct UsedDisk {
    of: Disk,
    uses: u64,
    written: u64,
}

impl UsedDisk {
    fn ask(&mut self, what: DiskUse) -> io::Result<()> {
        self.uses += 1;
        if self.of.sound_uses.is_some_and(|sound| self.uses > sound) {
            return Err(io::Error::other("the disk is broken"));
        }
        if let DiskUse::Write(bytes) = what {
            if self.of.room.is_some_and(|room| self.written.saturating_add(bytes) > room) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.written += bytes;
        }
        Ok(())
    }
}

/// A candidate for the next turn.
#[derive(Clone, Copy, PartialEq)]
enum Choice {
    Thread(usize),
    Network,
}

impl Scheduler {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let persistence = *random.choice(&[0, 0, 128, 230]).expect("there are some");
        Self {
            random: RefCell::new(random),
            persistence,
            threads: RefCell::default(),
            processes: 0,
            running: Cell::new(None),
            disks: RefCell::default(),
            network: None,
            happenings: BTreeMap::new(),
            turns: Cell::new(0),
            captures: false,
            captured: Cell::new(None),
        }
    }

    pub(super) fn capture(&mut self) {
        self.captures = true;
    }

    pub(super) fn connect(&mut self, network: Network) {
        self.network = Some(network);
    }

    pub(super) fn at(&mut self, turn: u64, what: Happening) {
        self.happenings.entry(turn).or_default().push(what);
    }

    pub(super) fn set_disk(&mut self, process: Process, disk: Disk) {
        self.disks.get_mut().insert(process.0, UsedDisk { of: disk, uses: 0, written: 0 });
    }

    /// Adds a process, by its first thread.
    pub(super) fn add(&mut self, name: String, stack: usize, body: impl FnOnce() + 'static) -> Process {
        let process = Process(self.processes);
        self.processes += 1;
        self.add_to(process, true, name, stack, body).expect("the system has memory for a stack");
        process
    }

    fn add_to(
        &self,
        process: Process,
        is_first: bool,
        name: String,
        stack: usize,
        body: impl FnOnce() + 'static,
    ) -> io::Result<()> {
        let body = Body::with_stack(DefaultStack::new(stack)?, move |yielder, ()| {
            YIELDER.set(yielder);
            body();
        });
        let sleeper =
            Sleeper { name, process, is_first, body, pause: Pause::Turn, place: None, state: ThreadState::NEW };
        self.threads.borrow_mut().push(Some(sleeper));
        Ok(())
    }

    pub(super) fn run(mut self) -> Result<Report, Hang> {
        let mut happenings = std::mem::take(&mut self.happenings);
        let _reign = Reign::begin();
        let (mut last, mut naps, mut digest) = (None, 0, FxHasher::default());
        while self.threads.borrow().iter().any(Option::is_some) {
            while let Some(due) = happenings.first_entry().filter(|entry| *entry.key() <= self.turns.get()) {
                simulated::run_inside(&self, || due.remove().into_iter().for_each(|what| self.befall(what)));
            }
            let choice = self.choose(last).filter(|_| naps <= MOST_NAPS);
            let Some((choice, is_nap)) = choice else {
                // No thread does anything before something happens.
                let Some((&next, _)) = happenings.first_key_value() else { return self.end(digest.finish()) };
                self.turns.set(next);
                naps = 0;
                continue;
            };
            naps = if is_nap { naps + 1 } else { 0 };
            self.turns.set(self.turns.get() + 1);
            digest.write_usize(if let Choice::Thread(thread) = choice { thread } else { usize::MAX });
            last = Some(choice);
            match choice {
                Choice::Network => {
                    simulated::run_inside(&self, || self.network.as_ref().is_some_and(Network::step));
                }
                Choice::Thread(thread) => self.resume(thread),
            }
        }
        self.end(digest.finish())
    }

    /// The outcome of a simulation in which nothing goes on.
    fn end(&self, digest: u64) -> Result<Report, Hang> {
        let turns = self.turns.get();
        let waits = |sleeper: &Sleeper| format!("{} waits for {}", sleeper.name, sleeper.waits_for());
        let waiting: Vec<_> = self.threads.borrow().iter().flatten().map(waits).collect();
        let hangs = self.threads.borrow().iter().flatten().any(|sleeper| sleeper.is_first);
        let place = |sleeper: &Sleeper| Some(format!("{}:\n{}", sleeper.name, sleeper.place.as_ref()?));
        let places = || self.threads.borrow().iter().flatten().filter_map(place).collect();
        if hangs { Err(Hang { turns, waiting, places: places() }) } else { Ok(Report { turns, digest, left: waiting }) }
    }

    fn befall(&self, what: Happening) {
        match what {
            Happening::Call(call) => call(),
            Happening::Death(of) => self.leak(|sleeper| sleeper.process == of),
        }
    }

    /// The thread that is next, and whether it naps.
    fn choose(&self, last: Option<Choice>) -> Option<(Choice, bool)> {
        let threads = self.threads.borrow();
        let (mut ready, mut napping) = (Vec::new(), Vec::new());
        for (thread, sleeper) in threads.iter().enumerate() {
            match sleeper.as_ref().map(|sleeper| &sleeper.pause) {
                None => {}
                Some(Pause::Turn) => ready.push(Choice::Thread(thread)),
                Some(Pause::Nap) => napping.push(Choice::Thread(thread)),
                // SAFETY: the thread is paused where the condition is on its stack.
                Some(&Pause::Until(_, condition)) if unsafe { (*condition)() } => ready.push(Choice::Thread(thread)),
                Some(Pause::Until(..)) => {}
            }
        }
        if self.network.as_ref().is_some_and(Network::has_events) {
            ready.push(Choice::Network);
        }
        let mut random = self.random.borrow_mut();
        if let Some(last) = last.filter(|last| ready.contains(last))
            && random.u8(..) < self.persistence
        {
            return Some((last, false));
        }
        let awake = random.choice(&ready).map(|&choice| (choice, false));
        awake.or_else(|| random.choice(&napping).map(|&choice| (choice, true)))
    }

    /// Lets a thread have its turn.
    fn resume(&self, thread: usize) {
        // Not borrowed meanwhile: it may start others.
        let sleeper = self.threads.borrow_mut()[thread].take();
        let Sleeper { name, process, is_first, mut body, state, .. } =
            sleeper.expect("it was chosen from those that are there");
        self.running.set(Some(process));
        let outside = state.exchange();
        let result = catch_unwind(AssertUnwindSafe(|| simulated::run_inside(self, || body.resume(()))));
        let state = outside.exchange();
        self.running.set(None);
        match result {
            Ok(CoroutineResult::Yield(pause)) => {
                let place = self.captured.take();
                self.threads.borrow_mut()[thread] =
                    Some(Sleeper { name, process, is_first, body, pause, place, state });
            }
            Ok(CoroutineResult::Return(())) => {}
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Leaks threads where they are, with all that they own: unwinding them would have them wait for one another.
    fn leak(&self, is_to: impl Fn(&Sleeper) -> bool) {
        for thread in &mut *self.threads.borrow_mut() {
            std::mem::forget(thread.take_if(|sleeper| is_to(sleeper)));
        }
    }
}

impl Drop for Scheduler {
    /// However the simulation ends, be it by a panic between two turns.
    fn drop(&mut self) {
        self.leak(|sleeper| sleeper.body.started());
    }
}

/// The scheduler is this system thread's until this goes.
struct Reign;

impl Reign {
    fn begin() -> Self {
        assert!(!REIGNS.replace(true), "a simulation cannot be run within another one");
        Self
    }
}

impl Drop for Reign {
    fn drop(&mut self) {
        REIGNS.set(false);
    }
}

/// The most naps in a row: a thread that naps looks again for something. If no other thread has had a turn in so many
/// naps, none ever will.
const MOST_NAPS: u32 = 10_000;
