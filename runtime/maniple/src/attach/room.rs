//! Memory of the runtime's for the values of files, counted like that of instances.

use std::ptr::NonNull;
use std::sync::Arc;

use maniple_mapper::MappingFailure;
use maniple_realm::locks::Mutex;
use maniple_realm::memory::{Block, Grant, Reservation, ReusedBlock};

use super::ATTACH;
use super::placing::Values;
use crate::context::ContextState;
use crate::error::{Error, Result};

/// Memory of the runtime's.
pub(super) struct Room {
    bytes: Bytes,
    /// What is counted: there once those bytes are free.
    _counted: Arc<Mutex<Option<Reservation>>>,
}

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

impl ContextState {
    /// Memory for values: zero, unless they are read from a file before they are used. Copies that are not needed make room for it.
    pub(super) fn room(&self, values: &Values<'_>, (bytes, is_read): (usize, bool)) -> Result<Room> {
        let (store, memory) = (&self.core.store, self.own_memory());
        let pool = self.core.realm().memory_pool(memory);
        let lacking = |failure| {
            let (fields, region) = values.names();
            let operation = ATTACH.to_owned();
            Error::OutOfMemory { operation, point: None, fields, region, failure, launched: None }
        };
        let counted = loop {
            let counted = Arc::new(Mutex::new(None));
            let later = Arc::downgrade(&counted);
            let granted = pool.reserve(bytes as u64, move |reservation| {
                if let Some(counted) = later.upgrade() {
                    *counted.lock() = Some(reservation);
                }
            });
            match granted {
                Ok(Grant::Now(reservation)) => *counted.lock() = Some(reservation),
                Ok(Grant::Later) => {}
                Err(_) if store.make_room((memory, i64::MAX)) || store.discard_caches() => continue,
                Err(full) => {
                    let (bytes, used, capacity) = (full.requested, full.used, full.capacity);
                    return Err(lacking(MappingFailure::OutOfMemory { requirement: 0, memory, bytes, used, capacity }));
                }
            }
            break counted;
        };
        let align = values.ty.align;
        let made = match is_read {
            true => pool.reused_block(bytes, align).map(Bytes::Any),
            false => Block::zeroed(bytes, align).map(Bytes::Zero),
        };
        let refused = |_| lacking(MappingFailure::SystemRefused { requirement: 0, memory, bytes: bytes as u64 });
        Ok(Room { bytes: made.map_err(refused)?, _counted: counted })
    }
}
