//! Partitions of regions whose fields are known at run time: what libraries call.

use std::ops::Range;

use maniple_region::{FieldId, LogicalPartition, LogicalRegion};
use maniple_space::{IndexSpace, Point, for_dimension, partition};

use super::computation::Computation;
use super::integers::{integers, range};
use super::relation::{Names, Relation, unsuited};
use crate::context::Context;
use crate::error::Result;
use crate::regions::{Domain, partition_error};

impl Context {
    /// Partitions a region by a field of integers of any width, which holds the number of each point's color: of the colors in row-major order. Points with other numbers are in no piece.
    ///
    /// # Errors
    /// [`Error::Access`](crate::Error::Access) if the field holds no integers. Those of a launch that reads the field, and of [`Region::partition_into`](crate::Region::partition_into).
    pub fn logical_partition_by_field(
        &self,
        region: &LogicalRegion,
        field: FieldId,
        colors: impl Into<Domain>,
    ) -> impl Future<Output = Result<LogicalPartition>> {
        self.finished(self.begin_by_field(region, field, colors.into()))
    }

    /// Partitions a region by the ranges that the values of a field of integers are in, of any width: the piece of a color has the points whose value is in its range. Ranges may overlap, and
    /// leave values out, which are in no piece. They are as many as the colors, in row-major order.
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
    /// [`Error::Access`](crate::Error::Access) if the field holds no integers, and [`Error::Region`](crate::Error::Region) if the ranges are not as many as the colors;
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

    /// Partitions a region by what rows of another one name of it: for each piece of `sources`, the points that its rows name. What they name outside of `targets` is ignored. The relation's
    /// fields are of the region that `sources` is a partition of.
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
    /// [`Error::Access`](crate::Error::Access) if the fields hold nothing that names points of `targets`. Those of a launch that reads the fields, and of
    /// [`Region::partition_into`](crate::Region::partition_into).
    pub fn logical_image(
        &self,
        targets: &LogicalRegion,
        sources: &LogicalPartition,
        relation: Relation,
    ) -> impl Future<Output = Result<LogicalPartition>> + use<'_> {
        self.finished(self.begin_logical_image(targets, sources, relation))
    }

    /// Partitions a region by what its rows name of another one: for each piece of `targets`, the rows that name a point in it. The relation's fields are of `sources`.
    ///
    /// # Errors
    /// [`Error::Access`](crate::Error::Access) if the fields hold nothing that names points of what `targets` splits. Those of a launch that reads the fields, and of
    /// [`Region::partition_into`](crate::Region::partition_into).
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
        let ty = region.fields().type_of(field)?;
        for_dimension!(region.space().space().dim(), S => {
            match integers::<S>(field, ty) {
                Some(numbers) => self.begin_by_number(region, &numbers, colors),
                None => Err(unsuited(("partition_by_field", region), field, "integers")),
            }
        })
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
        let ty = region.fields().type_of(field)?;
        for_dimension!(region.space().space().dim(), S => {
            let Some(numbers) = integers::<S>(field, ty) else {
                return Err(unsuited(("partition_by_ranges", region), field, "integers"));
            };
            // Unsigned numbers have wrapped: they are moved down, so that their order is that of what they are moved to.
            let down = if numbers.are_unsigned() { i64::MIN } else { 0 };
            let moved = |number: i128| number.saturating_add(down.into());
            let pieces: Vec<IndexSpace<1>> =
                ranges.iter().map(|values| range(moved(values.start), moved(values.end)).into()).collect();
            let numbers = numbers.map(move |number| Point([number ^ down])).with_unsigned(false);
            self.begin_pieces_of(self.begin_partition(), (region, &numbers), colors, pieces)
        })
    }

    fn begin_logical_image(
        &self,
        targets: &LogicalRegion,
        sources: &LogicalPartition,
        relation: Relation,
    ) -> Result<Computation> {
        let parent = sources.parent();
        for_dimension!(parent.space().space().dim(), S => {
            for_dimension!(targets.space().space().dim(), T => {
                match relation.names::<S, T>(("image", &parent))? {
                    Names::Points(points) => self.begin_image(targets, sources, &points),
                    Names::Rects(rects) => self.begin_image(targets, sources, &rects),
                }
            })
        })
    }

    fn begin_logical_preimage(
        &self,
        sources: &LogicalRegion,
        relation: Relation,
        targets: &LogicalPartition,
    ) -> Result<Computation> {
        for_dimension!(sources.space().space().dim(), S => {
            for_dimension!(targets.parent().space().space().dim(), T => {
                match relation.names::<S, T>(("preimage", sources))? {
                    Names::Points(points) => self.begin_preimage(sources, &points, targets),
                    Names::Rects(rects) => self.begin_preimage(sources, &rects, targets),
                }
            })
        })
    }
}
