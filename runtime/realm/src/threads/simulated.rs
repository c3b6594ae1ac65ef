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
    /// To wait for something, in a few words. Both are on the stack of the thread, which does not go on before it is asked to.
    Until(&'static str, *const dyn Fn() -> bool),
}

/// What a file is about to be used for.
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

/// Decides which thread of a simulation runs.
pub(crate) trait Scheduler {
    /// The simulation's time: turns that have been taken.
    fn turns(&self) -> u64;

    /// Suspends the calling thread until it is its turn again.
    fn pause(&self, pause: Pause);

    /// How many turns of others the disk of the running thread's process takes for something, and what it says.
    fn ask_disk(&self, what: DiskUse) -> (u32, io::Result<()>);

    /// Adds a thread; sets `has_ended` when it has.
    fn start(&self, name: String, stack: usize, has_ended: Arc<AtomicBool>, body: Box<dyn FnOnce()>) -> io::Result<()>;
}

thread_local! {
    /// The scheduler whose thread is running on this system thread.
    static CURRENT: Cell<Option<NonNull<dyn Scheduler>>> = const { Cell::new(None) };
}

/// Calls `body`, in which this system thread is one of the simulation's.
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
    CURRENT.get().is_some()
}

/// The simulation's time, on one of its threads: turns that have been taken.
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
        // SAFETY: only the lifetime changes. The scheduler asks while this thread is paused here, so what is borrowed is there.
        let condition =
            unsafe { std::mem::transmute::<*const (dyn Fn() -> bool + '_), *const dyn Fn() -> bool>(condition) };
        pause(Pause::Until(what, condition));
    }
}

fn pause(pause: Pause) {
    current().expect("only threads of a simulation pause in it").pause(pause);
}

/// Adds a thread to the simulation that this thread is in; `has_ended` tells when it has.
pub(super) fn start(
    name: String,
    stack: usize,
    has_ended: Arc<AtomicBool>,
    body: impl FnOnce() + 'static,
) -> io::Result<()> {
    current().expect("only threads of a simulation start others in it").start(name, stack, has_ended, Box::new(body))
}
