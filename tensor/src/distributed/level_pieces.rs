//! Pieces of what the levels of a tensor store.

use std::sync::Arc;

use maniple::LogicalPartition;

use crate::level::{Per, Stored};
use crate::placement::Placed;

/// The pieces of a tensor in levels, as partitions of what is stored of it: piece `k + 1` is that of the `k`th part,
/// and the first has nothing.
#[derive(Clone, Debug)]
pub struct LevelPieces {
    pub(super) placed: Arc<Placed>,
    /// Of each level, what it stores.
    pub(super) levels: StoredPieces,
    pub(super) values: LogicalPartition,
}

/// Of each level, what it stores, in pieces.
pub(super) type StoredPieces = Vec<Vec<(Stored, LogicalPartition)>>;

impl LevelPieces {
    /// Of what a level stores under a name: `pos`, `crd`, `ends`, `bits`, `used`; none if it stores nothing of the
    /// name.
    pub fn component(&self, level: usize, name: &str) -> Option<&LogicalPartition> {
        self.one(level, |stored| stored.name == name)
    }

    /// Of the offsets of a level, each piece with the one that ends its last position; none if it has no offsets.
    pub fn offsets(&self, level: usize) -> Option<&LogicalPartition> {
        self.one(level, |stored| stored.per == Per::Offset)
    }

    /// Of the coordinates of a level, or of where its runs end; none if it stores no coordinates.
    pub fn coordinates(&self, level: usize) -> Option<&LogicalPartition> {
        self.one(level, |stored| matches!(stored.per, Per::Position | Per::Slot))
    }

    /// Of the elements.
    pub fn values(&self) -> &LogicalPartition {
        &self.values
    }

    fn one(&self, level: usize, is_it: impl Fn(&Stored) -> bool) -> Option<&LogicalPartition> {
        self.levels.get(level)?.iter().find(|(stored, _)| is_it(stored)).map(|(_, partition)| partition)
    }
}
