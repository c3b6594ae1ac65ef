//! Messages in profiles, such that the profiles of all nodes can be joined.
//!
//! Messages carry nothing for that. Those of a pair of nodes keep their order, so both count them.

use std::sync::atomic::{AtomicU64, Ordering};

use maniple_realm::machine::NodeId;
use maniple_realm::profile::{Activity, Kind, LabelId, Profiler, Record, Tag};
use maniple_space::{AnyRect, Rect};

use crate::message::JobMessageKind as MessageKind;
use crate::names::Rank;

/// The messages of a node, in its profile.
pub(crate) struct MessageProfile {
    profiler: Profiler,
    /// The labels of messages, by kind.
    labels: Box<[(MessageKind, LabelId)]>,
    counts: Box<[Counts]>,
}

/// How many messages were exchanged with a node.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
}

impl MessageProfile {
    /// Of a node among so many, whose messages have these names.
    pub(crate) fn new(profiler: &Profiler, nodes: usize, names: &[(MessageKind, &str)]) -> Self {
        // The sender is shown as the point of a launch is.
        let all = AnyRect::from(Rect::<1>::from(0..nodes as i64));
        let label = |&(kind, name): &(MessageKind, &str)| {
            (kind, profiler.label(Kind::Runtime, &format!("{name} from node"), Some(&all)))
        };
        let labels = names.iter().map(label).collect();
        Self { profiler: profiler.clone(), labels, counts: (0..nodes).map(|_| Counts::default()).collect() }
    }

    /// Records that a message is about to leave. Called in the order of the messages to a node.
    #[cold]
    pub(crate) fn send(&self, to: Rank) {
        // Relaxed: the caller has put the calls in order.
        let number = self.counts[to].sent.fetch_add(1, Ordering::Relaxed);
        let (by, time) = (self.profiler.current(), self.profiler.now_ns());
        self.profiler.record(Record::Sent { by, to: to as u16, number, time });
    }

    /// Records that a message has arrived, and that what the thread does from now on is its doing. Called in the order
    /// of the messages from a node.
    #[cold]
    pub(crate) fn receive(&self, from: NodeId, kind: MessageKind) -> Activity<'_> {
        let number = self.counts[usize::from(from.0)].received.fetch_add(1, Ordering::Relaxed);
        let (message, time) = (self.profiler.new_operations(1), self.profiler.now_ns());
        self.profiler.record(Record::Received { message, from: from.0, number, time });
        let label = self.labels.iter().find(|(labelled, _)| *labelled == kind).map(|(_, label)| *label);
        let tag = label.map_or(Tag::NONE, |label| Tag { label, index: from.0.into() });
        self.profiler.activity(message, tag)
    }
}
