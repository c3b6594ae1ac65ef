//! Keys of regions: the same for regions that can stand for each other.

use std::any::TypeId;

use maniple_region::NodeId;

/// The rows and fields of regions that can stand for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegionKey {
    pub(crate) rows: RegionRows,
    pub(crate) fields: RegionFields,
}

impl RegionKey {
    /// Whether the rows are in an index space that no other region was made of.
    pub(super) fn has_own_rows(self) -> bool {
        matches!(self.rows, RegionRows::Shape(_))
    }
}

/// The rows of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RegionRows {
    /// The rows of an index space.
    Space(NodeId),
    /// These points, in an index space of its own.
    Shape(u64),
}

/// The fields of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RegionFields {
    /// The fields of a struct, in a field space of its own.
    Type(TypeId),
    /// The fields of a field space.
    Space(u64),
}
