//! Leaf tasks with their data between processes, over sockets.
//!
//! The nodes are this test program itself, which starts with the words of a node in its environment.

use std::path::PathBuf;
use std::process::{Command, Output};

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper, TaskInfo};
use maniple::prelude::*;
use maniple::{Machine, Result};
use maniple_tests::mixed::{Size, expected, program};
use maniple_tests::processes;

/// The variable with the part of a node, if this process is one.
const PART: &str = "MANIPLE_MIGRATION_TEST";

/// Large enough for messages of several frames.
const SIZE: Size = Size { rows: 6000, pieces: 8, rounds: 5, halo: 3, is_cyclic: false, is_traced: false };

/// Deals tasks in turn, if it deals; else lets nodes that have nothing to do take them.
#[derive(Clone)]
struct Sends {
    deals: bool,
    inner: DefaultMapper,
}

impl Mapper for Sends {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn select_node(&mut self, task: &TaskInfo<'_>, _: NodeId, nodes: usize) -> Option<NodeId> {
        self.deals.then_some(NodeId((task.index() % nodes as u64) as u16))
    }

    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }

    fn permit_steal_with_data(&mut self, _: &str, _: NodeId, _: u64) -> bool {
        true
    }
}

/// One of the nodes, if the environment says so.
#[test]
fn node() {
    let Ok(part) = std::env::var(PART) else { return };
    let mapper = Sends { deals: part == "deals", inner: DefaultMapper::new() };
    let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1).mapper(mapper);
    let runtime = builder.build().unwrap();
    let outcome: Result<_> = runtime.run(async |cx| cx.launch(program(SIZE)).await);
    assert_eq!(outcome.unwrap(), expected(SIZE));
    let statistics = runtime.statistics();
    println!("\nsent {} received {}", statistics.tasks_sent, statistics.tasks_received);
}

/// So many processes that play a part. How many tasks each has sent away and received.
fn job(part: &str, nodes: usize, shared_memory: bool) -> Vec<[u64; 2]> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let meeting = folder.join(format!("migration-{part}-{nodes}-{shared_memory}"));
    let _ = std::fs::remove_file(&meeting);
    let outputs = processes::job(nodes, &meeting, shared_memory, |_| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["migrated_tasks_over_tcp::node", "--exact", "--nocapture"]).env(PART, part);
        command
    });
    let counts = |output: &Output| -> [u64; 2] {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.strip_prefix("sent ")).unwrap();
        let (sent, received) = line.split_once(" received ").unwrap();
        [sent.parse().unwrap(), received.parse().unwrap()]
    };
    outputs.iter().map(counts).collect()
}

#[test]
fn processes_run_the_tasks_that_a_mapper_deals_to_them() {
    for (nodes, shared_memory) in [(2, true), (4, true), (4, false)] {
        let counts = job("deals", nodes, shared_memory);
        // The program is on the first node.
        let of = |node: usize| (0..SIZE.pieces as usize).filter(|piece| piece % nodes == node).count() as u64;
        for (node, &[sent, received]) in counts.iter().enumerate() {
            let launches = SIZE.rounds as u64 + 1;
            let expected = if node == 0 { [SIZE.leaf_tasks() - of(0) * launches, 0] } else { [0, of(node) * launches] };
            assert_eq!([sent, received], expected, "node {node} of {nodes}");
        }
    }
}

#[test]
fn processes_that_have_nothing_to_do_may_take_tasks_with_their_data() {
    let counts = job("lends", 3, true);
    assert_eq!(counts.iter().map(|[sent, _]| sent).sum::<u64>(), counts.iter().map(|[_, received]| received).sum());
}
