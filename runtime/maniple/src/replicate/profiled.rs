//! Messages in profiles: what a node sends and receives, such that the profiles of all nodes can be tied together.
//!
//! Messages carry nothing for that. Those of a pair of nodes keep their order, so both count them.

use std::sync::atomic::{AtomicU64, Ordering};

use maniple_realm::machine::NodeId;
use maniple_realm::net::HandlerId;
use maniple_realm::profile::{Activity, Kind, LabelId, Profiler, Record, Tag};
use maniple_space::{AnyRect, Rect};

use super::layout::Rank;

/// What a profile is told of the messages of a node.
pub(super) struct Profiled {
    profiler: Profiler,
    /// What messages are called, by their handlers.
    labels: Box<[(HandlerId, LabelId)]>,
    counts: Box<[Counts]>,
}

/// How many messages were exchanged with a node.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    received: AtomicU64,
}

impl Profiled {
    /// Of a node among so many, whose messages are called like this.
    pub(super) fn new(profiler: &Profiler, nodes: usize, names: &[(HandlerId, &str)]) -> Self {
        // Which node it is from is shown as the point of a launch is.
        let all = AnyRect::from(Rect::<1>::from(0..nodes as i64));
        let label = |&(handler, name): &(HandlerId, &str)| {
            (handler, profiler.label(Kind::Runtime, &format!("{name} from node"), Some(&all)))
        };
        let labels = names.iter().map(label).collect();
        Self { profiler: profiler.clone(), labels, counts: (0..nodes).map(|_| Counts::default()).collect() }
    }

    /// A message is about to leave. To be called in the order of the messages to a node.
    #[cold]
    pub(super) fn send(&self, to: Rank) {
        // Relaxed: whoever calls in order has put the calls in order.
        let number = self.counts[to].sent.fetch_add(1, Ordering::Relaxed);
        let (by, time) = (self.profiler.current(), self.profiler.now_ns());
        self.profiler.record(Record::Sent { by, to: to as u16, number, time });
    }

    /// A message has come, and is about to be handled: what follows from that is the message's doing. To be called in the order of the messages from a node.
    #[cold]
    pub(super) fn receive(&self, from: NodeId, handler: HandlerId) -> Activity<'_> {
        let number = self.counts[usize::from(from.0)].received.fetch_add(1, Ordering::Relaxed);
        let (message, time) = (self.profiler.new_operations(1), self.profiler.now_ns());
        self.profiler.record(Record::Received { message, from: from.0, number, time });
        let label = self.labels.iter().find(|(labelled, _)| *labelled == handler).map(|(_, label)| *label);
        let tag = label.map_or(Tag::NONE, |label| Tag { label, index: from.0.into() });
        self.profiler.activity(message, tag)
    }
}
