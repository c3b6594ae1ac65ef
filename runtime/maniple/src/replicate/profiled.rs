//! Messages in profiles: what a node sends and receives, such that the profiles of all nodes can be tied together.
//!
//! Messages carry nothing for that. Those of a pair of nodes keep their order, so both count them.

use std::sync::atomic::{AtomicU64, Ordering};

use maniple_analysis::distribution::Rank;
use maniple_realm::machine::NodeId;
use maniple_realm::net::HandlerId;
use maniple_realm::profile::{Activity, Kind, LabelId, Profiler, Record, Tag};
use maniple_space::{AnyRect, Rect};

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

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::path::Path;
    use std::sync::Arc;

    use maniple_realm::Realm;
    use maniple_realm::locks::Mutex;
    use maniple_realm::net::loopback::Network;
    use maniple_realm::profile::{OperationId, Recording};
    use rustc_hash::FxHashMap;

    use super::super::mailbox::Awaited;
    use super::super::node::Node;
    use super::super::parcel::ParcelName;
    use super::*;

    /// A profile that is looked at when it is written.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The numbers of what a profile says was sent, or received, and how many of the latter were handled.
    fn messages(recording: &Recording) -> (Vec<u64>, Vec<u64>, usize) {
        let all = || recording.threads.iter().flat_map(|thread| &thread.records);
        let sent =
            all().filter_map(|record| if let Record::Sent { number, .. } = record { Some(*number) } else { None });
        let received = all().filter_map(|record| match record {
            Record::Received { number, message, .. } => Some((*number, *message)),
            _ => None,
        });
        let received: FxHashMap<OperationId, u64> = received.map(|(number, message)| (message, number)).collect();
        let is_handling =
            |record: &&Record| matches!(record, Record::Span { operation, .. } if received.contains_key(operation));
        let handled = all().filter(is_handling).count();
        (sent.collect(), received.into_values().collect(), handled)
    }

    #[test]
    fn both_sides_give_messages_the_same_numbers_in_profiles_however_long_they_are() {
        const LENGTHS: [usize; 4] = [0, 9, 100, 10];
        let network = Network::new(2);
        let pump = network.pump();
        let profiles = [(); 2].map(|()| Written::default());
        let realms = [0, 1].map(|node| {
            let profiler = Profiler::writing_to(profiles[node].clone()).of_node(NodeId(node as u16));
            Realm::builder().workers(1).profile(profiler).build().unwrap()
        });
        let nodes = [0, 1].map(|node| {
            let transport = network.node(NodeId(node as u16));
            Arc::new(Node::join_with(transport, &realms[node], 10))
        });
        let name = |length: usize| ParcelName { operation: length as u64, exchange: 0, number: 0 };
        let expected: Vec<_> = LENGTHS.iter().map(|&length| (0, name(length))).collect();
        let awaited = Awaited::new(expected.len(), &realms[1]);
        nodes[1].expect(&awaited, expected.into_iter());
        LENGTHS.iter().for_each(|&length| nodes[0].send_parcel(1, name(length), Ok(vec![7; length].into())));
        realms[1].wait(awaited.complete(&realms[1])).unwrap();
        std::thread::scope(|scope| nodes.iter().for_each(|node| drop(scope.spawn(|| node.leave()))));
        drop((nodes, pump, awaited));
        drop(realms);
        let [zero, one] = profiles.map(|Written(bytes)| {
            let recording = Recording::read_from(&bytes.lock()[..], Path::new("test")).unwrap();
            messages(&recording)
        });
        assert_eq!(zero, (vec![0, 1, 2, 3], vec![], 0));
        let (sent, mut received, handled) = one;
        received.sort_unstable();
        assert_eq!((sent, received, handled), (vec![], vec![0, 1, 2, 3], 4));
    }
}
