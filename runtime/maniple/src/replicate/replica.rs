//! A program that runs on several nodes, as one of them sees it.
//!
//! Every node carries out the whole program. Of a launch it runs the points that are its by a pure function, the sharding. Before them come, as ordinary
//! launches, the exchanges that [`Coherence`] asks for. So a launch here costs what the node's own points cost, and the rest of the runtime sees nothing but
//! launches.

use std::sync::Arc;

use bytes::Bytes;
use maniple_mapper::{Sharding, TaskInfo};
use maniple_realm::Realm;
use maniple_realm::locks::Mutex;
use maniple_region::{
    FieldId, FieldMask, IndexSpaceNode, LogicalPartition, LogicalRegion, Privilege, Requirement, Shape, ShapeTable,
    TreeId,
};
use maniple_space::{AnyPoint, AnyRect, AnySpace, Rect, for_dimension, partition};
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use super::agreement::{Agreement, Noted, What, hash_of, hash_of_use, hash_with};
use super::coherence::{Coherence, Step, order_of_uses};
use super::course::Course;
use super::exchange::contributes_values;
use super::failure::Failure;
use super::latest::Doing;
use super::layout::Layout;
use super::node::{Node, TogetherName, decode, encode};
use super::preparation::{Pieces, Preparation};
use super::sharding::{self, Shares};
use super::spread::{Local, Spread, frame, frames};
use super::tree::together;
use crate::context::{Bound, Context, ContextState};
use crate::error::{Error, Result};
use crate::future::{Future, FutureMap, Origin, Results};
use crate::launch::{LaunchSite, Launching, TaskLauncher};
use crate::task::Codec;
use crate::task::number::Number;
use crate::trace::Whole;

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
    course: Course<Plan>,
    /// The regions that it has made and that are there: as which one each was made.
    regions: FxHashMap<TreeId, u64>,
    regions_made: u64,
    pieces: Pieces,
}

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
    /// The roots of the trees that they are about.
    roots: Vec<LogicalRegion>,
    /// What came before such launches, by what was known of the trees.
    known: Mutex<Vec<Known>>,
    /// Those of the latest such launch, if they are kept.
    results: Mutex<Option<Arc<Results>>>,
}

/// What came before a launch, and what was known of the data before and after both: a number for each tree.
struct Known {
    before: SmallVec<[u64; 2]>,
    after: SmallVec<[u64; 2]>,
    preparation: Arc<Preparation>,
}

/// A launch that finds the data in ever new states is not remembered for all of them.
const MOST_KNOWN: usize = 64;

/// What is remembered of launches is forgotten when it is so much.
const MOST_PLANS: usize = 1 << 12;

/// What a mapper is asked about a launch.
const SHARD_LAUNCH: &str = "shard_launch";

/// What the values are called that nodes say of themselves.
pub(crate) const PER_NODE: &str = "per node";

/// What a node says when the program has ended on it.
#[derive(Serialize, Deserialize)]
struct Ended {
    failure: Option<Failure>,
    /// How many comparisons it has begun.
    comparisons: u64,
    /// Of all that it has done.
    hash: u64,
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
        let digest = launcher.digest();
        let hash = hash_with(plan.hash, digest.as_ref());
        let what = What::Launch(Arc::clone(&plan.site), Arc::clone(&plan.dealt), digest);
        self.agreement.note(&self.node, Noted { hash, what });
        for source in launcher.sources() {
            // All nodes ask for what comes from others, also one that runs no point.
            source.completion();
        }
        let mut program = self.program.lock();
        let preparation = self.preparation(&mut program, &plan);
        let mut local = Local::with_capacity(plan.mine.len());
        if let [share] = plan.mine[..] {
            let mut again = preparation.again(&self.node, operation);
            let mut whole = Whole {
                number: preparation.number,
                internal: preparation.launches(),
                complete: &mut |arguments| again.complete_next(arguments),
                launcher: &mut launcher,
            };
            if let Some(results) = state.replay_whole(&mut whole) {
                local.push((share, results));
            }
        }
        if local.is_empty() {
            let is_whole = plan.mine.len() == 1;
            preparation.launch(context, &self.node, (operation, is_whole));
            drop(program);
            let mut submit = |share: AnyRect, launcher: &mut TaskLauncher| {
                let part = if is_whole { preparation.task_part() } else { None };
                local.push((share, context.submit_lent(launcher, (domain, Some(share), index_launch), part)));
            };
            if let Some((last, others)) = plan.mine.split_last() {
                others.iter().for_each(|share| submit(*share, &mut launcher.clone()));
                submit(*last, &mut launcher);
            }
        } else {
            // What the launcher leaves may be the program's, and is not let go of in here.
            drop(program);
        }
        launcher.recycle();
        Ok(self.shared_results(&plan, operation, local))
    }

    /// The results of a launch of which some points run here: in the place of those of an earlier launch of the kind, if nobody looks at these any more.
    fn shared_results(&self, plan: &Plan, operation: u64, mut local: Local) -> Arc<Results> {
        let LaunchSite { definition, domain, .. } = &*plan.site;
        let mut earlier = plan.results.lock();
        if let Some(results) = earlier.as_mut().and_then(Arc::get_mut) {
            match results.renew_spread((operation, local)) {
                Ok(()) => return earlier.clone().expect("they are there"),
                Err(unused) => local = unused,
            }
        }
        let (name, codec) = (TogetherName { operation, part: 0 }, definition.result_codec());
        let whole = (Origin::Task(Arc::clone(definition)), *domain, codec);
        let results = Spread::results((&self.node, &self.agreement, name), whole, local);
        // What the points return is not kept for longer than the program keeps it.
        *earlier = codec.is_some_and(Codec::is_of_nothing).then(|| Arc::clone(&results));
        results
    }

    /// A field's values in a region, cut into parts, one a node, that are there.
    pub(crate) fn where_it_is(&self, region: &LogicalRegion, field: FieldId) -> LogicalPartition {
        let (root, shapes) = (region.root_region(), shapes(region));
        let mut program = self.program.lock();
        let homes = self.coherence(&mut program, &root).homes_of(field, shapes);
        let parts: Vec<Shape> =
            homes.areas().iter().map(|home| shapes.intersection(home, region.space().shape())).collect();
        program.pieces.of(&root, parts.iter())
    }

    /// Every node is about to use a whole region itself. If it changes something, all do the same.
    pub(crate) fn bring(&self, context: &Context, region: &LogicalRegion, fields: &FieldMask, privilege: Privilege) {
        let what = if privilege == Privilege::Read { "looks at" } else { "changes" };
        let operation = self.node.number_operation(Doing::Other(what));
        self.note_use(what, region, None);
        // It is about to wait.
        self.agreement.compare(&self.node);
        let mut program = self.program.lock();
        let everywhere = vec![region.space().shape().clone(); self.node.nodes()];
        let root = region.root_region();
        let layout = self.coherence(&mut program, &root).layout(everywhere, shapes(region));
        let steps = self.steps(&mut program, (&root, fields, Privilege::Read, &layout));
        let steps = steps.into_iter().map(|step| (root.clone(), step)).collect();
        Preparation::new(&self.node, &mut program.pieces, steps).launch(context, &self.node, (operation, false));
        if privilege != Privilege::Read {
            self.coherence(&mut program, &root).fill(fields, region.space().shape(), shapes(region));
        }
    }

    /// Every node gives fields of a region the same value, of which is known whether it is this number.
    pub(crate) fn fill(&self, region: &LogicalRegion, fields: &FieldMask, number: Option<Number>) {
        self.node.number_operation(Doing::Other("fills"));
        self.note_use("fills", region, number);
        let mut program = self.program.lock();
        self.coherence(&mut program, &region.root_region()).fill(fields, region.space().shape(), shapes(region));
    }

    fn note_use(&self, what: &'static str, region: &LogicalRegion, number: Option<Number>) {
        let known_as = self.program.lock().regions.get(&region.tree().id()).copied();
        let hash = hash_of_use(what, (region, known_as), number);
        let noted = Noted { hash, what: What::Use(what, region.clone(), number) };
        self.agreement.note(&self.node, noted);
    }

    /// What every node has a part of, of which this is ours.
    pub(crate) fn spread(&self, what: &'static str, mine: &Future<()>) -> Future<()> {
        self.agreement.note_other(&self.node, what);
        let one = AnyRect::from(Rect::<1>::from(0..1));
        let name = TogetherName { operation: self.node.number_operation(Doing::Other(what)), part: 0 };
        let whole = (Origin::BuiltIn(what), one, None);
        Future::new(
            Spread::results((&self.node, &self.agreement, name), whole, smallvec![(one, mine.source().results())]),
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
        let local = smallvec![(mine, Results::ready(realm, PER_NODE, value))];
        FutureMap::new(Spread::results((&self.node, &self.agreement, name), whole, local))
    }

    /// The program has made a region.
    pub(crate) fn make(&self, region: &LogicalRegion) {
        let mut program = self.program.lock();
        let number = program.regions_made;
        program.regions_made += 1;
        program.regions.insert(region.tree().id(), number);
        drop(program);
        self.note_use("makes", region, None);
    }

    /// The program has destroyed a region. That is compared if it has made it: what a task has made is known on the node of the task only.
    pub(crate) fn destroy(&self, region: &LogicalRegion) {
        let tree = region.tree().id();
        let is_everywhere = self.program.lock().regions.contains_key(&tree);
        if is_everywhere {
            self.note_use("destroys", region, None);
        }
        let mut program = self.program.lock();
        program.trees.remove(&tree);
        program.regions.remove(&tree);
        program.plans.retain(|_, plan| !plan.site.uses(tree));
        program.course.forget(|plan| plan.site.uses(tree));
        program.pieces.forget(tree);
    }

    /// The program has ended here, perhaps with a failure: waits for the other nodes. The failure of the first that has failed, if another one has.
    pub(crate) fn end(&self, realm: &Realm, failure: Option<&Error>) -> Option<Error> {
        let mine = failure.map(|error| self.node.tell(error));
        self.node.end_program(mine.clone());
        let hash = self.agreement.end(&self.node, mine.is_some());
        let name = TogetherName { operation: self.node.number_operation(Doing::Other("end")), part: 0 };
        let (met, outcome) = (realm.user_event(), Arc::new(Mutex::new(None)));
        let (told, waiter, node) = (Arc::clone(&outcome), realm.clone(), Arc::clone(&self.node));
        let done = move |all: Bytes| {
            // What came before from a node, such as its part of a comparison, is here.
            let ends: Vec<Ended> = frames(&all).filter_map(decode).collect();
            let differ = |of: fn(&Ended) -> u64| ends.iter().any(|end| of(end) != of(&ends[0]));
            if ends.iter().all(|end| end.failure.is_none()) && differ(|end| end.hash) {
                // If all have come to the last comparison, they are about to say where: that ends the job.
                if differ(|end| end.comparisons) {
                    node.differ("some have compared what they do more often than others".to_owned());
                }
                return;
            }
            node.end_comparisons(ends.iter().map(|end| end.comparisons).max().unwrap_or_default());
            *told.lock() = ends.into_iter().find_map(|end| end.failure);
            waiter.trigger(met);
        };
        let said = encode(&Ended { failure: mine, comparisons: self.node.comparisons(), hash });
        self.node.together(name, frame(&said), Box::new(together), Box::new(done));
        // Should the others be lost, the realm has given up.
        let _ = realm.wait(met.event());
        let outcome = outcome.lock().take();
        outcome.map(|failure| self.node.hear(failure))
    }

    fn plan(&self, state: &Arc<ContextState>, launching: &mut Launching<'_>) -> Result<Arc<Plan>> {
        let mut program = self.program.lock();
        let Program { plans, course, .. } = &mut *program;
        if let Some(expected) = course.expect(|plan| plan.site.is_same_and_allowed(launching)) {
            return Ok(Arc::clone(expected));
        }
        if let Some(known) = plans.get(&launching.token()).filter(|known| known.site.is_same_and_allowed(launching)) {
            course.turn_to(known);
            return Ok(Arc::clone(known));
        }
        drop(program);
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
        if let Some(stale) = program.plans.insert(launching.token(), Arc::clone(&plan)) {
            program.course.forget(|plan| std::ptr::eq(plan, &*stale));
        }
        program.course.turn_to(&plan);
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
        let layouts: Vec<Arc<Layout>> = layouts.collect();
        let dealt = match sharding {
            Sharding::ByPoint(_) => format!("{sharding}, {}", sharding::shown(&shares)),
            _ => sharding.to_string(),
        };
        let region =
            |bound: &Bound| program.regions.get(&bound.requirement.target.bound().root_region().tree().id()).copied();
        let used = site.bounds.iter().zip(&layouts).map(|(bound, layout)| (region(bound), &**layout));
        let hash = hash_of(&site, &shares, used);
        let privileges = site.bounds.iter().map(|bound| match bound.requirement.privilege {
            // Contributions are made where the values are: some can't travel.
            Privilege::Reduce(_) if in_place => Privilege::ReadWrite,
            privilege => privilege,
        });
        let privileges: Vec<_> = privileges.collect();
        let order = order_of_uses(&privileges);
        let mut roots: Vec<LogicalRegion> = Vec::new();
        for bound in &site.bounds {
            let root = bound.requirement.target.bound().root_region();
            if roots.iter().all(|known| known.tree().id() != root.tree().id()) {
                roots.push(root);
            }
        }
        let (mine, dealt, known) = (shares[self.node.rank()].clone(), dealt.into(), Mutex::default());
        Ok(Plan { mine, layouts, privileges, order, roots, hash, dealt, known, results: Mutex::default(), site })
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

    /// What comes before a launch. Nodes are then as if it had been launched.
    fn preparation(&self, program: &mut Program, plan: &Plan) -> Arc<Preparation> {
        let states = |program: &mut Program| -> SmallVec<[u64; 2]> {
            plan.roots.iter().map(|root| self.coherence(program, root).state()).collect()
        };
        let (before, mut all_known) = (states(program), plan.known.lock());
        if let Some(known) = all_known.iter().find(|known| known.before == before) {
            let reached = || plan.roots.iter().zip(&known.after);
            if reached().all(|(root, &state)| self.coherence(program, root).remembers(state)) {
                reached().for_each(|(root, &state)| self.coherence(program, root).go_to(state));
                return Arc::clone(&known.preparation);
            }
        }
        let steps = self.steps_before(program, plan);
        let preparation = Arc::new(Preparation::new(&self.node, &mut program.pieces, steps));
        all_known.retain(|known| known.before != before);
        if all_known.len() == MOST_KNOWN {
            all_known.remove(0);
        }
        all_known.push(Known { before, after: states(program), preparation: Arc::clone(&preparation) });
        preparation
    }

    fn steps_before(&self, program: &mut Program, plan: &Plan) -> Vec<(LogicalRegion, Step)> {
        let uses = || {
            plan.order.iter().map(|&number| {
                let Requirement { target, fields, .. } = &plan.site.bounds[number].requirement;
                (target.bound().root_region(), fields, plan.privileges[number], &plan.layouts[number])
            })
        };
        let mut all = Vec::new();
        let mut add = |region: &LogicalRegion, steps: Vec<Step>| {
            all.extend(steps.into_iter().map(|step| (region.clone(), step)));
        };
        let contributes = plan.privileges.iter().any(|privilege| matches!(privilege, Privilege::Reduce(_)));
        if contributes && plan.layouts.len() > 1 {
            for (region, fields, privilege, layout) in uses() {
                let shapes = shapes(&region);
                add(&region, self.coherence(program, &region).settle_for(fields, privilege, layout, shapes));
            }
        }
        for (region, fields, privilege, layout) in uses() {
            add(&region, self.steps(program, (&region, fields, privilege, layout)));
        }
        all
    }

    /// What nodes do so as to use a region in this way, each its area.
    fn steps(
        &self,
        program: &mut Program,
        (root, fields, privilege, layout): (&LogicalRegion, &FieldMask, Privilege, &Arc<Layout>),
    ) -> Vec<Step> {
        let (coherence, shapes) = (self.coherence(program, root), shapes(root));
        match privilege {
            Privilege::Read => coherence.read(fields, layout, shapes),
            Privilege::ReadWrite => coherence.write(fields, layout, shapes),
            Privilege::Discard => {
                coherence.discard(fields, layout, shapes);
                Vec::new()
            }
            Privilege::Reduce(operator) => coherence.reduce(fields, operator, layout, shapes),
        }
    }
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
