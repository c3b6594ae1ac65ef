//! A program that runs on several nodes, as one of them sees it.
//!
//! Every node carries out the whole program. Of a launch it runs the points that are its by a pure function, the sharding. Before them come, as ordinary
//! launches, the exchanges that [`Coherence`] asks for. So a launch here costs what the node's own points cost, and the rest of the runtime sees nothing but
//! launches.

use std::sync::Arc;

use bytes::Bytes;
use maniple_mapper::{Sharding, TaskInfo};
use maniple_realm::{After, Realm};
use maniple_region::{
    FieldId, FieldMask, IndexSpaceNode, LogicalPartition, LogicalRegion, OperatorId, Privilege, Requirement, Shape,
    ShapeTable, TreeId,
};
use maniple_space::{AnyPoint, AnyRect, AnySpace, Rect, for_dimension, partition};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::agreement::{Agreement, Noted, What, hash_of, hash_of_use};
use super::coherence::{Coherence, Parcel, Step, order_of_uses};
use super::exchange::{APPLY, Emptying, IDENTITY, RECEIVE, Receiving, SEND, Sending, contributes_values};
use super::failure::Failure;
use super::latest::Doing;
use super::layout::{Layout, Rank};
use super::mailbox::ParcelName;
use super::node::{Node, TogetherName, decode, encode};
use super::sharding::{self, Shares};
use super::spread::{Spread, frame, frames};
use super::tree::together;
use crate::context::{Bound, Context, ContextState};
use crate::error::{Error, Result};
use crate::future::{Future, FutureMap, Origin, Results, Sources};
use crate::launch::{LaunchSite, Launching, TaskLauncher};
use crate::task::{Codec, TaskDefinition};

/// See the [module](self).
pub(crate) struct Replica {
    node: Arc<Node>,
    agreement: Arc<Agreement>,
    program: Mutex<Program>,
}

/// What follows from what the program has done so far.
#[derive(Default)]
struct Program {
    trees: FxHashMap<TreeId, Coherence>,
    plans: FxHashMap<u64, Arc<Plan>>,
    pieces: FxHashMap<PiecesKey, LogicalPartition>,
}

/// A region's points cut into pieces that were exchanged before: the shapes' numbers.
type PiecesKey = (TreeId, Box<[u64]>);

/// What launches of one kind have in common.
struct Plan {
    site: Arc<LaunchSite>,
    /// See [`Noted`].
    hash: u64,
    /// How points are dealt to nodes, for messages.
    dealt: Arc<str>,
    /// The points that run here.
    mine: Vec<AnyRect>,
    /// For each requirement what each node uses.
    layouts: Vec<Arc<Layout>>,
    /// For each requirement what it counts as.
    privileges: Vec<Privilege>,
    /// In which order they are prepared.
    order: Vec<usize>,
}

/// What is remembered of launches is forgotten when it is so much.
const MOST_PLANS: usize = 1 << 12;

/// What a mapper is asked about a launch.
const SHARD_LAUNCH: &str = "shard_launch";

/// What the values are called that nodes say of themselves.
pub(crate) const PER_NODE: &str = "per node";

/// Where an operation stands in the program, and how many exchanges it has made.
struct Place {
    operation: u64,
    exchanges: u32,
}

impl Replica {
    /// A program begins.
    pub(crate) fn new(node: &Arc<Node>) -> Self {
        Self { node: Arc::clone(node), agreement: Arc::default(), program: Mutex::default() }
    }

    /// Launches a task on all nodes together. It was not refused so far.
    pub(crate) fn launch(
        &self,
        context: &Context,
        mut launcher: TaskLauncher,
        (domain, index_launch): (AnyRect, bool),
    ) -> Result<Arc<Results>> {
        let operation = self.node.number_operation(Doing::Task(Arc::clone(launcher.definition())));
        let state = &context.state;
        let plan = self.plan(state, &mut Launching::new(&mut launcher, domain, index_launch))?;
        state.check_inline(plan.site.name(), &plan.site.bounds)?;
        let what = What::Launch(Arc::clone(&plan.site), Arc::clone(&plan.dealt));
        self.agreement.note(&self.node, Noted { hash: plan.hash, what });
        for source in launcher.sources() {
            // All nodes ask for what comes from others, also one that runs no point.
            source.completion();
        }
        let mut program = self.program.lock();
        let mut place = Place { operation, exchanges: 0 };
        let uses = || {
            plan.order.iter().map(|&number| {
                let Requirement { target, fields, .. } = &plan.site.bounds[number].requirement;
                (target.bound().root_region(), fields, plan.privileges[number], &plan.layouts[number])
            })
        };
        let contributes = plan.privileges.iter().any(|privilege| matches!(privilege, Privilege::Reduce(_)));
        if contributes && plan.layouts.len() > 1 {
            for (region, fields, privilege, layout) in uses() {
                let shapes = shapes(&region);
                let steps = self.coherence(&mut program, &region).settle_for(fields, privilege, layout, shapes);
                self.carry_out(context, &mut program, &mut place, (&region, steps));
            }
        }
        for (region, fields, privilege, layout) in uses() {
            self.prepare(context, &mut program, &mut place, (&region, fields, privilege, layout));
        }
        drop(program);
        let name = TogetherName { operation, part: 0 };
        let (origin, codec) = (Origin::Task(Arc::clone(launcher.definition())), launcher.definition().result_codec());
        let mut local = Vec::with_capacity(plan.mine.len());
        for share in &plan.mine {
            let shared = (domain, Some(*share), index_launch);
            local.push((*share, context.submit_local(launcher.clone(), shared)));
        }
        Ok(Spread::results((&self.node, &self.agreement, name, state.core.realm()), (origin, domain, codec), local))
    }

    /// A field's values in a region, cut into parts, one a node, that are there.
    pub(crate) fn where_it_is(&self, region: &LogicalRegion, field: FieldId) -> LogicalPartition {
        let (root, shapes) = (region.root_region(), shapes(region));
        let mut program = self.program.lock();
        let homes = self.coherence(&mut program, &root).homes_of(field, shapes);
        let parts: Vec<Shape> =
            homes.areas().iter().map(|home| shapes.intersection(home, region.space().shape())).collect();
        pieces(&mut program, &root, parts.iter())
    }

    /// Every node is about to use a whole region itself. If it changes something, all do the same.
    pub(crate) fn bring(&self, context: &Context, region: &LogicalRegion, fields: &FieldMask, privilege: Privilege) {
        let what = if privilege == Privilege::Read { "looks at" } else { "changes" };
        let mut place = Place { operation: self.node.number_operation(Doing::Other(what)), exchanges: 0 };
        self.note_use(what, region);
        // It is about to wait.
        self.agreement.compare(&self.node);
        let mut program = self.program.lock();
        let everywhere = vec![region.space().shape().clone(); self.node.nodes()];
        let root = region.root_region();
        let layout = self.coherence(&mut program, &root).layout(everywhere, shapes(region));
        self.prepare(context, &mut program, &mut place, (&root, fields, Privilege::Read, &layout));
        if privilege != Privilege::Read {
            self.coherence(&mut program, &root).fill(fields, region.space().shape(), shapes(region));
        }
    }

    /// Every node gives fields of a region the same values.
    pub(crate) fn fill(&self, region: &LogicalRegion, fields: &FieldMask) {
        self.node.number_operation(Doing::Other("fills"));
        self.note_use("fills", region);
        let mut program = self.program.lock();
        self.coherence(&mut program, &region.root_region()).fill(fields, region.space().shape(), shapes(region));
    }

    fn note_use(&self, what: &'static str, region: &LogicalRegion) {
        let noted = Noted { hash: hash_of_use(what, region), what: What::Use(what, region.clone()) };
        self.agreement.note(&self.node, noted);
    }

    /// What every node has a part of, of which this is ours.
    pub(crate) fn spread(&self, realm: &Realm, what: &'static str, mine: &Future<()>) -> Future<()> {
        self.agreement.note_other(&self.node, what);
        let one = AnyRect::from(Rect::<1>::from(0..1));
        let name = TogetherName { operation: self.node.number_operation(Doing::Other(what)), part: 0 };
        let whole = (Origin::BuiltIn(what), one, None);
        Future::new(
            Spread::results((&self.node, &self.agreement, name, realm), whole, vec![(one, mine.source().results())]),
            0,
        )
    }

    /// What each node says, at the point of its number.
    pub(crate) fn per_node<T>(&self, realm: &Realm, value: T) -> FutureMap<T>
    where
        T: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let (rank, nodes) = (self.node.rank() as i64, self.node.nodes() as i64);
        self.agreement.note_other(&self.node, PER_NODE);
        let (mine, all) = (Rect::<1>::from(rank..rank + 1).into(), Rect::<1>::from(0..nodes).into());
        let name = TogetherName { operation: self.node.number_operation(Doing::Other(PER_NODE)), part: 0 };
        let whole = (Origin::BuiltIn(PER_NODE), all, Some(Codec::of::<T>()));
        let local = vec![(mine, Results::ready(realm, PER_NODE, value))];
        FutureMap::new(Spread::results((&self.node, &self.agreement, name, realm), whole, local))
    }

    /// A region is gone.
    pub(crate) fn forget(&self, tree: TreeId) {
        let mut program = self.program.lock();
        program.trees.remove(&tree);
        program.plans.retain(|_, plan| !plan.site.uses(tree));
        program.pieces.retain(|(of, _), _| *of != tree);
    }

    /// The program has ended here, perhaps with a failure: waits for the other nodes. The failure of the first that has failed, if another one has.
    pub(crate) fn end(&self, realm: &Realm, failure: Option<&Error>) -> Option<Error> {
        let mine = failure.map(|error| self.node.tell(error));
        self.node.end_program(mine.clone());
        if mine.is_none() {
            self.agreement.compare(&self.node);
        }
        let name = TogetherName { operation: self.node.number_operation(Doing::Other("end")), part: 0 };
        let (met, outcome) = (realm.user_event(), Arc::new(Mutex::new(None)));
        let (told, waiter) = (Arc::clone(&outcome), realm.clone());
        let done = move |all: Bytes| {
            *told.lock() = frames(&all).find_map(|failure| decode::<Option<Failure>>(failure).flatten());
            waiter.trigger(met);
        };
        self.node.together(name, frame(&encode(&mine)), Box::new(together), Box::new(done));
        // Should the others be lost, the realm has given up.
        let _ = realm.wait(met.event());
        let outcome = outcome.lock().take();
        outcome.map(|failure| self.node.hear(failure))
    }

    fn plan(&self, state: &Arc<ContextState>, launching: &mut Launching<'_>) -> Result<Arc<Plan>> {
        if let Some(known) = self.program.lock().plans.get(&launching.token())
            && known.site.is_same_and_allowed(launching)
        {
            return Ok(Arc::clone(known));
        }
        let mut renewed = Vec::new();
        let site = state.site(launching, &mut |zero| renewed.push(zero));
        // Also if the launch is refused: the next one will not be told.
        for zero in renewed {
            state.leave_session("new fields");
            state.submit_zero(zero)?;
        }
        let site = site?;
        let dealt = self.deal(state, &site)?;
        let mut program = self.program.lock();
        let plan = Arc::new(self.make_plan(&mut program, site, dealt)?);
        if program.plans.len() >= MOST_PLANS {
            program.plans.clear();
        }
        program.plans.insert(launching.token(), Arc::clone(&plan));
        Ok(plan)
    }

    /// Which node runs which points: what the mapper says.
    fn deal(&self, state: &ContextState, site: &LaunchSite) -> Result<(Sharding, Shares)> {
        let (nodes, core) = (self.node.nodes(), &state.core);
        let info = TaskInfo {
            name: site.name(),
            point: site.domain.lo(),
            domain: site.domain,
            is_index_launch: site.index_launch,
            requirements: &[],
            variants: site.definition.variants(),
            origin: state.processor,
            depth: state.depth + 1,
            tag: site.tag,
        };
        // The sharding may be code of the mapper's too.
        let dealt = core.seat(state.processor).call(core, SHARD_LAUNCH, |mapper| {
            let sharding = mapper.shard_launch(&info, nodes);
            let shares = match site.index_launch {
                true => sharding::shares(&sharding, &site.domain, nodes),
                false => {
                    let (point, domain) = first_piece(&site.bounds).unwrap_or((site.domain.lo(), site.domain));
                    let node = sharding::node_of(&sharding, (point, &domain), nodes);
                    node.map(|node| sharding::on_one(&site.domain, nodes, node))
                }
            };
            shares
                .map_err(|problem| format!("for `{}`, {sharding}, {problem}", site.name()))
                .map(|shares| (sharding, shares))
        })?;
        dealt.map_err(|problem| Error::mapper(SHARD_LAUNCH, problem))
    }

    fn make_plan(
        &self,
        program: &mut Program,
        site: Arc<LaunchSite>,
        (sharding, shares): (Sharding, Shares),
    ) -> Result<Plan> {
        let (nodes, domain) = (self.node.nodes(), &site.domain);
        let areas = areas(&site, &shares)?;
        let travels = |bound: &Bound| match bound.requirement.privilege {
            Privilege::Reduce(operator) => {
                contributes_values(&bound.requirement.target.bound(), &bound.requirement.fields, operator)
            }
            _ => true,
        };
        let is_apart =
            |(bound, areas): (&Bound, &Vec<Shape>)| !bound.requirement.privilege.writes() || are_apart(areas);
        let in_place = !(site.bounds.iter().all(travels) && site.bounds.iter().zip(&areas).all(is_apart));
        let (shares, areas) = match in_place {
            false => (shares, areas),
            // What meets on one node is put in order there.
            true => {
                let node = if let Sharding::OnOne(node) = sharding { node } else { 0 };
                let shares = sharding::on_one(domain, nodes, node);
                let areas = self::areas(&site, &shares)?;
                (shares, areas)
            }
        };
        let layouts = site.bounds.iter().zip(areas).map(|(bound, areas)| {
            let root = bound.requirement.target.bound().root_region();
            self.coherence(program, &root).layout(areas, shapes(&root))
        });
        let layouts = layouts.collect();
        let dealt = match sharding {
            Sharding::ByPoint(_) => format!("{sharding}, {}", sharding::shown(&shares)),
            _ => sharding.to_string(),
        };
        let hash = hash_of(&site, &shares);
        let privileges = site.bounds.iter().map(|bound| match bound.requirement.privilege {
            // Contributions are made where the values are: some can't travel.
            Privilege::Reduce(_) if in_place => Privilege::ReadWrite,
            privilege => privilege,
        });
        let privileges: Vec<_> = privileges.collect();
        let order = order_of_uses(&privileges);
        Ok(Plan { mine: shares[self.node.rank()].clone(), layouts, privileges, order, hash, dealt: dealt.into(), site })
    }

    fn coherence<'a>(&self, program: &'a mut Program, root: &LogicalRegion) -> &'a mut Coherence {
        let (rank, nodes) = (self.node.rank(), self.node.nodes());
        program.trees.entry(root.tree().id()).or_insert_with(|| {
            let shapes = shapes(root);
            let home = for_dimension!(root.space().space(), |space| {
                let pieces = partition::equal(space, nodes).expect("there is at least one node");
                pieces.into_iter().map(|piece| shapes.intern(&piece.into())).collect()
            });
            Coherence::new(rank, root.space().shape().clone(), home, shapes)
        })
    }

    /// Has nodes exchange what they need to use a region in this way, each its area.
    fn prepare(
        &self,
        context: &Context,
        program: &mut Program,
        place: &mut Place,
        (root, fields, privilege, layout): (&LogicalRegion, &FieldMask, Privilege, &Arc<Layout>),
    ) {
        let (coherence, shapes) = (self.coherence(program, root), shapes(root));
        let steps = match privilege {
            Privilege::Read => coherence.read(fields, layout, shapes),
            Privilege::ReadWrite => coherence.write(fields, layout, shapes),
            Privilege::Discard => {
                coherence.discard(fields, layout, shapes);
                Vec::new()
            }
            Privilege::Reduce(operator) => coherence.reduce(fields, operator, layout, shapes),
        };
        self.carry_out(context, program, place, (root, steps));
    }

    /// Launches what nodes do before a launch.
    fn carry_out(
        &self,
        context: &Context,
        program: &mut Program,
        place: &mut Place,
        (root, steps): (&LogicalRegion, Vec<Step>),
    ) {
        for step in steps {
            match step {
                Step::Identity { fields, operator, place } => {
                    let pieces = pieces(program, root, [&place].into_iter());
                    let launcher = TaskLauncher::new(&IDENTITY).arguments(Emptying(operator));
                    launch_pieces(context, launcher, (&pieces, &fields, Privilege::Discard), 1);
                }
                Step::Exchange { fields, fold, exchange } => {
                    let (operation, number) = (place.operation, place.exchanges);
                    place.exchanges += 1;
                    let parcels = Parcels { root, fields: &fields, operation, exchange: number };
                    self.send(context, program, &parcels, &exchange.sends);
                    self.receive(context, program, &parcels, (&exchange.receives, fold));
                    self.send(context, program, &parcels, &exchange.forwards);
                }
            }
        }
    }

    fn send(&self, context: &Context, program: &mut Program, parcels: &Parcels<'_>, sends: &[Parcel]) {
        if sends.is_empty() {
            return;
        }
        let core = &context.state.core;
        let size = parcels.bytes_of_point();
        for parcel in sends {
            let (peer, bytes) = (self.node.peer(parcel.with), parcel.points.space().volume() * size);
            peer.parcels_sent.add(1);
            peer.parcel_bytes_sent.add(bytes);
            core.counters.parcels_sent.add(1);
            core.counters.parcel_bytes_sent.add(bytes);
        }
        let pieces = pieces(program, parcels.root, sends.iter().map(|parcel| &parcel.points));
        let sending = Arc::new(Sending { node: Arc::clone(&self.node), parcels: parcels.named(sends) });
        let launcher = TaskLauncher::new(&SEND).arguments(Arc::clone(&sending));
        let results = launch_pieces(context, launcher, (&pieces, parcels.fields, Privilege::Read), sends.len());
        core.realm().when(After::follows(&[results.completion()]), move |_| {
            let Some(failure) = results.error() else { return };
            for number in 0..sending.parcels.len() {
                match results.value(number) {
                    Some(Err(error)) => sending.fail(number, error),
                    // The launch as a whole failed.
                    _ if results.first_error().is_none() => sending.fail(number, &failure),
                    _ => {}
                }
            }
        });
    }

    fn receive(
        &self,
        context: &Context,
        program: &mut Program,
        parcels: &Parcels<'_>,
        (receives, fold): (&[Parcel], Option<OperatorId>),
    ) {
        if receives.is_empty() {
            return;
        }
        let core = &context.state.core;
        let size = parcels.bytes_of_point();
        for parcel in receives {
            let (peer, bytes) = (self.node.peer(parcel.with), parcel.points.space().volume() * size);
            peer.parcels_received.add(1);
            peer.parcel_bytes_received.add(bytes);
            core.counters.parcels_received.add(1);
            core.counters.parcel_bytes_received.add(bytes);
        }
        let (awaited, complete) = self.node.expect(&parcels.named(receives));
        let one = AnyRect::from(Rect::<1>::from(0..1));
        let origin = (Origin::BuiltIn("parcel"), one);
        let arrival = Results::from_afar(core.realm(), origin, complete.event(), Sources::new());
        // Contributions are applied in the order of nodes, so that the outcome is the same on every run.
        let (task, privilege, batches): (&Arc<TaskDefinition>, _, Vec<&[Parcel]>) = match fold {
            None => (&RECEIVE, Privilege::Discard, vec![receives]),
            Some(_) => (&APPLY, Privilege::ReadWrite, receives.chunk_by(|one, other| one.with == other.with).collect()),
        };
        let mut first = 0;
        for batch in batches {
            let pieces = pieces(program, parcels.root, batch.iter().map(|parcel| &parcel.points));
            let arguments =
                Receiving { node: Arc::clone(&self.node), parcels: Arc::clone(&awaited), first, operator: fold };
            let launcher = TaskLauncher::new(task).arguments(arguments).after_results(&arrival);
            launch_pieces(context, launcher, (&pieces, parcels.fields, privilege), batch.len());
            first += batch.len();
        }
    }
}

/// What the parcels of one exchange are called, and what they are about.
struct Parcels<'a> {
    root: &'a LogicalRegion,
    fields: &'a FieldMask,
    operation: u64,
    exchange: u32,
}

impl Parcels<'_> {
    fn named(&self, parcels: &[Parcel]) -> Vec<(Rank, ParcelName)> {
        let (operation, exchange) = (self.operation, self.exchange);
        parcels.iter().map(|parcel| (parcel.with, ParcelName { operation, exchange, number: parcel.number })).collect()
    }

    /// The bytes of the fields at a point.
    fn bytes_of_point(&self) -> u64 {
        let sizes = self.fields.iter().filter_map(|field| self.root.fields().type_of(field).ok()).map(|ty| ty.size);
        sizes.sum::<usize>() as u64
    }
}

/// Launches an internal task over pieces.
fn launch_pieces(
    context: &Context,
    launcher: TaskLauncher,
    (pieces, fields, privilege): (&LogicalPartition, &FieldMask, Privilege),
    count: usize,
) -> Arc<Results> {
    let domain = AnyRect::from(Rect::<1>::from(0..count as i64));
    let requirement = Requirement::new(pieces.clone(), fields.clone(), privilege);
    context.submit_local(launcher.requirement(requirement), (domain, None, true))
}

/// A partition of a region into pieces that are exchanged.
fn pieces<'a>(
    program: &mut Program,
    root: &LogicalRegion,
    shapes: impl Iterator<Item = &'a Shape> + Clone,
) -> LogicalPartition {
    let key = (root.tree().id(), shapes.clone().map(Shape::id).collect());
    if let Some(known) = program.pieces.get(&key) {
        return known.clone();
    }
    let spaces: Vec<AnySpace> = shapes.map(|shape| shape.space().clone()).collect();
    let colors = AnyRect::from(Rect::<1>::from(0..spaces.len() as i64));
    let partitioning = root.space().forest().partition(root.space(), colors, &spaces);
    let partition = partitioning.and_then(|partitioning| root.partition(&partitioning));
    let partition = partition.expect("the pieces are parts of a region that is there");
    if program.pieces.len() >= MOST_PLANS {
        program.pieces.clear();
    }
    program.pieces.insert(key, partition.clone());
    partition
}

/// The color of the first piece that a task is given, and all colors of its partition.
fn first_piece(bounds: &[Bound]) -> Option<(AnyPoint, AnyRect)> {
    bounds.iter().find_map(|bound| match bound.requirement.target.bound().space() {
        IndexSpaceNode::Root(_) => None,
        IndexSpaceNode::Piece(partition, number) => {
            Some((partition.colors().delinear(*number as u64), partition.colors()))
        }
    })
}

/// For each requirement, what each node's points use.
fn areas(site: &LaunchSite, shares: &[Vec<AnyRect>]) -> Result<Vec<Vec<Shape>>> {
    let of_requirement = |bound: &Bound| {
        let target = &bound.requirement.target;
        let bound = target.bound();
        let shapes = shapes(&bound);
        let dim = bound.space().space().dim();
        let of_node = |share: &Vec<AnyRect>| {
            let points = share.iter().flat_map(AnyRect::points);
            let regions = points.map(|point| Ok(target.region_at(point, &site.domain)?));
            let regions: Vec<LogicalRegion> = regions.collect::<Result<_>>()?;
            if let [region] = &regions[..] {
                return Ok(region.space().shape().clone());
            }
            let area = AnySpace::union_all(dim, regions.iter().map(|region| region.space().space()));
            Ok(shapes.intern(&area.expect("pieces of a region have its dimensions")))
        };
        shares.iter().map(of_node).collect()
    };
    site.bounds.iter().map(of_requirement).collect()
}

/// Whether no two areas have a point in common.
fn are_apart(areas: &[Shape]) -> bool {
    let Some(first) = areas.first() else { return true };
    AnySpace::are_disjoint(first.space().dim(), areas.iter().map(Shape::space)).expect("areas have one dimension")
}

fn shapes(region: &LogicalRegion) -> &ShapeTable {
    region.space().forest().shapes()
}
