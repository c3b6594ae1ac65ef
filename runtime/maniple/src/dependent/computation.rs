//! Tasks that look at values, and the partitions that come of what they find.

use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_region::{LogicalPartition, LogicalRegion, Privilege, Projection, Requirement, Target};
use maniple_space::partition::{self, FieldRead};
use maniple_space::{AnySpace, IndexSpace, Point, Rect};
use rustc_hash::FxHashMap;

use super::values::{Column, Values};
use crate::context::Context;
use crate::error::Result;
use crate::future::FutureMap;
use crate::launch::TaskLauncher;
use crate::regions::{Domain, partition_erased, partition_error};
use crate::replication::Replica;
use crate::replication::dependent::PendingPartition;
use crate::task::{LeafCall, TaskDefinition, TaskOptions, Value};

/// A partition that is being computed: it has its place in the program.
pub(super) struct Computation {
    pub(super) pending: Option<PendingPartition>,
    pub(super) looking: Looking,
    /// What is found at first is what this node names of the pieces of a partition, which are on other nodes.
    pub(super) afar: Option<Afar>,
    /// What is split, and its colors.
    pub(super) region: LogicalRegion,
    pub(super) colors: Domain,
}

/// The pieces are to be fetched, as far as this node names points of them.
pub(super) struct Afar {
    targets: LogicalPartition,
    /// What this node finds of each piece, from what they have of the points.
    complete: Box<dyn FnOnce(Vec<AnySpace>) -> Vec<AnySpace> + Send>,
}

/// A task that looks at values has its place in the program.
pub(super) struct Looking {
    pub(super) launched: Launched,
    pub(super) found: Arc<Mutex<Vec<AnySpace>>>,
}

pub(super) enum Launched {
    Once(crate::Future<()>),
    /// Failures anywhere are sent to all nodes.
    OnNodes(FutureMap<()>),
}

impl Looking {
    /// What this node has found of each piece.
    async fn wait(self) -> Result<Vec<AnySpace>> {
        match self.launched {
            Launched::Once(future) => future.await?,
            Launched::OnNodes(all) => all.await?,
        }
        Ok(std::mem::take(&mut *self.found.lock()))
    }
}

impl Context {
    /// For each color, the points whose value is its number.
    pub(super) fn begin_by_number<const S: usize>(
        &self,
        region: &LogicalRegion,
        values: &Values<i64, S>,
        colors: Domain,
    ) -> Result<Computation> {
        let pending = self.begin_partition();
        let parts = self.parts(region, values)?;
        let looking = self.look(&parts, values, move |column| {
            let pieces = partition::by_field(column.space(), colors.volume() as usize, &column);
            Ok(erased(pieces.map_err(partition_error)?))
        });
        Ok(Computation { pending, looking, afar: None, region: region.clone(), colors })
    }

    /// For each piece of the sources, the points of the targets that its values name.
    pub(super) fn begin_image<N: Named<T>, const S: usize, const T: usize>(
        &self,
        targets: &LogicalRegion,
        sources: &LogicalPartition,
        values: &Values<N, S>,
    ) -> Result<Computation> {
        self.state.core.forest().check_own_region(targets)?;
        let pending = self.begin_partition();
        let parts = self.parts(&sources.parent(), values)?;
        let pieces = self.pieces_within::<S>(&parts, sources)?;
        let space = nameable(typed(targets.space().space()), values);
        let looking = self.look(&parts, values, move |column| {
            let part = column.space();
            let within: Vec<IndexSpace<S>> = pieces.iter().map(|piece| piece.intersection(part)).collect();
            Ok(erased(N::image(&within, &column, &space)))
        });
        let colors = sources.partitioning().colors().into();
        Ok(Computation { pending, looking, afar: None, region: targets.clone(), colors })
    }

    /// For each piece of the targets, the points of the sources whose values name something in it.
    pub(super) fn begin_preimage<N: Named<T>, const S: usize, const T: usize>(
        &self,
        sources: &LogicalRegion,
        values: &Values<N, S>,
        targets: &LogicalPartition,
    ) -> Result<Computation> {
        self.state.core.forest().check_own_region(&targets.parent())?;
        let (partitioning, are_unsigned) = (targets.partitioning(), values.are_unsigned());
        let colors = partitioning.colors().into();
        let pending = self.begin_partition();
        if pending.is_none() || partitioning.piece_source().is_none() {
            let pieces = partitioning.pieces().iter().map(|piece| nameable(typed(piece.space()), values)).collect();
            return self.begin_pieces_of(pending, (sources, values), colors, pieces);
        }
        // First what this node names; then the pieces, as far as they have that.
        let parts = self.parts(sources, values)?;
        let (space, kept) = (nameable(typed(targets.parent().space().space()), values), Arc::new(Mutex::new(None)));
        let keeps = Arc::clone(&kept);
        let looking = self.look(&parts, values, move |column| {
            let part = column.space().clone();
            let named = Kept::of(&column);
            let points = erased(N::image(std::slice::from_ref(&part), &named, &space));
            *keeps.lock() = Some((named, part));
            Ok(points)
        });
        let complete = move |pieces: Vec<AnySpace>| {
            let Some((named, part)) = kept.lock().take() else { return Vec::new() };
            let pieces: Vec<IndexSpace<T>> =
                pieces.iter().map(|piece| only_nameable(typed(piece), are_unsigned)).collect();
            erased(N::preimage(&pieces, &named, &part))
        };
        let afar = Afar { targets: targets.clone(), complete: Box::new(complete) };
        Ok(Computation { pending, looking, afar: Some(afar), region: sources.clone(), colors })
    }

    /// For each of some sets of points, the points of the sources whose values name something in it.
    pub(super) fn begin_pieces_of<N: Named<T>, const S: usize, const T: usize>(
        &self,
        pending: Option<PendingPartition>,
        (sources, values): (&LogicalRegion, &Values<N, S>),
        colors: Domain,
        targets: Vec<IndexSpace<T>>,
    ) -> Result<Computation> {
        let parts = self.parts(sources, values)?;
        let looking =
            self.look(&parts, values, move |column| Ok(erased(N::preimage(&targets, &column, column.space()))));
        Ok(Computation { pending, looking, afar: None, region: sources.clone(), colors })
    }

    /// The partition, when it has been computed.
    pub(super) async fn finish(&self, computation: Computation) -> Result<LogicalPartition> {
        let Computation { pending, looking, afar, region, colors } = computation;
        let mut found = looking.wait().await?;
        let (Some(replica), Some(pending)) = (Replica::of(&self.state), pending) else {
            return partition_erased(&region, colors, &found);
        };
        if let Some(Afar { targets, complete }) = afar {
            let nothing = || AnySpace::empty(targets.parent().space().space().dim());
            let points = found.pop().map_or_else(nothing, Ok).expect("the dimension is that of a space");
            found = complete(replica.pieces_about(&pending, &points, targets.partitioning()).await?);
        }
        let partitioning = replica.distribute(pending, (region.space(), colors.rect()), &found).await?;
        Ok(region.partition(&partitioning)?)
    }

    /// A partition is about to be computed by all nodes together.
    pub(super) fn begin_partition(&self) -> Option<PendingPartition> {
        Replica::of(&self.state).map(Replica::begin_partition)
    }

    /// Where the values are: the whole region, or parts of it, one a node.
    fn parts<N: 'static, const S: usize>(&self, region: &LogicalRegion, values: &Values<N, S>) -> Result<Target> {
        let Some(replica) = Replica::of(&self.state) else { return Ok(region.clone().into()) };
        // What is looked at instead may not be a part of it, and there still.
        region.check_alive(&*self.state)?;
        let parts = replica.where_it_is(region, values.first_field())?;
        Ok(if values.uses_next() { replica.with_next(&parts, region)?.into() } else { parts.into() })
    }

    /// The pieces of a partition, as far as they are in what this node looks at.
    fn pieces_within<const S: usize>(&self, parts: &Target, pieces: &LogicalPartition) -> Result<Vec<IndexSpace<S>>> {
        let partitioning = pieces.partitioning();
        match (Replica::of(&self.state), parts) {
            (Some(replica), Target::Partition(parts, _)) if partitioning.piece_source().is_some() => {
                Ok(replica.pieces_within(parts, partitioning)?.iter().map(typed).collect())
            }
            _ => Ok(partitioning.pieces().iter().map(|piece| typed(piece.space())).collect()),
        }
    }

    /// Launches a task that runs a function on values: where these are, and of each part. On one node workers run it on parts of the points.
    fn look<N: 'static, const S: usize>(
        &self,
        parts: &Target,
        values: &Values<N, S>,
        compute: impl Fn(Column<'_, N, S>) -> Result<Vec<AnySpace>> + Send + Sync + 'static,
    ) -> Looking {
        let (fields, values, found) = (values.mask(), values.clone(), Arc::new(Mutex::new(Vec::new())));
        let finds = Arc::clone(&found);
        let is_alone = matches!(parts, Target::Region(..));
        let body = move |call: &LeafCall<'_>| -> Result<Value> {
            let space = call.piece::<(), S>(0)?.space();
            let most = if is_alone { space.volume() / POINTS_OF_A_WORKER } else { 0 };
            *finds.lock() = match call.workers().count().min(usize::try_from(most).unwrap_or(usize::MAX)) {
                0 | 1 => compute(values.column(call)?)?,
                workers => side_by_side(call, space, workers, |call, part| compute(values.column_within(call, part)?))?,
            };
            Ok(Value::new(()))
        };
        let task = TaskDefinition::new("partition").leaf(TaskOptions::default(), body).dealt_in_blocks();
        let reads = Requirement::new(parts.clone(), fields, Privilege::Read);
        let launcher = TaskLauncher::new(&Arc::new(task)).requirement(reads).typed::<()>();
        let launched = match parts {
            Target::Region(..) => Launched::Once(self.launch(launcher)),
            Target::Partition(parts, _) => {
                Launched::OnNodes(self.index_launch(parts.partitioning().colors(), launcher))
            }
        };
        Looking { launched, found }
    }

    /// Launches a task for each piece of a partition, that looks at some of its values and finds the piece of its color.
    pub(super) fn look_at_each<N: 'static, const S: usize>(
        &self,
        pieces: &LogicalPartition,
        values: &Values<N, S>,
        nothing: &AnySpace,
        compute: impl Fn(Column<'_, N, S>) -> AnySpace + Send + Sync + 'static,
    ) -> Looking {
        let colors = Domain::from(pieces.partitioning().colors());
        let found = Arc::new(Mutex::new(vec![nothing.clone(); colors.volume() as usize]));
        let (fields, values, finds) = (values.mask(), values.clone(), Arc::clone(&found));
        let body = move |call: &LeafCall<'_>| -> Result<Value> {
            let piece = compute(values.column(call)?);
            finds.lock()[colors.rect().linear(call.point()) as usize] = piece;
            Ok(Value::new(()))
        };
        let task = TaskDefinition::new("partition").leaf(TaskOptions::default(), body).dealt_in_blocks();
        let own = Target::Partition(pieces.clone(), Projection::Identity);
        let launcher = TaskLauncher::new(&Arc::new(task)).requirement(Requirement::new(own, fields, Privilege::Read));
        Looking { launched: Launched::OnNodes(self.index_launch(colors, launcher.typed::<()>())), found }
    }
}

/// For fewer points no other worker is asked for help.
const POINTS_OF_A_WORKER: u64 = 1 << 16;

/// What a function finds of each piece in the parts of a space, one for each worker, put together.
fn side_by_side<const S: usize>(
    call: &LeafCall<'_>,
    space: &IndexSpace<S>,
    workers: usize,
    find: impl Fn(&LeafCall<'_>, &IndexSpace<S>) -> Result<Vec<AnySpace>> + Sync,
) -> Result<Vec<AnySpace>> {
    let parts = partition::equal(space, workers).map_err(partition_error)?;
    let (found, readers) = (Mutex::new(vec![Ok(Vec::new()); workers]), call.for_readers());
    call.workers().for_each(workers, |number| {
        let pieces = find(&readers(), &parts[number]);
        found.lock()[number] = pieces;
    });
    let found = found.into_inner().into_iter().collect::<Result<Vec<_>>>()?;
    let pieces = found.first().map_or(0, Vec::len);
    let whole: Vec<Mutex<AnySpace>> = found[0].iter().map(|piece| Mutex::new(piece.clone())).collect();
    call.workers().for_each(pieces, |piece| {
        let parts = found.iter().map(|part| &part[piece]);
        let union = AnySpace::union_all(found[0][piece].dim(), parts).expect("all parts are of one space");
        *whole[piece].lock() = union;
    });
    Ok(whole.into_iter().map(Mutex::into_inner).collect())
}

fn typed<const D: usize>(space: &AnySpace) -> IndexSpace<D> {
    space.typed().expect("pieces have the dimension of what they are pieces of, which was checked").clone()
}

fn erased<const D: usize>(spaces: Vec<IndexSpace<D>>) -> Vec<AnySpace> {
    spaces.into_iter().map(AnySpace::from).collect()
}

/// The points that values can name.
fn nameable<N: 'static, const S: usize, const T: usize>(space: IndexSpace<T>, values: &Values<N, S>) -> IndexSpace<T> {
    only_nameable(space, values.are_unsigned())
}

/// The points that numbers can name: if they are unsigned, negative ones have wrapped.
fn only_nameable<const T: usize>(space: IndexSpace<T>, are_unsigned: bool) -> IndexSpace<T> {
    match are_unsigned && space.bounds().lo[0] < 0 {
        true => space.intersection(&space.bounds().with_interval(0, 0, i64::MAX).into()),
        false => space,
    }
}

/// What each of some points names.
struct Kept<N, const S: usize>(FxHashMap<Point<S>, N>);

impl<N: Copy, const S: usize> Kept<N, S> {
    fn of(column: &Column<'_, N, S>) -> Self {
        let mut kept = FxHashMap::default();
        let mut values = Vec::new();
        for row in column.space().rows() {
            values.clear();
            column.append_row(row.lo, row.volume() as usize, &mut values);
            kept.extend(row.points().zip(values.iter().copied()));
        }
        Self(kept)
    }
}

impl<N: Copy, const S: usize> FieldRead<N, S> for Kept<N, S> {
    fn read(&self, at: Point<S>) -> N {
        self.0[&at]
    }
}

/// What a value names of another space: a point, or a rectangle of points.
pub(super) trait Named<const T: usize>: Copy + Send + Sync + 'static {
    /// For each of some sets, what its points name of the target.
    fn image<const S: usize>(
        sources: &[IndexSpace<S>],
        field: &impl FieldRead<Self, S>,
        target: &IndexSpace<T>,
    ) -> Vec<IndexSpace<T>>;

    /// For each of some sets, which points of the source name something in it.
    fn preimage<const S: usize>(
        targets: &[IndexSpace<T>],
        field: &impl FieldRead<Self, S>,
        source: &IndexSpace<S>,
    ) -> Vec<IndexSpace<S>>;
}

impl<const T: usize> Named<T> for Point<T> {
    fn image<const S: usize>(
        sources: &[IndexSpace<S>],
        field: &impl FieldRead<Self, S>,
        target: &IndexSpace<T>,
    ) -> Vec<IndexSpace<T>> {
        partition::image(sources, field, target)
    }

    fn preimage<const S: usize>(
        targets: &[IndexSpace<T>],
        field: &impl FieldRead<Self, S>,
        source: &IndexSpace<S>,
    ) -> Vec<IndexSpace<S>> {
        partition::preimage(targets, field, source)
    }
}

impl<const T: usize> Named<T> for Rect<T> {
    fn image<const S: usize>(
        sources: &[IndexSpace<S>],
        field: &impl FieldRead<Self, S>,
        target: &IndexSpace<T>,
    ) -> Vec<IndexSpace<T>> {
        partition::image_rects(sources, field, target)
    }

    fn preimage<const S: usize>(
        targets: &[IndexSpace<T>],
        field: &impl FieldRead<Self, S>,
        source: &IndexSpace<S>,
    ) -> Vec<IndexSpace<S>> {
        partition::preimage_rects(targets, field, source)
    }
}
