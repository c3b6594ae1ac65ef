//! Leaf tasks that other nodes run with their data: whichever node runs them, and whatever goes wrong there, the
//! results do not show it.

use maniple::machine::NodeId;
use maniple::mapper::{DefaultMapper, Mapper, RandomMapper, TaskInfo};
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::record::check;
use maniple::simulation::Simulation;
use maniple::{Machine, Result, Statistics};
use maniple_tests::lifetime::{Lifetime, run_nodes};
use maniple_tests::mixed::{Size, expected, program};
use maniple_tests::nodes::{Connections, each_node};
use maniple_tests::watch::silence_planned_panics;

/// Has point `p` of an index launch run on node `p` of the job, round robin; and keeps all else.
#[derive(Clone, Default)]
pub(crate) struct Deals(DefaultMapper);

impl Mapper for Deals {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn select_node(&mut self, task: &TaskInfo<'_>, _: NodeId, nodes: usize) -> Option<NodeId> {
        Some(NodeId((task.index() % nodes as u64) as u16))
    }

    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }
}

/// Keeps everything but tasks with their data.
#[derive(Clone, Default)]
pub(crate) struct LendsLeaves(DefaultMapper);

impl Mapper for LendsLeaves {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn permit_steal(&mut self, _: &str, _: NodeId) -> bool {
        false
    }

    fn permit_steal_with_data(&mut self, _: &str, _: NodeId, _: u64) -> bool {
        true
    }
}

/// Runs a program on nodes with so much memory each. What each has come to, and what it has done.
pub(crate) fn on_nodes<T: Send>(
    mapper: &(impl Mapper + Clone + Sync + 'static),
    memory: &[u64],
    program: impl AsyncFn(&Context) -> Result<T> + Sync,
) -> Vec<(Result<T>, Statistics)> {
    let connections = Connections::new(memory.len());
    each_node(memory.len(), |node| {
        let builder = Runtime::builder().machine(Machine::uniform(1, memory[node])).workers(1).mapper(mapper.clone());
        let runtime = builder.network(connections.node(node)).build().unwrap();
        let value = runtime.run(async |cx| program(cx).await);
        (value, runtime.statistics())
    })
}

pub(crate) const ENOUGH: u64 = 1 << 24;
const SIZE: Size = Size { rows: 40, pieces: 6, rounds: 4, halo: 2, is_cyclic: false, is_traced: false };

pub(crate) fn sum<T>(outcomes: &[(T, Statistics)], of: fn(&Statistics) -> u64) -> u64 {
    outcomes.iter().map(|(_, statistics)| of(statistics)).sum()
}

#[test]
fn tasks_that_a_mapper_sends_away_leave_the_values_of_a_sequential_program() {
    for nodes in [1, 2, 4] {
        let outcomes = on_nodes(&Deals::default(), &vec![ENOUGH; nodes], async |cx| cx.launch(program(SIZE)).await);
        for (values, _) in &outcomes {
            assert_eq!(values.as_ref().unwrap(), &expected(SIZE), "on {nodes} nodes");
        }
        // Of each launch all points but those that are dealt to the node itself.
        let away = (0..SIZE.pieces as usize).filter(|piece| piece % nodes != 0).count() as u64;
        let away = away * (SIZE.rounds as u64 + 1);
        assert_eq!(sum(&outcomes, |s| s.tasks_sent), away, "on {nodes} nodes");
        assert_eq!(sum(&outcomes, |s| s.tasks_received), away, "on {nodes} nodes");
        assert_eq!(sum(&outcomes, |s| s.tasks), 1 + SIZE.leaf_tasks(), "each is counted where it ran");
    }
}

/// Counts of a simulation.
struct Simulated {
    /// Tasks that other nodes have run.
    sent: u64,
    replays: u64,
    turns: u64,
}

/// Runs the program in a simulation, each node with a mapper of its own. One may be killed at some turn.
fn simulate<M: Mapper + 'static>(
    (seed, nodes, size): (u64, usize, Size),
    mapper: impl Fn(u64) -> M + Clone + Send + 'static,
    killed: Option<(usize, u64)>,
) -> Simulated {
    let network = Network::seeded(nodes, seed, seed % 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let workers = 1 + seed as usize % 3;
    let lifetimes: Vec<_> = (0..nodes).map(|_| Lifetime::default()).collect();
    let answers: Vec<_> = (0..nodes)
        .map(|node| {
            let (transport, mapper) = (network.node(NodeId(node as u16)), mapper.clone());
            let lifetime = lifetimes[node].clone();
            simulation.thread(format!("node {node}"), move || {
                let factory = move |_: &Machine, processor: maniple::ProcessorId| {
                    let mapper = mapper(seed + 100 * node as u64 + u64::from(processor.0));
                    Box::new(lifetime.of(mapper)) as Box<dyn Mapper>
                };
                let builder = Runtime::builder().machine(Machine::uniform(workers as u32, ENOUGH)).workers(workers);
                let builder = builder.mapper_for(factory).record_operations(seed.is_multiple_of(5));
                let runtime = builder.network(transport).build().unwrap();
                let values = runtime.run(async |cx| cx.launch(program(size)).await);
                if killed.is_none() {
                    check(&runtime.take_record()).unwrap();
                }
                (values, runtime.statistics())
            })
        })
        .collect();
    let (report, outcomes) = run_nodes(simulation, &network, &answers, &lifetimes, seed, killed);
    let is_dead = killed.is_some();
    for (values, _) in &outcomes {
        match values {
            Ok(values) => assert_eq!(values, &expected(size), "seed {seed}"),
            Err(error) => assert!(is_dead, "seed {seed}: {error}"),
        }
    }
    let count = |of| sum(&outcomes, of);
    Simulated { sent: count(|s| s.tasks_sent), replays: count(|s| s.replays), turns: report.turns }
}

fn size(seed: u64) -> Size {
    let mut random = fastrand::Rng::with_seed(seed);
    let pieces = random.i64(1..9);
    let (rows, rounds) = (random.i64(pieces..60), random.i64(1..12));
    let (halo, is_cyclic, is_traced) = (random.i64(0..4), random.bool(), random.bool());
    Size { rows, pieces, rounds, halo, is_cyclic, is_traced }
}

#[test]
fn programs_whose_mappers_send_tasks_anywhere_have_the_values_of_sequential_ones() {
    let simulate = |seed| simulate((seed, 1 + seed as usize % 6, size(seed)), RandomMapper::new, None);
    let sent: u64 = (0..150).map(|seed| simulate(seed).sent).sum();
    assert!(sent > 1_000, "{sent}");
}

#[test]
fn nodes_that_have_nothing_to_do_take_tasks_with_their_data_also_between_replays() {
    let simulate = |seed| simulate((seed, 2 + seed as usize % 3, size(seed)), |_| LendsLeaves::default(), None);
    let outcomes: Vec<_> = (1000..1100).map(simulate).collect();
    let sum = |of: fn(&Simulated) -> u64| outcomes.iter().map(of).sum::<u64>();
    assert!(sum(|s| s.sent) > 50 && sum(|s| s.replays) > 50, "{} and {}", sum(|s| s.sent), sum(|s| s.replays));
}

#[test]
fn a_launch_for_which_the_mapper_picks_another_node_is_obeyed_each_time_and_not_replayed() {
    let size = Size { rounds: 12, is_traced: true, ..SIZE };
    let outcomes = on_nodes(&Deals::default(), &[ENOUGH; 2], async |cx| cx.launch(program(size)).await);
    assert!(outcomes.iter().all(|(values, _)| *values.as_ref().unwrap() == expected(size)));
    assert_eq!((sum(&outcomes, |s| s.tasks_sent), sum(&outcomes, |s| s.replays)), (size.leaf_tasks() / 2, 0));
}

#[test]
fn when_a_node_dies_that_has_others_tasks_all_end() {
    for seed in 2000..2100 {
        let of = |killed| simulate((seed, 3, size(seed)), |_| Deals::default(), killed);
        let Simulated { turns, .. } = of(None);
        let mut random = fastrand::Rng::with_seed(seed);
        of(Some((random.usize(..3), random.u64(..turns))));
    }
}

#[test]
fn a_node_without_room_for_a_task_leaves_it_where_it_is() {
    // Not even for one piece; node 0, which has the data, is dealt every second point.
    let outcomes = on_nodes(&Deals::default(), &[ENOUGH, 100], async |cx| cx.launch(program(SIZE)).await);
    assert!(outcomes.iter().all(|(values, _)| *values.as_ref().unwrap() == expected(SIZE)));
    assert_eq!((sum(&outcomes, |s| s.tasks_sent), sum(&outcomes, |s| s.tasks_received)), (0, 0));
}

#[derive(Fields)]
struct Row {
    value: i64,
}

#[task(leaf)]
fn number(#[writes(value)] rows: Piece<Row>) {
    rows.points().for_each(|point| rows.value[point] = point[0]);
}

/// Changes something, and then fails at two points.
#[task(leaf)]
fn stumble(#[point] at: Point<1>, #[writes(value)] rows: Piece<Row>) -> Result<i64> {
    rows.points().for_each(|point| rows.value[point] += 100);
    match at[0] {
        1 => Err(maniple::Error::from_task("failed on purpose".to_owned())),
        3 => panic!("on purpose"),
        _ => Ok(at[0]),
    }
}

#[task(leaf)]
fn total(#[reads(value)] rows: Piece<Row>) -> i64 {
    rows.points().map(|point| rows.value[point]).sum()
}

/// The outcomes of each point of a launch that fails, and of one that needs the data that the first was to write.
#[task]
async fn faultyloops(cx: &Context) -> Result<(Vec<String>, Vec<String>)> {
    let rows = cx.region::<Row>(8)?;
    let pieces = rows.partition(4).equal()?;
    cx.index_launch(4, number(&pieces));
    let (first, second) = (cx.index_launch(4, stumble(&pieces)), cx.index_launch(4, total(&pieces)));
    let mut outcomes = (Vec::new(), Vec::new());
    let text = |outcome: Result<i64>| outcome.map_or_else(|error| error.to_string(), |value| value.to_string());
    for piece in 0..4 {
        outcomes.0.push(text(first.get(piece)?.await));
        outcomes.1.push(text(second.get(piece)?.await));
    }
    Ok(outcomes)
}

#[test]
fn what_fails_elsewhere_names_node_task_point_and_cause_and_what_it_was_to_write_is_lost() {
    silence_planned_panics();
    let outcomes = on_nodes(&Deals::default(), &[ENOUGH; 2], async |cx| cx.launch(faultyloops()).await);
    for (outcome, _) in outcomes {
        let (first, second) = outcome.unwrap();
        assert_eq!((&*first[0], &*first[2]), ("0", "2"));
        assert_eq!((&*second[0], &*second[2]), ("201", "209"));
        for (outcome, cause) in [(&first[1], "failed on purpose"), (&first[3], "on purpose")] {
            assert!(
                outcome.contains("on node 1") && outcome.contains("stumble") && outcome.contains(cause),
                "{outcome}"
            );
        }
        assert!(first[1].contains("(1)") && first[3].contains("(3)") && first[3].contains("panicked"), "{first:?}");
        assert_eq!((&second[1], &second[3]), (&first[1], &first[3]), "who needs it fails for the same reason");
    }
}

/// Picks a node that there is not for some tasks.
#[derive(Clone, Default)]
struct Nonsense(DefaultMapper);

impl Mapper for Nonsense {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn select_node(&mut self, task: &TaskInfo<'_>, _: NodeId, nodes: usize) -> Option<NodeId> {
        (task.name == "stumble").then_some(NodeId(nodes as u16))
    }
}

#[test]
fn a_mapper_that_picks_a_node_that_there_is_not_gets_an_error_that_names_the_call() {
    let outcomes = on_nodes(&Nonsense::default(), &[ENOUGH; 2], async |cx| cx.launch(faultyloops()).await);
    for (outcome, _) in outcomes {
        let (first, second) = outcome.unwrap();
        assert!(first.iter().all(|text| text.contains("select_node") && text.contains("node 2")), "{first:?}");
        assert!(second.iter().all(|text| text.contains("select_node")), "{second:?}");
    }
}
