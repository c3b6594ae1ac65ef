//! Tasks that look at values, and the partitions that come of what they find.

use std::slice::from_ref;
use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_region::{FieldMask, LogicalPartition, LogicalRegion, Privilege, Projection, Requirement, Target};
use maniple_space::AnySpace;
use maniple_space::partition::dynamic::{self, IntegerField, Names};

use super::values::{CallColumn, DependentValues};
use crate::context::Context;
use crate::data::regions::{Domain, partition_erased, partition_error};
use crate::future::FutureMap;
use crate::launch::{Launch, TaskLauncher};
use crate::nodes::replication::Replica;
use crate::nodes::replication::dependent::PendingPartition;
use crate::support::error::Result;
use crate::task::{LeafCall, TaskDefinition, TaskOptions, Value};

/// A partition that is being computed: it has its place in the program.
pub(super) struct Computation {
    pub(super) pending: Option<PendingPartition>,
    pub(super) looking: Looking,
    /// Present if the pieces are on other nodes: the task then first finds the points that this node names of them.
    pub(super) afar: Option<Afar>,
    /// The region that is split, and the colors of its pieces.
    pub(super) region: LogicalRegion,
    pub(super) colors: Domain,
}

/// The pieces are to be fetched, as far as this node names points of them.
pub(super) struct Afar {
    targets: LogicalPartition,
    /// Computes the pieces of this node, from the parts of the fetched pieces that it names.
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
    /// Waits for the task. Returns the part of each piece that this node has found.
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
    pub(super) fn begin_by_number(
        &self,
        region: &LogicalRegion,
        values: DependentValues,
        colors: Domain,
    ) -> Result<Computation> {
        let pending = self.begin_partition();
        let parts = self.parts(region, &values)?;
        let compute = move |column: &CallColumn<'_>, part: &AnySpace| {
            dynamic::by_field(part, colors.volume(), column).map_err(partition_error)
        };
        let looking = self.look(&parts, values, Box::new(compute));
        Ok(Computation { pending, looking, afar: None, region: region.clone(), colors })
    }

    /// For each piece of the sources, the points of the targets that its values name.
    pub(super) fn begin_image(
        &self,
        targets: &LogicalRegion,
        sources: &LogicalPartition,
        values: DependentValues,
    ) -> Result<Computation> {
        self.state.core.forest().check_own_region(targets)?;
        let pending = self.begin_partition();
        let parts = self.parts(&sources.parent(), &values)?;
        let pieces = self.pieces_within(&parts, sources)?;
        let space = values.nameable(targets.space().space());
        let compute = move |column: &CallColumn<'_>, part: &AnySpace| {
            let within: Vec<AnySpace> =
                pieces.iter().map(|piece| piece.intersection(part).expect(ONE_REGION)).collect();
            Ok(dynamic::image(&within, column.names(), &space))
        };
        let looking = self.look(&parts, values, Box::new(compute));
        let colors = sources.partitioning().colors().into();
        Ok(Computation { pending, looking, afar: None, region: targets.clone(), colors })
    }

    /// For each piece of the targets, the points of the sources whose values name something in it.
    pub(super) fn begin_preimage(
        &self,
        sources: &LogicalRegion,
        values: DependentValues,
        targets: &LogicalPartition,
    ) -> Result<Computation> {
        self.state.core.forest().check_own_region(&targets.parent())?;
        let partitioning = targets.partitioning();
        let colors = partitioning.colors().into();
        let pending = self.begin_partition();
        if pending.is_none() || partitioning.piece_source().is_none() {
            let pieces = partitioning.pieces().iter().map(|piece| values.nameable(piece.space())).collect();
            return self.begin_pieces_of(pending, sources, values, colors, pieces);
        }
        // First what this node names; then the pieces, as far as they have that.
        let parts = self.parts(sources, &values)?;
        let (space, kept) = (values.nameable(targets.parent().space().space()), Arc::new(Mutex::new(None)));
        let (keeps, by) = (Arc::clone(&kept), values.clone());
        let compute = move |column: &CallColumn<'_>, part: &AnySpace| {
            let named = Kept::of(column, part);
            let points = dynamic::image(from_ref(part), named.names(), &space);
            *keeps.lock() = Some((named, part.clone()));
            Ok(points)
        };
        let looking = self.look(&parts, values, Box::new(compute));
        let complete = move |pieces: Vec<AnySpace>| {
            let Some((named, part)) = kept.lock().take() else { return Vec::new() };
            let pieces: Vec<AnySpace> = pieces.iter().map(|piece| by.nameable(piece)).collect();
            dynamic::preimage(&pieces, named.names(), &part).expect(ONE_REGION)
        };
        let afar = Afar { targets: targets.clone(), complete: Box::new(complete) };
        Ok(Computation { pending, looking, afar: Some(afar), region: sources.clone(), colors })
    }

    /// For each of some sets of points, the points of the sources whose values name something in it.
    pub(super) fn begin_pieces_of(
        &self,
        pending: Option<PendingPartition>,
        sources: &LogicalRegion,
        values: DependentValues,
        colors: Domain,
        targets: Vec<AnySpace>,
    ) -> Result<Computation> {
        let parts = self.parts(sources, &values)?;
        let compute = move |column: &CallColumn<'_>, part: &AnySpace| {
            Ok(dynamic::preimage(&targets, column.names(), part).expect(ONE_REGION))
        };
        let looking = self.look(&parts, values, Box::new(compute));
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
        let partitioning = replica.distribute(pending, region.space(), colors.rect(), &found).await?;
        Ok(region.partition(&partitioning)?)
    }

    /// A partition is about to be computed by all nodes together.
    pub(super) fn begin_partition(&self) -> Option<PendingPartition> {
        Replica::of(&self.state).map(Replica::begin_partition)
    }

    /// The target of a task that reads the values: the whole region, or parts of it, one a node.
    fn parts(&self, region: &LogicalRegion, values: &DependentValues) -> Result<Target> {
        let Some(replica) = Replica::of(&self.state) else { return Ok(region.clone().into()) };
        // What is looked at instead may not be a part of it, and there still.
        region.check_alive(&*self.state)?;
        let parts = replica.where_it_is(region, values.first_field())?;
        Ok(if values.uses_next() { replica.with_next(&parts, region)?.into() } else { parts.into() })
    }

    /// The pieces of a partition, as far as they are in what this node looks at.
    fn pieces_within(&self, parts: &Target, pieces: &LogicalPartition) -> Result<Vec<AnySpace>> {
        let partitioning = pieces.partitioning();
        match (Replica::of(&self.state), parts) {
            (Some(replica), Target::Partition(parts, _)) if partitioning.piece_source().is_some() => {
                replica.pieces_within(parts, partitioning)
            }
            _ => Ok(partitioning.pieces().iter().map(|piece| piece.space().clone()).collect()),
        }
    }

    /// Launches a task that runs a function on values: where these are, and of each part. On one node workers run it on
    /// parts of the points.
    fn look(&self, parts: &Target, values: DependentValues, compute: Box<Compute>) -> Looking {
        let (mask, found) = (values.mask(), Arc::new(Mutex::new(Vec::new())));
        let finds = Arc::clone(&found);
        let is_alone = matches!(parts, Target::Region(..));
        let body = move |call: &LeafCall<'_>| {
            let column = values.column(call)?;
            let space = column.space();
            let most = if is_alone { space.volume() / POINTS_OF_A_WORKER } else { 0 };
            *finds.lock() = match call.workers().count().min(usize::try_from(most).unwrap_or(usize::MAX)) {
                0 | 1 => compute(&column, space)?,
                workers => side_by_side(call, &values, space, workers, &*compute)?,
            };
            Ok(Value::new(()))
        };
        let launcher = reading_launch(parts.clone(), mask, Box::new(body));
        let launched = match parts {
            Target::Region(..) => Launched::Once(self.launch(launcher)),
            Target::Partition(parts, _) => {
                Launched::OnNodes(self.index_launch(parts.partitioning().colors(), launcher))
            }
        };
        Looking { launched, found }
    }

    /// Launches a task for each piece of a partition, that looks at some of its values and finds the piece of its
    /// color.
    pub(super) fn look_at_each(
        &self,
        pieces: &LogicalPartition,
        values: DependentValues,
        nothing: &AnySpace,
        compute: impl Fn(&CallColumn<'_>) -> AnySpace + Send + Sync + 'static,
    ) -> Looking {
        let colors = Domain::from(pieces.partitioning().colors());
        let found = Arc::new(Mutex::new(vec![nothing.clone(); colors.volume() as usize]));
        let (mask, finds) = (values.mask(), Arc::clone(&found));
        let body = move |call: &LeafCall<'_>| {
            let piece = compute(&values.column(call)?);
            finds.lock()[colors.rect().linear(call.point()) as usize] = piece;
            Ok(Value::new(()))
        };
        let launcher = reading_launch(Target::Partition(pieces.clone(), Projection::Identity), mask, Box::new(body));
        Looking { launched: Launched::OnNodes(self.index_launch(colors, launcher)), found }
    }
}

/// A function that computes the pieces, from values and the points whose values it is to look at.
type Compute = dyn Fn(&CallColumn<'_>, &AnySpace) -> Result<Vec<AnySpace>> + Send + Sync;

/// The body of a task.
type Body = dyn Fn(&LeafCall<'_>) -> Result<Value> + Send + Sync;

/// Spaces that belong together are of regions with one number of dimensions.
const ONE_REGION: &str = "pieces have the dimension of what they are pieces of";

/// A task that reads fields.
fn reading_launch(target: Target, fields: FieldMask, body: Box<Body>) -> Launch<()> {
    let task = TaskDefinition::new("partition").leaf(TaskOptions::default(), body).dealt_in_blocks();
    TaskLauncher::new(&Arc::new(task)).requirement(Requirement::new(target, fields, Privilege::Read)).typed()
}

/// For fewer points no other worker is asked for help.
const POINTS_OF_A_WORKER: u64 = 1 << 16;

/// The pieces that a function computes in the parts of a space, one part for each worker, put together.
fn side_by_side(
    call: &LeafCall<'_>,
    values: &DependentValues,
    space: &AnySpace,
    workers: usize,
    compute: &Compute,
) -> Result<Vec<AnySpace>> {
    let parts = dynamic::equal(space, workers).map_err(partition_error)?;
    let (found, readers) = (Mutex::new(vec![Ok(Vec::new()); workers]), call.for_readers());
    call.workers().for_each(workers, |number| {
        let pieces = values.column(&readers()).and_then(|column| compute(&column, &parts[number]));
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

/// The integers of the points of a space, kept to be read again.
struct Kept {
    integers: Vec<i64>,
    are_rects: bool,
}

impl Kept {
    fn of(column: &CallColumn<'_>, space: &AnySpace) -> Self {
        let mut integers = Vec::new();
        column.for_each_chunk(space, &mut |chunk| integers.extend_from_slice(chunk));
        Self { integers, are_rects: matches!(column.names(), Names::Rects(_)) }
    }

    fn names(&self) -> Names<'_> {
        if self.are_rects { Names::Rects(self) } else { Names::Points(self) }
    }
}

impl IntegerField for Kept {
    /// Visits the integers of the space from which they are kept.
    fn for_each_chunk(&self, _space: &AnySpace, visit: &mut dyn FnMut(&[i64])) {
        visit(&self.integers);
    }
}
