//! The agreements of all nodes: barriers, quiescence, the end.

use maniple_realm::machine::NodeId;
use maniple_realm::net::{Activity, HandlerId, Handlers, Message, Options, Put, Segment};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cluster::{Counter, List};
use crate::rules;

const SPREAD: HandlerId = HandlerId(1);

/// Handlers that send on: each message has a number of generations to go, and a seed that tells to which node.
fn spreading(handled: &Counter, sent: &Counter, nodes: usize) -> Handlers {
    let (handled, sent) = (handled.clone(), sent.clone());
    Handlers::new().on(SPREAD, move |message| {
        let (left, seed) = (message.header()[0], message.header()[1]);
        let mut random = fastrand::Rng::with_seed(u64::from(seed) * 256 + u64::from(left));
        if left > 0 {
            for _ in 0..random.usize(0..4) {
                sent.add(1);
                let next = Message::new(SPREAD).header(&[left - 1, random.u8(..)]);
                let next = next.payload(vec![0; random.usize(0..2000)]);
                message.send(NodeId(random.u16(0..nodes as u16)), next).unwrap();
            }
        }
        handled.add(1);
    })
}

rules! {
    fn nobody_passes_a_barrier_before_all_have_come(make: make) {
        for nodes in [1, 2, 3, 5] {
            let passed = Counter::default();
            let cluster = make(nodes, Options::default(), &|_| Handlers::new());
            for round in 0..3 {
                let (last, others) = cluster.endpoints().split_last().unwrap();
                for endpoint in others {
                    let passed = passed.clone();
                    endpoint.barrier(move |result| {
                        result.unwrap();
                        passed.add(1);
                    });
                }
                assert_eq!(passed.get(), round * nodes);
                let own = passed.clone();
                last.barrier(move |_| own.add(1));
                cluster.until(|| passed.get() == (round + 1) * nodes);
            }
            cluster.shutdown();
        }
    }

    /// Trees of messages, from several roots, while all wait for quiescence.
    fn quiescence_is_never_found_early(make: make) {
        for (nodes, case) in [(1, 0_u8), (2, 1), (3, 2), (5, 3)] {
            let (handled, sent, found) = (Counter::default(), Counter::default(), List::default());
            let cluster = make(nodes, Options::default(), &|_| spreading(&handled, &sent, nodes));
            for from in 0..nodes {
                sent.add(1);
                let root = Message::new(SPREAD).header(&[6, case.wrapping_mul(50) + from as u8]);
                cluster.send(from, NodeId((from / 2) as u16), root);
            }
            for endpoint in cluster.endpoints() {
                let (handled, sent, found) = (handled.clone(), sent.clone(), found.clone());
                endpoint.quiescence(move |result| {
                    result.unwrap();
                    // Handled first: if it were found early, this could only make it look earlier.
                    found.push((handled.get(), sent.get()));
                });
            }
            cluster.until(|| found.len() == nodes);
            assert!(found.get().iter().all(|&(handled, sent)| handled == sent), "{:?}", found.get());
            cluster.shutdown();
        }
    }

    fn a_node_that_is_busy_keeps_all_from_quiescence(make: make) {
        let found = Counter::default();
        let (handled, sent) = (Counter::default(), Counter::default());
        // The handler of the last node leaves work behind, and a message comes of that work.
        let busy: Arc<Mutex<Vec<Activity>>> = Arc::default();
        let cluster = make(3, Options::default(), &|_| {
            let busy = Arc::clone(&busy);
            spreading(&handled, &sent, 3).on(HandlerId(5), move |message| {
                let activity = message.endpoint().activity();
                busy.lock().push(activity);
            })
        });
        cluster.endpoints()[0].send(NodeId(2), Message::new(HandlerId(5))).unwrap();
        for endpoint in cluster.endpoints() {
            let found = found.clone();
            endpoint.quiescence(move |_| found.add(1));
        }
        cluster.until(|| busy.lock().len() == 1);
        // As much as there is to be done happens meanwhile.
        let barrier = cluster.all(|endpoint, call| endpoint.barrier(call));
        assert!(barrier.iter().all(Result::is_ok));
        assert_eq!(found.get(), 0);
        sent.add(1);
        cluster.endpoints()[2].send(NodeId(1), Message::new(SPREAD).header(&[4, 3])).unwrap();
        let activities = std::mem::take(&mut *busy.lock());
        drop(activities);
        cluster.until(|| found.get() == 3);
        assert_eq!(handled.get(), sent.get());
        cluster.shutdown();
    }

    fn a_transfer_keeps_all_from_quiescence(make: make) {
        let (found, done) = (List::default(), Counter::default());
        let cluster = make(2, Options { chunk: 1000, ..Options::default() }, &|_| Handlers::new());
        let registration = cluster.endpoints()[1].register(Segment::from_vec(vec![0; 300_000]));
        let source = Segment::from_vec(vec![1; 300_000]);
        let call = done.clone();
        let put = Put::new(source.whole(), registration.remote().whole()).on_done(move |_| call.add(1));
        cluster.endpoints()[0].put(put).unwrap();
        for endpoint in cluster.endpoints() {
            let (found, done) = (found.clone(), done.clone());
            endpoint.quiescence(move |_| found.push(done.get()));
        }
        cluster.until(|| found.len() == 2);
        assert_eq!(found.get(), [1, 1]);
        cluster.shutdown();
    }

    fn quiescence_is_found_again_and_again(make: make) {
        let (handled, sent) = (Counter::default(), Counter::default());
        let cluster = make(4, Options::default(), &|_| spreading(&handled, &sent, 4));
        for round in 0..4 {
            sent.add(1);
            cluster.send(round, NodeId(1), Message::new(SPREAD).header(&[5, round as u8 * 40]));
            let results = cluster.all(|endpoint, call| endpoint.quiescence(call));
            assert!(results.iter().all(Result::is_ok));
            assert_eq!(handled.get(), sent.get());
        }
        cluster.shutdown();
    }

    fn what_was_sent_before_the_end_is_handled_before_it(make: make) {
        let (handled, sent) = (Counter::default(), Counter::default());
        let cluster = make(3, Options::default(), &|_| spreading(&handled, &sent, 3));
        for from in 0..3 {
            for to in 0..3 {
                sent.add(1);
                let message = Message::new(SPREAD).header(&[5, from as u8]).payload(vec![0; 100_000]);
                cluster.endpoints()[from].send_later(NodeId(to), message).unwrap();
            }
        }
        cluster.shutdown();
        assert_eq!(handled.get(), sent.get());
    }

    fn after_the_end_nothing_is_sent(make: make) {
        let cluster = make(2, Options::default(), &|_| Handlers::new().on(SPREAD, |_| ()));
        let results = cluster.all(|endpoint, call| endpoint.shutdown(call));
        assert!(results.iter().all(Result::is_ok));
        let refused = cluster.endpoints()[0].send(NodeId(1), Message::new(SPREAD));
        assert!(refused.unwrap_err().to_string().contains("has left the job"));
    }
}
