//! The rules of loopback alone: steps, seeds, faults, size.

use std::sync::mpsc::channel;
use std::time::Duration;

use maniple_realm::machine::NodeId;
use maniple_realm::net::loopback::Network;
use maniple_realm::net::{HandlerId, Handlers, Loss, Message, Options};
use parking_lot::Mutex;
use proptest::prelude::*;

use crate::cluster::{Cluster, Counter, List, Loopback};

const HELLO: HandlerId = HandlerId(0);

/// Nodes that send messages on at random; gives which node handled what, when.
fn wander(seed: u64, delay: u64) -> Vec<(u64, u16, u16, u8)> {
    let (nodes, seen) = (6, List::default());
    let network = Network::seeded(nodes, seed, delay);
    let cluster = Loopback::start(network.clone(), nodes, &Options::default(), &|node| {
        let (seen, network) = (seen.clone(), network.clone());
        Handlers::new().on(HELLO, move |message| {
            let left = message.header()[0];
            seen.push((network.now(), message.from().0, node.0, left));
            if left > 0 {
                let next = NodeId((node.0 * 5 + u16::from(left)) % 6);
                message.send(next, Message::new(HELLO).header(&[left - 1])).unwrap();
            }
        })
    });
    for endpoint in cluster.endpoints() {
        endpoint.send(NodeId(0), Message::new(HELLO).header(&[20])).unwrap();
    }
    network.run();
    seen.get()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(wander(7, 100), wander(7, 100));
    assert_ne!(wander(7, 100), wander(8, 100));
}

#[test]
fn messages_of_different_pairs_overtake_each_other() {
    let seen = List::default();
    for seed in 0..20 {
        let cluster = Loopback::start(Network::seeded(3, seed, 10), 3, &Options::default(), &|_| {
            let seen = seen.clone();
            Handlers::new().on(HELLO, move |message| seen.push((seed, message.from().0)))
        });
        cluster.endpoints()[0].send(NodeId(2), Message::new(HELLO)).unwrap();
        cluster.endpoints()[1].send(NodeId(2), Message::new(HELLO)).unwrap();
        cluster.network.run();
    }
    let first: Vec<u16> = seen.get().chunks(2).map(|pair| pair[0].1).collect();
    assert!(first.contains(&0) && first.contains(&1));
}

#[test]
fn what_is_sent_to_a_node_before_it_starts_waits_for_it() {
    let seen = List::default();
    let network = Network::seeded(2, 3, 50);
    let handlers = || {
        let seen = seen.clone();
        Handlers::new().on(HELLO, move |message| seen.push(message.header()[0]))
    };
    let start = |rank| maniple_realm::net::Endpoint::start(network.node(NodeId(rank)), handlers(), Options::default());
    let first = start(0);
    (0..5).for_each(|number| first.send(NodeId(1), Message::new(HELLO).header(&[number])).unwrap());
    network.run();
    assert_eq!(seen.len(), 0);
    let _second = start(1);
    (5..8).for_each(|number| first.send(NodeId(1), Message::new(HELLO).header(&[number])).unwrap());
    network.run();
    assert_eq!(seen.get(), [0, 1, 2, 3, 4, 5, 6, 7]);
}

proptest! {
    #[test]
    fn a_stalled_pair_goes_on_in_order(seed: u64, before in 0..10_u8, during in 0..10_u8, steps in 0..20_usize) {
        let seen = List::default();
        let network = Network::seeded(2, seed, 20);
        let cluster = Loopback::start(network.clone(), 2, &Options::default(), &|_| {
            let seen = seen.clone();
            Handlers::new().on(HELLO, move |message| seen.push(message.header()[0]))
        });
        let send = |number| cluster.endpoints()[0].send(NodeId(1), Message::new(HELLO).header(&[number])).unwrap();
        (0..before).for_each(send);
        (0..steps / 2).for_each(|_| { network.step(); });
        network.stall(NodeId(0), NodeId(1));
        let arrived = seen.len();
        (before..before + during).for_each(send);
        (0..steps / 2).for_each(|_| { network.step(); });
        prop_assert_eq!(seen.len(), arrived);
        network.resume(NodeId(0), NodeId(1));
        (before + during..before + during + 3).for_each(send);
        network.run();
        prop_assert_eq!(seen.get(), (0..before + during + 3).collect::<Vec<_>>());
    }

    /// Trees of messages with random delays and a stalled pair: never early, always in the end.
    #[test]
    fn quiescence_waits_for_stalled_messages(seed: u64, nodes in 2..9_usize) {
        let (handled, sent, found) = (Counter::default(), Counter::default(), List::default());
        let network = Network::seeded(nodes, seed, 40);
        let cluster = Loopback::start(network.clone(), nodes, &Options::default(), &|_| {
            let (handled, sent) = (handled.clone(), sent.clone());
            Handlers::new().on(HELLO, move |message| {
                let mut random = fastrand::Rng::with_seed(seed ^ u64::from(message.header()[0]) ^ (handled.get() as u64) << 8);
                let left = message.header()[0];
                for _ in 0..if left > 0 { random.usize(0..4) } else { 0 } {
                    sent.add(1);
                    message.send(NodeId(random.u16(0..nodes as u16)), Message::new(HELLO).header(&[left - 1])).unwrap();
                }
                handled.add(1);
            })
        });
        let mut random = fastrand::Rng::with_seed(seed);
        for endpoint in cluster.endpoints() {
            sent.add(1);
            endpoint.send(NodeId(random.u16(0..nodes as u16)), Message::new(HELLO).header(&[5])).unwrap();
        }
        for endpoint in cluster.endpoints() {
            let (handled, sent, found) = (handled.clone(), sent.clone(), found.clone());
            endpoint.quiescence(move |result| {
                result.unwrap();
                found.push((handled.get(), sent.get()));
            });
        }
        let (from, to) = (NodeId(random.u16(0..nodes as u16)), NodeId(random.u16(0..nodes as u16)));
        for _ in 0..random.usize(0..60) { network.step(); }
        network.stall(from, to);
        for _ in 0..random.usize(0..200) { network.step(); }
        prop_assert!(found.get().iter().all(|(handled, sent)| handled == sent));
        network.resume(from, to);
        network.run();
        prop_assert_eq!(found.len(), nodes);
        prop_assert!(found.get().iter().all(|(handled, sent)| handled == sent));
    }
}

#[test]
fn a_silent_node_is_reported_as_such() {
    let losses = List::default();
    let network = Network::new(3);
    let silence = Duration::from_secs(7);
    let cluster = Loopback::start(network.clone(), 3, &Options::default(), &|node| {
        let losses = losses.clone();
        Handlers::new().on_loss(move |lost, loss| losses.push((node, lost, loss.clone())))
    });
    network.silence(NodeId(1), silence);
    cluster.until(|| losses.len() == 2);
    assert_eq!(losses.get()[0], (NodeId(0), NodeId(1), Loss::Silent { silence }));
}

#[test]
fn a_thousand_nodes_agree_with_few_messages_each() {
    let nodes = 1024;
    let network = Network::seeded(nodes, 1, 10);
    let cluster = Loopback::start(network.clone(), nodes, &Options::default(), &|_| Handlers::new().on(HELLO, |_| ()));
    let results = cluster.all(|endpoint, call| endpoint.barrier(call));
    assert!(results.iter().all(Result::is_ok));
    // Ten rounds.
    assert!((0..nodes).all(|node| network.traffic(NodeId(node as u16)).frames == 10));
    let results = cluster.all(|endpoint, call| endpoint.quiescence(call));
    assert!(results.iter().all(Result::is_ok));
    // Two waves: at most two probes down and a report up in each, and word of the end to two.
    assert!((0..nodes).all(|node| network.traffic(NodeId(node as u16)).frames <= 10 + 2 * 3 + 2));
    cluster.shutdown();
}

#[test]
fn a_pump_steps_by_itself() {
    let network = Network::new(2);
    let (sender, receiver) = std::sync::mpsc::channel();
    let cluster = Loopback::start(network.clone(), 2, &Options::default(), &|_| {
        let sender = sender.clone();
        Handlers::new().on(HELLO, move |message| sender.send(message.from()).unwrap())
    });
    let pump = network.pump();
    cluster.endpoints()[0].send(NodeId(1), Message::new(HELLO)).unwrap();
    assert_eq!(receiver.recv().unwrap(), NodeId(0));
    drop(pump);
    cluster.endpoints()[1].send(NodeId(0), Message::new(HELLO)).unwrap();
    assert!(receiver.try_recv().is_err());
    assert!(network.step());
    assert_eq!(receiver.recv().unwrap(), NodeId(1));
}

#[test]
fn a_message_that_is_being_handled_keeps_all_from_quiescence() {
    let network = Network::new(1);
    let (entered, has_entered) = channel();
    let (go_on, may_go_on) = channel();
    let may_go_on = Mutex::new(may_go_on);
    let cluster = Loopback::start(network.clone(), 1, &Options::default(), &|_| {
        let entered = entered.clone();
        // A handler that waits, as none should, so that another thread can look while it runs.
        let may_go_on = std::mem::replace(&mut *may_go_on.lock(), channel().1);
        let may_go_on = Mutex::new(may_go_on);
        Handlers::new().on(HELLO, move |_| {
            entered.send(()).unwrap();
            may_go_on.lock().recv().unwrap();
        })
    });
    let pump = network.pump();
    cluster.endpoints()[0].send(NodeId(0), Message::new(HELLO)).unwrap();
    has_entered.recv().unwrap();
    let (found, is_found) = channel();
    cluster.endpoints()[0].quiescence(move |result| found.send(result).unwrap());
    let is_early = is_found.try_recv().is_ok();
    go_on.send(()).unwrap();
    assert!(!is_early);
    is_found.recv().unwrap().unwrap();
    drop(pump);
}

#[test]
#[should_panic(expected = "stepped already")]
fn a_handler_does_not_step() {
    let network = Network::new(1);
    let inner = network.clone();
    let outcome = List::default();
    let told = outcome.clone();
    let cluster = Loopback::start(network.clone(), 1, &Options::default(), &|_| {
        let (inner, told) = (inner.clone(), told.clone());
        Handlers::new().on(HELLO, move |_| assert!(inner.step())).on_loss(move |_, loss| told.push(loss.to_string()))
    });
    cluster.endpoints()[0].send(NodeId(0), Message::new(HELLO)).unwrap();
    network.step();
    panic!("{}", outcome.get()[0]);
}
