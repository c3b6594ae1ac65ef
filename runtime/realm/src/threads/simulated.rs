//! The hook for a simulation: on its threads, a [`Scheduler`] takes the place of the system.

use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Why a thread gives its turn to others.
pub(crate) enum Pause {
    /// To be fair.
    Turn,
    /// To sleep for a while.
    Nap,
    /// To wait for something, in a few words. Both are on the stack of the thread, which does not go on before it is
    /// asked to.
    Until(&'static str, *const dyn Fn() -> bool),
}

/// The use that is about to be made of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskUse {
    /// To find out whether it is there, and what is in it.
    Open,
    /// To read some of it.
    Read,
    /// To write so many bytes.
    Write(u64),
    /// To put it in its place, when it is whole.
    Finish,
}

/// The process of a simulation that something belongs to: what it starts is that process's, whichever thread calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home(pub(crate) usize);

/// Decides which thread of a simulation runs.
pub(crate) trait Scheduler {
    /// The process whose thread runs. None while a message arrives, or something else happens that no thread does.
    fn running(&self) -> Option<Home>;

    /// The simulation's time: turns that have been taken.
    fn turns(&self) -> u64;

    /// Suspends the calling thread until it is its turn again.
    fn pause(&self, pause: Pause);

    /// How many turns of others the disk of the running thread's process takes for something, and what it says.
    fn ask_disk(&self, what: DiskUse) -> (u32, io::Result<()>);

    /// Adds a thread of a process; sets `has_ended` when it has.
    fn start(&self, home: Home, thread: NewThread) -> io::Result<()>;
}

/// A thread about to be started.
pub(crate) struct NewThread {
    pub(crate) name: String,
    /// In bytes.
    pub(crate) stack: usize,
    pub(crate) has_ended: Arc<AtomicBool>,
    pub(crate) body: Box<dyn FnOnce()>,
}

thread_local! {
    /// The scheduler that runs on this system thread.
    static CURRENT: Cell<Option<NonNull<dyn Scheduler>>> = const { Cell::new(None) };
}

/// Calls `body`, in which this system thread is the simulation's.
pub(crate) fn run_inside<R>(scheduler: &(impl Scheduler + 'static), body: impl FnOnce() -> R) -> R {
    /// However the body ends.
    struct Reset;

    impl Drop for Reset {
        fn drop(&mut self) {
            CURRENT.set(None);
        }
    }

    CURRENT.set(Some(NonNull::from(scheduler as &dyn Scheduler)));
    let _reset = Reset;
    body()
}

fn current() -> Option<&'static dyn Scheduler> {
    // SAFETY: set only within `run_inside`, which has a reference. Callers are within it too, and do not keep this one.
    CURRENT.get().map(|scheduler| unsafe { scheduler.as_ref() })
}

/// Whether this is a thread of a simulation.
#[inline]
pub(crate) fn is_inside() -> bool {
    home().is_some()
}

/// The process of the simulation whose thread this is, if it is one.
pub(crate) fn home() -> Option<Home> {
    current().and_then(Scheduler::running)
}

/// The simulation's time: turns that have been taken.
#[inline]
pub(crate) fn time() -> Option<u64> {
    current().map(Scheduler::turns)
}

/// Lets others have a turn. Nothing if this is no thread of a simulation.
pub(crate) fn turn() {
    if is_inside() {
        pause(Pause::Turn);
    }
}

/// Asks the disk of this thread's process, which takes its time.
pub(crate) fn ask_disk(what: DiskUse) -> io::Result<()> {
    let (turns, answer) = current().expect("only threads of a simulation ask its disks").ask_disk(what);
    (0..turns).for_each(|_| pause(Pause::Turn));
    answer
}

/// Goes on when no other thread can.
pub(super) fn nap() {
    pause(Pause::Nap);
}

/// Goes on when a condition holds that others bring about.
pub(crate) fn wait_until(what: &'static str, condition: &dyn Fn() -> bool) {
    if !condition() {
        // SAFETY: only the lifetime changes. The scheduler asks while this thread is paused here, so what is borrowed
        // is there.
        let condition =
            unsafe { std::mem::transmute::<*const (dyn Fn() -> bool + '_), *const dyn Fn() -> bool>(condition) };
        pause(Pause::Until(what, condition));
    }
}

fn pause(pause: Pause) {
    current().expect("only threads of a simulation pause in it").pause(pause);
}

/// Adds a thread to the simulation that runs here.
pub(super) fn start(home: Home, thread: NewThread) -> io::Result<()> {
    current().expect("what belongs to a simulation is used while it runs").start(home, thread)
}
