//! Deterministic simulation: all threads, workers and messages of any number of nodes in one thread, one thing at a
//! time, as a seed decides.
//!
//! The real code runs, not a model of it. Within [`Simulation::run`] every thread that the crate would start, and every
//! one that the program [adds](Simulation::thread), is a coroutine with a stack of its own. It runs until it would
//! sleep, wait, or begin something new (an operation, a node of a graph, a launch); then the seed decides what is next:
//! another thread, or the network, which receives a frame. So a run is a function of its seed, and an interleaving that
//! went wrong comes again. When nothing can go on any more although threads are left, that is a [`Hang`], reported at
//! once, with what each thread waits for.
//!
//! Time is the number of turns taken. What sleeps for a while wakes up when no thread can go on.
//!
//! Threads take turns where they wait. So one must not wait while it holds a lock of the system's that another one
//! takes: that stops them all. A profile of a simulated realm has all of it as one thread's.
//!
//! A simulation does not show two threads in the middle of two turns at once. Races of single loads and stores are what
//! `tests/loom` is for.
//!
//! ```
//! use maniple_realm::simulation::Simulation;
//! use maniple_realm::{Realm, Spawn};
//!
//! let mut simulation = Simulation::new(7);
//! let sum = simulation.thread("main", || {
//!     let realm = Realm::builder().workers(3).build().expect("threads are cheap here");
//!     let parts: Vec<_> = (0..10).map(|_| realm.spawn(Spawn::ANYWHERE, || ())).collect();
//!     parts.into_iter().filter(|&part| realm.wait(part).is_ok()).count()
//! });
//! let report = simulation.run()?;
//! assert_eq!(sum.take(), Some(10));
//! assert!(report.turns > 10);
//! # Ok::<(), maniple_realm::simulation::Hang>(())
//! ```

mod scheduler;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use crate::net::loopback::Network;
use scheduler::{Happening, Process, Scheduler};

/// A program to be simulated: threads, a network, and what befalls them.
pub struct Simulation {
    scheduler: Scheduler,
}

impl Simulation {
    /// One that a seed decides of.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { scheduler: Scheduler::new(seed) }
    }

    /// The network whose frames are received in the simulation: nothing else may step it.
    #[must_use]
    pub fn network(mut self, network: &Network) -> Self {
        self.scheduler.connect(network.clone());
        self
    }

    /// Has it captured where threads wait, for [`Hang::places`]: that takes much longer.
    #[must_use]
    pub fn capture_places(mut self) -> Self {
        self.scheduler.capture();
        self
    }

    /// Adds a thread of the program. Realms that it builds are part of the simulation, and of no use after it.
    pub fn thread<T: 'static>(&mut self, name: impl Into<String>, body: impl FnOnce() -> T + 'static) -> Answer<T> {
        let value = Rc::new(RefCell::default());
        let cell = Rc::clone(&value);
        let process = self.scheduler.add(name.into(), STACK, move || *cell.borrow_mut() = Some(body()));
        Answer { value, process }
    }

    /// Does something when so many turns have been taken, between two of them: stalls a connection, wakes a thread. Not
    /// if all has ended before.
    pub fn at(&mut self, turn: u64, call: impl FnOnce() + 'static) {
        self.scheduler.at(turn, Happening::Call(Box::new(call)));
    }

    /// Ends a thread of the program, and all that it has started, when so many turns have been taken, as if it were a
    /// process that is killed: they do nothing more, and what they own is leaked. The network is to be told apart, by
    /// [`Network::kill`] at the same turn.
    pub fn kill_at<T>(&mut self, turn: u64, thread: &Answer<T>) {
        self.scheduler.at(turn, Happening::Death(thread.process));
    }

    /// Has a thread of the program, and all that it starts, use such a disk.
    pub fn disk<T>(&mut self, thread: &Answer<T>, disk: Disk) {
        self.scheduler.set_disk(thread.process, disk);
    }

    /// Runs until nothing goes on any more: in the end all threads of the program have ended.
    ///
    /// # Errors
    /// [`Hang`]: threads of the program are left, and nothing can go on. What they own is leaked.
    ///
    /// # Panics
    /// With the panic of a thread of the program, of a message's handler, or of what was to be done [at](Self::at) a
    /// turn, the rest being leaked. If it is called within a simulation.
    pub fn run(self) -> Result<Report, Hang> {
        self.scheduler.run()
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").finish_non_exhaustive()
    }
}

/// The properties of a disk: by default quick, with room for all, and sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// The most turns of others that each use of a file takes; how many, the seed decides.
    pub turns: u32,
    /// So many uses of files go well, and none after these.
    pub sound_uses: Option<u64>,
    /// So many bytes can be written.
    pub room: Option<u64>,
}

/// The stack of a thread of the program, in bytes. What is not used costs address space only.
const STACK: usize = 8 << 20;

/// The result of a thread of a simulation.
#[derive(Debug)]
pub struct Answer<T> {
    value: Rc<RefCell<Option<T>>>,
    process: Process,
}

impl<T> Answer<T> {
    /// Takes the result: `None` before the thread has ended or if it was killed, and the second time.
    #[must_use]
    pub fn take(&self) -> Option<T> {
        self.value.borrow_mut().take()
    }
}

/// A simulation that has come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Turns that were taken.
    pub turns: u64,
    /// A hash of what took them: two runs with the same one were the same.
    pub digest: u64,
    /// Threads that threads of the program have started and left behind, asleep: their realm is still in use. A process
    /// that ends would end them.
    pub left: Vec<String>,
}

/// Threads of the program are left, and nothing can go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("after {turns} turns nothing can go on, and nothing is under way: {}", .waiting.join("; "))]
pub struct Hang {
    /// Turns that were taken.
    pub turns: u64,
    /// Each thread that is left, and what it waits for.
    pub waiting: Vec<String>,
    /// The backtraces of those that wait for something, if they [were captured](Simulation::capture_places).
    pub places: Vec<String>,
}
