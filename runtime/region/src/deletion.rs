//! Deletion in program order: for which operations a name is destroyed.
//!
//! A deletion has a place in its program. What was launched before it may use the name, whenever that runs; what comes
//! after may not. So a name knows only that it was destroyed. The caller, which knows the order of the program, says
//! for which operations that counts: see [`Deletions`].

use std::sync::{Arc, OnceLock, Weak};

use crate::FieldId;

/// The deletions that precede an operation that is about to use names.
pub trait Deletions {
    /// Whether the name with this number is destroyed: that of an index space, a partition, a region tree or a field
    /// space, which are unique in their [`Forest`](crate::Forest). Asked only of names that were destroyed.
    fn is_destroyed(&self, number: u64) -> bool;

    /// How many times the field with this id was freed in a field space.
    fn times_freed(&self, fields: u64, field: FieldId) -> u32;
}

/// Held by a caller that remembers that a name was destroyed: it need not remember once the name is gone.
#[derive(Clone, Debug)]
pub struct Tombstone(Weak<()>);

impl Tombstone {
    /// Whether the name is gone: no handle of it is left.
    #[must_use]
    pub fn is_forgotten(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// Whether a name was destroyed, for any operation.
#[derive(Debug, Default)]
pub(crate) struct Mark(OnceLock<Arc<()>>);

impl Mark {
    pub(crate) fn set(&self) -> Tombstone {
        Tombstone(Arc::downgrade(self.0.get_or_init(Arc::default)))
    }

    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use crate::{FieldType, Forest};

    #[test]
    fn a_name_is_forgotten_once_it_is_gone_however_many_remember_it() {
        let space = Forest::new().field_space(2);
        let fields = ["a", "b"].map(|name| space.allocate(name, FieldType::of::<f64>()).unwrap());
        let tombstones = fields.map(|field| space.mark_freed(field).unwrap().0);
        assert!(tombstones.iter().all(|tombstone| !tombstone.is_forgotten()));
        drop(space);
        assert!(tombstones.iter().all(|tombstone| tombstone.is_forgotten()));
    }
}
