//! Active messages: what arrives, in which order, how much at once.

use maniple_realm::machine::NodeId;
use maniple_realm::net::{HandlerId, Handlers, MAX_HEADER, Message, NetError, Options, SendError};

use crate::cluster::{Counter, List};
use crate::rules;

const HELLO: HandlerId = HandlerId(0);
const ANSWER: HandlerId = HandlerId(7);

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// Bytes that tell where they were cut or mixed up.
fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

rules! {
    fn messages_of_a_pair_are_handled_in_the_order_in_which_they_were_sent(make: make) {
        // Short and long, at once and later, so that they take different ways.
        let lengths = [0, 8, 3000, 70_000, 1, 200_000, 16, 0];
        let rounds = 40;
        let seen = List::default();
        let cluster = make(3, Options::default(), &|node| {
            let seen = seen.clone();
            Handlers::new().on(HELLO, move |message| {
                seen.push((message.from(), node, word(message.header()), message.payload().len()));
            })
        });
        for round in 0..rounds {
            for from in 0..3 {
                for to in (0..3).map(NodeId) {
                    let length = lengths[round as usize % lengths.len()];
                    let message = Message::new(HELLO).header(&u64::to_le_bytes(round)).payload(vec![1; length]);
                    if round % 3 == 1 {
                        cluster.endpoints()[from].send_later(to, message).unwrap();
                    } else {
                        cluster.endpoints()[from].send(to, message).unwrap();
                    }
                }
            }
        }
        cluster.endpoints().iter().for_each(|endpoint| endpoint.flush());
        cluster.until(|| seen.len() == 9 * rounds as usize);
        for (from, to) in (0..9).map(|pair| (NodeId(pair / 3), NodeId(pair % 3))) {
            let all = seen.get();
            let of_pair = all.iter().filter(|(f, t, ..)| (*f, *t) == (from, to));
            let found: Vec<_> = of_pair.map(|&(.., round, length)| (round, length)).collect();
            let expected: Vec<_> = (0..rounds).map(|round| (round, lengths[round as usize % lengths.len()])).collect();
            assert_eq!(found, expected, "from {from} to {to}");
        }
        cluster.shutdown();
    }

    fn a_message_arrives_as_it_was_sent(make: make) {
        let seen = List::default();
        let options = Options { window: 1 << 30, ..Options::default() };
        let cluster = make(2, options, &|_| {
            let seen = seen.clone();
            Handlers::new().on(HELLO, move |message| {
                let payload = message.take_payload();
                seen.push((message.header().to_vec(), payload.to_vec()));
            })
        });
        let part = Options::default().part;
        let lengths = [0, 1, part - 1, part, part + 1, 3 * part, 1_000_000];
        let sent: Vec<_> = lengths.iter().map(|&length| (pattern(length % (MAX_HEADER + 1), 1), pattern(length, 2))).collect();
        for (header, payload) in &sent {
            let message = Message::new(HELLO).header(header).payload(payload.clone());
            cluster.endpoints()[0].send(NodeId(1), message).unwrap();
        }
        cluster.until(|| seen.len() == sent.len());
        assert!(seen.get() == sent);
        cluster.shutdown();
    }

    /// Whether or not the memory is the receiver's to read; the receiver keeps some, sends some on, and the sender
    /// lends the same memory again meanwhile.
    fn a_payload_in_lent_memory_arrives_as_it_was_filled_and_stays_so(make: make) {
        let lengths = [0, 1, 2047, 2048, 70_000, 5000, 300_000, 64, 4096];
        let rounds = 6;
        let (seen, answers) = (List::default(), Counter::default());
        let cluster = make(3, Options::default(), &|node| {
            let (seen, answers) = (seen.clone(), answers.clone());
            Handlers::new()
                .on(HELLO, move |message| {
                    let (from, name, payload) = (message.from(), message.header().to_vec(), message.take_payload());
                    // As it is, to the node that sent it, and to the node after.
                    for to in [from, NodeId((node.0 + 1) % 3)] {
                        message.send(to, Message::new(ANSWER).header(&name).payload(payload.clone())).unwrap();
                    }
                    seen.push((word(&name), payload));
                })
                .on(ANSWER, move |message| {
                    let name = word(message.header());
                    assert!(message.payload() == pattern(message.payload().len(), name), "what was sent on");
                    answers.add(1);
                })
        });
        let mut number = 0;
        for _ in 0..rounds {
            for &length in &lengths {
                for (from, to) in [(0, 1), (1, 0), (2, 1), (0, 0)] {
                    let mut loan = cluster.endpoints()[from].lend(NodeId(to), length);
                    loan.bytes_mut().copy_from_slice(&pattern(length, number));
                    let message = Message::new(HELLO).header(&number.to_le_bytes()).payload(loan.freeze());
                    cluster.send(from, NodeId(to), message);
                    number += 1;
                }
            }
        }
        cluster.until(|| seen.len() == number as usize && answers.get() == 2 * number as usize);
        for (name, payload) in seen.get() {
            assert!(payload == pattern(payload.len(), name), "what was kept of message {name}");
        }
        cluster.shutdown();
    }

    fn what_is_sent_later_leaves_with_the_next_message_or_a_flush(make: make) {
        let seen = Counter::default();
        let cluster = make(2, Options::default(), &|_| {
            let seen = seen.clone();
            Handlers::new().on(HELLO, move |_| seen.add(1))
        });
        let node = &cluster.endpoints()[0];
        node.send_later(NodeId(1), Message::new(HELLO)).unwrap();
        node.send(NodeId(1), Message::new(HELLO)).unwrap();
        cluster.until(|| seen.get() == 2);
        node.send_later(NodeId(1), Message::new(HELLO)).unwrap();
        node.flush();
        cluster.until(|| seen.get() == 3);
        cluster.shutdown();
    }

    /// Every node sends to every node through a narrow window, and every message is answered by a longer one.
    fn a_storm_of_messages_whose_handlers_answer_comes_to_its_end(make: make) {
        let (nodes, each) = (4, 30);
        let (asked, answered) = (Counter::default(), Counter::default());
        let options = Options { window: 2000, part: 500, ..Options::default() };
        let cluster = make(nodes, options, &|_| {
            let (asked, answered) = (asked.clone(), answered.clone());
            Handlers::new()
                .on(HELLO, move |message| {
                    asked.add(1);
                    message.reply(Message::new(ANSWER).payload(vec![0; 3 * message.payload().len()])).unwrap();
                })
                .on(ANSWER, move |_| answered.add(1))
        });
        for round in 0..each {
            for from in 0..nodes {
                for to in 0..nodes {
                    cluster.send(from, NodeId(to as u16), Message::new(HELLO).payload(vec![0; 100 * (round % 10)]));
                }
            }
        }
        cluster.until(|| answered.get() == nodes * nodes * each);
        assert_eq!(asked.get(), nodes * nodes * each);
        cluster.shutdown();
    }

    fn a_full_window_gives_the_message_back_and_calls_when_there_is_room(make: make) {
        let seen = Counter::default();
        let options = Options { window: 1000, ..Options::default() };
        let gate = std::sync::Arc::new(std::sync::Mutex::new(()));
        // Nothing is handled meanwhile: where memory is shared, what is sent later may be seen before it is flushed.
        let closed = gate.lock().unwrap();
        let cluster = make(2, options, &|_| {
            let (seen, gate) = (seen.clone(), gate.clone());
            Handlers::new().on(HELLO, move |_| {
                drop(gate.lock().unwrap());
                seen.add(1);
            })
        });
        let node = &cluster.endpoints()[0];
        let message = || Message::new(HELLO).payload(vec![3; 100]);
        let sent = (0..100).take_while(|_| match node.send_later(NodeId(1), message()) {
            Ok(()) => true,
            Err(SendError::Busy { to, message: back }) => {
                assert_eq!((to, back), (NodeId(1), message()));
                false
            }
            Err(other) => panic!("{other}"),
        });
        let sent = sent.count();
        assert!((1..10).contains(&sent), "{sent} messages of 100 bytes in a window of 1000");
        let room = Counter::default();
        let told = room.clone();
        node.when_room(NodeId(1), move |outcome| {
            outcome.unwrap();
            told.add(1);
        });
        drop(closed);
        node.flush();
        cluster.until(|| room.get() == 1);
        node.send(NodeId(1), Message::new(HELLO)).unwrap();
        cluster.until(|| seen.get() == sent + 1);
        cluster.shutdown();
    }

    fn a_message_longer_than_the_window_goes_when_the_window_has_room(make: make) {
        let seen = List::default();
        let options = Options { window: 1000, ..Options::default() };
        let cluster = make(2, options, &|_| {
            let seen = seen.clone();
            Handlers::new().on(HELLO, move |message| seen.push(message.payload().len()))
        });
        for length in [10, 100_000, 20, 300_000] {
            cluster.send(0, NodeId(1), Message::new(HELLO).payload(vec![0; length]));
        }
        cluster.until(|| seen.len() == 4);
        assert_eq!(seen.get(), [10, 100_000, 20, 300_000]);
        cluster.shutdown();
    }

    fn a_node_sends_to_itself(make: make) {
        let seen = List::default();
        let cluster = make(1, Options::default(), &|_| {
            let seen = seen.clone();
            Handlers::new().on(HELLO, move |message| {
                seen.push(message.payload().len());
                if message.payload().len() < 5 {
                    message.reply(Message::new(HELLO).payload(vec![0; message.payload().len() + 1])).unwrap();
                }
            })
        });
        cluster.endpoints()[0].send(NodeId(0), Message::new(HELLO)).unwrap();
        cluster.until(|| seen.len() == 6);
        assert_eq!(seen.get(), [0, 1, 2, 3, 4, 5]);
        cluster.shutdown();
    }

    fn what_cannot_be_sent_is_refused_at_once(make: make) {
        let options = Options { max_message: 1000, ..Options::default() };
        let cluster = make(2, options, &|_| Handlers::new().on(HELLO, |_| ()));
        let node = &cluster.endpoints()[0];
        let refused = |to, message| match node.send(to, message) {
            Err(SendError::Net(error)) => error,
            other => panic!("{other:?}"),
        };
        let found = MAX_HEADER + 1;
        let too_long = NetError::HeaderTooLong { found, limit: MAX_HEADER };
        assert_eq!(refused(NodeId(1), Message::new(HELLO).header(&vec![0; found])), too_long);
        let too_long = NetError::PayloadTooLong { found: 1001, limit: 1000 };
        assert_eq!(refused(NodeId(1), Message::new(HELLO).payload(vec![0; 1001])), too_long);
        assert_eq!(refused(NodeId(2), Message::new(HELLO)), NetError::NoSuchNode { node: NodeId(2), nodes: 2 });
        cluster.shutdown();
    }
}
