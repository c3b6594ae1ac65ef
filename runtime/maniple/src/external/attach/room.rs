//! Memory of the runtime's for the values of files, counted like that of instances; and whether there is room for what
//! the program has made.

use std::cmp::Reverse;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use maniple_mapper::MappingFailure;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::MemoryId;
use maniple_realm::memory::{Block, Grant, OutOfMemory, Reservation, ReusedBlock};
use maniple_realm::{Event, UserEvent};

use super::ATTACH;
use super::values::FieldValues;
use crate::context::ContextState;
use crate::core::{Chance, RuntimeCore};
use crate::support::error::{Error, Result};

/// Memory of the runtime's. The system gives it when it is first written, and that is when it counts: see [`Wanted`].
pub(super) struct Room {
    bytes: Bytes,
    _counted: Counted,
}

/// The reservation that counts the room, once it is counted.
type Counted = Arc<Mutex<Option<Reservation>>>;

enum Bytes {
    Zero(Block),
    Any(ReusedBlock),
}

impl Room {
    /// The first byte.
    pub(super) fn base(&self) -> NonNull<u8> {
        match &self.bytes {
            Bytes::Zero(block) => block.base(),
            Bytes::Any(block) => block.block().base(),
        }
    }
}

/// Room that is still to be counted, in the order in which launches take theirs.
pub(super) struct Wanted {
    counted: Counted,
    memory: MemoryId,
    bytes: u64,
    fields: String,
    region: String,
}

impl Wanted {
    /// Counts the room, for which copies that are not needed make place. An event after which it is there.
    pub(super) fn take(&self, core: &RuntimeCore) -> Result<Event, OutOfMemory> {
        let (realm, pool) = (core.realm(), core.realm().memory_pool(self.memory));
        loop {
            // It knows the event only if it is called later.
            let granted = Arc::new(OnceLock::<UserEvent>::new());
            let (event, later, again) = (Arc::clone(&granted), Arc::downgrade(&self.counted), realm.clone());
            let grant = pool.reserve(self.bytes, move |reservation| {
                if let Some(counted) = later.upgrade() {
                    *counted.lock() = Some(reservation);
                }
                let event = *event.get_or_init(|| again.user_event());
                again.trigger(event);
            });
            match grant {
                Ok(Grant::Now(reservation)) => {
                    *self.counted.lock() = Some(reservation);
                    return Ok(Event::NONE);
                }
                Ok(Grant::Later) => return Ok(granted.get_or_init(|| realm.user_event()).event()),
                Err(full) if !core.make_place(self.memory) => return Err(full),
                Err(_) => {}
            }
        }
    }

    /// The memory that the room is in.
    pub(super) fn memory(&self) -> MemoryId {
        self.memory
    }

    /// The error that there is no room.
    pub(super) fn refusal(&self, full: &OutOfMemory) -> Error {
        let failure = shortage(full);
        let (operation, fields, region) = (ATTACH.to_owned(), self.fields.clone(), self.region.clone());
        Error::OutOfMemory { operation, point: None, fields, region, failure, launched: None }
    }
}

fn shortage(full: &OutOfMemory) -> MappingFailure {
    let OutOfMemory { memory, requested, used, capacity, .. } = *full;
    MappingFailure::OutOfMemory { requirement: 0, memory, bytes: requested, used, capacity }
}

impl RuntimeCore {
    /// Lets go of what is not needed in a memory. Whether there was anything.
    fn make_place(&self, memory: MemoryId) -> bool {
        self.store.make_room(memory, i64::MAX) || self.store.discard_caches()
    }
}

impl ContextState {
    /// Memory for values, and what is to be counted of it: zero, unless they are read from a file before they are used.
    pub(super) fn room(&self, values: &FieldValues<'_>, bytes: usize, is_read: bool) -> Result<(Room, Wanted)> {
        let memory = self.memory_for(bytes as u64);
        let pool = self.core.realm().memory_pool(memory);
        let align = values.ty.align;
        let made = match is_read {
            true => pool.reused_block(bytes, align).map(Bytes::Any),
            false => Block::zeroed(bytes, align).map(Bytes::Zero),
        };
        let (bytes, (fields, region)) = (bytes as u64, values.names());
        let made = made.map_err(|_| {
            let failure = MappingFailure::SystemRefused { requirement: 0, memory, bytes };
            let (operation, fields, region) = (ATTACH.to_owned(), fields.clone(), region.clone());
            Error::OutOfMemory { operation, point: None, fields, region, failure, launched: None }
        })?;
        let counted = Counted::default();
        let wanted = Wanted { counted: Arc::clone(&counted), memory, bytes, fields, region };
        Ok((Room { bytes: made, _counted: counted }, wanted))
    }

    /// Waits as launches do until a memory has room for bytes that the program has made there, which are the fields of
    /// what a launch has returned.
    pub(crate) async fn room_for(&self, bytes: u64, launch: &str, fields: String, region: &str) -> Result<()> {
        let core = &self.core;
        let mut chance = Chance::Another;
        loop {
            let memory = self.memory_for(bytes);
            let Err(full) = core.realm().memory_pool(memory).check_room(bytes) else { return Ok(()) };
            if core.make_place(memory) {
                continue;
            }
            if chance == Chance::Last {
                let (operation, region, failure) = (launch.to_owned(), region.to_owned(), shortage(&full));
                return Err(Error::OutOfMemory { operation, point: None, fields, region, failure, launched: None });
            }
            let (again, hope) = core.starved();
            let _ = core.realm().event_future(again).await;
            chance = hope.get().copied().unwrap_or(Chance::Last);
        }
    }

    /// The nearest memory that tasks on this processor see and that has room for so many bytes; if none has, the
    /// largest.
    pub(super) fn memory_for(&self, bytes: u64) -> MemoryId {
        let seen = || self.core.machine().memories_visible_from(self.processor).iter().map(|visible| visible.memory);
        let pool = |memory: MemoryId| self.core.realm().memory_pool(memory);
        let nearest = seen().find(|&memory| pool(memory).check_room(bytes).is_ok());
        // Of those that are as large, the nearest.
        nearest.or_else(|| seen().min_by_key(|&memory| Reverse(pool(memory).capacity()))).unwrap_or(MemoryId(0))
    }
}
