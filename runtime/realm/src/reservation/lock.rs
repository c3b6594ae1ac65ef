//! The state of a reservation: one word while there is no contention, a queue beside it when there is.
//!
//! The file knows nothing of events, so that loom can check it alone (`tests/loom`). The protocol is described in the
//! crate's `README.md`.

use std::collections::VecDeque;

use crate::sync::{AtomicU64, Mutex, Ordering};

/// ```text
/// 63        62     32 31      0
/// | QUEUED | mode    | holders |
/// ```
///
/// `mode` means something while there are holders. `QUEUED` says that the queue is not empty: the word is then changed
/// under the queue's lock only. Without it, the word is changed by compare-and-swap.
pub(crate) struct Lock {
    word: AtomicU64,
    queue: Mutex<VecDeque<Request>>,
}

/// A request in the queue, with a number for the caller to know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    mode: u32,
    ticket: u64,
}

/// The mode that holds alone; all others share with their equals.
pub(crate) const EXCLUSIVE: u32 = 0;

/// The largest mode.
pub(crate) const LAST_MODE: u32 = (1 << 31) - 1;

const QUEUED: u64 = 1 << 63;
const MODE_SHIFT: u32 = 32;
const HOLDERS: u64 = 0xFFFF_FFFF;

/// The error of releasing a reservation that is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotHeld;

impl Lock {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(0), queue: Mutex::new(VecDeque::new()) }
    }

    /// Acquires, or joins the queue under the number that `ticket` gives; that number, if so.
    pub(crate) fn acquire(&self, mode: u32, ticket: impl FnOnce() -> u64) -> Option<u64> {
        if self.try_acquire(mode).is_ok() {
            return None;
        }
        let mut queue = self.queue.lock();
        while let Err(word) = self.try_acquire(mode) {
            // It is held in another mode, or is queued. Setting the flag sends threads that release to the lock that we
            // hold.
            let queued = self.word.compare_exchange(word, word | QUEUED, Ordering::Relaxed, Ordering::Relaxed);
            if queued.is_ok() {
                let ticket = ticket();
                queue.push_back(Request { mode, ticket });
                return Some(ticket);
            }
        }
        None
    }

    /// Acquires if no request is queued and its holders share this mode; otherwise gives the word that was in the
    /// way.
    fn try_acquire(&self, mode: u32) -> Result<(), u64> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let shares = mode != EXCLUSIVE && mode_of(word) == mode;
            if word & QUEUED != 0 || (word & HOLDERS != 0 && !shares) {
                return Err(word);
            }
            let held = held(mode, (word & HOLDERS) + 1);
            // Acquire: what the last holder did is visible.
            match self.word.compare_exchange_weak(word, held, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(changed) => word = changed,
            }
        }
    }

    /// Releases once; gives the tickets of the requests that hold it now instead.
    pub(crate) fn release(&self) -> Result<Vec<u64>, NotHeld> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & QUEUED != 0 {
                let mut queue = self.queue.lock();
                // Acquire: the next holder must see what the holders did that released it before there was a queue.
                word = self.word.load(Ordering::Acquire);
                if word & QUEUED != 0 {
                    return Ok(self.release_queued(word, &mut queue));
                }
            }
            if word & HOLDERS == 0 {
                return Err(NotHeld);
            }
            match self.word.compare_exchange_weak(word, word - 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(Vec::new()),
                Err(changed) => word = changed,
            }
        }
    }

    /// The tickets of all requests that are queued, when there can be no release any more.
    pub(crate) fn give_up(&self) -> Vec<u64> {
        self.queue.lock().drain(..).map(|request| request.ticket).collect()
    }

    /// Releases under the queue's lock, with the word saying that there is a queue: so no other thread changes either.
    fn release_queued(&self, word: u64, queue: &mut VecDeque<Request>) -> Vec<u64> {
        if word & HOLDERS > 1 {
            self.word.store(word - 1, Ordering::Relaxed);
            return Vec::new();
        }
        self.grant(queue)
    }

    /// Passes the reservation to the first in the queue, and to those right behind that share its mode.
    fn grant(&self, queue: &mut VecDeque<Request>) -> Vec<u64> {
        let mode = queue.front().map_or(EXCLUSIVE, |first| first.mode);
        let sharing = queue.iter().take_while(|request| request.mode == mode).count();
        let granted = if mode == EXCLUSIVE { sharing.min(1) } else { sharing };
        let tickets: Vec<u64> = queue.drain(..granted).map(|request| request.ticket).collect();
        let flag = if queue.is_empty() { 0 } else { QUEUED };
        self.word.store(held(mode, granted as u64) | flag, Ordering::Release);
        tickets
    }
}

fn held(mode: u32, holders: u64) -> u64 {
    (u64::from(mode) << MODE_SHIFT) | holders
}

fn mode_of(word: u64) -> u32 {
    ((word & !QUEUED) >> MODE_SHIFT) as u32
}
