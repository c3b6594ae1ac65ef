//! A worker's deque of operations: for the worker itself last in, first out; for others, which take many at once, first
//! in, first out. The protocol is told in the crate's `README.md`.
//!
//! The file knows nothing of operations, so that loom can check it alone (`tests/loom`).

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, store_before_loads};

/// More room than there can be operations.
const RINGS: usize = 22;

/// The worker's end. Items are numbered as they come in, whether one had the number before or not: in the deque are
/// those from `front` on, before `back`.
///
/// Others take at most `MOST` items at once. A model has them take fewer than they do.
pub(crate) struct Deque<const MOST: usize = 32> {
    shared: Arc<SharedDeque>,
    /// As in `shared`.
    back: Cell<u32>,
    /// `front` as it was seen: it may have moved on since.
    seen_front: Cell<u32>,
    ring: Cell<usize>,
}

/// The end of others.
pub(crate) struct Stealer<const MOST: usize = 32>(Arc<SharedDeque>);

struct SharedDeque {
    /// Changed by a thief that takes items at the front, and by the worker to have a thief fail that is about to take
    /// some.
    front: CachePadded<AtomicU64>,
    /// Changed by the worker alone.
    back: CachePadded<AtomicU32>,
    /// Which of the rings is in use: each has twice the room of the one before, and is made when that is full. A thief
    /// that still looks at an old one finds there what it has seen to be in the deque.
    ring: AtomicU32,
    rings: [OnceLock<Box<[AtomicU32]>>; RINGS],
}

/// The number in `front`, below which a count of changes stands.
fn number_of(front: u64) -> u32 {
    (front >> 32) as u32
}

fn advanced(front: u64, by: usize) -> u64 {
    front.wrapping_add((by as u64) << 32)
}

/// The same number, yet a value that no thread has seen.
fn renewed(front: u64) -> u64 {
    (front & !u64::from(u32::MAX)) | u64::from((front as u32).wrapping_add(1))
}

/// How many items there are from one number to another; less than none if a worker is just taking the last away.
fn distance(front: u32, back: u32) -> i32 {
    back.wrapping_sub(front) as i32
}

impl SharedDeque {
    /// A ring of which the first has this room.
    #[inline]
    fn ring(&self, index: usize, first: usize) -> &[AtomicU32] {
        self.rings[index].get_or_init(|| (0..first << index).map(|_| AtomicU32::new(0)).collect())
    }
}

#[inline]
fn place(ring: &[AtomicU32], number: u32) -> &AtomicU32 {
    &ring[number as usize & (ring.len() - 1)]
}

impl<const MOST: usize> Deque<MOST> {
    const FIRST_ROOM: usize = 2 * MOST.next_power_of_two();

    pub(crate) fn new() -> Self {
        let shared = SharedDeque {
            front: CachePadded::new(AtomicU64::new(0)),
            back: CachePadded::new(AtomicU32::new(0)),
            ring: AtomicU32::new(0),
            rings: [const { OnceLock::new() }; RINGS],
        };
        Self { shared: Arc::new(shared), back: Cell::new(0), seen_front: Cell::new(0), ring: Cell::new(0) }
    }

    pub(crate) fn stealer(&self) -> Stealer<MOST> {
        Stealer(Arc::clone(&self.shared))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        distance(number_of(self.shared.front.load(Ordering::Relaxed)), self.back.get()) <= 0
    }

    /// Puts an item at the back.
    #[inline]
    pub(crate) fn push(&self, item: u32) {
        let back = self.back.get();
        let mut ring = self.shared.ring(self.ring.get(), Self::FIRST_ROOM);
        if back.wrapping_sub(self.seen_front.get()) as usize >= ring.len() {
            ring = self.make_room();
        }
        place(ring, back).store(item, Ordering::Relaxed);
        self.publish(back.wrapping_add(1));
    }

    /// Puts several items at the back, the last of which comes out first.
    pub(crate) fn push_all(&self, items: impl IntoIterator<Item = u32>) {
        items.into_iter().for_each(|item| self.push(item));
    }

    #[inline]
    fn publish(&self, back: u32) {
        self.back.set(back);
        // A thread that sees the number sees the item. And a worker that is about to sleep sees it, or this worker sees
        // that the other is about to sleep.
        store_before_loads(&self.shared.back, back);
    }

    /// The ring may be full.
    #[cold]
    fn make_room(&self) -> &[AtomicU32] {
        let (index, back) = (self.ring.get(), self.back.get());
        let ring = self.shared.ring(index, Self::FIRST_ROOM);
        // Acquire: a thief that took items has read them before this worker writes others in their place.
        let front = number_of(self.shared.front.load(Ordering::Acquire));
        self.seen_front.set(front);
        if (distance(front, back) as usize) < ring.len() {
            return ring;
        }
        let larger = self.shared.ring(index + 1, Self::FIRST_ROOM);
        for number in (0..ring.len() as u32).map(|item| front.wrapping_add(item)) {
            place(larger, number).store(place(ring, number).load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.ring.set(index + 1);
        self.shared.ring.store(index as u32 + 1, Ordering::Release);
        larger
    }

    /// Takes the item at the back.
    #[inline]
    pub(crate) fn pop(&self) -> Option<u32> {
        let mut front = self.shared.front.load(Ordering::Relaxed);
        let back = self.back.get();
        if distance(number_of(front), back) <= 0 {
            return None;
        }
        let last = back.wrapping_sub(1);
        // Away from others, unless they are about to take it already.
        if distance(number_of(front), last) >= MOST as i32 {
            // Against the fence in `steal`: either they see that it is gone, or this sees how far they were.
            store_before_loads(&self.shared.back, last);
            front = self.shared.front.load(Ordering::SeqCst);
        } else {
            // `renew` publishes it.
            self.shared.back.store(last, Ordering::Release);
        }
        loop {
            let before = distance(number_of(front), last);
            if before < 0 {
                self.shared.back.store(back, Ordering::Release);
                return None;
            }
            // A thief that has seen this `front` takes at most the items right behind it; if this may be one of them,
            // it has to look again.
            let is_out_of_reach = before >= MOST as i32;
            if is_out_of_reach || self.renew(&mut front) {
                self.back.set(last);
                return Some(place(self.shared.ring(self.ring.get(), Self::FIRST_ROOM), last).load(Ordering::Relaxed));
            }
        }
    }

    /// Has every thief fail that is about to take what is at `front`; or sees that `front` has changed.
    #[inline]
    fn renew(&self, front: &mut u64) -> bool {
        let renewed = self.shared.front.compare_exchange(*front, renewed(*front), Ordering::SeqCst, Ordering::SeqCst);
        renewed.map_err(|changed| *front = changed).is_ok()
    }
}

/// Items that were taken at once, in the order in which they came in.
pub(crate) struct Stolen<const MOST: usize = 32> {
    items: [u32; MOST],
    count: usize,
}

impl<const MOST: usize> Stolen<MOST> {
    pub(crate) fn items(&self) -> &[u32] {
        &self.items[..self.count]
    }
}

impl<const MOST: usize> Stealer<MOST> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        let front = number_of(self.0.front.load(Ordering::Relaxed));
        distance(front, self.0.back.load(Ordering::Relaxed)) <= 0
    }

    /// Takes the item at the front.
    #[inline]
    pub(crate) fn take(&self) -> Option<u32> {
        if self.is_empty() { None } else { self.steal_at_most(1)?.items().first().copied() }
    }

    /// Takes half of the items, at the front; nothing if there are none.
    #[inline]
    pub(crate) fn steal(&self) -> Option<Stolen<MOST>> {
        self.steal_at_most(MOST)
    }

    fn steal_at_most(&self, most: usize) -> Option<Stolen<MOST>> {
        let mut stolen = Stolen { items: [0; MOST], count: 0 };
        loop {
            let front = self.0.front.load(Ordering::SeqCst);
            // Against `pop`: it sees this `front`, or this sees what it has taken.
            fence(Ordering::SeqCst);
            let first = number_of(front);
            let length = distance(first, self.0.back.load(Ordering::SeqCst));
            if length <= 0 {
                return None;
            }
            stolen.count = (length as usize).div_ceil(2).min(most);
            // After `back`: in this ring or an older one is all that is before that.
            let ring = self.0.ring(self.0.ring.load(Ordering::Acquire) as usize, Deque::<MOST>::FIRST_ROOM);
            for (number, item) in stolen.items[..stolen.count].iter_mut().enumerate() {
                // It may be another item by now: then `front` has changed.
                *item = place(ring, first.wrapping_add(number as u32)).load(Ordering::Relaxed);
            }
            let next = advanced(front, stolen.count);
            if self.0.front.compare_exchange(front, next, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                return Some(stolen);
            }
            std::hint::spin_loop();
        }
    }
}
