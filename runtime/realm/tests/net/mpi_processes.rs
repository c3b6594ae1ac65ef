//! Nodes as `mpirun` starts them, each with its own endpoint: how a job begins, ends, and fails.
//!
//! A test runs this program under `mpirun` again, with [`node`] as the only test, which does what a variable of the
//! environment says.

use std::process::Output;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use maniple_realm::machine::NodeId;
use maniple_realm::net::environment::{Place, SILENCE, Way};
use maniple_realm::net::mpi::{JoinError, Mpi, Settings};
use maniple_realm::net::{Endpoint, Get, HandlerId, Handlers, Message, NetError, Options, Put, RemoteSegment, Segment};
use rustix::process::{Signal, getpid, kill_process};

use crate::mpi_cluster::{mpirun, start};

const VARIABLE: &str = "MANIPLE_NET_TEST_MPI";

/// The words of a node that has got as far as it should.
const WELL: &str = "all is well with";

const SEGMENT: HandlerId = HandlerId(0);
const HELLO: HandlerId = HandlerId(1);

/// One of the nodes below, if the environment says so.
#[test]
fn node() {
    let Ok(scenario) = std::env::var(VARIABLE) else { return };
    if scenario == "twice" {
        return join_twice();
    }
    let place = Place::find().unwrap();
    assert!(matches!(place.way, Way::Mpi(_)), "{place:?}");
    let transport = place.connect().unwrap().unwrap();
    let (losses, lost) = channel();
    let (sender, messages) = channel();
    let handlers = Handlers::new()
        .on(SEGMENT, {
            let sender: Sender<RemoteSegment> = sender.clone();
            move |message| sender.send(postcard::from_bytes(message.header()).unwrap()).unwrap()
        })
        .on(HELLO, |_| ())
        .on_loss(move |node, loss| {
            println!("\n{} has lost {node}: {loss}", place.rank);
            let _ = losses.send(node);
        });
    let own = Endpoint::start(transport, handlers, Options::default());
    match scenario.as_str() {
        "talk" => talk(&own, || messages.recv().unwrap()),
        // Node 1 fails, and the others when they know.
        _ if place.rank != NodeId(1) => {
            lost.recv().unwrap();
            own.abort("another node has failed");
            own.join();
            std::process::exit(3);
        }
        "abort" => {
            own.abort("memory 3 is full");
            own.join();
            std::process::exit(7);
        }
        "stop" => end_by(Signal::STOP),
        "kill" => end_by(Signal::KILL),
        other => panic!("{other}"),
    }
}

/// Does nothing more until the signal has its effect, which takes a moment.
fn end_by(signal: Signal) -> ! {
    kill_process(getpid(), signal).unwrap();
    loop {
        std::thread::park();
    }
}

/// Every node puts its rank into a place of every node, and reads it back.
fn talk(own: &Arc<Endpoint>, next: impl Fn() -> RemoteSegment) {
    let nodes = own.nodes();
    let mine = Segment::from_vec(vec![0; nodes * CELL]);
    let registration = own.register(mine.clone());
    let all = || (0..nodes as u16).map(NodeId);
    let segment = postcard::to_stdvec(&registration.remote()).unwrap();
    all().for_each(|node| own.send(node, Message::new(SEGMENT).header(&segment)).unwrap());
    for _ in all() {
        let remote = next();
        let cell = usize::from(own.rank().0) * CELL;
        let there = || remote.span(cell as u64..(cell + CELL) as u64);
        let (source, copy) = (Segment::from_vec(vec![own.rank().0 as u8; CELL]), Segment::from_vec(vec![255; CELL]));
        wait(|call| own.put(Put::new(source.whole(), there()).on_done(call)).unwrap());
        wait(|call| own.get(Get::new(there(), copy.whole()).on_done(call)).unwrap());
        assert!(copy.whole().read(|bytes| bytes.iter().all(|byte| u16::from(*byte) == own.rank().0)));
    }
    wait(|call| own.barrier(call));
    mine.whole().read(|bytes| {
        let expected = |place: usize| (place / CELL) as u8;
        assert!(bytes.iter().enumerate().all(|(place, byte)| *byte == expected(place)));
    });
    (0..100).for_each(|_| all().for_each(|node| own.send_later(node, Message::new(HELLO)).unwrap()));
    own.flush();
    wait(|call| own.quiescence(call));
    wait(|call| own.shutdown(call));
    own.join();
    println!("\n{WELL} {} of {nodes}", own.rank());
}

/// Longer than a chunk.
const CELL: usize = 700_000;

fn wait(begin: impl FnOnce(Box<dyn FnOnce(Result<(), NetError>) + Send>)) {
    let (sender, done) = channel();
    begin(Box::new(move |result| sender.send(result).unwrap()));
    done.recv().unwrap().unwrap();
}

fn join_twice() {
    let transport = Mpi::join(Settings::default()).unwrap();
    assert!(matches!(Mpi::join(Settings::default()), Err(JoinError::Started)));
    transport.close(maniple_realm::net::transport::Close::Orderly);
    transport.join();
    assert!(matches!(Mpi::join(Settings::default()), Err(JoinError::Started)));
    println!("\n{WELL} {} of {}", transport.rank(), transport.nodes());
}

/// Runs so many nodes; none if there is no `mpirun`.
fn run(nodes: usize, scenario: &str) -> Option<(Output, String)> {
    let mut command = start(mpirun()?, nodes, "mpi_processes::node");
    if scenario == "stop" {
        command.env(SILENCE, "1");
    }
    let output = command.env(VARIABLE, scenario).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some((output, text))
}

/// Whichever launcher says which node a process is: nothing of MPI is needed for that.
#[test]
fn nodes_of_an_mpi_launcher_use_mpi() {
    for (rank, nodes) in [("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")] {
        let variables = [(rank, "1"), (nodes, "4"), (SILENCE, "4")];
        let value = |name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let place = Place::find_in(value).unwrap();
        let Way::Mpi(settings) = place.way else { panic!("{:?}", place.way) };
        assert_eq!((settings.silence, settings.heartbeat), (Duration::from_secs(4), Duration::from_millis(500)));
    }
}

#[test]
fn nodes_talk_and_end_in_order() {
    for nodes in [2, 4] {
        let Some((output, text)) = run(nodes, "talk") else { return };
        assert!(output.status.success(), "{output:?}");
        for node in 0..nodes {
            assert!(text.contains(&format!("{WELL} node {node} of {nodes}\n")), "{text}");
        }
    }
}

#[test]
fn mpi_is_started_once() {
    let Some((output, text)) = run(2, "twice") else { return };
    assert!(output.status.success() && text.matches(WELL).count() == 2, "{output:?}");
}

#[test]
fn a_node_that_gives_up_is_heard_by_all_before_the_launcher_ends_them() {
    for nodes in [2, 4] {
        let Some((output, text)) = run(nodes, "abort") else { return };
        assert!(!output.status.success(), "{output:?}");
        // All have finalised MPI: the launcher sees processes that fail, none that leaves it.
        assert!(!String::from_utf8_lossy(&output.stderr).contains("exiting improperly"), "{output:?}");
        for node in (0..nodes).filter(|node| *node != 1) {
            let words = format!("node {node} has lost node 1: it gave up: memory 3 is full");
            assert!(text.contains(&words), "{text}");
        }
    }
}

#[test]
fn a_node_that_is_stopped_is_lost_when_patience_ends_and_the_launcher_ends_it() {
    let Some((output, text)) = run(2, "stop") else { return };
    assert!(!output.status.success(), "{output:?}");
    assert!(text.contains("node 0 has lost node 1: nothing was heard of it for"), "{text}");
}

/// By the launcher, which sees it first.
#[test]
fn a_node_that_is_killed_ends_the_job() {
    let Some((output, _)) = run(4, "kill") else { return };
    assert!(!output.status.success(), "{output:?}");
}
