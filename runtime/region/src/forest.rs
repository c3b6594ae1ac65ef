//! The forest, which makes index spaces, partitions, field spaces and regions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use maniple_space::{AnyRect, AnySpace};

use crate::{
    FieldSpace, IndexSpaceNode, LogicalRegion, NodeId, Partitioning, PieceSource, RegionError, Shape, ShapeTable,
};

/// Makes index spaces, partitions, field spaces and regions, and gives them numbers.
///
/// One runtime has one forest. Objects live as long as there is a handle; *destroying* one forbids uses from there on
/// in the program: see [`deletion`](crate::deletion).
#[derive(Debug)]
pub struct Forest {
    shapes: ShapeTable,
    next_id: AtomicU64,
    /// Some partition had, or has, its pieces elsewhere.
    has_distributed_pieces: AtomicBool,
}

impl Forest {
    /// An empty forest.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            shapes: ShapeTable::new(),
            next_id: AtomicU64::new(1),
            has_distributed_pieces: AtomicBool::new(false),
        })
    }

    /// The point sets of this forest.
    #[must_use]
    pub fn shapes(&self) -> &ShapeTable {
        &self.shapes
    }

    /// A new index space with these points.
    #[must_use]
    pub fn index_space(self: &Arc<Self>, space: &AnySpace) -> IndexSpaceNode {
        let shape = self.shapes.intern(space);
        IndexSpaceNode::root(NodeId(self.take_ids(1)), Arc::clone(self), shape)
    }

    /// A new field space without fields.
    #[must_use]
    pub fn field_space(&self, max_fields: usize) -> Arc<FieldSpace> {
        Arc::new(FieldSpace::new(self.take_ids(1), max_fields))
    }

    /// A new region: its data is distinct from that of any other, even one over the same index and field space.
    ///
    /// # Errors
    /// [`RegionError::OtherRuntime`] if the index space is of another forest.
    pub fn region(&self, space: &IndexSpaceNode, fields: &Arc<FieldSpace>) -> Result<LogicalRegion, RegionError> {
        self.region_of("", space, fields)
    }

    /// A new region of which messages say what a row is: `Node region 3`.
    ///
    /// # Errors
    /// As [`Forest::region`].
    pub fn region_of(
        &self,
        row: &'static str,
        space: &IndexSpaceNode,
        fields: &Arc<FieldSpace>,
    ) -> Result<LogicalRegion, RegionError> {
        self.check_own(space)?;
        Ok(LogicalRegion::root(self.take_ids(1), row, space.clone(), Arc::clone(fields)))
    }

    /// Splits a space: one piece for each color, in row-major order.
    ///
    /// # Errors
    /// [`RegionError::ColorCount`] when the pieces are not as many as the colors, [`RegionError::PieceOutsideParent`]
    /// when a piece has a point that the parent lacks, [`RegionError::OtherRuntime`] when the parent is of another
    /// forest.
    pub fn partition(
        &self,
        parent: &IndexSpaceNode,
        colors: AnyRect,
        pieces: &[AnySpace],
    ) -> Result<Arc<Partitioning>, RegionError> {
        self.check_own(parent)?;
        if colors.volume() != pieces.len() as u64 {
            return Err(RegionError::ColorCount { colors: colors.volume(), pieces: pieces.len() });
        }
        for (number, piece) in pieces.iter().enumerate() {
            if !piece.is_subset_of(parent.space()).unwrap_or(false) {
                return Err(RegionError::PieceOutsideParent {
                    color: colors.delinear(number as u64),
                    parent: parent.to_string(),
                });
            }
        }
        Ok(self.partition_of_subsets(parent, colors, pieces))
    }

    /// As [`partition`](Self::partition), for a caller that knows that the pieces are as many as the colors, and
    /// subsets of the parent.
    #[must_use]
    pub fn partition_of_subsets(
        &self,
        parent: &IndexSpaceNode,
        colors: AnyRect,
        pieces: &[AnySpace],
    ) -> Arc<Partitioning> {
        self.make(parent, colors, Ok(pieces.iter().map(|piece| self.shapes.intern(piece)).collect()))
    }

    /// Splits a space into pieces that are elsewhere until they are asked for.
    ///
    /// # Errors
    /// [`RegionError::OtherRuntime`] when the parent is of another forest.
    pub fn distributed_partition(
        &self,
        parent: &IndexSpaceNode,
        colors: AnyRect,
        elsewhere: Arc<dyn PieceSource>,
    ) -> Result<Arc<Partitioning>, RegionError> {
        self.check_own(parent)?;
        // Relaxed: a thread that gets the partition sees this too.
        self.has_distributed_pieces.store(true, Ordering::Relaxed);
        Ok(self.make(parent, colors, Err(elsewhere)))
    }

    /// Whether there is, or was, a partition with [pieces that only other nodes know](Partitioning::piece_source): if
    /// not, there is no need to look for one.
    #[must_use]
    pub fn has_distributed_pieces(&self) -> bool {
        self.has_distributed_pieces.load(Ordering::Relaxed)
    }

    fn make(
        &self,
        parent: &IndexSpaceNode,
        colors: AnyRect,
        pieces: Result<Arc<[Shape]>, Arc<dyn PieceSource>>,
    ) -> Arc<Partitioning> {
        let make = |pieces| {
            let first = self.take_ids(1 + colors.volume());
            Partitioning::new(NodeId(first), first + 1, parent.clone(), colors, pieces)
        };
        match pieces {
            Ok(here) => parent.renew_or_make(colors, &here, || make(Ok(Arc::clone(&here)))),
            elsewhere => make(elsewhere),
        }
    }

    /// # Errors
    /// [`RegionError::OtherRuntime`] if the space was made by another forest.
    pub fn check_own(&self, space: &IndexSpaceNode) -> Result<(), RegionError> {
        if std::ptr::eq(Arc::as_ptr(space.forest()), self) {
            return Ok(());
        }
        Err(RegionError::OtherRuntime { what: space.to_string() })
    }

    /// # Errors
    /// [`RegionError::OtherRuntime`] if the region was made by another forest.
    pub fn check_own_region(&self, region: &LogicalRegion) -> Result<(), RegionError> {
        self.check_own(region.space()).map_err(|_| RegionError::OtherRuntime { what: region.to_string() })
    }

    /// The number of what is made next, or a lower one.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
    }

    pub(crate) fn take_ids(&self, count: u64) -> u64 {
        self.next_id.fetch_add(count, Ordering::Relaxed)
    }
}
