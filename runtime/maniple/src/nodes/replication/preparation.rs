//! The steps of a node before a launch of the program: launches of internal tasks, put together once for all launches
//! of the same kind that find the data where it was.

use std::sync::Arc;

use maniple_analysis::distribution::{DistributionStep, Exchange, Parcel};
use maniple_cluster::ParcelFuture;
use maniple_realm::locks::Mutex;
use maniple_region::{FieldMask, LogicalPartition, LogicalRegion, OperatorId, Privilege, Requirement, Shape, TreeId};
use maniple_space::{AnyRect, AnySpace, Rect};
use rustc_hash::FxHashMap;

use super::exchange::{APPLY, Addresses, Emptying, IDENTITY, RECEIVE, Receiving, SEND, Sending};
use super::node::JobNode;
use crate::context::Context;
use crate::instances::selection::bytes_of_point;
use crate::launch::{LaunchPart, TaskLauncher, WholeNumber};
use crate::task::TaskDefinition;
use crate::task::arguments::Arguments;

/// The moves that come before a launch, in this order.
pub(super) struct Preparation {
    moves: Vec<Move>,
    /// Of the launch, with all this.
    pub(super) number: WholeNumber,
}

enum Move {
    /// Points become an operator's identity.
    Identity(OverPieces, OperatorId),
    Send(OverPieces, Parcels),
    /// The launches take what comes one after the other, so many pieces each.
    Receive(Vec<OverPieces>, Parcels, Option<OperatorId>),
}

/// A launch over pieces, without arguments.
struct OverPieces {
    launcher: TaskLauncher,
    /// A copy that was launched and replayed, with the arguments of an earlier launch.
    used: Mutex<Option<TaskLauncher>>,
    count: usize,
}

/// The parcels that go to other nodes, or come from them, in one exchange.
struct Parcels(Arc<Addresses>);

impl Preparation {
    /// Of steps, each in a region tree, and with the number that all nodes give it if it is an exchange. The tag is
    /// that of the launch for which they are.
    pub(super) fn new(
        node: &Arc<JobNode>,
        pieces: &mut ExchangedPieces,
        steps: Vec<(LogicalRegion, u32, DistributionStep)>,
        tag: u64,
    ) -> Self {
        let mut moves = Vec::new();
        for (root, number, step) in steps {
            match step {
                DistributionStep::Identity { fields, operator, place } => {
                    let pieces = pieces.of(&root, [&place].into_iter());
                    let launch = OverPieces::new(&IDENTITY, pieces, &fields, Privilege::Discard, 1);
                    moves.push(Move::Identity(launch, operator));
                }
                // They are no part of what comes before a launch.
                DistributionStep::Forget { .. } => {}
                DistributionStep::Exchange { fields, fold, exchange } => {
                    let mut maker = Maker { node, pieces, root: &root, fields: &fields, exchange: number, tag };
                    let Exchange { sends, receives, forwards, .. } = &*exchange;
                    moves.extend(maker.send(sends));
                    moves.extend(maker.receive(receives, fold));
                    moves.extend(maker.send(forwards));
                }
            }
        }
        Self { moves, number: WholeNumber::new() }
    }

    /// Launches it all, for an operation of the program, as parts of a whole or as launches like any others.
    pub(super) fn launch(&self, context: &Context, node: &JobNode, operation: u64, is_whole: bool) {
        let mut again = self.again(node, operation);
        let launches = self.moves.iter().flat_map(Move::launches);
        let parts = self.launches();
        for (number, launch) in launches.enumerate() {
            let part = if is_whole { self.number.part(number, parts) } else { None };
            launch.launch(context, part, |launcher| {
                if let Some(parcels) = again.complete_next(launcher.arguments_mut()) {
                    launcher.wait_for_parcels(parcels);
                }
            });
        }
    }

    /// How many launches it is.
    pub(super) fn launches(&self) -> usize {
        self.moves.iter().map(|one| one.launches().len()).sum()
    }

    /// As what the launch of the task counts that comes after it.
    pub(super) fn task_part(&self) -> Option<LaunchPart> {
        self.number.part(self.launches(), self.launches())
    }

    /// The arguments of its launches, for an operation of the program.
    pub(super) fn again<'a>(&'a self, node: &'a JobNode, operation: u64) -> Again<'a> {
        Again { node, operation, moves: self.moves.iter(), receiving: None }
    }
}

/// Completes the launches of a [`Preparation`], one after the other.
pub(super) struct Again<'a> {
    node: &'a JobNode,
    operation: u64,
    moves: std::slice::Iter<'a, Move>,
    /// A receipt of which launches are left.
    receiving: Option<Receipt<'a>>,
}

/// Launches that take what comes in one exchange.
struct Receipt<'a> {
    launches: std::slice::Iter<'a, OverPieces>,
    from: &'a Arc<Addresses>,
    operator: Option<OperatorId>,
    parcels: Arc<ParcelFuture>,
    first: usize,
}

impl Again<'_> {
    /// Makes arguments of the next launch out of those of an earlier one, or anew. Gives the parcels that it waits for.
    pub(super) fn complete_next(&mut self, arguments: &mut Arguments) -> Option<Arc<ParcelFuture>> {
        if let Some(parcels) = self.receive_next(arguments) {
            return Some(parcels);
        }
        let (node, operation) = (self.node, self.operation);
        match self.moves.next()? {
            Move::Identity(_, operator) => arguments.renew(Emptying(*operator)),
            Move::Send(_, parcels) => {
                parcels.count_as_sent(node);
                match arguments.get_mut::<Sending>() {
                    Some(Sending { to, operation: earlier }) if Arc::ptr_eq(to, &parcels.0) => {
                        *earlier = operation;
                    }
                    _ => arguments.renew(Sending { to: Arc::clone(&parcels.0), operation }),
                }
            }
            Move::Receive(launches, parcels, operator) => {
                parcels.count_as_received(node);
                let from = &parcels.0;
                // What an earlier launch waited for, if that is not used any more.
                let earlier = arguments.get_mut::<Receiving>().filter(|earlier| Arc::ptr_eq(&earlier.from, from));
                if let (Some(Receiving { parcels, .. }), 1) = (earlier, launches.len())
                    && let Some(awaited) = Arc::get_mut(parcels)
                {
                    awaited.renew(node.realm());
                    node.expect(parcels, from.of(operation));
                    return Some(Arc::clone(parcels));
                }
                let awaited = ParcelFuture::new(from.parcels.len(), node.realm());
                node.expect(&awaited, from.of(operation));
                let (launches, operator) = (launches.iter(), *operator);
                self.receiving = Some(Receipt { launches, from, operator, parcels: awaited, first: 0 });
                return self.receive_next(arguments);
            }
        }
        None
    }

    /// The same, if it is one of a receipt that has begun.
    fn receive_next(&mut self, arguments: &mut Arguments) -> Option<Arc<ParcelFuture>> {
        let Receipt { launches, from, operator, parcels, first } = self.receiving.as_mut()?;
        let Some(launch) = launches.next() else {
            self.receiving = None;
            return None;
        };
        let (from, operator) = (Arc::clone(from), *operator);
        arguments.renew(Receiving { from, parcels: Arc::clone(parcels), first: *first, operator });
        *first += launch.count;
        Some(Arc::clone(parcels))
    }
}

impl Move {
    fn launches(&self) -> &[OverPieces] {
        match self {
            Self::Identity(launch, _) | Self::Send(launch, _) => std::slice::from_ref(launch),
            Self::Receive(launches, ..) => launches,
        }
    }
}

/// Makes the moves of one exchange.
struct Maker<'a> {
    node: &'a Arc<JobNode>,
    pieces: &'a mut ExchangedPieces,
    root: &'a LogicalRegion,
    fields: &'a FieldMask,
    exchange: u32,
    tag: u64,
}

impl Maker<'_> {
    fn send(&mut self, sends: &[Parcel]) -> Option<Move> {
        let launch = |this: &mut Self| this.over_pieces(&SEND, Privilege::Read, sends);
        (!sends.is_empty()).then(|| Move::Send(launch(self), self.parcels(sends)))
    }

    fn receive(&mut self, receives: &[Parcel], fold: Option<OperatorId>) -> Option<Move> {
        if receives.is_empty() {
            return None;
        }
        let launches = match fold {
            None => vec![self.over_pieces(&RECEIVE, Privilege::Discard, receives).tagged(self.tag)],
            // Contributions are applied in the order of nodes, so that the outcome is the same on every run.
            Some(_) => {
                let batches = receives.chunk_by(|one, other| one.with == other.with);
                batches.map(|batch| self.over_pieces(&APPLY, Privilege::ReadWrite, batch)).collect()
            }
        };
        Some(Move::Receive(launches, self.parcels(receives), fold))
    }

    fn over_pieces(&mut self, task: &Arc<TaskDefinition>, privilege: Privilege, parcels: &[Parcel]) -> OverPieces {
        let pieces = self.pieces.of(self.root, parcels.iter().map(|parcel| &parcel.points));
        OverPieces::new(task, pieces, self.fields, privilege, parcels.len())
    }

    fn parcels(&self, parcels: &[Parcel]) -> Parcels {
        let size = bytes_of_point(self.root, self.fields) as u64;
        Parcels(Arc::new(Addresses {
            node: Arc::clone(self.node),
            exchange: self.exchange,
            parcels: parcels.iter().map(|parcel| (parcel.with, parcel.number)).collect(),
            bytes: parcels.iter().map(|parcel| parcel.points.space().volume().saturating_mul(size)).collect(),
        }))
    }
}

impl OverPieces {
    fn new(
        task: &Arc<TaskDefinition>,
        pieces: LogicalPartition,
        fields: &FieldMask,
        privilege: Privilege,
        count: usize,
    ) -> Self {
        let requirement = Requirement::new(pieces, fields.clone(), privilege);
        Self { launcher: TaskLauncher::new(task).requirement(requirement), used: Mutex::default(), count }
    }

    /// With a tag for the mapper.
    fn tagged(self, tag: u64) -> Self {
        Self { launcher: self.launcher.tag(tag), ..self }
    }

    fn launch(&self, context: &Context, part: Option<LaunchPart>, complete: impl FnOnce(&mut TaskLauncher)) {
        let domain = AnyRect::from(Rect::<1>::from(0..self.count as i64));
        let mut launcher = self.used.lock().take().unwrap_or_else(|| self.launcher.clone());
        complete(&mut launcher);
        context.submit_lent(&mut launcher, domain, None, true, part);
        *self.used.lock() = launcher.lent_again(&self.launcher);
    }
}

impl Parcels {
    fn count_as_sent(&self, node: &JobNode) {
        for (&(to, _), &bytes) in self.0.parcels.iter().zip(&self.0.bytes) {
            let peer = node.peer(to);
            peer.parcels_sent.add(1);
            peer.parcel_bytes_sent.add(bytes);
        }
    }

    fn count_as_received(&self, node: &JobNode) {
        for (&(from, _), &bytes) in self.0.parcels.iter().zip(&self.0.bytes) {
            let peer = node.peer(from);
            peer.parcels_received.add(1);
            peer.parcel_bytes_received.add(bytes);
        }
    }
}

/// Regions' points cut into pieces that were exchanged before.
#[derive(Default)]
pub(super) struct ExchangedPieces(FxHashMap<(TreeId, Box<[u64]>), LogicalPartition>);

/// The number of remembered partitions at which all of them are forgotten.
const MOST_PIECES: usize = 1 << 12;

impl ExchangedPieces {
    /// The partition of a region into pieces of these shapes.
    pub(super) fn of<'a>(
        &mut self,
        root: &LogicalRegion,
        shapes: impl Iterator<Item = &'a Shape> + Clone,
    ) -> LogicalPartition {
        let key = (root.tree().id(), shapes.clone().map(Shape::id).collect());
        if let Some(known) = self.0.get(&key) {
            if !Arc::ptr_eq(known.tree(), root.tree()) {
                // The region has taken over the name of one that was destroyed.
                return root.partition(known.partitioning()).expect("equal regions have the same rows");
            }
            return known.clone();
        }
        let spaces: Vec<AnySpace> = shapes.map(|shape| shape.space().clone()).collect();
        let colors = AnyRect::from(Rect::<1>::from(0..spaces.len() as i64));
        let partitioning = root.space().forest().partition(root.space(), colors, &spaces);
        let partition = partitioning.and_then(|partitioning| root.partition(&partitioning));
        let partition = partition.expect("the pieces are parts of a region that is there");
        if self.0.len() >= MOST_PIECES {
            self.0.clear();
        }
        self.0.insert(key, partition.clone());
        partition
    }

    pub(super) fn forget(&mut self, tree: TreeId) {
        self.0.retain(|(of, _), _| *of != tree);
    }
}
