//! The parkers of threads, which sleep until another thread wakes them.

use std::time::Duration;

use super::simulated;

/// The place where one thread waits for a token. A token given before the wait is not lost; several count as one.
/// Threads of a [simulation](crate::simulation) wait for those of the same one.
#[derive(Debug, Default)]
pub struct Parker {
    /// Not of [`crate::locks`]: a condition variable goes with no other, and what counts locks is not to count
    /// sleepers.
    token: parking_lot::Mutex<bool>,
    given: parking_lot::Condvar,
}

impl Parker {
    /// Waits for a token and takes it.
    pub fn park(&self) {
        if simulated::is_inside() {
            simulated::wait_until("another thread to wake it", &|| *self.token.lock());
        }
        let mut token = self.token.lock();
        while !*token {
            self.given.wait(&mut token);
        }
        *token = false;
    }

    /// Waits for a token, takes it and gives true; or gives false after so long. The latter may come too soon.
    pub fn park_for(&self, time: Duration) -> bool {
        if simulated::is_inside() {
            simulated::nap();
            return std::mem::take(&mut *self.token.lock());
        }
        let mut token = self.token.lock();
        if !*token {
            self.given.wait_for(&mut token, time);
        }
        std::mem::take(&mut *token)
    }

    /// Gives the token.
    pub fn unpark(&self) {
        *self.token.lock() = true;
        self.given.notify_one();
    }
}
