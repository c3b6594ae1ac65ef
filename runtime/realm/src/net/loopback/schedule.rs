//! The events that are under way in a network, and the choice of the next one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Traffic;
use crate::machine::NodeId;
use crate::net::error::Loss;
use crate::net::frame::{Frame, Lane};
use crate::net::transport::Receiver;

/// Something that will happen at a node.
pub(super) struct ScheduledEvent {
    /// Whose turn it is among those due at one time.
    sequence: u64,
    pub(super) to: NodeId,
    pub(super) what: What,
}

pub(super) enum What {
    Frame { from: NodeId, frame: Frame },
    Loss { of: NodeId, loss: Loss },
}

/// Whether a node takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Present,
    Gone,
}

/// The events' order: by time, and of two at one time the one that was sent first.
struct Next(u64, u64, Box<ScheduledEvent>);

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl Eq for Next {}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

pub(super) struct Schedule {
    now: u64,
    sequence: u64,
    random: fastrand::Rng,
    longest_delay: u64,
    events: BinaryHeap<Reverse<Next>>,
    /// When the last frame of a pair and lane is due.
    latest: FxHashMap<(NodeId, NodeId, Lane), u64>,
    nodes: Vec<Member>,
    /// Pairs that are stalled, and what would have arrived.
    stalled: FxHashMap<(NodeId, NodeId), VecDeque<Box<ScheduledEvent>>>,
    /// Pairs of nodes of which the second hears nothing of the first any more.
    deaf: FxHashSet<(NodeId, NodeId)>,
}

struct Member {
    standing: Standing,
    receiver: Option<Arc<dyn Receiver>>,
    /// Events that arrived before the node started.
    early: VecDeque<Box<ScheduledEvent>>,
    traffic: Traffic,
}

impl Schedule {
    pub(super) fn new(nodes: usize, seed: u64, longest_delay: u64) -> Self {
        let member = || Member {
            standing: Standing::Present,
            receiver: None,
            early: VecDeque::new(),
            traffic: Traffic::default(),
        };
        Self {
            now: 0,
            sequence: 0,
            random: fastrand::Rng::with_seed(seed),
            longest_delay,
            events: BinaryHeap::new(),
            latest: FxHashMap::default(),
            nodes: (0..nodes).map(|_| member()).collect(),
            stalled: FxHashMap::default(),
            deaf: FxHashSet::default(),
        }
    }

    fn member(&mut self, node: NodeId) -> &mut Member {
        &mut self.nodes[usize::from(node.0)]
    }

    pub(super) fn now(&self) -> u64 {
        self.now
    }

    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn standing(&self, node: NodeId) -> Standing {
        self.nodes[usize::from(node.0)].standing
    }

    pub(super) fn traffic(&self, node: NodeId) -> Traffic {
        self.nodes[usize::from(node.0)].traffic
    }

    pub(super) fn start(&mut self, node: NodeId, receiver: Arc<dyn Receiver>) {
        let member = self.member(node);
        member.receiver = Some(receiver);
        let early = std::mem::take(&mut member.early);
        early.into_iter().for_each(|event| self.at_once(event));
    }

    pub(super) fn send(&mut self, from: NodeId, to: NodeId, frame: Frame, bytes: usize) {
        let traffic = &mut self.member(from).traffic;
        traffic.frames += 1;
        traffic.bytes += bytes as u64;
        let earliest = self.delayed();
        let latest = self.latest.entry((from, to, frame.lane())).or_insert(0);
        *latest = earliest.max(*latest);
        let due = *latest;
        self.push(due, to, What::Frame { from, frame });
    }

    /// Tells all others that a node is lost, each at its time, after which it hears nothing of the node any more.
    pub(super) fn lose(&mut self, node: NodeId, loss: &Loss) {
        for other in 0..self.nodes.len() {
            let to = NodeId(other as u16);
            if to != node {
                let due = self.delayed();
                self.push(due, to, What::Loss { of: node, loss: loss.clone() });
            }
        }
    }

    /// A node takes no part any more. Gives its receiver, to be dropped without the lock.
    pub(super) fn leave(&mut self, node: NodeId) -> Option<Arc<dyn Receiver>> {
        let member = self.member(node);
        member.standing = Standing::Gone;
        member.receiver.take()
    }

    pub(super) fn forget(&mut self, from: NodeId, to: NodeId) {
        self.deaf.insert((from, to));
    }

    pub(super) fn stall(&mut self, from: NodeId, to: NodeId) {
        self.stalled.entry((from, to)).or_default();
    }

    pub(super) fn resume(&mut self, from: NodeId, to: NodeId) {
        let held = self.stalled.remove(&(from, to)).unwrap_or_default();
        held.into_iter().for_each(|event| self.at_once(event));
    }

    /// The next event, and the receiver of its node: none if the node, or the way to it, is gone.
    pub(super) fn next(&mut self) -> Option<(ScheduledEvent, Option<Arc<dyn Receiver>>)> {
        while let Some(Reverse(Next(due, _, event))) = self.events.pop() {
            self.now = self.now.max(due);
            let to = event.to;
            if let What::Frame { from, .. } = event.what
                && let Some(held) = self.stalled.get_mut(&(from, to))
            {
                held.push_back(event);
                continue;
            }
            let member = self.member(to);
            if member.standing == Standing::Present && member.receiver.is_none() {
                member.early.push_back(event);
                continue;
            }
            let receiver = member.receiver.clone();
            let is_deaf = match &event.what {
                What::Frame { from, .. } => self.deaf.contains(&(*from, to)),
                What::Loss { of, .. } => !self.deaf.insert((*of, to)),
            };
            return Some((*event, receiver.filter(|_| !is_deaf)));
        }
        None
    }

    fn delayed(&mut self) -> u64 {
        match self.longest_delay {
            0 => self.now,
            longest => self.now + self.random.u64(..=longest),
        }
    }

    fn push(&mut self, due: u64, to: NodeId, what: What) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.events.push(Reverse(Next(due, sequence, Box::new(ScheduledEvent { sequence, to, what }))));
    }

    /// Lets an event that was held back come now, before all that was sent after it: nothing is due before now, and the
    /// event keeps its number.
    fn at_once(&mut self, event: Box<ScheduledEvent>) {
        self.events.push(Reverse(Next(self.now, event.sequence, event)));
    }
}
