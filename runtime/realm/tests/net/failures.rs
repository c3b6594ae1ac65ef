//! The failure of a node, as the other nodes see it.

use maniple_realm::machine::NodeId;
use maniple_realm::net::{Get, HandlerId, Handlers, Loss, Message, NetError, Options, Put, Segment, SendError};

use crate::cluster::{Counter, List};
use crate::rules;

const HELLO: HandlerId = HandlerId(0);
const PANIC: HandlerId = HandlerId(1);

fn telling(losses: &List<(NodeId, NodeId, Loss)>, node: NodeId) -> Handlers {
    let losses = losses.clone();
    Handlers::new()
        .on(HELLO, |_| ())
        .on(PANIC, |_| panic!("out of luck"))
        .on_loss(move |lost, loss| losses.push((node, lost, loss.clone())))
}

rules! {
    fn the_death_of_a_node_is_told_to_all_others_once(make: make) {
        let losses = List::default();
        let mut cluster = make(4, Options::default(), &|node| telling(&losses, node));
        cluster.kill(NodeId(2));
        cluster.until(|| losses.len() == 3);
        let mut told: Vec<_> = losses.get().into_iter().map(|(by, lost, _)| (by.0, lost.0)).collect();
        told.sort_unstable();
        assert_eq!(told, [(0, 2), (1, 2), (3, 2)]);
    }

    fn whoever_waits_for_a_dead_node_is_told(make: make) {
        let (losses, results) = (List::default(), List::default());
        let mut cluster = make(3, Options { window: 1, ..Options::default() }, &|node| telling(&losses, node));
        let registration = cluster.endpoints()[2].register(Segment::from_vec(vec![0; 10]));
        let local = Segment::from_vec(vec![0; 10]);
        cluster.kill(NodeId(2));
        let node = cluster.endpoints()[0].clone();
        let call = || {
            let results = results.clone();
            move |result: Result<(), NetError>| results.push(result)
        };
        // The others may know already; then this is refused at once.
        let put = node.put(Put::new(local.whole(), registration.remote().whole()).on_done(call()));
        let get = node.get(Get::new(registration.remote().whole(), local.whole()).on_done(call()));
        [put, get].into_iter().filter(Result::is_err).for_each(|refused| results.push(refused));
        node.barrier(call());
        node.quiescence(call());
        cluster.until(|| results.len() == 4);
        assert!(results.get().iter().all(|result| matches!(result, Err(NetError::Lost { node: NodeId(2), .. }))));
        let refused = node.send(NodeId(2), Message::new(HELLO));
        assert!(matches!(refused, Err(SendError::Net(NetError::Lost { node: NodeId(2), .. }))), "{refused:?}");
        let (told, room) = (Counter::default(), Counter::default());
        let heard = told.clone();
        node.when_room(NodeId(2), move |result| heard.add(usize::from(result.is_err())));
        assert_eq!(told.get(), 1);
        // The living go on talking.
        let heard = room.clone();
        node.send(NodeId(1), Message::new(HELLO)).unwrap();
        node.when_room(NodeId(1), move |result| heard.add(usize::from(result.is_ok())));
        cluster.until(|| room.get() == 1);
    }

    fn a_handler_that_panics_ends_its_node_and_says_why(make: make) {
        let losses = List::default();
        let cluster = make(3, Options::default(), &|node| telling(&losses, node));
        cluster.endpoints()[0].send(NodeId(1), Message::new(PANIC)).unwrap();
        cluster.until(|| losses.len() == 3);
        for (by, lost, loss) in losses.get() {
            assert_eq!(lost, NodeId(1));
            assert_eq!(matches!(loss, Loss::HandlerPanicked { .. }), by == NodeId(1));
            assert_eq!(matches!(loss, Loss::Aborted(_)), by != NodeId(1));
            let text = loss.to_string();
            assert!(text.contains("handler 1 of a message from node 0") && text.contains("out of luck"), "{text}");
        }
    }

    fn a_node_that_gives_up_says_why(make: make) {
        let losses = List::default();
        let cluster = make(2, Options::default(), &|node| telling(&losses, node));
        cluster.endpoints()[1].abort("memory 3 is full");
        cluster.until(|| losses.len() == 1);
        assert_eq!(losses.get(), [(NodeId(0), NodeId(1), Loss::Aborted("memory 3 is full".to_owned()))]);
    }

    fn a_node_that_goes_before_the_end_is_lost(make: make) {
        let losses = List::default();
        let mut cluster = make(2, Options::default(), &|node| telling(&losses, node));
        cluster.drop_endpoint(NodeId(1));
        cluster.until(|| losses.len() == 1);
        assert!(losses.get()[0].2.to_string().contains("dropped before it was shut down"));
    }

    fn a_message_for_nobody_is_told_as_damage(make: make) {
        let losses = List::default();
        let cluster = make(2, Options::default(), &|node| telling(&losses, node));
        cluster.endpoints()[0].send(NodeId(1), Message::new(HandlerId(99))).unwrap();
        cluster.until(|| losses.get().iter().any(|&(by, ..)| by == NodeId(1)));
        let losses = losses.get();
        let (_, lost, loss) = losses.iter().find(|(by, ..)| *by == NodeId(1)).unwrap();
        assert_eq!(*lost, NodeId(0));
        assert!(loss.to_string().contains("handler 99"), "{loss}");
    }
}
