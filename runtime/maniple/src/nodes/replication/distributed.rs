//! Distributed partitions: they were computed from data, and no node has their pieces as a whole.
//!
//! The points of an index space are dealt to the nodes in *blocks* of about the same volume. A node has of every such
//! partition what its pieces have in its own block, and the pieces that its tasks use; so a partition takes all nodes
//! together as much memory as one would need for it. What a set operation has in a block follows from what its operands
//! have there: it needs no message. A caller that asks for a piece that is not here gets all of them, from all blocks.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use maniple_analysis::distribution::{Points, Rank};
use maniple_realm::Realm;
use maniple_realm::fault::unwind_unavailable;
use maniple_realm::locks::Mutex;
use maniple_region::{IndexSpaceNode, Partitioning, PieceSource, Shape};
use maniple_space::{AnyRect, AnySpace, IndexSpace, for_dimension, partition};
use rustc_hash::{FxHashSet, FxHasher};

use super::directory::{Directory, Gone, Held, Parts, root};
use crate::mapping::waiting::must_not_wait;
use crate::support::error::Result;

/// See the [module](self).
pub(crate) struct DistributedPartition {
    directory: Directory,
    parent: IndexSpaceNode,
    colors: AnyRect,
    /// This node's block of the points.
    own: Shape,
    origin: Origin,
    /// The parts of the pieces in the block.
    block: OnceLock<Arc<Partitioning>>,
    identity: OnceLock<u64>,
    /// Which pieces were sent to which nodes, as far as the block has them.
    sent: Mutex<FxHashSet<(Rank, usize)>>,
}

/// How the pieces came about.
enum Origin {
    /// Nodes have computed them together.
    Data { name: u64, pieces: Arc<Vec<AnySpace>>, is_disjoint: bool, _held: Held },
    /// From two partitions of points of the same root.
    Operation(SetOperation, [Arc<Partitioning>; 2]),
}

/// A set operation on two partitions, color by color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SetOperation {
    /// Of the pieces of a color.
    Union,
    Intersection,
    Difference,
    /// Of a piece with whatever is in some piece of the other.
    IntersectionWithAll,
    DifferenceFromAll,
}

impl DistributedPartition {
    /// Pieces that were computed, of which these are in the own block. Other nodes ask for them by the name.
    pub(super) fn new(
        directory: &Directory,
        name: u64,
        parent: &IndexSpaceNode,
        colors: AnyRect,
        own: Shape,
        pieces: Vec<AnySpace>,
        is_disjoint: bool,
    ) -> Arc<Self> {
        let pieces = Arc::new(pieces);
        let held = directory.register(name, &pieces);
        Arc::new(Self {
            directory: directory.clone(),
            parent: parent.clone(),
            colors,
            own,
            origin: Origin::Data { name, pieces, is_disjoint, _held: held },
            block: OnceLock::new(),
            identity: OnceLock::new(),
            sent: Mutex::default(),
        })
    }

    /// The source of a partition's pieces, if the partition is distributed.
    pub(crate) fn of(partitioning: &Partitioning) -> Option<&Self> {
        let source: &dyn Any = &**partitioning.piece_source()?;
        source.downcast_ref()
    }

    /// The result of an operation on two partitions of one root, of which at least one is distributed. None if neither
    /// is, or if their blocks are not the same: then it is to be made of whole pieces.
    pub(crate) fn combined(
        operation: SetOperation,
        [one, other]: [&Arc<Partitioning>; 2],
    ) -> Option<(IndexSpaceNode, AnyRect, Arc<dyn PieceSource>)> {
        let distributed = Self::of(one).or_else(|| Self::of(other))?;
        let may_stick_out = operation == SetOperation::Union && !other.parent().is_within(one.parent());
        if may_stick_out || root(one.parent()) != root(other.parent()) {
            return None;
        }
        let (parent, colors) = (one.parent().clone(), one.colors());
        let combined = Self {
            directory: distributed.directory.clone(),
            parent: parent.clone(),
            colors,
            own: distributed.own.clone(),
            origin: Origin::Operation(operation, [Arc::clone(one), Arc::clone(other)]),
            block: OnceLock::new(),
            identity: OnceLock::new(),
            sent: Mutex::default(),
        };
        Some((parent, colors, Arc::new(combined)))
    }

    /// The same on every node for the same partition, and hardly ever for another.
    pub(super) fn identity(&self) -> u64 {
        *self.identity.get_or_init(|| {
            let mut hasher = FxHasher::default();
            match &self.origin {
                Origin::Data { name, .. } => name.hash(&mut hasher),
                Origin::Operation(operation, operands) => {
                    operation.hash(&mut hasher);
                    for operand in operands {
                        match Self::of(operand) {
                            Some(distributed) => distributed.identity().hash(&mut hasher),
                            None => operand.pieces().iter().for_each(|piece| piece.space().hash(&mut hasher)),
                        }
                    }
                }
            }
            hasher.finish()
        })
    }

    /// The parts of the pieces in this node's block, as a partition.
    pub(super) fn block(&self) -> &Arc<Partitioning> {
        self.block.get_or_init(|| match &self.origin {
            Origin::Data { pieces, .. } => self.partition(pieces),
            Origin::Operation(operation, operands) => {
                let [one, other] = operands.each_ref().map(|operand| in_block(operand, &self.own));
                self.partition(&operation.apply(&one, &other))
            }
        })
    }

    fn partition(&self, pieces: &[AnySpace]) -> Arc<Partitioning> {
        self.parent.forest().partition_of_subsets(&self.parent, self.colors, pieces)
    }

    /// The parts in this node's block of those pieces that were not sent to a node before. They count as sent from then
    /// on.
    pub(super) fn tell(&self, to: Rank, pieces: impl IntoIterator<Item = usize>) -> Parts {
        let (block, mut sent) = (self.block(), self.sent.lock());
        let new = pieces.into_iter().filter(|&piece| sent.insert((to, piece)));
        let parts = new.map(|piece| (piece, block.pieces()[piece].space()));
        parts.filter(|(_, part)| !part.is_empty()).map(|(piece, part)| (piece, Points(part.clone()))).collect()
    }

    /// # Errors
    /// The job's, if it is over.
    fn all(&self) -> Result<Vec<AnySpace>> {
        match &self.origin {
            Origin::Data { name, pieces, .. } => self.directory.ask(*name, pieces),
            Origin::Operation(operation, [one, other]) => {
                let spaces = |of: &Partitioning| of.pieces().iter().map(|piece| piece.space().clone()).collect();
                let (one, other): (Vec<_>, Vec<_>) = (spaces(one), spaces(other));
                Ok(operation.apply(&one, &other))
            }
        }
    }
}

impl PieceSource for DistributedPartition {
    fn pieces(&self) -> Vec<AnySpace> {
        if must_not_wait() {
            unwind_unavailable(ASKED_BY_MAPPER.to_owned());
        }
        assert!(Realm::may_wait(), "{ASKED_IN_CALLBACK}");
        match self.all() {
            Ok(pieces) => pieces,
            // The job ends with its own error, whatever becomes of the caller.
            Err(error) if !self.directory.is_closed() => {
                unwind_unavailable(format!("the pieces of a partition are on other nodes: {error}"))
            }
            // The caller has kept the partition for longer than the runtime.
            Err(_) => panic!("{Gone}; look at them before"),
        }
    }

    fn is_disjoint(&self) -> Option<bool> {
        match &self.origin {
            Origin::Data { is_disjoint, .. } => Some(*is_disjoint),
            Origin::Operation(SetOperation::Union, _) => None,
            // Parts of pieces that are apart.
            Origin::Operation(_, [one, _]) => match Self::of(one) {
                Some(distributed) => distributed.is_disjoint().filter(|&is_disjoint| is_disjoint),
                None => one.is_disjoint().then_some(true),
            },
        }
    }
}

/// The error of a mapper that asks for more pieces than it may.
const ASKED_BY_MAPPER: &str = "a mapper may look at pieces that are known on this node, as those that the task uses are \
     (`Partitioning::known_piece`), and not ask other nodes for more";

/// The error of a function that is applied to a result and asks for pieces of other nodes.
const ASKED_IN_CALLBACK: &str = "a function of a result must not wait, and the pieces of a partition are on other nodes; \
     look at them before, where the function is made";

impl SetOperation {
    /// # Errors
    /// If it takes as many pieces of one as of the other, and they are not.
    pub(crate) fn check(self, one: usize, other: usize) -> std::result::Result<(), partition::PartitionError> {
        match self {
            Self::Union | Self::Intersection | Self::Difference if one != other => {
                Err(partition::PartitionError::LengthsDiffer { left: one, right: other })
            }
            _ => Ok(()),
        }
    }

    /// The pieces that come of these, as many of one as of the other.
    pub(crate) fn apply(self, one: &[AnySpace], other: &[AnySpace]) -> Vec<AnySpace> {
        let Some(first) = one.first() else { return Vec::new() };
        for_dimension!(first.dim(), D => {
            let typed = |spaces: &[AnySpace]| -> Vec<IndexSpace<D>> {
                let typed = |space: &AnySpace| space.typed().expect("pieces of one root have one dimension").clone();
                spaces.iter().map(typed).collect()
            };
            let (one, other) = (typed(one), typed(other));
            let pieces = match self {
                Self::Union => partition::pairwise_union(&one, &other),
                Self::Intersection => partition::pairwise_intersection(&one, &other),
                Self::Difference => partition::pairwise_difference(&one, &other),
                Self::IntersectionWithAll => {
                    let all = IndexSpace::union_all(&other);
                    Ok(one.iter().map(|piece| piece.intersection(&all)).collect())
                }
                Self::DifferenceFromAll => {
                    let all = IndexSpace::union_all(&other);
                    Ok(one.iter().map(|piece| piece.difference(&all)).collect())
                }
            };
            let pieces = pieces.expect("there are as many pieces of one as of the other");
            pieces.into_iter().map(AnySpace::from).collect()
        })
    }
}

/// The parts of a partition's pieces in this node's block.
pub(super) fn in_block(partitioning: &Partitioning, block: &Shape) -> Vec<AnySpace> {
    match DistributedPartition::of(partitioning) {
        Some(distributed) => distributed.block().pieces().iter().map(|piece| piece.space().clone()).collect(),
        None => {
            let part = |piece: &Shape| piece.space().intersection(block.space());
            let parts = partitioning.pieces().iter().map(part);
            parts.map(|part| part.expect("pieces of one root have one dimension")).collect()
        }
    }
}
