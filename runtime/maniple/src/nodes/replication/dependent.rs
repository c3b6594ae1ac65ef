//! Dependent partitioning by all nodes together: what each computes from its data goes to the blocks, which tell each
//! node what it has to know for that.

use std::sync::Arc;

use maniple_analysis::distribution::{Points, Rank};
use maniple_cluster::{Rounds, Wait, ready};
use maniple_region::{IndexSpaceNode, LogicalPartition, LogicalRegion, Partitioning, Shape};
use maniple_space::{AnyRect, AnySpace, IndexSpace, Rect, for_dimension};

use super::directory::{Parts, blocks, root, united};
use super::distributed::{DistributedPartition, in_block};
use super::operations::{LOOKS, other};
use super::plan::ROUNDS_OF_A_PLAN;
use super::replica::Replica;
use crate::support::error::Result;

/// The description, for messages, of the computation of a partition.
const COMPUTES: &str = "computes a partition from data";

/// A partition that is about to be computed.
pub(crate) struct PendingPartition {
    operation: u64,
}

impl Replica {
    /// A partition is about to be computed. That is an operation of the program which takes place later, perhaps after
    /// others that come after it here.
    pub(crate) fn begin_partition(&self) -> PendingPartition {
        PendingPartition { operation: self.begin_rounds(COMPUTES) }
    }

    /// Parts of a region, of which each node has one, each with the points that follow its own along the last
    /// dimension.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(crate) fn with_next(&self, parts: &LogicalPartition, region: &LogicalRegion) -> Result<LogicalPartition> {
        let (root, partitioning) = (region.root_region(), parts.partitioning());
        let grown = |part: &AnySpace| {
            let grown = with_next(part).intersection(region.space().space());
            grown.expect("the parts are of the region")
        };
        if DistributedPartition::of(partitioning).is_none() {
            let shapes = root.space().forest().shapes();
            let parts: Vec<Shape> =
                partitioning.pieces().iter().map(|part| shapes.intern(&grown(part.space()))).collect();
            return Ok(self.program.lock().pieces.of(&root, parts.iter()));
        }
        let block = self.node.directory.block(root.space());
        let parts: Vec<AnySpace> = in_block(partitioning, &block).iter().map(grown).collect();
        let (pending, colors) = (self.begin_partition(), partitioning.colors());
        let partitioning = ready(self.distribute_by(Wait::Blocking, pending, root.space(), colors, &parts))?;
        Ok(root.partition(&partitioning)?)
    }

    /// Makes a distributed partition of pieces of which each node has computed parts.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(crate) async fn distribute(
        &self,
        pending: PendingPartition,
        parent: &IndexSpaceNode,
        colors: AnyRect,
        parts: &[AnySpace],
    ) -> Result<Arc<Partitioning>> {
        self.distribute_by(Wait::Async, pending, parent, colors, parts).await
    }

    async fn distribute_by(
        &self,
        wait: Wait,
        PendingPartition { operation }: PendingPartition,
        parent: &IndexSpaceNode,
        colors: AnyRect,
        parts: &[AnySpace],
    ) -> Result<Arc<Partitioning>> {
        // Those before were for pieces to look at.
        let mut rounds = Rounds::new(&self.node, operation, ROUNDS_OF_A_PLAN);
        let (nodes, shapes) = (self.node.nodes(), parent.forest().shapes());
        let all = blocks(root(parent), nodes, shapes);
        let directory = &self.node.directory;
        let exchanged = rounds.exchange_by(wait, directory.gone(), parts_in(&all, parts)).await?;
        directory.forget(&exchanged.values);
        let (dim, own) = (parent_dim(parent), all[self.node.rank()].clone());
        let nothing = vec![AnySpace::empty(dim).expect("the dimension is that of a space"); colors.volume() as usize];
        let pieces = united(&nothing, exchanged.messages.iter().flat_map(|(_, parts)| parts));
        let is_disjoint = AnySpace::are_disjoint(dim, &pieces).expect("pieces of one root have one dimension");
        let exchanged = rounds.exchange_by::<bool, ()>(wait, is_disjoint, Vec::new()).await?;
        let is_disjoint = exchanged.values.into_iter().all(|is_disjoint| is_disjoint);
        let pieces = DistributedPartition::new(directory, operation, parent, colors, own, pieces, is_disjoint);
        Ok(parent.forest().distributed_partition(parent, colors, pieces)?)
    }

    /// The parts of pieces that lie in this node's part of a region, of which each node has one part.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(crate) fn pieces_within(&self, parts: &LogicalPartition, pieces: &Arc<Partitioning>) -> Result<Vec<AnySpace>> {
        let mut rounds = Rounds::new(&self.node, self.begin_rounds(LOOKS), 0);
        let parts = in_block(parts.partitioning(), &self.node.directory.block(pieces.parent()));
        ready(self.hand_out(&parts, pieces, &mut rounds, Wait::Blocking))
    }

    /// The parts of pieces that lie among some points, which differ from node to node: for a partition that is about to
    /// be computed.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(crate) async fn pieces_about(
        &self,
        pending: &PendingPartition,
        points: &AnySpace,
        pieces: &Arc<Partitioning>,
    ) -> Result<Vec<AnySpace>> {
        let mut rounds = Rounds::new(&self.node, pending.operation, 0);
        let shapes = pieces.parent().forest().shapes();
        let all = blocks(root(pieces.parent()), self.node.nodes(), shapes);
        let messages = parts_in(&all, std::slice::from_ref(points));
        let exchanged = rounds.exchange_by::<(), _>(Wait::Async, (), messages).await?;
        let empty = AnySpace::empty(points.dim()).expect("the dimension is that of a space");
        let mut wanted = vec![empty; self.node.nodes()];
        for (node, parts) in exchanged.messages {
            parts.into_iter().for_each(|(_, Points(part))| wanted[node] = part);
        }
        self.hand_out(&wanted, pieces, &mut rounds, Wait::Async).await
    }

    /// Each node wants what pieces have of other points, of which those in the own block are known.
    async fn hand_out(
        &self,
        wanted: &[AnySpace],
        pieces: &Arc<Partitioning>,
        rounds: &mut Rounds<'_>,
        wait: Wait,
    ) -> Result<Vec<AnySpace>> {
        let (dim, block) = (parent_dim(pieces.parent()), self.node.directory.block(pieces.parent()));
        let here = in_block(pieces, &block);
        let lists = AnySpace::overlapping_pairs(dim, wanted, &here).expect("pieces of one root have one dimension");
        let message = |(node, pieces): (Rank, &[u32])| {
            let part = |piece: usize| here[piece].intersection(&wanted[node]).expect("the same");
            let parts = pieces.iter().map(|&piece| (piece as usize, Points(part(piece as usize))));
            (node, parts.collect::<Parts>())
        };
        let messages = lists.iter().enumerate().map(message).filter(|(_, parts)| !parts.is_empty());
        let exchanged = rounds.exchange_by::<(), _>(wait, (), messages.collect()).await?;
        let nothing = vec![AnySpace::empty(dim).expect("the dimension is that of a space"); pieces.len()];
        Ok(united(&nothing, exchanged.messages.iter().flat_map(|(_, parts)| parts)))
    }

    /// An operation of the program for which nodes communicate in rounds.
    fn begin_rounds(&self, what: &'static str) -> u64 {
        let operation = self.node.begin_operation(what);
        self.check.add(&self.node, other(what));
        // It is about to wait.
        self.check.compare(&self.node);
        operation
    }
}

/// The parts of the pieces in each block, with the number of the node that has the block. A block without parts is left
/// out.
fn parts_in(blocks: &[Shape], pieces: &[AnySpace]) -> Vec<(Rank, Parts)> {
    let Some(first) = blocks.first() else { return Vec::new() };
    let spaces = blocks.iter().map(Shape::space);
    let lists = AnySpace::overlapping_pairs(first.space().dim(), spaces, pieces);
    let lists = lists.expect("pieces of one root have one dimension");
    let message = |(node, numbers): (Rank, &[u32])| {
        let part = |piece: usize| pieces[piece].intersection(blocks[node].space()).expect("the same");
        (node, numbers.iter().map(|&piece| (piece as usize, Points(part(piece as usize)))).collect::<Parts>())
    };
    lists.iter().enumerate().map(message).filter(|(_, parts)| !parts.is_empty()).collect()
}

/// A space with the points that follow its own along the last dimension.
fn with_next(space: &AnySpace) -> AnySpace {
    for_dimension!(space, |space| {
        let grown = space.rects().iter().map(|rect| {
            let mut hi = rect.hi;
            let last = hi.0.len() - 1;
            hi.0[last] = hi.0[last].saturating_add(1);
            Rect::new(rect.lo, hi)
        });
        IndexSpace::from_rects(grown).into()
    })
}

fn parent_dim(parent: &IndexSpaceNode) -> usize {
    root(parent).space().dim()
}
