//! Time: the only place of the crate that reads it.

use std::time::{Instant, SystemTime};

use crate::threads::simulated;

/// Nanoseconds since an origin, never going back.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Nanoseconds since the origin; wraps after five centuries. In a [simulation](crate::simulation) a turn takes a
    /// microsecond, and it began at the origin.
    pub fn now_ns(&self) -> u64 {
        if let Some(turns) = simulated::time() {
            return turns * 1000;
        }
        self.origin.elapsed().as_nanos() as u64
    }
}

/// A [`Clock`] for threads that look at it all the time: it reads the processor's time stamp counter where that is
/// steady, which takes about 10 ns, less than half of what [`Clock`] takes. Starting it takes up to some milliseconds:
/// the counter's rate is found out, once a process.
#[derive(Clone, Debug)]
pub(crate) struct FineClock {
    counter: quanta::Clock,
    origin: u64,
}

impl FineClock {
    /// A clock whose origin is now.
    pub(crate) fn start() -> Self {
        let counter = quanta::Clock::new();
        let origin = counter.raw();
        Self { counter, origin }
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.counter.delta_as_nanos(self.origin, self.counter.raw())
    }
}

/// Nanoseconds since 1970, by a clock that people set; 0 if it is set earlier.
pub(crate) fn unix_ns() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
