//! Threads as the rest of the crate sees them: starting them, waiting, letting time pass. The only place that asks the system for any of it, and so
//! the seam at which [a simulation](crate::simulation) takes the system's place.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::simulation;
pub use crate::sync::Parker;

/// A thread of the realm's own: the system's, or one of the simulation in which it was started.
pub(crate) enum Thread {
    System(JoinHandle<()>),
    Simulated(Arc<AtomicBool>),
}

impl Thread {
    /// Starts a thread with a stack of so many bytes.
    pub(crate) fn start(name: String, stack: usize, body: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        if simulation::is_inside() {
            let has_ended = Arc::new(AtomicBool::new(false));
            simulation::start_thread(name, stack, Arc::clone(&has_ended), body)?;
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
                simulation::wait_until("a thread to end", &|| has_ended.load(Ordering::Relaxed))
            }
        }
    }
}

/// Sleeps. In a simulation, until nobody else has anything to do, which takes no time.
pub fn nap(time: Duration) {
    if simulation::is_inside() { simulation::nap() } else { thread::sleep(time) }
}

/// Lets others have the core, if they want it.
pub fn yield_now() {
    if simulation::is_inside() { simulation::turn() } else { thread::yield_now() }
}
