//! Operations of a program that runs on several nodes, as launches here.
//!
//! Every node carries out the whole program. Of a launch it runs the points that are its by a pure function, the
//! sharding. Before them come, as ordinary launches, the exchanges that [`Coherence`] asks for. So a launch here costs
//! what the node's own points cost, and the rest of the runtime sees nothing but launches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use maniple_analysis::distribution::{
    DistributionStep, NodeStep, Rank, StepPart, StepPlace, assemble, hash_of_areas, split,
};
use maniple_cluster::{CollectiveName, OperationName, Rounds};
use maniple_mapper::TaskInfo;
use maniple_realm::Realm;
use maniple_realm::locks::MutexGuard;
use maniple_region::{FieldId, FieldMask, LogicalPartition, LogicalRegion, Privilege, Requirement, Shape, TreeId};
use maniple_space::{AnyRect, Point, Rect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use smallvec::smallvec;

use super::distributed::DistributedPartition;
use super::knowledge::{Knowledge, PartOfUse, Use, shapes};
use super::operations::{FORGETS, LOOKS, ProgramOperation, digest_of_use, other};
use super::plan::{KnownPreparation, LaunchPlan, ROUNDS_OF_A_PLAN};
use super::planning::SHARD_LAUNCH;
use super::preparation::Preparation;
use super::replica::{Replica, ReplicaProgram};
use super::sharding;
use super::shared_results::SharedResults;
use crate::context::Context;
use crate::future::{Future, FutureMap};
use crate::launch::{LaunchSite, Launching, TaskLauncher};
use crate::results::{Local, Origin, Results};
use crate::support::error::{Error, Result};
use crate::task::Codec;
use crate::task::compared::Compared;
use crate::trace::Whole;

/// Exchanges about blocks have numbers from here on.
const IN_BLOCKS: u32 = 1 << 16;

/// A launch that finds the data in ever new states is not remembered for all of them.
const MOST_KNOWN: usize = 64;

/// The name of results of which each node gives one value.
pub(crate) const PER_NODE: &str = "per node";

impl Replica {
    /// Launches a task on all nodes together. It was not refused so far.
    pub(crate) fn launch(
        &self,
        context: &Context,
        mut launcher: TaskLauncher,
        domain: AnyRect,
        index_launch: bool,
    ) -> Result<Arc<Results>> {
        let operation = self.node.begin_operation(OperationName::Of(Arc::clone(launcher.definition()) as _));
        let state = &context.state;
        let plan = self.plan(state, &mut Launching::new(&mut launcher, domain, index_launch), operation)?;
        state.check_inline(plan.site.name(), &plan.site.bounds)?;
        for source in launcher.sources() {
            // All nodes ask for what comes from others, also one that runs no point.
            source.results().completion();
        }
        let (program, preparation) = self.preparation(operation, &plan)?;
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
            preparation.launch(context, &self.node, operation, is_whole);
            drop(program);
            let mut submit = |share: AnyRect, launcher: &mut TaskLauncher| {
                let part = if is_whole { preparation.task_part() } else { None };
                local.push((share, context.submit_lent(launcher, domain, Some(share), index_launch, part)));
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

    /// The results of a launch of which some points run here: in the place of those of an earlier launch of the kind,
    /// if these are not looked at any more.
    fn shared_results(&self, plan: &LaunchPlan, operation: u64, mut local: Local) -> Arc<Results> {
        let LaunchSite { definition, domain, .. } = &*plan.site;
        let mut earlier = plan.results.lock();
        if let Some(results) = earlier.as_mut().and_then(Arc::get_mut) {
            match results.renew_shared(operation, local) {
                Ok(()) => return earlier.clone().expect("they are there"),
                Err(unused) => local = unused,
            }
        }
        let (name, codec) = (CollectiveName { operation, part: 0 }, definition.result_codec());
        let origin = Origin::of(definition);
        let results = SharedResults::results(&self.node, &self.check, name, origin, *domain, codec, local);
        // What the points return is not kept for longer than the program keeps it.
        *earlier = codec.is_some_and(Codec::is_of_nothing).then(|| Arc::clone(&results));
        results
    }

    /// A field's values in a region, cut into parts, one a node, that are there.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(crate) fn where_it_is(&self, region: &LogicalRegion, field: FieldId) -> Result<LogicalPartition> {
        let (root, shapes, all) = (region.root_region(), shapes(region), region.space().shape());
        let mut program = self.program.lock();
        let (coherence, is_whole) = match self.knowledge(&mut program, &root) {
            Knowledge::Whole(coherence) => (&mut **coherence, true),
            Knowledge::InBlocks(blocks) => (blocks.coherence(), false),
        };
        let homes = coherence.homes_of(field, shapes);
        let parts: Vec<Shape> = homes.areas().iter().map(|home| shapes.intersection(home, all)).collect();
        if is_whole {
            return Ok(program.pieces.of(&root, parts.iter()));
        }
        drop(program);
        let operation = self.node.begin_operation(LOOKS);
        let parts = parts.iter().map(|part| part.space().clone()).collect();
        let colors = AnyRect::from(Rect::<1>::from(0..self.node.nodes() as i64));
        let own = self.node.directory.block(root.space());
        let parts = DistributedPartition::new(&self.node.directory, operation, root.space(), colors, own, parts, true);
        Ok(root.partition(&root.space().forest().distributed_partition(root.space(), colors, parts)?)?)
    }

    /// Every node is about to use a whole region itself. If it changes something, all do the same.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(crate) fn bring(
        &self,
        context: &Context,
        region: &LogicalRegion,
        fields: &FieldMask,
        privilege: Privilege,
    ) -> Result<()> {
        let what = if privilege == Privilege::Read { "looks at" } else { "changes" };
        let operation = self.node.begin_operation(what);
        self.note_use(what, region, fields, None);
        // It is about to wait.
        self.check.compare(&self.node);
        let (root, shapes) = (region.root_region(), shapes(region));
        let everywhere = vec![region.space().shape().clone(); self.node.nodes()];
        let layout = self.knowledge(&mut self.program.lock(), &root).layout(&everywhere, shapes);
        let one = Use { root: root.clone(), fields, privilege: Privilege::Read, layout: &layout, part: PartOfUse::All };
        let steps = self.prepare(&[one], &mut Rounds::new(&self.node, operation, 0))?;
        let mut program = self.program.lock();
        Preparation::new(&self.node, &mut program.pieces, steps, 0).launch(context, &self.node, operation, false);
        if privilege != Privilege::Read {
            self.knowledge(&mut program, &root).fill(fields, region.space().shape(), shapes);
        }
        Ok(())
    }

    /// Every node replaces the values of fields of a region by the same ones.
    pub(crate) fn replace(
        &self,
        what: &'static str,
        region: &LogicalRegion,
        fields: &FieldMask,
        with: Option<Compared>,
    ) {
        self.node.begin_operation(what);
        self.note_use(what, region, fields, with);
        let (root, points) = (region.root_region(), region.space().shape());
        self.knowledge(&mut self.program.lock(), &root).fill(fields, points, shapes(region));
    }

    /// Nodes forget copies of values of a region that other nodes have. Gives what this node gives up.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(crate) fn forget_copies(&self, region: &LogicalRegion, fields: &FieldMask) -> Result<Vec<Requirement>> {
        let operation = self.node.begin_operation(FORGETS);
        self.note_use(FORGETS, region, fields, None);
        let (root, shapes) = (region.root_region(), shapes(region));
        let everywhere = vec![region.space().shape().clone(); self.node.nodes()];
        let layout = self.knowledge(&mut self.program.lock(), &root).layout(&everywhere, shapes);
        let (privilege, part) = (Privilege::Read, PartOfUse::Forgetting);
        let one = Use { root: root.clone(), fields, privilege, layout: &layout, part };
        let steps = self.prepare(&[one], &mut Rounds::new(&self.node, operation, 0))?;
        let mut program = self.program.lock();
        let given_up = steps.into_iter().filter_map(|(root, _, step)| match step {
            DistributionStep::Forget { fields, place } => {
                let piece = program.pieces.of(&root, [&place].into_iter()).piece(Point([0]).into());
                Some(piece.map(|piece| Requirement::new(piece, fields, Privilege::Discard)))
            }
            _ => None,
        });
        Ok(given_up.collect::<Result<_, _>>()?)
    }

    /// Every node is about to use its areas of a region itself, which are apart.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(crate) fn use_areas(
        &self,
        context: &Context,
        what: &'static str,
        region: &LogicalRegion,
        fields: &FieldMask,
        privilege: Privilege,
        areas: &[Shape],
    ) -> Result<()> {
        let operation = self.node.begin_operation(what);
        self.note_use(what, region, fields, Some(Compared::areas(hash_of_areas(areas))));
        // It may be about to wait.
        self.check.compare(&self.node);
        let (root, shapes) = (region.root_region(), shapes(region));
        let layout = self.knowledge(&mut self.program.lock(), &root).layout(areas, shapes);
        let one = Use { root: root.clone(), fields, privilege, layout: &layout, part: PartOfUse::All };
        let steps = self.prepare(&[one], &mut Rounds::new(&self.node, operation, 0))?;
        let mut program = self.program.lock();
        Preparation::new(&self.node, &mut program.pieces, steps, 0).launch(context, &self.node, operation, false);
        Ok(())
    }

    /// The areas of a region become zero on all nodes, at this place in the program.
    pub(crate) fn zero_areas(&self, region: &LogicalRegion, fields: &FieldMask, areas: &[Shape]) {
        let mut program = self.program.lock();
        let knowledge = self.knowledge(&mut program, &region.root_region());
        areas.iter().for_each(|area| knowledge.fill(fields, area, shapes(region)));
    }

    /// The node of each point of a domain, as the mapper deals a launch of this name.
    ///
    /// # Errors
    /// [`Error::Mapper`] if it names a node that there is not, or panics.
    pub(crate) fn owners(&self, context: &Context, name: &str, domain: AnyRect) -> Result<Vec<Rank>> {
        let (state, nodes) = (&context.state, self.node.nodes());
        let info = TaskInfo {
            name,
            point: domain.lo(),
            domain,
            is_index_launch: true,
            requirements: &[],
            variants: &[],
            origin: state.processor,
            depth: state.depth + 1,
            tag: 0,
        };
        let dealt = state.core.seat(state.whom(context.mapper)).call(&state.core.store, SHARD_LAUNCH, |mapper| {
            sharding::shares(&mapper.shard_launch(&info, nodes), &domain, nodes)
        })?;
        let shares = dealt.map_err(|problem| Error::mapper(SHARD_LAUNCH, format!("for the {name}, {problem}")))?;
        let mut owners = vec![0; domain.volume() as usize];
        for (node, share) in shares.iter().enumerate() {
            for point in share.iter().flat_map(AnyRect::points) {
                owners[domain.linear(point) as usize] = node;
            }
        }
        Ok(owners)
    }

    /// This node among the others.
    pub(crate) fn rank(&self) -> Rank {
        self.node.rank()
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> usize {
        self.node.nodes()
    }

    fn note_use(&self, what: &'static str, region: &LogicalRegion, fields: &FieldMask, with: Option<Compared>) {
        let known_as = self.program.lock().regions.get(&region.tree().id()).copied();
        let digest = digest_of_use(what, region, known_as, fields, with);
        self.check.add(&self.node, (digest, ProgramOperation::Use(what, region.clone(), fields.clone(), with)));
    }

    /// The future of an operation of which every node carries out a part: `mine` is the part of this node.
    pub(crate) fn spread(&self, what: &'static str, mine: &Future<()>) -> Future<()> {
        self.check.add(&self.node, other(what));
        let one = AnyRect::from(Rect::<1>::from(0..1));
        let name = CollectiveName { operation: self.node.begin_operation(what), part: 0 };
        let (origin, local) = (Origin::BuiltIn(what), smallvec![(one, mine.source().results())]);
        Future::new(SharedResults::results(&self.node, &self.check, name, origin, one, None, local), 0)
    }

    /// A mapper has answered this for a tunable.
    pub(crate) fn note_tunable(&self, name: &str, answer: i64) {
        self.check.observe(name, answer);
    }

    /// The values that the nodes give, each at the point of its node's number.
    pub(crate) fn per_node<T>(&self, realm: &Realm, value: T) -> FutureMap<T>
    where
        T: Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let (rank, nodes) = (self.node.rank() as i64, self.node.nodes() as i64);
        self.check.add(&self.node, other(PER_NODE));
        let (mine, all) = (Rect::<1>::from(rank..rank + 1).into(), Rect::<1>::from(0..nodes).into());
        let name = CollectiveName { operation: self.node.begin_operation(PER_NODE), part: 0 };
        let (origin, codec) = (Origin::BuiltIn(PER_NODE), Some(Codec::of::<T>()));
        let local = smallvec![(mine, Results::ready(realm, PER_NODE, value))];
        FutureMap::new(SharedResults::results(&self.node, &self.check, name, origin, all, codec, local))
    }

    /// The program has made a region.
    pub(crate) fn make(&self, region: &LogicalRegion) {
        let mut program = self.program.lock();
        let number = program.regions_made;
        program.regions_made += 1;
        program.regions.insert(region.tree().id(), number);
        drop(program);
        self.note_use("makes", region, &FieldMask::default(), None);
    }

    /// The program has destroyed a region. That is compared if it has made it: what a task has made is known on the
    /// node of the task only.
    pub(crate) fn destroy(&self, region: &LogicalRegion) {
        let tree = region.tree().id();
        let is_everywhere = self.program.lock().regions.contains_key(&tree);
        if is_everywhere {
            self.note_use("destroys", region, &FieldMask::default(), None);
        }
        self.forget(tree);
    }

    /// Forgets what is known of a region tree that will not be used again.
    pub(crate) fn forget(&self, tree: TreeId) {
        let mut program = self.program.lock();
        program.trees.remove(&tree);
        program.regions.remove(&tree);
        program.plans.retain(|_, plan| !plan.site.uses(tree));
        program.predictor.forget(|plan| plan.site.uses(tree));
        program.pieces.forget(tree);
    }

    /// The program has ended here, perhaps with a failure: waits for the other nodes. The failure of the first that has
    /// failed, if another one has.
    pub(crate) fn end(&self, failure: Option<&Error>) -> Option<Error> {
        let mine = failure.map(|error| self.node.tell(error));
        self.check.end(&self.node, mine).map(|failure| self.node.hear(failure))
    }

    /// Nodes are about to use regions, in this order: what they do first.
    fn prepare(
        &self,
        uses: &[Use<'_>],
        rounds: &mut Rounds<'_>,
    ) -> Result<Vec<(LogicalRegion, u32, DistributionStep)>> {
        let (mut whole, mut parts, mut in_blocks, mut exchanges) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let mut program = self.program.lock();
        for (number, one) in (0..).zip(uses) {
            let knowledge = self.knowledge(&mut program, &one.root);
            let coherence = match knowledge {
                Knowledge::Whole(coherence) => &mut **coherence,
                Knowledge::InBlocks(blocks) => {
                    if !in_blocks.contains(&one.root) {
                        in_blocks.push(one.root.clone());
                    }
                    blocks.change()
                }
            };
            let steps = one.steps(coherence);
            if matches!(knowledge, Knowledge::InBlocks(_)) {
                split(steps, number, &program.operators, &mut parts);
                continue;
            }
            for NodeStep { step, .. } in steps {
                let exchange = exchanges;
                exchanges += u32::from(matches!(step, DistributionStep::Exchange { .. }));
                whole.push((number, (one.root.clone(), exchange, step)));
            }
        }
        drop(program);
        if !in_blocks.is_empty() {
            for (place, exchange, step) in self.exchange_about(&in_blocks, parts, rounds)? {
                let root = uses[place.of as usize].root.clone();
                whole.push((place.of, (root, IN_BLOCKS + exchange, step)));
            }
        }
        whole.sort_by_key(|(number, _)| *number);
        Ok(whole.into_iter().map(|(_, step)| step).collect())
    }

    /// The steps of this node for all blocks of these trees, each with its place and its number, which is the same on
    /// all nodes. The nodes have then agreed on the states of the trees.
    fn exchange_about(
        &self,
        roots: &[LogicalRegion],
        parts: Vec<(Rank, StepPart)>,
        rounds: &mut Rounds<'_>,
    ) -> Result<Vec<(StepPlace, u32, DistributionStep)>> {
        let places: BTreeSet<StepPlace> = parts.iter().map(|(_, part)| part.place()).collect();
        let mut messages: BTreeMap<Rank, Vec<StepPart>> = BTreeMap::new();
        for (to, part) in parts {
            messages.entry(to).or_default().push(part);
        }
        let states = self.own_states(roots);
        // It is about to wait.
        self.check.compare(&self.node);
        let exchanged = rounds.exchange((states, places), messages.into_iter().collect())?;
        let (states, places): (Vec<Vec<u64>>, Vec<BTreeSet<StepPlace>>) = exchanged.values.into_iter().unzip();
        self.agree_on(roots, &states);
        let places: BTreeSet<StepPlace> = places.into_iter().flatten().collect();
        let numbers: BTreeMap<StepPlace, u32> = places.into_iter().zip(0..).collect();
        let parts = exchanged.messages.into_iter().flat_map(|(_, parts)| parts);
        let Some(root) = roots.first() else { return Ok(Vec::new()) };
        let steps = assemble(parts, &self.program.lock().operators, shapes(root));
        let numbered = steps.into_iter().map(|(place, step)| (place, numbers.get(&place).copied().unwrap_or(0), step));
        Ok(numbered.collect())
    }

    /// The preparation of a launch. The states of the trees are then as if the task had been launched.
    fn preparation(
        &self,
        operation: u64,
        plan: &LaunchPlan,
    ) -> Result<(MutexGuard<'_, ReplicaProgram>, Arc<Preparation>)> {
        let mut rounds = Rounds::new(&self.node, operation, ROUNDS_OF_A_PLAN);
        let mut program = self.program.lock();
        let before = match self.states(&mut program, &plan.roots) {
            Some(known) => known,
            None => {
                drop(program);
                self.agree(&plan.roots, &mut rounds)?;
                program = self.program.lock();
                self.states(&mut program, &plan.roots).unwrap_or_default()
            }
        };
        let mut all_known = plan.known.lock();
        if let Some(known) = all_known.iter().find(|known| known.before == before) {
            let reached = || plan.roots.iter().zip(&known.after);
            if reached().all(|(root, &state)| self.knowledge(&mut program, root).remembers(state)) {
                reached().for_each(|(root, &state)| self.knowledge(&mut program, root).go_to(state));
                let preparation = Arc::clone(&known.preparation);
                drop(all_known);
                return Ok((program, preparation));
            }
        }
        all_known.retain(|known| known.before != before);
        drop((program, all_known));
        let steps = self.prepare(&plan.uses(), &mut rounds)?;
        let mut program = self.program.lock();
        // Nodes have met, if they had to.
        let after = self.states(&mut program, &plan.roots).unwrap_or_default();
        let preparation = Arc::new(Preparation::new(&self.node, &mut program.pieces, steps, plan.site.tag));
        let mut all_known = plan.known.lock();
        if all_known.len() == MOST_KNOWN {
            all_known.remove(0);
        }
        all_known.push(KnownPreparation { before, after, preparation: Arc::clone(&preparation) });
        drop(all_known);
        Ok((program, preparation))
    }
}
