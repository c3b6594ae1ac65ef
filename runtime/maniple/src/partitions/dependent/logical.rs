//! Partitions of regions whose fields are known at run time: what libraries call.

use std::ops::Range;

use maniple_region::{FieldId, LogicalPartition, LogicalRegion};
use maniple_space::{IndexSpace, Rect, partition};

use super::computation::Computation;
use super::integers::{Integers, clipped};
use super::relation::{Relation, unsuited};
use super::values::DependentValues;
use crate::context::Context;
use crate::data::regions::{Domain, partition_error};
use crate::support::error::Result;

impl Context {
    /// Partitions a region by a field of integers of any width, which holds the number of each point's color: of the
    /// colors in row-major order. Points with other numbers are in no piece.
    ///
    /// # Errors
    /// [`Error::Access`](crate::Error::Access) if the field holds no integers. Those of a launch that reads the field,
    /// and of [`Region::partition_into`](crate::Region::partition_into).
    pub fn logical_partition_by_field(
        &self,
        region: &LogicalRegion,
        field: FieldId,
        colors: impl Into<Domain>,
    ) -> impl Future<Output = Result<LogicalPartition>> {
        self.finished(self.begin_by_field(region, field, colors.into()))
    }

    /// Partitions a region by the ranges that the values of a field of integers are in, of any width: the piece of a
    /// color has the points whose value is in its range. Ranges may overlap, and leave values out, which are in no
    /// piece. They are as many as the colors, in row-major order.
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[derive(Fields)]
    /// struct Person {
    ///     age: u8,
    /// }
    ///
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// let people = cx.region::<Person>(5)?;
    /// cx.attach_vec(&people, Person::age, vec![70, 8, 30, 17, 200])?;
    /// let ages = cx.logical_partition_by_ranges(people.logical(), Person::age.id(), 3, &[0..18, 18..65, 65..256]).await?;
    /// let volumes = ages.partitioning().pieces().iter().map(|piece| piece.space().volume());
    /// assert_eq!(volumes.collect::<Vec<_>>(), [2, 1, 2]);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Access`](crate::Error::Access) if the field holds no integers, and
    /// [`Error::Region`](crate::Error::Region) if the ranges are not as many as the colors;
    /// [`Error::Partition`](crate::Error::Partition) if there are no colors. Those of a launch that reads the field.
    pub fn logical_partition_by_ranges(
        &self,
        region: &LogicalRegion,
        field: FieldId,
        colors: impl Into<Domain>,
        ranges: &[Range<i128>],
    ) -> impl Future<Output = Result<LogicalPartition>> {
        self.finished(self.begin_by_ranges(region, field, colors.into(), ranges))
    }

    /// Partitions a region by what rows of another one name of it: for each piece of `sources`, the points that its
    /// rows name. What they name outside of `targets` is ignored. The relation's fields are of the region that
    /// `sources` is a partition of.
    ///
    /// ```
    /// use maniple::Relation;
    /// use maniple::prelude::*;
    ///
    /// /// A row of a sparse matrix.
    /// #[derive(Fields)]
    /// struct Row {
    ///     first: u32,
    /// }
    ///
    /// #[derive(Fields)]
    /// struct Entry {
    ///     value: f64,
    /// }
    ///
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// // Four rows have three entries, none, one, and two.
    /// let (rows, entries) = (cx.region::<Row>(5)?, cx.region::<Entry>(6)?);
    /// cx.attach_vec(&rows, Row::first, vec![0, 3, 3, 4, 6])?;
    /// let halves = rows.part(Rect::from(0..4))?.partition(2).equal()?;
    /// let halves = rows.partition(2).within(&halves)?;
    /// let entries_of = Relation::Offsets(Row::first.id());
    /// let pieces = cx.logical_image(entries.logical(), halves.logical(), entries_of).await?;
    /// let volumes = pieces.partitioning().pieces().iter().map(|piece| piece.space().volume());
    /// assert_eq!(volumes.collect::<Vec<_>>(), [3, 3]);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Access`](crate::Error::Access) if the fields hold nothing that names points of `targets`. Those of a
    /// launch that reads the fields, and of [`Region::partition_into`](crate::Region::partition_into).
    pub fn logical_image(
        &self,
        targets: &LogicalRegion,
        sources: &LogicalPartition,
        relation: Relation,
    ) -> impl Future<Output = Result<LogicalPartition>> + use<'_> {
        self.finished(self.begin_logical_image(targets, sources, relation))
    }

    /// Partitions a region by what its rows name of another one: for each piece of `targets`, the rows that name a
    /// point in it. The relation's fields are of `sources`.
    ///
    /// # Errors
    /// [`Error::Access`](crate::Error::Access) if the fields hold nothing that names points of what `targets` splits.
    /// The errors of a launch that reads the fields, and of [`Region::partition_into`](crate::Region::partition_into).
    pub fn logical_preimage(
        &self,
        sources: &LogicalRegion,
        relation: Relation,
        targets: &LogicalPartition,
    ) -> impl Future<Output = Result<LogicalPartition>> + use<'_> {
        self.finished(self.begin_logical_preimage(sources, relation, targets))
    }

    async fn finished(&self, computation: Result<Computation>) -> Result<LogicalPartition> {
        self.finish(computation?).await
    }

    fn begin_by_field(&self, region: &LogicalRegion, field: FieldId, colors: Domain) -> Result<Computation> {
        let numbers = numbers("partition_by_field", region, field)?;
        self.begin_by_number(region, DependentValues::points(numbers), colors)
    }

    fn begin_by_ranges(
        &self,
        region: &LogicalRegion,
        field: FieldId,
        colors: Domain,
        ranges: &[Range<i128>],
    ) -> Result<Computation> {
        partition::checked_pieces(colors.volume()).map_err(partition_error)?;
        if colors.volume() != ranges.len() as u64 {
            let (colors, pieces) = (colors.volume(), ranges.len());
            return Err(maniple_region::RegionError::ColorCount { colors, pieces }.into());
        }
        let numbers = numbers("partition_by_ranges", region, field)?;
        let pieces = ranges.iter().map(|range| numbers_within(range, numbers.is_unsigned).into()).collect();
        self.begin_pieces_of(self.begin_partition(), region, DependentValues::points(numbers), colors, pieces)
    }

    fn begin_logical_image(
        &self,
        targets: &LogicalRegion,
        sources: &LogicalPartition,
        relation: Relation,
    ) -> Result<Computation> {
        let values = relation.values("image", &sources.parent(), targets.space().space().dim())?;
        self.begin_image(targets, sources, values)
    }

    fn begin_logical_preimage(
        &self,
        sources: &LogicalRegion,
        relation: Relation,
        targets: &LogicalPartition,
    ) -> Result<Computation> {
        let values = relation.values("preimage", sources, targets.parent().space().space().dim())?;
        self.begin_preimage(sources, values, targets)
    }
}

/// A field of numbers.
fn numbers(operation: &str, region: &LogicalRegion, field: FieldId) -> Result<Integers> {
    let numbers = Integers::numbers(field, region.fields().type_of(field)?);
    numbers.ok_or_else(|| unsuited(operation, region, field, "integers"))
}

/// The numbers of a range as they are read: if they are unsigned, those of 2^63 and more have wrapped.
fn numbers_within(range: &Range<i128>, are_unsigned: bool) -> IndexSpace<1> {
    let part = |start: i128, end: i128| {
        let [first, last] = clipped(start, end);
        Rect::new([first], [last])
    };
    if !are_unsigned {
        return part(range.start, range.end).into();
    }
    let (half, whole) = (1 << 63, 1 << 64);
    let wrapped = |number: i128| number.clamp(half, whole) - whole;
    IndexSpace::from_rects([part(range.start.max(0), range.end), part(wrapped(range.start), wrapped(range.end))])
}
