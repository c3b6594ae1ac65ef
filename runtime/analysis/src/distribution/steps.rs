//! The steps of nodes before a launch: values that they exchange, and places that they prepare for contributions.

use std::sync::Arc;

use maniple_region::{FieldMask, OperatorId, Privilege, Shape};

use super::layout::Rank;

/// Values that one node sends another, as seen by one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The other node.
    pub with: Rank,
    /// Its number among the parcels of an exchange from the same node to the same other one: both count alike.
    pub number: u32,
    /// The points whose values are sent.
    pub points: Shape,
    /// Whether the sender has received the values in the same exchange.
    pub(super) is_forwarded: bool,
}

impl Parcel {
    /// The first between two nodes.
    pub(super) fn new(with: Rank, points: Shape) -> Self {
        Self { with, number: 0, points, is_forwarded: false }
    }
}

/// The parcels that a node sends, receives and forwards in one exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The parcels that the node sends of its own.
    pub sends: Vec<Parcel>,
    /// The parcels that it receives, in the order of their senders.
    pub receives: Vec<Parcel>,
    /// The parcels that it forwards, of what it has received.
    pub forwards: Vec<Parcel>,
    /// Whether any node sends anything.
    pub(super) is_needed: bool,
}

/// A step that a node takes before its points of a launch. A node takes its steps in the order in which they are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DistributionStep {
    /// The node prepares a place for contributions: all points become the operator's identity.
    Identity {
        /// The fields that are contributed to.
        fields: FieldMask,
        /// The operator of the contributions.
        operator: OperatorId,
        /// The points that become the identity.
        place: Shape,
    },
    /// The node gives up copies of values that other nodes have. There are none before a launch: see
    /// [`forget_copies`](super::Coherence::forget_copies).
    Forget {
        /// The fields whose copies are given up.
        fields: FieldMask,
        /// The points of the copies.
        place: Shape,
    },
    /// The node exchanges values with others.
    Exchange {
        /// The fields whose values are exchanged.
        fields: FieldMask,
        /// The operator by which contributions are folded into the values that are there, if contributions are sent.
        fold: Option<OperatorId>,
        /// The parcels that the node sends, receives and forwards.
        exchange: Arc<Exchange>,
    },
}

/// A step, the node that takes it, and for which history of the tree, by number: histories have the same numbers on all
/// nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStep {
    /// The node that takes the step.
    pub node: Rank,
    pub(super) history: u32,
    /// The step.
    pub step: DistributionStep,
}

/// The exchanges by which each node gets the values that it wants: those of the nodes whose steps are to be found, in
/// the order of the nodes.
pub(super) type Exchanges = Arc<[(Rank, Arc<Exchange>)]>;

/// The order in which the data of one launch is prepared, whose uses have these privileges: contributions last, and
/// those by one operator together. With another use between two of them, the later would have the earlier sent home
/// before they are made.
pub fn order_of_uses(privileges: &[Privilege]) -> Vec<usize> {
    let first_alike = |privilege: &Privilege| match privilege {
        Privilege::Reduce(_) => 1 + privileges.iter().position(|other| other == privilege).unwrap_or_default(),
        _ => 0,
    };
    let mut order: Vec<_> = (0..privileges.len()).collect();
    order.sort_by_key(|&number| first_alike(&privileges[number]));
    order
}
