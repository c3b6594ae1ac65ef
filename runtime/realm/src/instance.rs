//! Instances: the values of some fields of some points, in one memory, in one layout.
//!
//! An instance is metadata at once and bytes as soon as its memory has room for it: see [`crate::memory`] for how room
//! is promised. The holder of the handle must order the accesses (by events, above this module), so reading and writing
//! is `unsafe`; asking where things lie is not. [`Realm::create_instance`](crate::Realm::create_instance) and
//! [`Realm::destroy_instance`](crate::Realm::destroy_instance) put creation and release in the order of events.
//!
//! ```
//! use maniple_realm::instance::{Instance, InstanceKind, Readiness};
//! use maniple_realm::layout::{FieldId, FieldSpec, LayoutSpec};
//! use maniple_realm::machine::MemoryId;
//! use maniple_realm::memory::MemoryPool;
//! use maniple_space::Rect;
//!
//! let pool = MemoryPool::new(MemoryId(0), 1 << 20);
//! let field = FieldId(7);
//! let spec = LayoutSpec::new(Rect::from(0..100).into(), vec![FieldSpec::of::<f64>(field)]);
//! let (instance, ready) = Instance::create(&pool, spec.build()?, InstanceKind::Normal, |_, _| ())?;
//! assert_eq!(ready, Readiness::Now);
//! assert_eq!(pool.used(), 800);
//!
//! // SAFETY: the instance is ours alone, and the field's values are `f64`.
//! unsafe {
//!     instance.write(field, 42, 1.5f64);
//!     assert_eq!(instance.read::<f64>(field, 42), 1.5);
//! }
//! drop(instance);
//! assert_eq!(pool.used(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod parts;

use std::any::Any;
use std::fmt;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, OnceLock};

use crate::locks::Mutex;
use maniple_space::{AnyPoint, AnySpace};
use thiserror::Error;

use crate::events::{Event, UserEvent};
use crate::layout::{FieldId, Layout};
use crate::machine::MemoryId;
use crate::memory::{AnnouncedRelease, Block, Grant, Granted, MemoryPool, OutOfMemory, Reservation, SystemRefused};
use crate::reduction::RawReduction;
pub use parts::Claim;
use parts::InstanceParts;

/// Names an instance: unique in one realm, never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId {
    /// The memory that the instance is in.
    pub memory: MemoryId,
    /// Its number in that memory.
    pub number: u64,
}

impl fmt::Display for InstanceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "instance {} of {}", self.number, self.memory)
    }
}

/// The kind of content of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// Values. They are zero bytes at first.
    Normal,
    /// Contributions to be reduced by an operator. They are its identity at first.
    Reduction(RawReduction),
}

/// When the bytes of a new instance are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// They are.
    Now,
    /// When announced releases have made room.
    Later,
}

/// An instance that cannot be made, or not be released.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// The memory has no room, and none to come.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The system has no room.
    #[error(transparent)]
    SystemRefused(#[from] SystemRefused),
    /// A reduction instance with a field of other values than contributions.
    #[error(
        "{field} has values of {size} bytes aligned to {align}, but the contributions of {operator} have {rhs_size} \
         aligned to {rhs_align}: lay the fields of a reduction instance out for contributions"
    )]
    NotContributions {
        /// The field.
        field: FieldId,
        /// The bytes of its values.
        size: usize,
        /// Their alignment.
        align: usize,
        /// The operator.
        operator: &'static str,
        /// The bytes of a contribution.
        rhs_size: usize,
        /// Their alignment.
        rhs_align: usize,
    },
    /// An external buffer that the layout does not fit in.
    #[error("the layout takes {needed} bytes aligned to {align}, but the buffer has {found} at address {address:#x}")]
    BufferDoesNotFit {
        /// The bytes that the layout takes.
        needed: usize,
        /// The alignment that it needs.
        align: usize,
        /// The bytes of the buffer.
        found: usize,
        /// The address of the buffer.
        address: usize,
    },
    /// An instance whose bytes were promised by another realm.
    #[error("{instance} was promised by another realm, whose events order its release: destroy it there")]
    OtherRealm {
        /// The instance.
        instance: InstanceId,
    },
    /// An instance destroyed twice.
    #[error("{instance} is destroyed already: destroy each instance once")]
    AlreadyDestroyed {
        /// The instance.
        instance: InstanceId,
    },
}

/// The fault that poisons the event of an instance if the system refuses its bytes when their turn has come.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{memory}: {refused}")]
pub struct PromiseBroken {
    /// The memory that had promised the bytes.
    pub memory: MemoryId,
    /// The request for bytes that the system refused.
    pub refused: SystemRefused,
}

/// The values of some fields of some points, in one memory.
///
/// Its bytes are given back when it is [released](Self::release), or when the last handle is dropped.
pub struct Instance {
    id: InstanceId,
    layout: Layout,
    kind: InstanceKind,
    pool: Arc<MemoryPool>,
    /// Null until the bytes are there, and after they are gone.
    base: AtomicPtr<u8>,
    holding: Mutex<Holding>,
    /// Some of its bytes do not count as used.
    is_in_parts: AtomicBool,
    /// Set if the bytes were promised for later, by a realm.
    pub(crate) ready: OnceLock<UserEvent>,
}

struct Holding {
    storage: Storage,
    /// Which parts count as used, unless all do.
    parts: Option<InstanceParts>,
    announced: Option<AnnouncedRelease>,
    destroyed: bool,
}

/// The storage behind an instance.
enum Storage {
    /// Nothing yet.
    Awaited,
    /// Bytes of the memory.
    Held { block: Block, reservation: Reservation },
    /// A reservation without bytes: the system had none, or they are not wanted any more.
    Unbacked { reservation: Reservation },
    /// A buffer of the program, and what keeps it alive.
    External { owner: Box<dyn Any + Send> },
    /// Nothing any more.
    Released,
}

impl Instance {
    /// The event after which its bytes are there, as [`Realm::create_instance`](crate::Realm::create_instance) gave it.
    #[must_use]
    pub fn ready(&self) -> Event {
        self.ready.get().map_or(Event::NONE, |ready| ready.event())
    }

    /// Makes an instance: now, or, if the memory can only promise room, later. In the second case `on_ready` is called
    /// once the bytes are there (or the system refused them); it must be short. The promise has a handle of its own
    /// until then: an instance that all others have dropped gets its bytes, and gives them back at once.
    ///
    /// # Errors
    ///
    /// If there is no room and none is to come, or the fields of a reduction instance do not fit its operator.
    pub fn create(
        pool: &Arc<MemoryPool>,
        layout: Layout,
        kind: InstanceKind,
        on_ready: impl FnOnce(&Arc<Self>, Result<(), SystemRefused>) + Send + 'static,
    ) -> Result<(Arc<Self>, Readiness), InstanceError> {
        check_contributions(&layout, kind)?;
        let bytes = layout.bytes() as u64;
        let instance = Self::without_bytes(pool, layout, kind, Storage::Awaited);
        let mut promised = Arc::clone(&instance);
        let later = move |reservation| {
            let outcome = match Arc::get_mut(&mut promised) {
                // There is no other reference, nor will be: bytes would be for nothing.
                Some(dropped) => {
                    dropped.holding.get_mut().storage = Storage::Unbacked { reservation };
                    Ok(())
                }
                None => promised.hold(reservation),
            };
            on_ready(&promised, outcome);
        };
        match pool.reserve(bytes, later)? {
            Grant::Now(reservation) => {
                instance.hold(reservation)?;
                Ok((instance, Readiness::Now))
            }
            Grant::Later => Ok((instance, Readiness::Later)),
        }
    }

    /// Makes an instance of values whose bytes count as used page by page, as they are [claimed](Self::claim): for more
    /// points than may come to be used. One that is small counts as a whole.
    ///
    /// # Errors
    ///
    /// If there is no room for all of it now: what is claimed in the end may be as much.
    ///
    /// ```
    /// use maniple_realm::instance::Instance;
    /// use maniple_realm::layout::{FieldId, FieldSpec, LayoutSpec};
    /// use maniple_realm::machine::MemoryId;
    /// use maniple_realm::memory::MemoryPool;
    /// use maniple_space::Rect;
    ///
    /// let pool = MemoryPool::new(MemoryId(0), 1 << 20);
    /// let spec = LayoutSpec::new(Rect::from(0..100_000).into(), vec![FieldSpec::of::<f64>(FieldId(7))]);
    /// let instance = Instance::create_in_parts(&pool, spec.build()?)?;
    /// assert_eq!(pool.used(), 0);
    /// // Pages of 4 KiB.
    /// let claim = instance.claim(&Rect::from(50_000..51_000).into())?;
    /// assert_eq!((claim.bytes(), pool.used()), (3 << 12, 3 << 12));
    /// assert_eq!(instance.claim(&Rect::from(50_500..50_600).into())?.bytes(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_in_parts(pool: &Arc<MemoryPool>, layout: Layout) -> Result<Arc<Self>, InstanceError> {
        let bytes = layout.bytes();
        let instance = Self::without_bytes(pool, layout, InstanceKind::Normal, Storage::Awaited);
        let mut counted = bytes as u64;
        if let Some(page) = pool.page_of(bytes) {
            pool.check_room(bytes as u64)?;
            instance.holding.lock().parts = Some(InstanceParts::of(bytes, page));
            instance.is_in_parts.store(true, Ordering::Release);
            counted = 0;
        }
        instance.hold(pool.reserve_now(counted)?)?;
        Ok(instance)
    }

    /// Whether some of its bytes do not count as used, until they are [claimed](Self::claim).
    #[inline]
    #[must_use]
    pub fn is_in_parts(&self) -> bool {
        self.is_in_parts.load(Ordering::Acquire)
    }

    /// Counts the pages as used in which the values of some points lie, before these points are. Gives those that did
    /// not count before.
    ///
    /// # Errors
    ///
    /// If the memory has no room for them now; then none of them counts.
    pub fn claim(&self, points: &AnySpace) -> Result<Claim, OutOfMemory> {
        let mut holding = self.holding.lock();
        let Holding { storage: Storage::Held { reservation, .. }, parts: Some(parts), destroyed: false, .. } =
            &mut *holding
        else {
            return Ok(Claim::default());
        };
        let claim = parts.count(&self.layout, points);
        match self.pool.reserve_now(claim.bytes()) {
            Ok(more) => reservation.join(more),
            Err(full) => {
                parts.uncount(&claim);
                return Err(full);
            }
        }
        self.is_in_parts.store(!parts.is_whole(), Ordering::Release);
        Ok(claim)
    }

    /// Takes a claim back of which nothing came: its pages do not count any more. Gives the reservations that this lets
    /// through.
    pub fn unclaim(&self, claim: &Claim) -> Option<Granted> {
        let mut holding = self.holding.lock();
        let Holding { storage: Storage::Held { reservation, .. }, parts: Some(parts), destroyed: false, .. } =
            &mut *holding
        else {
            return None;
        };
        parts.uncount(claim);
        self.is_in_parts.store(!parts.is_whole(), Ordering::Release);
        Some(reservation.split(claim.bytes()).give_back())
    }

    /// Makes an instance of a buffer that stays the caller's. Its bytes do not count as used in the memory.
    ///
    /// # Errors
    ///
    /// If the buffer is too small or not aligned for the layout, or the fields do not fit a reduction instance.
    ///
    /// # Safety
    ///
    /// The `length` bytes from `base` are readable, writable and initialised, and stay so, touched by nothing else,
    /// until `owner` is dropped.
    pub unsafe fn attach(
        pool: &Arc<MemoryPool>,
        layout: Layout,
        kind: InstanceKind,
        base: NonNull<u8>,
        length: usize,
        owner: Box<dyn Any + Send>,
    ) -> Result<Arc<Self>, InstanceError> {
        check_contributions(&layout, kind)?;
        let (needed, align, address) = (layout.bytes(), layout.required_align(), base.addr().get());
        if needed > length || !address.is_multiple_of(align) {
            return Err(InstanceError::BufferDoesNotFit { needed, align, found: length, address });
        }
        let instance = Self::without_bytes(pool, layout, kind, Storage::External { owner });
        instance.base.store(base.as_ptr(), Ordering::Release);
        Ok(instance)
    }

    /// Makes an instance of the elements of a vector, which [`release`](Self::release) gives back.
    ///
    /// # Errors
    ///
    /// If the vector is too short or not aligned for the layout.
    pub fn attach_vec<T: bytemuck::Pod + Send>(
        pool: &Arc<MemoryPool>,
        layout: Layout,
        mut values: Vec<T>,
    ) -> Result<Arc<Self>, InstanceError> {
        let length = size_of_val(values.as_slice());
        let base = NonNull::from(values.as_mut_slice()).cast();
        // SAFETY: the elements are initialised, stay where they are when the vector is moved into its box, and nothing
        // touches the vector before it is given back.
        unsafe { Self::attach(pool, layout, InstanceKind::Normal, base, length, Box::new(values)) }
    }

    fn without_bytes(pool: &Arc<MemoryPool>, layout: Layout, kind: InstanceKind, storage: Storage) -> Arc<Self> {
        let id = InstanceId { memory: pool.memory(), number: pool.next_instance() };
        let holding = Mutex::new(Holding { storage, parts: None, announced: None, destroyed: false });
        let (pool, base, is_in_parts) = (pool.clone(), AtomicPtr::new(null_mut()), AtomicBool::new(false));
        Arc::new(Self { id, layout, kind, pool, base, holding, is_in_parts, ready: OnceLock::new() })
    }

    /// Gets the bytes that were granted, and writes what the instance holds at first.
    fn hold(&self, reservation: Reservation) -> Result<(), SystemRefused> {
        let mut holding = self.holding.lock();
        let (bytes, align) = (self.layout.bytes(), self.layout.align());
        let block = if holding.parts.is_some() { Block::untouched(bytes, align) } else { Block::zeroed(bytes, align) };
        match block {
            Ok(block) => {
                let base = block.base().as_ptr();
                if let InstanceKind::Reduction(operator) = self.kind {
                    // SAFETY: the block is the layout's, and not published yet.
                    unsafe { write_identities(&self.layout, &operator, base) };
                }
                holding.storage = Storage::Held { block, reservation };
                self.base.store(base, Ordering::Release);
                Ok(())
            }
            Err(refused) => {
                // The bytes stay counted until the instance goes: others may have been promised their release.
                holding.storage = Storage::Unbacked { reservation };
                Err(refused)
            }
        }
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> InstanceId {
        self.id
    }

    /// The memory that it is in.
    #[must_use]
    pub fn memory(&self) -> MemoryId {
        self.id.memory
    }

    /// The layout of its values.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The kind of its content.
    #[must_use]
    pub fn kind(&self) -> InstanceKind {
        self.kind
    }

    /// The first of its bytes, which the offsets of its layout count from; `None` before they are there and after they
    /// were released.
    #[inline]
    #[must_use]
    pub fn base(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.base.load(Ordering::Acquire))
    }

    /// Reads one value.
    ///
    /// # Panics
    ///
    /// If the field, the point or the bytes are not there, or `T` has another size than the field.
    ///
    /// # Safety
    ///
    /// The field holds a valid `T` at the point, and nothing writes it meanwhile.
    #[must_use]
    pub unsafe fn read<T: Copy>(&self, field: FieldId, point: impl Into<AnyPoint>) -> T {
        // SAFETY: `place` gives the address of a value of this size in our bytes; the rest is the caller's promise.
        unsafe { self.place::<T>(field, point.into()).read_unaligned() }
    }

    /// Writes one value.
    ///
    /// # Panics
    ///
    /// As [`read`](Self::read).
    ///
    /// # Safety
    ///
    /// Nothing reads or writes the value meanwhile, and a `T` is valid for the readers of the field.
    pub unsafe fn write<T: Copy>(&self, field: FieldId, point: impl Into<AnyPoint>, value: T) {
        // SAFETY: as in `read`.
        unsafe { self.place::<T>(field, point.into()).write_unaligned(value) };
    }

    fn place<T>(&self, field: FieldId, point: AnyPoint) -> *mut T {
        let found = self.layout.field(field);
        let field_layout = found.unwrap_or_else(|| panic!("{} does not store {field}", self.id));
        assert_eq!(size_of::<T>(), field_layout.size(), "{field} of {} is read and written by its own size", self.id);
        let points = self.layout.points();
        assert!(points.contains(point), "{} stores {points}, not {point}", self.id);
        let base = self.base().unwrap_or_else(|| panic!("{} has no bytes: not yet, or not any more", self.id));
        base.as_ptr().wrapping_add(field_layout.offset_any(point)).cast()
    }

    /// Announces that the instance will be released; from now on its bytes are promised to instances that are made
    /// later. Works also before its own bytes are there.
    ///
    /// # Errors
    ///
    /// If it was announced or released before.
    pub fn announce_release(&self) -> Result<(), InstanceError> {
        let mut holding = self.holding.lock();
        if std::mem::replace(&mut holding.destroyed, true) {
            return Err(InstanceError::AlreadyDestroyed { instance: self.id });
        }
        let bytes = match &holding.storage {
            Storage::Awaited => self.layout.bytes() as u64,
            Storage::Held { reservation, .. } | Storage::Unbacked { reservation } => reservation.bytes(),
            Storage::External { .. } | Storage::Released => 0,
        };
        if bytes > 0 {
            holding.announced = Some(self.pool.announce_release(bytes));
        }
        Ok(())
    }

    /// Gives the bytes back, to the requests that they were promised to if the release was announced. Returns the owner
    /// of an external buffer. A second release does nothing.
    ///
    /// # Panics
    ///
    /// If the bytes are not there yet.
    ///
    /// # Safety
    ///
    /// Nothing uses the bytes any more.
    pub unsafe fn release(&self) -> Option<Box<dyn Any + Send>> {
        let (storage, announced) = {
            let mut holding = self.holding.lock();
            assert!(!matches!(holding.storage, Storage::Awaited), "{} is released before it is ready", self.id);
            holding.destroyed = true;
            (std::mem::replace(&mut holding.storage, Storage::Released), holding.announced.take())
        };
        self.base.store(null_mut(), Ordering::Release);
        self.give_back(storage, announced)
    }

    /// Frees the bytes before their number is free in the ledger, since a request that is granted that number asks the
    /// system at once.
    fn give_back(&self, storage: Storage, announced: Option<AnnouncedRelease>) -> Option<Box<dyn Any + Send>> {
        let reservation = match storage {
            Storage::Awaited | Storage::Released => return None,
            Storage::External { owner } => return Some(owner),
            Storage::Unbacked { reservation } => reservation,
            Storage::Held { block, reservation } => {
                drop(block);
                reservation
            }
        };
        if let Some(announced) = announced {
            self.pool.complete_release(announced, reservation);
        }
        None
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let holding = self.holding.get_mut();
        let storage = std::mem::replace(&mut holding.storage, Storage::Released);
        let announced = holding.announced.take();
        drop(self.give_back(storage, announced));
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut description = formatter.debug_struct("Instance");
        description.field("id", &self.id).field("bounds", &self.layout.bounds()).field("kind", &self.kind);
        description.finish_non_exhaustive()
    }
}

fn check_contributions(layout: &Layout, kind: InstanceKind) -> Result<(), InstanceError> {
    let InstanceKind::Reduction(operator) = kind else { return Ok(()) };
    let fits = |size, align| size == operator.rhs_size() && align % operator.rhs_align() == 0;
    match layout.spec().fields.iter().find(|field| !fits(field.size, field.align)) {
        None => Ok(()),
        Some(field) => Err(InstanceError::NotContributions {
            field: field.id,
            size: field.size,
            align: field.align,
            operator: operator.name(),
            rhs_size: operator.rhs_size(),
            rhs_align: operator.rhs_align(),
        }),
    }
}

/// # Safety
///
/// The bytes of the layout lie from `base` on, and nothing else touches them.
unsafe fn write_identities(layout: &Layout, operator: &RawReduction, base: *mut u8) {
    let volume = layout.volume();
    // Contributions without bytes need none, at however many points.
    for (_, field) in layout.fields().filter(|(_, field)| field.size() > 0) {
        let (address, mut linear) = (field.ranked(), 0);
        while linear < volume {
            let run = address.straight_run(linear, 1).min(volume - linear);
            let first = base.wrapping_add(address.offset_of_linear(linear));
            // SAFETY: `run` points from rank `linear` on lie at equal distances, inside by the layout's construction.
            unsafe { operator.write_identity(first, address.pitch() as isize, run) };
            linear += run;
        }
    }
}

#[cfg(test)]
mod tests;
