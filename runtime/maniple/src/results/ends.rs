//! Which points of a launch have ended before the launch has, and which points are waited for.
//!
//! A thread that ends a point notes that, and then looks whether single points are waited for; a thread that wants to
//! wait says so, and then looks whether the point has ended: one sees the other, as all of this is sequentially
//! consistent. A launch of which no point is taken singly makes no events for points.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use maniple_realm::locks::Mutex;
use maniple_realm::{Event, Realm, UserEvent};
use rustc_hash::FxHashMap;

/// The ends of single points.
#[derive(Default)]
pub(super) struct Ends {
    /// A bit for each of the first 64 points that have ended.
    first: AtomicU64,
    /// For the others.
    more: OnceLock<Box<[AtomicU64]>>,
    /// The end of a point is waited for.
    is_watched: AtomicBool,
    waiting: Mutex<Option<Box<Waiting>>>,
}

/// The events that are to trigger when points have ended.
type Waiting = FxHashMap<u32, UserEvent>;

/// The answer to a request to wait for a point.
pub(super) enum Wait {
    HasEnded,
    /// The event triggers at the end of the point, if the end of the launch is told too.
    For {
        event: Event,
        /// It has not been asked for yet.
        is_first: bool,
    },
}

const BITS: usize = 64;

impl Ends {
    /// One of so many points has ended, and its result is in place. Whether it may be waited for.
    #[inline]
    pub(super) fn mark(&self, points: impl FnOnce() -> usize, index: usize) -> bool {
        let word = match (index / BITS).checked_sub(1) {
            None => &self.first,
            Some(word) => {
                let words = || (1..points().div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect();
                &self.more.get_or_init(words)[word]
            }
        };
        word.fetch_or(1 << (index % BITS), Ordering::SeqCst);
        self.is_watched.load(Ordering::SeqCst)
    }

    /// Whether the end of a point was [marked](Self::mark).
    pub(super) fn has(&self, index: usize) -> bool {
        let word = match (index / BITS).checked_sub(1) {
            None => Some(&self.first),
            Some(word) => self.more.get().and_then(|words| words.get(word)),
        };
        word.is_some_and(|word| word.load(Ordering::SeqCst) & 1 << (index % BITS) != 0)
    }

    /// Whether there is a waiter, for a thread that may learn of it late: see [`Self::take_all_that`].
    #[inline]
    pub(super) fn may_be_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    /// A point is about to be waited for.
    pub(super) fn watch(&self, realm: &Realm, index: usize, has_ended: impl FnOnce() -> bool) -> Wait {
        let mut waiting = self.waiting.lock();
        let is_first = !self.is_watched.swap(true, Ordering::SeqCst);
        // A thread that ends the point from now on comes for the lock.
        if has_ended() {
            if is_first {
                self.is_watched.store(false, Ordering::SeqCst);
            }
            return Wait::HasEnded;
        }
        let waiting = waiting.get_or_insert_default();
        let event = waiting.entry(index as u32).or_insert_with(|| realm.user_event()).event();
        Wait::For { event, is_first }
    }

    /// Takes the event that waits for a point that has ended. The caller triggers it.
    pub(super) fn take(&self, index: usize) -> Option<UserEvent> {
        self.waiting.lock().as_mut()?.remove(&(index as u32))
    }

    /// Takes the events that wait for any of the points that have ended. The caller triggers them.
    pub(super) fn take_all_that(&self, has_ended: impl Fn(usize) -> bool) -> Vec<(usize, UserEvent)> {
        let mut waiting = self.waiting.lock();
        let Some(waiting) = waiting.as_mut() else { return Vec::new() };
        let ended: Vec<u32> = waiting.keys().copied().filter(|&index| has_ended(index as usize)).collect();
        ended.iter().filter_map(|index| Some((*index as usize, waiting.remove(index)?))).collect()
    }

    /// Makes them as new, of a launch of which no end was marked.
    #[inline]
    pub(super) fn clear(&mut self) {
        debug_assert_eq!(*self.first.get_mut(), 0, "the ends of points of a replay are not marked");
        if *self.is_watched.get_mut() {
            *self.is_watched.get_mut() = false;
            *self.waiting.get_mut() = None;
        }
    }
}
