//! Plans of launches: all that follows from a launch of the program by itself, whatever happened before. A plan is
//! computed once for all launches of a kind.
//!
//! A plan says which node runs which points, and which data each node then uses. If a partition is
//! [distributed](super::distributed), no node knows that as a whole: each looks at the launch in its own block, as if
//! there was nothing else, and nodes agree on what they have seen. Then they tell each other of the pieces that their
//! points use: the rest of the runtime needs no others.

use std::collections::BTreeSet;
use std::sync::Arc;

use maniple_analysis::distribution::{Points, hash_of_areas, order_of_uses};
use maniple_cluster::{Failure, Rounds};
use maniple_mapper::{Sharding, TaskInfo};
use maniple_realm::locks::Mutex;
use maniple_region::{IndexSpaceNode, LogicalRegion, NodeId, Partitioning, Privilege, Requirement, Shape, Target};
use maniple_space::{AnyPoint, AnyRect, AnySpace};
use rustc_hash::FxHashMap;

use super::directory::{Directory, Parts, root};
use super::distributed::DistributedPartition;
use super::exchange::contributes_values;
use super::knowledge::shapes;
use super::operations::{ProgramOperation, digest_of_launch, digest_with};
use super::plan::LaunchPlan;
use super::replica::{Replica, ReplicaProgram};
use super::sharding::{self, Shares};
use crate::context::ContextState;
use crate::instances::bound::Bound;
use crate::launch::{CheckContext, Everywhere, LaunchSite, Launching, Sharing, View, check};
use crate::support::error::{Error, Result};

/// The number of remembered plans at which all of them are forgotten.
const MOST_PLANS: usize = 1 << 12;

/// The same of launches over distributed partitions: a program that makes ever new ones is not to keep them all.
const MOST_PLANS_OF_DISTRIBUTED: usize = 1 << 8;

/// The name of the mapper call that deals a launch to nodes.
pub(super) const SHARD_LAUNCH: &str = "shard_launch";

/// The findings of one node about a launch in its block: a failure, if the launch is refused, and whether it has to run
/// on one node.
type Seen = (Option<Failure>, bool);

impl Replica {
    /// The plan of a launch, which is noted as what the program does.
    pub(super) fn plan(
        &self,
        state: &Arc<ContextState>,
        launching: &mut Launching<'_>,
        operation: u64,
    ) -> Result<Arc<LaunchPlan>> {
        if let Some(plan) = self.known_plan(state, launching) {
            self.note_launch(launching, &plan.site, plan.digest, &plan.dealt);
            return Ok(plan);
        }
        let is_distributed = |requirement: &Requirement| distributed(&requirement.target).is_some();
        let has_distributed = launching.launcher.requirements().iter().any(is_distributed);
        let mut renewed = Vec::new();
        let mut renew = |zero| renewed.push(zero);
        let site = match has_distributed {
            false => state.site(launching, &mut renew),
            true => state.bounds(launching, &mut renew).map(|bounds| {
                let sharing = Sharing::unknown(bounds.len());
                Arc::new(LaunchSite::new(launching, bounds, sharing))
            }),
        };
        // Also if the launch is refused: the next one will not be told.
        for zero in renewed {
            state.interrupt("new fields");
            state.submit_zero(zero)?;
        }
        let site = site?;
        let (sharding, shares) = self.deal(state, &site)?;
        let plan = match has_distributed {
            false => {
                let plan = self.plan_of_known(&site, sharding, shares)?;
                self.note_launch(launching, &plan.site, plan.digest, &plan.dealt);
                plan
            }
            true => self.plan_of_distributed(state, launching, &site, sharding, shares, operation)?,
        };
        let plan = Arc::new(plan);
        if site.definition.is_dealt_in_blocks() {
            // It is made for one launch.
            return Ok(plan);
        }
        let mut program = self.program.lock();
        program.plans_of_distributed += usize::from(has_distributed);
        if program.plans_of_distributed > MOST_PLANS_OF_DISTRIBUTED {
            let has_distributed = |plan: &LaunchPlan| plan.site.is_over_distributed_pieces();
            program.plans.retain(|_, plan| !has_distributed(plan));
            program.predictor.forget(has_distributed);
            program.plans_of_distributed = 1;
            state.sites().forget_distributed_pieces();
        }
        if program.plans.len() >= MOST_PLANS {
            program.plans.clear();
        }
        if let Some(stale) = program.plans.insert(launching.token(), Arc::clone(&plan)) {
            program.predictor.forget(|plan| std::ptr::eq(plan, &*stale));
        }
        program.predictor.turn_to(&plan);
        Ok(plan)
    }

    fn known_plan(&self, state: &ContextState, launching: &Launching<'_>) -> Option<Arc<LaunchPlan>> {
        let mut program = self.program.lock();
        let ReplicaProgram { plans, predictor, .. } = &mut *program;
        if let Some(expected) = predictor.expect(|plan| plan.site.is_same_and_allowed(launching, state)) {
            return Some(Arc::clone(expected));
        }
        let known = plans.get(&launching.token()).filter(|known| known.site.is_same_and_allowed(launching, state))?;
        predictor.turn_to(known);
        Some(Arc::clone(known))
    }

    fn note_launch(&self, launching: &Launching<'_>, site: &Arc<LaunchSite>, launch: u64, dealt: &Arc<str>) {
        let arguments = launching.launcher.digest();
        let digest = digest_with(launch, arguments.as_ref());
        self.check.add(&self.node, (digest, ProgramOperation::Launch(Arc::clone(site), Arc::clone(dealt), arguments)));
    }

    /// Which node runs which points: what the mapper says.
    fn deal(&self, state: &ContextState, site: &LaunchSite) -> Result<(Sharding, Shares)> {
        let (nodes, core) = (self.node.nodes(), &state.core);
        if site.definition.is_dealt_in_blocks() {
            let shares = sharding::shares(&Sharding::Blocked, &site.domain, nodes);
            return shares
                .map(|shares| (Sharding::Blocked, shares))
                .map_err(|problem| Error::mapper(SHARD_LAUNCH, problem));
        }
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
        let dealt = core.seat(state.whom(site.mapper)).call(&core.store, SHARD_LAUNCH, |mapper| {
            let sharding = mapper.shard_launch(&info, nodes);
            let shares = match site.index_launch {
                true => sharding::shares(&sharding, &site.domain, nodes),
                false => {
                    let (point, domain) = first_piece(&site.bounds).unwrap_or((site.domain.lo(), site.domain));
                    let node = sharding::node_of(&sharding, point, &domain, nodes);
                    node.map(|node| sharding::on_one(&site.domain, nodes, node))
                }
            };
            shares
                .map_err(|problem| format!("for `{}`, {sharding}, {problem}", site.name()))
                .map(|shares| (sharding, shares))
        })?;
        dealt.map_err(|problem| Error::mapper(SHARD_LAUNCH, problem))
    }

    /// The plan of a launch over what all nodes know.
    fn plan_of_known(&self, site: &Arc<LaunchSite>, sharding: Sharding, shares: Shares) -> Result<LaunchPlan> {
        let targets: Vec<&Target> = site.bounds.iter().map(|bound| &bound.requirement.target).collect();
        let areas = |shares: &Shares| -> Result<Vec<Vec<Shape>>> {
            targets.iter().map(|target| areas_of(target, &site.domain, shares, &Everywhere)).collect()
        };
        let known = areas(&shares)?;
        let in_place = is_in_place(site, &known);
        let (shares, areas) = match in_place {
            false => (shares, known),
            true => {
                let shares = self.on_one(site, &sharding);
                let areas = areas(&shares)?;
                (shares, areas)
            }
        };
        let hashes: Vec<u64> = areas.iter().map(|areas| hash_of_areas(areas)).collect();
        let (digest, dealt) = self.described(site, &sharding, &shares, &hashes);
        Ok(self.plan_of_areas(site, shares, in_place, areas, digest, dealt))
    }

    /// Deals all points to one node. Uses of the same data are put in order there.
    fn on_one(&self, site: &LaunchSite, sharding: &Sharding) -> Shares {
        let node = if let Sharding::OnOne(node) = sharding { *node } else { 0 };
        sharding::on_one(&site.domain, self.node.nodes(), node)
    }

    /// The digest of a launch, which nodes compare, and the dealing of its points to nodes, in words for messages.
    fn described(&self, site: &LaunchSite, sharding: &Sharding, shares: &Shares, uses: &[u64]) -> (u64, Arc<str>) {
        let dealt = match sharding {
            Sharding::ByPoint(_) => format!("{sharding}, {}", sharding::shown(shares)),
            _ => sharding.to_string(),
        };
        let program = self.program.lock();
        let region =
            |bound: &Bound| program.regions.get(&bound.requirement.target.bound().root_region().tree().id()).copied();
        let used = site.bounds.iter().zip(uses).map(|(bound, &uses)| (region(bound), uses));
        (digest_of_launch(site, shares, used), dealt.into())
    }

    fn plan_of_areas(
        &self,
        site: &Arc<LaunchSite>,
        shares: Shares,
        in_place: bool,
        areas: Vec<Vec<Shape>>,
        digest: u64,
        dealt: Arc<str>,
    ) -> LaunchPlan {
        let mut program = self.program.lock();
        let layouts = site.bounds.iter().zip(areas).map(|(bound, areas)| {
            let root = bound.requirement.target.bound().root_region();
            self.knowledge(&mut program, &root).layout(&areas, shapes(&root))
        });
        let layouts = layouts.collect();
        let privileges = site.bounds.iter().map(|bound| match bound.requirement.privilege {
            // Contributions are made where the values are: some can't travel.
            Privilege::Reduce(_) if in_place => Privilege::ReadWrite,
            privilege => privilege,
        });
        let privileges: Vec<_> = privileges.collect();
        for privilege in &privileges {
            if let Privilege::Reduce(operator) = privilege {
                program.operators.add(*operator);
            }
        }
        LaunchPlan {
            mine: shares[self.node.rank()].clone(),
            layouts,
            order: order_of_uses(&privileges),
            privileges,
            roots: roots(site),
            digest,
            dealt,
            known: Mutex::default(),
            results: Mutex::default(),
            site: Arc::clone(site),
        }
    }

    /// The plan of a launch over distributed partitions.
    fn plan_of_distributed(
        &self,
        state: &ContextState,
        launching: &Launching<'_>,
        site: &Arc<LaunchSite>,
        sharding: Sharding,
        shares: Shares,
        operation: u64,
    ) -> Result<LaunchPlan> {
        let targets: Vec<&Target> = site.bounds.iter().map(|bound| &bound.requirement.target).collect();
        let uses = targets.iter().map(|target| match distributed(target) {
            Some(partition) => Ok(partition.identity()),
            None => Ok(hash_of_areas(&areas_of(target, &site.domain, &shares, &Everywhere)?)),
        });
        let uses: Vec<u64> = uses.collect::<Result<_>>()?;
        let (digest, dealt) = self.described(site, &sharding, &shares, &uses);
        self.note_launch(launching, site, digest, &dealt);
        // It is about to wait.
        self.check.compare(&self.node);

        let seen = self.look_in_block(state, site, &targets, &shares);
        let (failure, is_in_place) = match &seen {
            Ok(is_in_place) => (None, *is_in_place),
            Err(error) => (Some(self.node.tell(error)), false),
        };
        let mut rounds = Rounds::new(&self.node, operation, 0);
        let exchanged = rounds.exchange::<Seen, ()>((failure, is_in_place), Vec::new())?;
        seen?;
        let in_place = exchanged.values.iter().any(|(_, in_place)| *in_place);
        if let Some(failure) = exchanged.values.into_iter().find_map(|(failure, _)| failure) {
            return Err(self.node.hear(failure));
        }
        let shares = if in_place { self.on_one(site, &sharding) } else { shares };
        let areas = self.areas_in_block(&targets, &site.domain, &shares)?;
        self.tell_of_pieces(&targets, &site.domain, &shares, &mut rounds)?;
        let mut program = self.program.lock();
        for target in targets.iter().filter(|target| distributed(target).is_some()) {
            self.go_to_blocks(&mut program, &target.bound().root_region());
        }
        drop(program);
        Ok(self.plan_of_areas(site, shares, in_place, areas, digest, dealt))
    }

    /// Refuses a launch that interferes with itself, as far as that can be seen in this node's block. Whether it has to
    /// run on one node.
    fn look_in_block(
        &self,
        state: &ContextState,
        site: &LaunchSite,
        targets: &[&Target],
        shares: &Shares,
    ) -> Result<bool> {
        let block = InBlock::of(&self.node.directory);
        let context = CheckContext { view: &block, deletions: state };
        check(site.name(), &site.bounds, &site.domain, site.index_launch, context)?;
        let areas = self.areas_in_block(targets, &site.domain, shares)?;
        Ok(is_in_place(site, &areas))
    }

    /// The areas that each node's points use: of distributed partitions, the parts of the pieces in this node's block.
    fn areas_in_block(&self, targets: &[&Target], domain: &AnyRect, shares: &Shares) -> Result<Vec<Vec<Shape>>> {
        let block = InBlock::of(&self.node.directory);
        let view = |target: &Target| -> &dyn View { if distributed(target).is_some() { &block } else { &Everywhere } };
        targets.iter().map(|target| areas_of(target, domain, shares, view(target))).collect()
    }

    /// Nodes tell each other of the pieces that they use.
    fn tell_of_pieces(
        &self,
        targets: &[&Target],
        domain: &AnyRect,
        shares: &Shares,
        rounds: &mut Rounds<'_>,
    ) -> Result<()> {
        // In the order in which they come up, which is the same on all nodes.
        let mut used: Vec<(Arc<Partitioning>, Vec<BTreeSet<usize>>)> = Vec::new();
        for target in targets {
            for (node, share) in shares.iter().enumerate() {
                for point in share.iter().flat_map(AnyRect::points) {
                    let region = target.region_at(point, domain)?;
                    let mut space = region.space();
                    while let IndexSpaceNode::Piece(partition, piece) = space {
                        if DistributedPartition::of(partition).is_some() {
                            let known = used.iter().position(|(known, _)| Arc::ptr_eq(known, partition));
                            let number = known.unwrap_or_else(|| {
                                used.push((Arc::clone(partition), vec![BTreeSet::new(); shares.len()]));
                                used.len() - 1
                            });
                            used[number].1[node].insert(*piece);
                        }
                        space = partition.parent();
                    }
                }
            }
        }
        let mut messages: Vec<Vec<(usize, Parts)>> = vec![Vec::new(); shares.len()];
        for (number, (partition, pieces)) in used.iter().enumerate() {
            let Some(distributed) = DistributedPartition::of(partition) else { continue };
            for (node, pieces) in pieces.iter().enumerate() {
                let parts = distributed.tell(node, pieces.iter().copied());
                if !parts.is_empty() {
                    messages[node].push((number, parts));
                }
            }
        }
        let messages = messages.into_iter().enumerate().filter(|(_, message)| !message.is_empty());
        let exchanged = rounds.exchange::<(), _>((), messages.collect())?;
        let mut received: FxHashMap<(usize, usize), Vec<AnySpace>> = FxHashMap::default();
        for (number, parts) in exchanged.messages.into_iter().flat_map(|(_, message)| message) {
            for (piece, Points(part)) in parts {
                received.entry((number, piece)).or_default().push(part);
            }
        }
        for (number, (partition, pieces)) in used.iter().enumerate() {
            let dim = partition.parent().space().dim();
            // All parts of a piece come together, or came before.
            for &piece in pieces[self.node.rank()].iter().filter(|&&piece| partition.known_piece(piece).is_none()) {
                let parts = received.remove(&(number, piece)).unwrap_or_default();
                let whole = AnySpace::union_all(dim, &parts).expect("pieces have their parent's dimension");
                partition.make_known(piece, &whole);
            }
        }
        Ok(())
    }
}

/// A view of pieces that is limited to this node's block.
struct InBlock<'a> {
    directory: &'a Directory,
    /// The node's blocks of root spaces, which take a while to find.
    blocks: Mutex<FxHashMap<NodeId, Shape>>,
}

impl<'a> InBlock<'a> {
    fn of(directory: &'a Directory) -> Self {
        Self { directory, blocks: Mutex::default() }
    }

    fn part(&self, space: &IndexSpaceNode, points: &Shape) -> Shape {
        let mut blocks = self.blocks.lock();
        let block = blocks.entry(root(space).id()).or_insert_with(|| self.directory.block(space));
        space.forest().shapes().intersection(points, block)
    }
}

impl View for InBlock<'_> {
    fn points(&self, space: &IndexSpaceNode) -> Option<Shape> {
        if let IndexSpaceNode::Piece(partition, number) = space
            && let Some(distributed) = DistributedPartition::of(partition)
        {
            return Some(distributed.block().pieces()[*number].clone());
        }
        Some(self.part(space, space.shape()))
    }

    fn union(&self, partition: &Partitioning) -> Shape {
        match DistributedPartition::of(partition) {
            Some(distributed) => distributed.block().union().clone(),
            None => self.part(partition.parent(), partition.union()),
        }
    }

    fn is_disjoint(&self, partition: &Partitioning) -> bool {
        match DistributedPartition::of(partition) {
            Some(distributed) => distributed.block().is_disjoint(),
            None => partition.is_disjoint(),
        }
    }
}

/// The source of the pieces, if the target is a distributed partition.
fn distributed(target: &Target) -> Option<&DistributedPartition> {
    match target {
        Target::Region(..) => None,
        Target::Partition(partition, _) => DistributedPartition::of(partition.partitioning()),
    }
}

/// The roots of the trees that a launch is about.
fn roots(site: &LaunchSite) -> Vec<LogicalRegion> {
    let mut roots: Vec<LogicalRegion> = Vec::new();
    for bound in &site.bounds {
        let root = bound.requirement.target.bound().root_region();
        if roots.iter().all(|known| known.tree().id() != root.tree().id()) {
            roots.push(root);
        }
    }
    roots
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

/// The areas that each node's points use, as far as the view knows them.
fn areas_of(target: &Target, domain: &AnyRect, shares: &[Vec<AnyRect>], view: &dyn View) -> Result<Vec<Shape>> {
    let bound = target.bound();
    let shapes = shapes(&bound);
    let dim = bound.space().space().dim();
    let of_node = |share: &Vec<AnyRect>| {
        let points = share.iter().flat_map(AnyRect::points);
        let mut regions = Vec::new();
        for point in points {
            regions.extend(view.points(target.region_at(point, domain)?.space()));
        }
        if let [region] = &regions[..] {
            return Ok(region.clone());
        }
        let area = AnySpace::union_all(dim, regions.iter().map(Shape::space));
        Ok(shapes.intern(&area.expect("pieces of a region have its dimensions")))
    };
    shares.iter().map(of_node).collect()
}

/// Whether a launch, whose nodes use these areas, has to run on one node: what it makes can't travel, or several would
/// change the same.
fn is_in_place(site: &LaunchSite, areas: &[Vec<Shape>]) -> bool {
    let travels = |bound: &Bound| match bound.requirement.privilege {
        Privilege::Reduce(operator) => {
            contributes_values(&bound.requirement.target.bound(), &bound.requirement.fields, operator)
        }
        _ => true,
    };
    let is_apart = |(bound, areas): (&Bound, &Vec<Shape>)| !bound.requirement.privilege.writes() || are_apart(areas);
    !(site.bounds.iter().all(travels) && site.bounds.iter().zip(areas).all(is_apart))
}

/// Whether no two areas have a point in common.
fn are_apart(areas: &[Shape]) -> bool {
    let Some(first) = areas.first() else { return true };
    AnySpace::are_disjoint(first.space().dim(), areas.iter().map(Shape::space)).expect("areas have one dimension")
}
