//! Partitions that are made of others: unions, intersections, differences.

use maniple_region::Partitioning;
use maniple_space::AnySpace;

use crate::data::regions::{Partition, partition_erased, partition_error};
use crate::nodes::replication::distributed::{DistributedPartition, SetOperation};
use crate::support::error::Result;

/// Set operations, color by color, or with all pieces of the other partition.
impl<F, const D: usize> Partition<F, D> {
    /// For each color, the points that are in either partition's piece.
    ///
    /// # Errors
    /// [`crate::Error::Partition`] if the two have different colors.
    pub fn union<G>(&self, other: &Partition<G, D>) -> Result<Self> {
        self.combine(other, SetOperation::Union)
    }

    /// For each color, the points that are in both partitions' pieces.
    ///
    /// # Errors
    /// [`crate::Error::Partition`] if the two have different colors.
    pub fn intersection<G>(&self, other: &Partition<G, D>) -> Result<Self> {
        self.combine(other, SetOperation::Intersection)
    }

    /// For each color, the points of this partition's piece that are not in the other's.
    ///
    /// # Errors
    /// [`crate::Error::Partition`] if the two have different colors.
    pub fn difference<G>(&self, other: &Partition<G, D>) -> Result<Self> {
        self.combine(other, SetOperation::Difference)
    }

    /// For each color, the points of this partition's piece that are in some piece of the other, of whatever color.
    ///
    /// ```
    /// # use maniple::prelude::*;
    /// # #[derive(Fields)]
    /// # struct Cell { value: f64 }
    /// # Runtime::builder().workers(1).build()?.run(async |cx| {
    /// let cells = cx.region::<Cell>(100)?;
    /// let owned = cells.partition(4).equal()?;
    /// let edges = cells.partition(2).by_coloring(&[(0, Rect::from(0..10)), (1, Rect::from(90..100))])?;
    /// let (outer, inner) = (owned.intersection_with_all(&edges)?, owned.difference_from_all(&edges)?);
    /// assert_eq!(outer.piece(0)?.bounds(), Rect::from(0..10));
    /// assert_eq!(inner.piece(0)?.bounds(), Rect::from(10..25));
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Region`] if something was destroyed.
    pub fn intersection_with_all<G>(&self, other: &Partition<G, D>) -> Result<Self> {
        self.combine(other, SetOperation::IntersectionWithAll)
    }

    /// For each color, the points of this partition's piece that are in no piece of the other.
    ///
    /// # Errors
    /// [`crate::Error::Region`] if something was destroyed.
    pub fn difference_from_all<G>(&self, other: &Partition<G, D>) -> Result<Self> {
        self.combine(other, SetOperation::DifferenceFromAll)
    }

    fn combine<G>(&self, other: &Partition<G, D>, operation: SetOperation) -> Result<Self> {
        let (mine, others) = (self.logical().partitioning(), other.logical().partitioning());
        self.logical().tree().check_run()?;
        // Checked first: pieces may be elsewhere.
        operation.check(mine.len(), others.len()).map_err(partition_error)?;
        let partitioning = match DistributedPartition::combined(operation, [mine, others]) {
            Some((parent, colors, pieces)) => parent.forest().distributed_partition(&parent, colors, pieces)?,
            None => {
                let spaces = |of: &Partitioning| of.pieces().iter().map(|piece| piece.space().clone()).collect();
                let (mine, others): (Vec<AnySpace>, Vec<AnySpace>) = (spaces(mine), spaces(others));
                let pieces = operation.apply(&mine, &others);
                return Ok(Self::from_logical(partition_erased(&self.logical().parent(), self.colors(), &pieces)?));
            }
        };
        Ok(Self::from_logical(self.logical().parent().partition(&partitioning)?))
    }
}
