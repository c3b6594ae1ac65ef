//! Threads as the rest of the crate sees them: starting them, waiting, letting time pass. The only place that asks the
//! system for any of it, and so the seam at which [a simulation](crate::simulation) takes the system's place: see
//! `simulated`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(crate) mod forked;
mod parker;
pub(crate) mod simulated;
mod ticker;

pub use parker::Parker;
pub(crate) use simulated::Home;
use simulated::NewThread;
pub use ticker::Ticker;

/// A thread of the realm's own: the system's, or one of the simulation in which it was started.
pub(crate) enum Thread {
    System(JoinHandle<()>),
    Simulated(Arc<AtomicBool>),
}

impl Thread {
    /// Starts a thread with a stack of so many bytes.
    pub(crate) fn start(name: String, stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Self::start_at(simulated::home(), name, stack, body)
    }

    /// The same, of a process of a simulation, which may be called where no thread of that runs.
    pub(crate) fn start_at(
        home: Option<Home>,
        name: String,
        stack: usize,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        if let Some(home) = home {
            let has_ended = Arc::new(AtomicBool::new(false));
            let (told, body) = (Arc::clone(&has_ended), Box::new(body));
            simulated::start(home, NewThread { name, stack, has_ended: told, body })?;
            return Ok(Self::Simulated(has_ended));
        }
        thread::Builder::new().name(name).stack_size(stack).spawn(body).map(Self::System)
    }

    /// Waits until the thread has ended.
    pub(crate) fn join(self) {
        match self {
            // A panic of its own was printed by the panic hook.
            Self::System(thread) => drop(thread.join()),
            Self::Simulated(has_ended) => {
                simulated::wait_until("a thread to end", &|| has_ended.load(Ordering::Relaxed))
            }
        }
    }
}

/// Sleeps. In a simulation, until no other thread can go on, which takes no time.
pub fn nap(time: Duration) {
    if simulated::is_inside() { simulated::nap() } else { thread::sleep(time) }
}

/// Lets others have the core, if they want it.
pub fn yield_now() {
    if simulated::is_inside() { simulated::turn() } else { thread::yield_now() }
}

/// Makes this thread one that waits for a core when it wakes, until one is free or the system takes it from a thread
/// that has had it for some milliseconds. A thread mostly pushes another off its core at once, since it has slept; but
/// the threads that the network's thread would push off do its work themselves as soon as they have nothing better to
/// do.
///
/// Nothing changes where the system knows no such threads, or for a thread whose kind was chosen.
#[cfg(feature = "tcp")]
pub(crate) fn give_way() {
    #[cfg(target_os = "linux")]
    {
        const THIS_THREAD: libc::pid_t = 0;
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the first call takes no memory, the second reads the parameters, which live until it has returned.
        unsafe {
            if libc::sched_getscheduler(THIS_THREAD) == libc::SCHED_OTHER {
                // If it is refused, the thread is as good as before.
                libc::sched_setscheduler(THIS_THREAD, libc::SCHED_BATCH, &raw const parameters);
            }
        }
    }
}

#[cfg(test)]
#[cfg(all(feature = "tcp", target_os = "linux"))]
mod tests {
    use super::*;

    /// The policy by which the system schedules this thread, as `sched(7)` numbers them.
    fn policy() -> u32 {
        let told = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = told.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38).unwrap().parse().unwrap()
    }

    #[test]
    fn a_thread_that_gives_way_is_one_that_pushes_nobody_off_and_others_stay_as_they_are() {
        let before = policy();
        let after = thread::spawn(|| {
            give_way();
            policy()
        });
        let expected = if before == libc::SCHED_OTHER as u32 { libc::SCHED_BATCH as u32 } else { before };
        assert_eq!(after.join().unwrap(), expected);
        assert_eq!(policy(), before);
    }
}
