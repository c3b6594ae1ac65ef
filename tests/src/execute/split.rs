//! Partitions, made by the runtime.

use std::sync::Arc;

use maniple::space::AnySpace;
use maniple::{
    Context, Error, LogicalPartition, LogicalRegion, Partition, Partitioner, Partitioning, Ptr, Rect, Region, Relation,
};

use super::statement::space_of;
use super::{Run, Stop, with_dimension};
use crate::program::{Column, Link, Meaning, Node, PartitionName, Place, Split};
use crate::value::{Cells, Kind};

/// A partition, or the runtime's refusal.
type Made = Result<maniple::Result<Arc<Partitioning>>, Stop>;

impl Run {
    /// Makes a partition.
    pub(super) async fn partition(&self, context: &Context, node: Node, split: &Split) -> Made {
        let dim = self.dimension(node)?;
        match split {
            Split::Explicit(colors, lists) => {
                let pieces: Vec<AnySpace> = lists.iter().map(|rects| space_of(rects, dim)).collect();
                Ok(context.index_partition(&self.node(node)?, *colors, &pieces))
            }
            Split::ByField(column, count) => {
                let field = column.place;
                match self.kind(*column)? {
                    Kind::Short => with_dimension!(dim, D => {
                        let (region, field) = self.column::<u32, D>(*column)?;
                        Ok(bare(context.partition_by_field(&region, field, *count).await))
                    }),
                    Kind::Long => with_dimension!(dim, D => {
                        let (region, field) = self.column::<i64, D>(*column)?;
                        Ok(bare(context.partition_by_field(&region, field, *count).await))
                    }),
                    Kind::Number(_) => {
                        let (region, field) = (self.place(field)?, self.field(field.region, column.field)?);
                        Ok(untyped(context.logical_partition_by_field(&region, field, *count).await))
                    }
                    kind => Err(Stop(Error::application(format!("{field:?} holds {kind:?}, no colors")))),
                }
            }
            Split::Image(region, sources, column) => {
                let targets = self.region::<1>(Place { region: *region, node })?;
                let dim = self.dimension(column.place.node)?;
                with_dimension!(dim, D => {
                    let (source, field) = self.column::<Ptr<Cells>, D>(*column)?;
                    let sources: Partition<Cells, D> = self.typed_partition(&source, *sources)?;
                    Ok(bare(context.image(&targets, &sources, field).await))
                })
            }
            Split::Preimage(column, region, targets) => {
                let partitioning = self.names.partitions.get(*targets)?;
                let parent = self.names.regions.get(*region)?.with_space(partitioning.parent().clone());
                let parent = Region::<Cells, 1>::try_from_logical(parent)?;
                let targets = self.typed_partition(&parent, *targets)?;
                with_dimension!(dim, D => {
                    let (sources, field) = self.column::<Ptr<Cells>, D>(*column)?;
                    Ok(bare(context.preimage(&sources, field, &targets).await))
                })
            }
            Split::ByRanges(Column { place, field }, ranges) => {
                let (region, field) = (self.place(*place)?, self.field(place.region, *field)?);
                Ok(untyped(context.logical_partition_by_ranges(&region, field, ranges.len(), ranges).await))
            }
            Split::Named(region, sources, link) => {
                let targets = self.place(Place { region: *region, node })?;
                let sources = self.place(link.column.place)?.partition(&self.names.partitions.get(*sources)?)?;
                Ok(untyped(context.logical_image(&targets, &sources, self.relation(*link)?).await))
            }
            Split::Naming(link, region, targets) => {
                let partitioning = self.names.partitions.get(*targets)?;
                let parent = self.names.regions.get(*region)?.with_space(partitioning.parent().clone());
                let (sources, targets) = (self.place(link.column.place)?, parent.partition(&partitioning)?);
                Ok(untyped(context.logical_preimage(&sources, self.relation(*link)?, &targets).await))
            }
            other => with_dimension!(dim, D => self.by_shape::<D>(context, node, other)),
        }
    }

    /// A region of which only the runtime knows the types.
    fn place(&self, Place { region, node }: Place) -> Result<LogicalRegion, Stop> {
        Ok(self.names.regions.get(region)?.with_space(self.node(node)?))
    }

    fn relation(&self, Link { column, meaning }: Link) -> Result<Relation, Stop> {
        let field = |number| self.field(column.place.region, number);
        let first = field(column.field)?;
        Ok(match meaning {
            Meaning::Rows => Relation::Point(first),
            Meaning::Ranges => Relation::Range(first),
            Meaning::Firsts(end) => Relation::Between(first, field(end)?),
            Meaning::Offsets => Relation::Offsets(first),
        })
    }

    /// Partitions that need no data. Those of the typed interface belong to regions: one is made up for them.
    fn by_shape<const D: usize>(&self, context: &Context, node: Node, split: &Split) -> Made {
        let rows = self.node(node)?;
        let root = rows.ancestors().last().map_or(&rows, |top| top.parent()).clone();
        let region = match context.logical_region(&root, &context.field_space(1)) {
            Ok(region) => region,
            Err(error) => return Ok(Err(error)),
        };
        let typed = Region::<Cells, D>::try_from_logical(region.with_space(rows))?;
        let made = self.shaped(&typed, split);
        context.destroy_region(&region)?;
        made
    }

    fn shaped<const D: usize>(&self, region: &Region<Cells, D>, split: &Split) -> Made {
        let of = |name: &PartitionName| -> Result<Partition<Cells, D>, Stop> {
            let partitioning = self.names.partitions.get(*name)?;
            let parent = region.logical().with_space(partitioning.parent().clone());
            self.typed_partition(&Region::try_from_logical(parent)?, *name)
        };
        let side = |sides: &[i64]| std::array::from_fn(|d| sides[d]);
        Ok(bare(match split {
            Split::Equal(count) => region.partition(*count).equal(),
            Split::Weighted(weights) => region.partition(weights.len()).weighted(weights),
            Split::Tiles(shape, halo) if halo.iter().all(|&halo| halo == 0) => region.blocks(side(shape)),
            Split::Tiles(shape, halo) => region.tiles(side(shape), side(halo)),
            Split::Coloring(count, list) => {
                let list: Vec<(usize, Rect<D>)> =
                    list.iter().filter_map(|(color, rect)| Some((*color, rect.typed().ok()?))).collect();
                region.partition(*count).by_coloring(&list)
            }
            Split::Within(other) => {
                let other = of(other)?;
                let partitioner: Partitioner<Cells, D> = region.partition(other.colors());
                partitioner.within(&other)
            }
            Split::Union(a, b) => of(a)?.union(&of(b)?),
            Split::Intersection(a, b) => of(a)?.intersection(&of(b)?),
            Split::Difference(a, b) => of(a)?.difference(&of(b)?),
            other => return Err(Stop(Error::application(format!("{other:?} needs data")))),
        }))
    }

    /// A partition of a region, typed.
    fn typed_partition<const D: usize>(
        &self,
        parent: &Region<Cells, D>,
        name: PartitionName,
    ) -> Result<Partition<Cells, D>, Stop> {
        let partitioning = self.names.partitions.get(name)?;
        Ok(Partition::try_from_logical(parent.logical().partition(&partitioning)?)?)
    }
}

fn untyped(made: maniple::Result<LogicalPartition>) -> maniple::Result<Arc<Partitioning>> {
    made.map(|partition| Arc::clone(partition.partitioning()))
}

fn bare<const D: usize>(made: maniple::Result<Partition<Cells, D>>) -> maniple::Result<Arc<Partitioning>> {
    made.map(|partition| Arc::clone(partition.logical().partitioning()))
}
