//! Collectives.

use std::sync::Arc;

use bytes::Bytes;
use maniple_cluster::{CollectiveName, Job, Rounds};
use maniple_realm::locks::Mutex;
use proptest::prelude::*;

use super::nodes::simulate;

/// Concatenates what all nodes contribute, and waits for the outcome.
fn all_reduce(job: &Job, mine: Vec<u8>) -> Vec<u8> {
    let name = CollectiveName { operation: job.begin_operation("concatenate"), part: 0 };
    let (event, outcome) = (job.realm().user_event(), Arc::new(Mutex::new(Bytes::new())));
    let (place, realm) = (Arc::clone(&outcome), job.realm().clone());
    let done = move |all| {
        *place.lock() = all;
        realm.trigger(event);
    };
    let combine = |parts: Vec<Bytes>| Bytes::from(parts.concat());
    job.all_reduce(name, mine.into(), Box::new(combine), Box::new(done));
    job.realm().wait(event.event()).unwrap();
    outcome.lock().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn an_all_reduce_combines_in_the_order_of_nodes_whatever_the_order_of_messages(
        seed in any::<u64>(), nodes in 2..12_usize, lengths in prop::collection::vec(0..5_usize, 1..4)
    ) {
        let part = |rank: usize, length: usize| vec![rank as u8; length + rank % 3];
        let expected: Vec<Vec<u8>> =
            lengths.iter().map(|&length| (0..nodes).flat_map(|rank| part(rank, length)).collect()).collect();
        let outcomes = simulate(seed, nodes, move |job| {
            lengths.iter().map(|&length| all_reduce(job, part(job.rank(), length))).collect::<Vec<_>>()
        });
        prop_assert!(outcomes.iter().all(|outcome| *outcome == expected));
    }

    #[test]
    fn rounds_bring_all_values_and_the_messages_for_a_node_in_the_order_of_senders(
        seed in any::<u64>(), nodes in 2..8_usize, links in prop::collection::vec(any::<bool>(), 128)
    ) {
        // Whether a node sends to another one, in each of two rounds.
        let sends = move |round: usize, from: usize, to: usize| links[round * 64 + from * 8 + to];
        let model = sends.clone();
        let outcomes = simulate(seed, nodes, move |job| {
            let (me, nodes) = (job.rank(), job.nodes());
            let mut rounds = Rounds::new(job, job.begin_operation("exchange"), 0);
            let mut round = |number: usize| {
                let messages = (0..nodes).filter(|&to| sends(number, me, to)).map(|to| (to, (number, me, to)));
                let exchanged = rounds.exchange(me * 10 + number, messages.collect()).unwrap();
                (exchanged.values, exchanged.messages)
            };
            [round(0), round(1)]
        });
        for (me, rounds) in outcomes.into_iter().enumerate() {
            for (number, (values, messages)) in rounds.into_iter().enumerate() {
                prop_assert_eq!(values, (0..nodes).map(|rank| rank * 10 + number).collect::<Vec<_>>());
                let expected = (0..nodes).filter(|&from| model(number, from, me)).map(|from| (from, (number, from, me)));
                prop_assert_eq!(messages, expected.collect::<Vec<_>>());
            }
        }
    }
}
