//! The table behind the handles: slots that never move, and the free lists that hand them out.
//!
//! One slot is one operation and its event. A slot is 128 bytes: the first line holds everything that synchronises and
//! schedules, the second the body, so that an event without a body touches one line. How a body is called (`B`) is for
//! the code to say that stores it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::locks::Mutex;
use crossbeam_utils::CachePadded;

use super::word::{EventWord, LAST_GENERATION, Preconditions};
use super::{Event, SLOT_BITS};
use crate::prefetch::prefetch_for_writing;
use crate::profile::Tag;
use crate::scheduler::Class;

/// The preconditions that a slot can wait for by itself, as many as its first line has room for; more go through a tree
/// of merges.
pub(crate) const LINKS: usize = 6;

/// The bytes of a body that fits in its slot.
pub(crate) const BODY_BYTES: usize = 64;

/// Storage of a body. The alignment is the slot's half, so any body up to it may live here.
#[repr(C, align(64))]
pub(crate) struct BodyBytes(MaybeUninit<[u8; BODY_BYTES]>);

/// The action of a slot once its preconditions have triggered. `Vacant` is zero: so are slots never used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SlotKind {
    /// There is no body (any more), and the slot awaits no precondition.
    #[default]
    Vacant,
    /// An event alone, which triggers: a merge, or a user event.
    Event,
    /// A body that the triggering thread runs.
    Inline,
    /// A body for the workers.
    Queued,
}

/// The plain part of a slot: written by its maker before the slot is published, read by the thread that makes it ready
/// and by the one that runs it.
pub(crate) struct SlotHeader<B: 'static> {
    /// How the body is called.
    pub(crate) body: Option<&'static B>,
    pub(crate) tag: Tag,
    pub(crate) priority: i32,
    pub(crate) kind: SlotKind,
    pub(crate) class: Class,
    /// Bit `k`: poison of the precondition behind link `k` spreads.
    pub(crate) spreads: u8,
}

/// One operation and its event.
#[repr(C, align(128))]
pub(crate) struct Slot<B: 'static> {
    pub(crate) word: EventWord,
    /// The links of this slot's waiter nodes. Node `6 * slot + k` is in the list of the `k`-th precondition.
    pub(crate) links: [AtomicU32; LINKS],
    pub(crate) preconditions: Preconditions,
    /// The destination of the body: an encoded [`Destination`](crate::scheduler::destination::Destination).
    pub(crate) target: AtomicU32,
    header: UnsafeCell<SlotHeader<B>>,
    body: UnsafeCell<BodyBytes>,
}

const _: () = assert!(size_of::<Slot<()>>() == 128 && std::mem::offset_of!(Slot<()>, body) == 64);

// SAFETY: `header` and `body` are only reached through `header`, `header_mut` and `body`, whose callers vouch for being
// the slot's owner (or, for `header`, for the owner not writing); ownership passes from thread to thread through
// `Preconditions` and the queues, which synchronise. What a body holds is `Send`.
unsafe impl<B: Sync> Sync for Slot<B> {}

impl<B> Slot<B> {
    /// # Safety
    /// Nothing writes the header meanwhile: the caller owns the slot, or has found it in the waiter list of an event
    /// that it triggers and has not yet counted its precondition off.
    #[inline]
    pub(crate) unsafe fn header(&self) -> &SlotHeader<B> {
        // SAFETY: as the caller vouches.
        unsafe { &*self.header.get() }
    }

    /// # Safety
    /// The caller owns the slot: it has allocated and not published it, or made it ready, or runs it.
    #[allow(clippy::mut_from_ref)] // an UnsafeCell's content, under the caller's promise
    #[inline]
    pub(crate) unsafe fn header_mut(&self) -> &mut SlotHeader<B> {
        // SAFETY: as the caller vouches.
        unsafe { &mut *self.header.get() }
    }

    #[inline]
    pub(crate) fn body(&self) -> *mut BodyBytes {
        self.body.get()
    }

    /// The event that triggers next. Exact for the slot's owner.
    #[inline]
    pub(crate) fn pending_event(&self, index: u32) -> Event {
        Event::new(index, self.word.last_triggered() + 1)
    }
}

/// The slots of a realm: chunks of doubling size, so that finding a slot takes one load of a small array.
pub(crate) struct SlotTable<B: 'static> {
    chunks: [AtomicPtr<Slot<B>>; CHUNKS],
    pool: CachePadded<Mutex<Pool>>,
}

struct Pool {
    free: Vec<u32>,
    /// The slots from here on have never been handed out.
    fresh: u32,
}

const FIRST_CHUNK_BITS: u32 = 10;
const CHUNKS: usize = (SLOT_BITS - FIRST_CHUNK_BITS) as usize;
const CAPACITY: u32 = (1 << SLOT_BITS) - (1 << FIRST_CHUNK_BITS);

/// Slots move between the pool and a thread's cache so many at a time.
const BATCH: usize = 64;

fn chunk_slots(chunk: usize) -> usize {
    1 << (FIRST_CHUNK_BITS as usize + chunk)
}

#[inline]
fn locate(index: u32) -> (usize, usize) {
    let shifted = index + (1 << FIRST_CHUNK_BITS);
    let chunk = shifted.ilog2() - FIRST_CHUNK_BITS;
    (chunk as usize, (shifted - (1 << (chunk + FIRST_CHUNK_BITS))) as usize)
}

impl<B> SlotTable<B> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
            // Slot 0 is not used: node 0 ends a list, and event 0 is the null event.
            pool: CachePadded::new(Mutex::new(Pool { free: Vec::new(), fresh: 1 })),
        }
    }

    /// The slot with this index.
    ///
    /// # Panics
    /// If no such slot was ever handed out: the handle is another realm's, or made up.
    #[inline]
    pub(crate) fn slot(&self, index: u32) -> &Slot<B> {
        let (chunk, offset) = locate(index);
        let slots = self.chunks.get(chunk).map_or(ptr::null_mut(), |chunk| chunk.load(Ordering::Acquire));
        assert!(!slots.is_null(), "event slot {index} does not exist: the handle belongs to another realm");
        // SAFETY: chunks are published once, whole, and live as long as the table; `locate` stays within the chunk.
        unsafe { &*slots.add(offset) }
    }

    /// Begins to fetch what synchronises and schedules, to be written soon.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        let (chunk, offset) = locate(index);
        if let Some(slots) = self.chunks.get(chunk) {
            // Of a chunk that is not there, nothing.
            prefetch_for_writing(slots.load(Ordering::Relaxed).wrapping_add(offset));
        }
    }

    /// Fills an empty cache with a batch of slots.
    #[cold]
    fn refill(&self, cache: &mut Vec<u32>) {
        let mut pool = self.pool.lock();
        let pooled = pool.free.len();
        if pooled > 0 {
            cache.extend(pool.free.drain(pooled.saturating_sub(BATCH)..));
            return;
        }
        let first = pool.fresh;
        let last = (first + BATCH as u32).min(CAPACITY);
        assert!(first < last, "{CAPACITY} operations are pending at once, the most a realm can hold: launch fewer");
        pool.fresh = last;
        // There is room for all slots when they are given back: a thread that frees one allocates nothing.
        pool.free.reserve(last as usize);
        self.grow(locate(last - 1).0);
        // Backwards, so that they are popped in the order of their addresses.
        cache.extend((first..last).rev());
    }

    /// Makes the chunk, if it is not there. With the pool's lock held.
    fn grow(&self, chunk: usize) {
        if self.chunks[chunk].load(Ordering::Relaxed).is_null() {
            let layout = chunk_layout::<B>(chunk);
            // SAFETY: the layout is not empty. All-zero bytes are a valid slot: atomics and cells of zero, `None`s,
            // `Vacant`.
            let slots = unsafe { alloc_zeroed(layout) }.cast::<Slot<B>>();
            if slots.is_null() {
                handle_alloc_error(layout);
            }
            self.chunks[chunk].store(slots, Ordering::Release);
        }
    }

    fn give_back(&self, slots: impl IntoIterator<Item = u32>) {
        self.pool.lock().free.extend(slots);
    }

    /// How many slots were ever handed out.
    pub(crate) fn handed_out(&self) -> usize {
        self.pool.lock().fresh as usize - 1
    }

    /// Every slot that was ever handed out.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Slot<B>)> {
        let fresh = self.pool.lock().fresh;
        (1..fresh).map(|index| (index, self.slot(index)))
    }
}

impl<B> Drop for SlotTable<B> {
    fn drop(&mut self) {
        for (chunk, slots) in self.chunks.iter_mut().enumerate() {
            let slots = *slots.get_mut();
            if !slots.is_null() {
                // SAFETY: allocated by `grow` with this very layout. Bodies were dropped by the realm's last sweep;
                // headers own nothing else.
                unsafe { dealloc(slots.cast(), chunk_layout::<B>(chunk)) };
            }
        }
    }
}

fn chunk_layout<B: 'static>(chunk: usize) -> Layout {
    Layout::array::<Slot<B>>(chunk_slots(chunk)).expect("a chunk is at most 2^25 slots of 128 bytes")
}

/// A thread's own free slots, exchanged with the pool a batch at a time, so that a thread that only allocates and one
/// that only frees both stay off the lock.
pub(crate) struct SlotCache(Vec<u32>);

impl Default for SlotCache {
    /// With all the room that it will ever need: a worker that has begun allocates no more for it.
    fn default() -> Self {
        Self(Vec::with_capacity(2 * BATCH))
    }
}

impl SlotCache {
    #[inline]
    pub(crate) fn take<B>(&mut self, table: &SlotTable<B>) -> u32 {
        if self.0.is_empty() {
            table.refill(&mut self.0);
        }
        let index = self.0.pop().expect("a refilled cache is not empty");
        if let Some(&soon) = self.0.len().checked_sub(PREFETCH_DISTANCE).and_then(|ahead| self.0.get(ahead)) {
            table.prefetch(soon);
        }
        index
    }

    #[inline]
    pub(crate) fn put<B>(&mut self, table: &SlotTable<B>, index: u32) {
        if self.0.len() == 2 * BATCH {
            table.give_back(self.0.drain(..BATCH));
        }
        self.0.push(index);
    }

    pub(crate) fn give_back<B>(&mut self, table: &SlotTable<B>) {
        table.give_back(self.0.drain(..));
    }
}

/// A slot to be taken was last written by the worker that ran it: its line is fetched so many allocations ahead.
const PREFETCH_DISTANCE: usize = 4;

/// Whether a slot may be used for another event after `generation`.
#[inline]
pub(crate) fn reusable(generation: u32) -> bool {
    generation < LAST_GENERATION
}
