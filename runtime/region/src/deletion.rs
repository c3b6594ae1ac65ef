//! Deletion in program order: for whom a name is destroyed.
//!
//! A deletion has a place in its program. What was launched before it may use the name, whenever that runs; what comes after may not. So a name knows
//! only that somebody has destroyed it. Whoever knows the order of the program says for whom that counts: see [`Deletions`].

use std::sync::{Arc, OnceLock};

use crate::FieldId;

/// What is destroyed for somebody who is about to use names.
pub trait Deletions {
    /// Whether the name with this number is destroyed: that of an index space, a partition, a region tree or a field space, which are unique in their
    /// [`Forest`](crate::Forest). Asked only of names that somebody has destroyed.
    fn is_destroyed(&self, number: u64) -> bool;

    /// How many times the field with this id was freed in a field space.
    fn times_freed(&self, fields: u64, field: FieldId) -> u32;
}

/// Shared by a name and by those who remember that it was destroyed, who need not once the name is gone.
#[derive(Clone, Debug)]
pub struct Tombstone(Arc<()>);

impl Tombstone {
    /// Whether the name is gone, and nobody else remembers it.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// Whether somebody has destroyed a name.
#[derive(Debug, Default)]
pub(crate) struct Mark(OnceLock<Tombstone>);

impl Mark {
    pub(crate) fn set(&self) -> Tombstone {
        self.0.get_or_init(|| Tombstone(Arc::default())).clone()
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }
}
