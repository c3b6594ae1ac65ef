//! Memories: how many bytes are in use, which requests wait for some, and the bytes themselves.
//!
//! A [`MemoryPool`] stands for one memory of the machine. It counts the bytes of instances against the capacity by the
//! rule of the [`ledger`], so a reservation is granted at once, deferred until announced releases have happened, or
//! refused. The bytes come from the system, as a [`Block`], once the reservation is granted.
//!
//! ```
//! use maniple_realm::machine::MemoryId;
//! use maniple_realm::memory::{Grant, MemoryPool};
//!
//! let pool = MemoryPool::new(MemoryId(0), 100);
//! let Grant::Now(held) = pool.reserve(60, |_| ())? else { unreachable!("the memory is empty") };
//! assert!(pool.reserve(60, |_| ()).is_err());
//!
//! // Once its release is announced, others may be promised its bytes.
//! let release = pool.announce_release(held.bytes());
//! let (sender, receiver) = std::sync::mpsc::channel();
//! let Grant::Later = pool.reserve(60, move |granted| sender.send(granted.bytes()).unwrap())? else { unreachable!() };
//! pool.complete_release(release, held);
//! assert_eq!(receiver.recv(), Ok(60));
//! # Ok::<(), maniple_realm::memory::OutOfMemory>(())
//! ```

mod block;
pub mod ledger;
mod spare;

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::locks::Mutex;
use thiserror::Error;

use crate::machine::{Machine, MemoryId};
use crate::profile::{Profiler, Record};
pub use block::Block;
use ledger::{Decision, Ledger, Ticket};
pub use spare::ReusedBlock;
use spare::Spares;

/// A memory cannot hold what was asked of it, not even after all announced releases.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{memory} cannot hold {requested} bytes more: {used} of its {capacity} bytes are in use, {releasing} of those are \
     about to be released, and {deferred} are promised to others; use another memory, or release instances first"
)]
pub struct OutOfMemory {
    /// The memory.
    pub memory: MemoryId,
    /// The bytes asked for.
    pub requested: u64,
    /// The bytes in use.
    pub used: u64,
    /// The bytes that there are.
    pub capacity: u64,
    /// Of the bytes in use, those whose release is announced.
    pub releasing: u64,
    /// The bytes promised to deferred reservations.
    pub deferred: u64,
}

impl OutOfMemory {
    /// Whether there is room once all announced releases have happened and all promises are kept.
    #[must_use]
    pub fn is_to_come(&self) -> bool {
        let in_the_end = self.used.saturating_add(self.deferred).saturating_sub(self.releasing);
        in_the_end.checked_add(self.requested).is_some_and(|bytes| bytes <= self.capacity)
    }
}

/// The system gave no memory although the machine model says that there is some.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the system refused {bytes} bytes aligned to {align}: give the memories of the machine smaller capacities")]
pub struct SystemRefused {
    /// The bytes asked for.
    pub bytes: usize,
    /// Their alignment.
    pub align: usize,
}

/// How a reservation was answered.
#[derive(Debug)]
pub enum Grant {
    /// Here it is.
    Now(Reservation),
    /// It was promised, and will be given to the caller's function.
    Later,
}

type OnGrant = Box<dyn FnOnce(Reservation) + Send>;

/// One memory of the machine: its bytes, counted.
pub struct MemoryPool {
    memory: MemoryId,
    /// The bytes of a page, if it is not the system's.
    page: Option<usize>,
    state: Mutex<MemoryState>,
    next_instance: AtomicU64,
    profiler: OnceLock<Profiler>,
    spares: Arc<Spares>,
}

/// At most so many bytes of dropped blocks are kept for others, and no more than a quarter of a memory.
const MOST_SPARE: u64 = 64 << 20;

/// Instances of so many bytes, or fewer, count as a whole.
const SMALLEST_IN_PARTS: usize = 256 << 10;

struct MemoryState {
    ledger: Ledger,
    waiting: HashMap<Ticket, (u64, OnGrant)>,
}

/// An announced release, to be [completed](MemoryPool::complete_release) once. Dropped instead, it is withdrawn: then
/// the bytes are promised no more, and promises that rest on them are kept once they are free all the same.
#[derive(Debug)]
#[must_use = "others may have been promised the bytes: complete the release"]
pub struct AnnouncedRelease {
    pool: Arc<MemoryPool>,
    ticket: Ticket,
    bytes: u64,
}

impl Drop for AnnouncedRelease {
    fn drop(&mut self) {
        self.pool.state.lock().ledger.withdraw_release(self.ticket);
    }
}

impl MemoryPool {
    /// A memory of `capacity` bytes, all free.
    #[must_use]
    pub fn new(memory: MemoryId, capacity: u64) -> Arc<Self> {
        Self::of(memory, capacity, None)
    }

    fn of(memory: MemoryId, capacity: u64, page: Option<usize>) -> Arc<Self> {
        let state = MemoryState { ledger: Ledger::new(capacity), waiting: HashMap::new() };
        let (state, next_instance) = (Mutex::new(state), AtomicU64::new(0));
        let spares = Spares::new((capacity / 4).min(MOST_SPARE) as usize);
        Arc::new(Self { memory, page, state, next_instance, profiler: OnceLock::new(), spares })
    }

    /// Bytes that the caller writes before it reads them: they may be those of a dropped block, as it was. Nothing is
    /// counted: that is for a [reservation](Self::reserve).
    ///
    /// # Errors
    ///
    /// As [`Block::zeroed`].
    pub fn reused_block(&self, bytes: usize, align: usize) -> Result<ReusedBlock, SystemRefused> {
        self.spares.block(bytes, align)
    }

    /// Has the bytes in use recorded from now on.
    pub(crate) fn record_to(&self, profiler: Profiler) {
        let _ = self.profiler.set(profiler);
    }

    /// Records the bytes in use. Under the lock, so that times and amounts go together.
    #[inline]
    fn note_use(&self, ledger: &Ledger) {
        if let Some(profiler) = self.profiler.get() {
            let (memory, used, time) = (self.memory.0, ledger.used(), profiler.now_ns());
            profiler.record(Record::Memory { memory, used, time });
        }
    }

    /// A pool for each memory of a machine, in the order of their ids.
    #[must_use]
    pub fn for_machine(machine: &Machine) -> Vec<Arc<Self>> {
        let page = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        machine.memories().iter().map(|memory| Self::of(memory.id, memory.capacity, memory.page.map(page))).collect()
    }

    /// The bytes of the pages by which parts of an instance of so many bytes count; none if it is so small that it
    /// counts as a whole.
    pub(crate) fn page_of(&self, instance: usize) -> Option<usize> {
        let page = self.page.unwrap_or_else(|| block::page_of(instance));
        let smallest = if self.page.is_some() { page } else { SMALLEST_IN_PARTS };
        (instance > smallest).then_some(page)
    }

    /// The memory that it stands for.
    #[must_use]
    pub fn memory(&self) -> MemoryId {
        self.memory
    }

    /// The bytes that there are.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.state.lock().ledger.capacity()
    }

    /// The bytes in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.state.lock().ledger.used()
    }

    /// The most bytes in use at once, since [`reset_peak`](Self::reset_peak) if that was called.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.state.lock().ledger.peak()
    }

    /// The bytes in use, the most that were, and those that there are, all of one moment.
    #[must_use]
    pub fn usage(&self) -> (u64, u64, u64) {
        let state = self.state.lock();
        (state.ledger.used(), state.ledger.peak(), state.ledger.capacity())
    }

    /// From now on [`peak`](Self::peak) is the most bytes in use since this call.
    pub fn reset_peak(&self) {
        self.state.lock().ledger.reset_peak();
    }

    /// The bytes that are promised to deferred reservations.
    #[must_use]
    pub fn deferred(&self) -> u64 {
        self.state.lock().ledger.deferred()
    }

    /// Reserves bytes: at once, or, if announced releases are sure to make room, later. `on_grant` is called only in
    /// the second case, once, by the thread that completes the release; it must be short.
    ///
    /// # Errors
    ///
    /// If there is no room and no promise can be made.
    pub fn reserve(
        self: &Arc<Self>,
        bytes: u64,
        on_grant: impl FnOnce(Reservation) + Send + 'static,
    ) -> Result<Grant, OutOfMemory> {
        let mut state = self.state.lock();
        match state.ledger.allocate(bytes) {
            Decision::Granted => {
                self.note_use(&state.ledger);
                Ok(Grant::Now(Reservation { pool: self.clone(), bytes }))
            }
            Decision::Deferred(ticket) => {
                state.waiting.insert(ticket, (bytes, Box::new(on_grant)));
                Ok(Grant::Later)
            }
            Decision::Refused => Err(self.refusal(&state.ledger, bytes)),
        }
    }

    /// Reserves bytes at once, and waits for no announced release.
    ///
    /// # Errors
    ///
    /// If there is no room now.
    pub fn reserve_now(self: &Arc<Self>, bytes: u64) -> Result<Reservation, OutOfMemory> {
        let mut state = self.state.lock();
        if !state.ledger.allocate_now(bytes) {
            return Err(self.refusal(&state.ledger, bytes));
        }
        self.note_use(&state.ledger);
        Ok(Reservation { pool: self.clone(), bytes })
    }

    /// Counts bytes as in use that lie in this memory, whether there is room for them or not: what the program has made
    /// itself. What is asked for later finds so much less.
    pub fn charge(self: &Arc<Self>, bytes: u64) -> Charge {
        let mut state = self.state.lock();
        state.ledger.charge(bytes);
        self.note_use(&state.ledger);
        Charge { pool: self.clone(), bytes }
    }

    /// Whether [`reserve_now`](Self::reserve_now) would give so many bytes at this moment.
    ///
    /// # Errors
    ///
    /// If it would not.
    pub fn check_room(&self, bytes: u64) -> Result<(), OutOfMemory> {
        let state = self.state.lock();
        if state.ledger.has_room(bytes) { Ok(()) } else { Err(self.refusal(&state.ledger, bytes)) }
    }

    fn refusal(&self, ledger: &Ledger, requested: u64) -> OutOfMemory {
        OutOfMemory {
            memory: self.memory,
            requested,
            used: ledger.used(),
            capacity: ledger.capacity(),
            releasing: ledger.releasing(),
            deferred: ledger.deferred(),
        }
    }

    /// Announces that so many bytes, reserved or promised already, will be released; from now on they are promised to
    /// others. The release must not wait for anything that is asked of this memory later.
    pub fn announce_release(self: &Arc<Self>, bytes: u64) -> AnnouncedRelease {
        AnnouncedRelease { pool: Arc::clone(self), ticket: self.state.lock().ledger.announce_release(bytes), bytes }
    }

    /// Makes an announced release happen, and calls the waiters that this lets through.
    ///
    /// # Panics
    ///
    /// If the reservation or the announcement is of another memory, or not of as many bytes as the other.
    pub fn complete_release(self: &Arc<Self>, release: AnnouncedRelease, mut reservation: Reservation) {
        assert!(Arc::ptr_eq(self, &reservation.pool), "a reservation is released in its own memory, {}", self.memory);
        assert!(Arc::ptr_eq(self, &release.pool), "a release is completed in its own memory, {}", self.memory);
        assert_eq!(release.bytes, reservation.bytes, "what is released is what was announced");
        reservation.bytes = 0;
        drop(self.let_through(|ledger| ledger.complete_release(release.ticket)));
    }

    /// A number that no other instance of this memory has.
    pub(crate) fn next_instance(&self) -> u64 {
        self.next_instance.fetch_add(1, Ordering::Relaxed)
    }

    /// Changes the ledger, and finds those whose turn has come.
    fn let_through(self: &Arc<Self>, change: impl FnOnce(&mut Ledger) -> Vec<Ticket>) -> Granted {
        let mut state = self.state.lock();
        let tickets = change(&mut state.ledger);
        self.note_use(&state.ledger);
        let granted = tickets.iter().filter_map(|ticket| state.waiting.remove(ticket));
        Granted(granted.map(|(bytes, call)| (Reservation { pool: self.clone(), bytes }, call)).collect())
    }
}

/// The waiters that freed bytes have let through: each gets its bytes when this value is dropped. They may use the pool
/// then, and wake others, so it must not be dropped under a lock.
#[must_use = "those who were promised bytes get them when this is dropped"]
pub struct Granted(Vec<(Reservation, OnGrant)>);

impl Granted {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            grant_all(std::mem::take(&mut self.0).into_iter());
        }
    }
}

impl fmt::Debug for Granted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.0.iter().map(|(reservation, _)| reservation)).finish()
    }
}

/// Calls the waiters that were granted bytes. One that releases bytes in turn, and so lets others through, has these
/// called by the outermost call on the thread: a chain of them, however long, needs no deep stack.
fn grant_all(granted: impl Iterator<Item = (Reservation, OnGrant)>) {
    thread_local! {
        /// Waiters still to be called; there while this thread calls them.
        static DUE: RefCell<Option<VecDeque<(Reservation, OnGrant)>>> = const { RefCell::new(None) };
    }
    /// Ends the outermost call, also by a panic; those not called yet then give their bytes back.
    struct Outermost;
    impl Drop for Outermost {
        fn drop(&mut self) {
            drop(DUE.take());
        }
    }
    let is_outermost = DUE.with_borrow_mut(|due| {
        let is_outermost = due.is_none();
        due.get_or_insert_default().extend(granted);
        is_outermost
    });
    if is_outermost {
        let _outermost = Outermost;
        while let Some((reservation, call)) = DUE.with_borrow_mut(|due| due.as_mut().and_then(VecDeque::pop_front)) {
            call(reservation);
        }
    }
}

impl fmt::Debug for MemoryPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut description = formatter.debug_struct("MemoryPool");
        description.field("memory", &self.memory).field("ledger", &self.state.lock().ledger).finish()
    }
}

/// Bytes of a memory that are counted as in use until it is dropped.
#[derive(Debug)]
pub struct Reservation {
    pool: Arc<MemoryPool>,
    bytes: u64,
}

impl Reservation {
    /// How many bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes the bytes of another one of the same memory.
    pub(crate) fn join(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.pool, &other.pool), "bytes of one memory are no bytes of another");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Takes so many of its bytes away, or all if they are fewer.
    pub(crate) fn split(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { pool: self.pool.clone(), bytes }
    }

    /// Frees the bytes at once, and leaves it to the caller when others are told.
    pub(crate) fn give_back(mut self) -> Granted {
        let bytes = std::mem::take(&mut self.bytes);
        self.pool.let_through(|ledger| ledger.release(bytes))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let bytes = self.bytes;
            drop(self.pool.let_through(|ledger| ledger.release(bytes)));
        }
    }
}

/// Bytes of the program's that are [counted](MemoryPool::charge) as in use until it is dropped.
#[derive(Debug)]
pub struct Charge {
    pool: Arc<MemoryPool>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        state.ledger.discharge(self.bytes);
        self.pool.note_use(&state.ledger);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(grant: Result<Grant, OutOfMemory>) -> Reservation {
        match grant {
            Ok(Grant::Now(reservation)) => reservation,
            other => panic!("expected a grant at once, found {other:?}"),
        }
    }

    #[test]
    fn a_dropped_reservation_frees_its_bytes() {
        let pool = MemoryPool::new(MemoryId(3), 10);
        let held = now(pool.reserve(10, |_| ()));
        assert_eq!(pool.used(), 10);
        drop(held);
        assert_eq!((pool.used(), pool.peak()), (0, 10));
    }

    #[test]
    fn a_refusal_says_what_is_in_use() {
        let pool = MemoryPool::new(MemoryId(3), 10);
        let _held = now(pool.reserve(4, |_| ()));
        let expected =
            OutOfMemory { memory: MemoryId(3), requested: 7, used: 4, capacity: 10, releasing: 0, deferred: 0 };
        assert_eq!(pool.reserve(7, |_| ()).unwrap_err(), expected);
        assert!(!expected.is_to_come() && OutOfMemory { releasing: 1, ..expected.clone() }.is_to_come());
        assert!(!OutOfMemory { releasing: 1, deferred: 1, ..expected.clone() }.is_to_come());
        assert!(expected.to_string().contains("memory 3 cannot hold 7 bytes more: 4 of its 10"));
    }

    #[test]
    fn what_is_reserved_at_once_is_joined_and_split() {
        let pool = MemoryPool::new(MemoryId(3), 10);
        let mut held = pool.reserve_now(4).unwrap();
        assert!(pool.check_room(6).is_ok() && pool.check_room(7).is_err());
        assert_eq!(pool.reserve_now(7).unwrap_err().requested, 7);
        held.join(pool.reserve_now(6).unwrap());
        assert_eq!((held.bytes(), pool.used()), (10, 10));
        drop(held.split(7));
        assert_eq!((held.bytes(), pool.used()), (3, 3));
        drop(held.split(7));
        drop(held);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn whoever_is_let_through_may_use_the_pool() {
        let pool = MemoryPool::new(MemoryId(0), 10);
        let held = now(pool.reserve(10, |_| ()));
        let release = pool.announce_release(10);
        let (sender, receiver) = std::sync::mpsc::channel();
        let inner = pool.clone();
        let grant = pool.reserve(6, move |granted| {
            let more = now(inner.reserve(4, |_| ()));
            sender.send((granted, more)).unwrap();
        });
        assert!(matches!(grant, Ok(Grant::Later)));
        pool.complete_release(release, held);
        assert_eq!(pool.used(), 10);
        drop(receiver.recv().unwrap());
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn a_promised_reservation_that_is_not_wanted_any_more_frees_its_bytes_when_it_comes() {
        let pool = MemoryPool::new(MemoryId(0), 10);
        let held = now(pool.reserve(10, |_| ()));
        let release = pool.announce_release(10);
        assert!(matches!(pool.reserve(10, drop), Ok(Grant::Later)));
        pool.complete_release(release, held);
        assert_eq!((pool.used(), pool.deferred()), (0, 0));
    }

    #[test]
    fn an_announcement_that_is_dropped_is_withdrawn() {
        let pool = MemoryPool::new(MemoryId(0), 10);
        let held = now(pool.reserve(10, |_| ()));
        drop(pool.announce_release(10));
        assert!(pool.reserve(10, |_| ()).is_err());
        drop(held);
        let held = now(pool.reserve(10, |_| ()));
        let release = pool.announce_release(10);
        assert!(matches!(pool.reserve(10, drop), Ok(Grant::Later)));
        drop(release);
        assert_eq!((pool.used(), pool.deferred()), (10, 10));
        drop(held);
        assert_eq!((pool.used(), pool.deferred()), (0, 0));
        drop(now(pool.reserve(10, |_| ())));
    }
}
