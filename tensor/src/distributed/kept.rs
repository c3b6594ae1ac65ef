//! Results that tasks of a node leave for later tasks of the same node, which would otherwise make them once more.

use std::sync::Arc;

use maniple::Context;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

/// The part of the largest memory of a node that kept results take at most, as a divisor.
const PART: u64 = 16;

/// Results by their numbers, as far as there is room for them. A task that finds none makes it itself: which ones are
/// kept changes how long that takes, and never a result.
pub(super) struct Kept<T>(Mutex<Inside<T>>);

struct Inside<T> {
    kept: FxHashMap<i64, (T, usize)>,
    /// How many more bytes there can be.
    room: usize,
}

impl<T> Kept<T> {
    /// Nothing yet. Each node has its own.
    pub(super) fn new(cx: &Context) -> Arc<Self> {
        let largest = cx.machine().memories().iter().map(|memory| memory.capacity).max();
        Arc::new(Self::with_room((largest.unwrap_or(0) / PART) as usize))
    }

    fn with_room(room: usize) -> Self {
        Self(Mutex::new(Inside { kept: FxHashMap::default(), room }))
    }

    /// Takes room for so many bytes of a result that is not whole yet, if there is as much.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let inside = &mut *self.0.lock();
        let has_room = bytes <= inside.room;
        inside.room -= if has_room { bytes } else { 0 };
        has_room
    }

    /// Gives room back that was [reserved](Self::reserve).
    pub(super) fn release(&self, bytes: usize) {
        self.0.lock().room += bytes;
    }

    /// Keeps a result of so many bytes, in the place of one with its number, if there is room.
    pub(super) fn put(&self, number: i64, result: T, bytes: usize) {
        let Inside { kept, room } = &mut *self.0.lock();
        *room += kept.remove(&number).map_or(0, |(_, bytes)| bytes);
        if bytes <= *room {
            *room -= bytes;
            kept.insert(number, (result, bytes));
        }
    }

    /// Takes the result with a number, if it is kept.
    pub(super) fn take(&self, number: i64) -> Option<T> {
        let Inside { kept, room } = &mut *self.0.lock();
        let (result, bytes) = kept.remove(&number)?;
        *room += bytes;
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_once_and_as_far_as_there_is_room() {
        let kept = Kept::with_room(10);
        kept.put(1, "first", 6);
        kept.put(2, "too large", 5);
        kept.put(3, "third", 4);
        let room = || kept.0.lock().room;
        assert_eq!((kept.take(1), kept.take(1), kept.take(2), room()), (Some("first"), None, None, 6));
        kept.put(3, "in its place", 10);
        assert_eq!((kept.take(3), room()), (Some("in its place"), 10));
        kept.put(3, "larger than all", 11);
        assert_eq!((kept.take(3), room()), (None, 10));
    }

    #[test]
    fn what_is_reserved_is_no_room_for_others() {
        let kept = Kept::with_room(10);
        assert!(kept.reserve(7) && !kept.reserve(4));
        kept.put(1, "no room", 4);
        assert_eq!(kept.take(1), None);
        kept.release(7);
        kept.put(1, "room", 4);
        assert_eq!(kept.take(1), Some("room"));
    }
}
