//! The promises of graphs: every node runs once a run, after its predecessors; failures go along the edges that need.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_realm::graph::{Edge, Graph, GraphPlace, GraphRuns, GraphSpec, GraphWork, NodeSpec};
use maniple_realm::{Fault, Realm, UserEvent, WorkerContext};
use parking_lot::Mutex;
use proptest::prelude::*;

/// The fate of a node in a run, with the moments of its begin and end in the order of all such moments.
#[derive(Clone, Debug, PartialEq)]
enum Fate {
    Ran { begin: u64, end: u64, on: u32 },
    Failed { begin: u64, end: u64 },
    Poisoned { at: u64, reason: String },
}

impl Fate {
    fn begin(&self) -> u64 {
        match *self {
            Self::Ran { begin, .. } | Self::Failed { begin, .. } => begin,
            Self::Poisoned { at, .. } => at,
        }
    }

    fn end(&self) -> u64 {
        match *self {
            Self::Ran { end, .. } | Self::Failed { end, .. } => end,
            Self::Poisoned { at, .. } => at,
        }
    }
}

/// A run, a stage, and when it ended.
type StageEnd = (u64, u32, u64);

struct Log {
    moments: AtomicU64,
    fates: Mutex<Vec<(GraphPlace, Fate)>>,
    fails: Vec<GraphPlace>,
    stages: Mutex<Vec<StageEnd>>,
    runs_left: AtomicU64,
    armed: Mutex<Vec<u64>>,
    realm: Realm,
    done: UserEvent,
}

impl Log {
    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }
}

impl GraphWork for Log {
    fn run(&self, place: GraphPlace, context: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        let begin = self.moment();
        let end = self.moment();
        if self.fails.contains(&place) {
            self.fates.lock().push((place, Fate::Failed { begin, end }));
            if place.node.is_multiple_of(2) {
                panic!("node {} of run {}", place.node, place.run);
            }
            return Err(Arc::new(Fault::new(format!("node {} of run {}", place.node, place.run))));
        }
        self.fates.lock().push((place, Fate::Ran { begin, end, on: context.processor().0 }));
        Ok(())
    }

    fn poisoned(&self, place: GraphPlace, fault: &Arc<Fault>) {
        let at = self.moment();
        self.fates.lock().push((place, Fate::Poisoned { at, reason: fault.to_string() }));
    }

    fn stage_ended(&self, run: u64, stage: u32) {
        let at = self.moment();
        self.stages.lock().push((run, stage, at));
    }

    fn run_ended(&self, run: u64) {
        self.armed.lock().push(run);
        if self.runs_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.realm.trigger(self.done);
        }
    }
}

/// How a stage is opened.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Opening {
    Watched,
    Unwatched,
    /// Unwatched, and then watched: as soon as so many more stages have been opened.
    WatchedLater(usize),
}

/// The answer to a request to watch a stage: the run, the stage, whether the end would be told, and when that was
/// known.
type Answer = (u64, u32, bool, u64);

/// Runs a graph so many times, the stages opened in these ways in turn. Gives the fates of its nodes, the ends of
/// stages that were told, and what came of asking for more.
fn run(
    spec: &GraphSpec,
    workers: usize,
    runs: u64,
    (fails, openings): (&[GraphPlace], &[Opening]),
) -> (Vec<(GraphPlace, Fate)>, Vec<StageEnd>, Vec<Answer>) {
    let realm = Realm::builder().workers(workers).build().unwrap();
    let graph = Arc::new(Graph::new(spec, realm.processors()));
    let done = realm.user_event();
    let log = Arc::new(Log {
        moments: AtomicU64::new(0),
        fates: Mutex::default(),
        fails: fails.to_vec(),
        stages: Mutex::default(),
        runs_left: AtomicU64::new(runs),
        armed: Mutex::default(),
        realm: realm.clone(),
        done,
    });
    let (mut to_watch, mut answers) = (Vec::new(), Vec::new());
    let graph_runs: GraphRuns = realm.start_graph(&graph, Arc::clone(&log) as Arc<dyn GraphWork>, 4);
    for number in 0..runs {
        while !graph_runs.is_armed(number) {
            std::thread::yield_now();
        }
        for stage in 0..spec.stages {
            let opening = opening_of(spec, openings, number, stage);
            match opening {
                Opening::Watched => graph_runs.open(number, stage),
                Opening::Unwatched | Opening::WatchedLater(_) => graph_runs.open_unwatched(number, stage),
            }
            if let Opening::WatchedLater(after) = opening {
                to_watch.push((after, number, stage));
            }
            to_watch.retain_mut(|(after, run, stage)| {
                if *after == 0 {
                    let will_be_told = graph_runs.watch(*run, *stage);
                    answers.push((*run, *stage, will_be_told, log.moment()));
                    return false;
                }
                *after -= 1;
                true
            });
        }
    }
    realm.wait(done.event()).unwrap();
    for (_, run, stage) in to_watch {
        answers.push((run, stage, graph_runs.watch(run, stage), log.moment()));
    }
    drop(graph_runs);
    let fates = log.fates.lock().clone();
    let stages = log.stages.lock().clone();
    (fates, stages, answers)
}

fn opening_of(spec: &GraphSpec, openings: &[Opening], run: u64, stage: u32) -> Opening {
    openings[(run as usize * spec.stages as usize + stage as usize) % openings.len()]
}

fn openings() -> impl Strategy<Value = Vec<Opening>> {
    let opening =
        prop_oneof![Just(Opening::Watched), Just(Opening::Unwatched), (0_usize..9).prop_map(Opening::WatchedLater)];
    proptest::collection::vec(opening, 1..8)
}

/// A node as it is drawn: how many stages it is after the node before, what comes before it, its home, if it is pinned
/// the others that may run it, and whether it is one of a crowd.
type Drawn = (u32, Vec<(u32, bool)>, Vec<(u32, bool)>, u32, Option<Vec<u32>>, bool);

fn specs() -> impl Strategy<Value = GraphSpec> {
    let edges = || proptest::collection::vec((0_u32..1000, any::<bool>()), 0..5);
    // Pinned to its home, or to some others too.
    let pinned = proptest::option::of(proptest::collection::vec(0_u32..4, 0..3));
    let node = (0_u32..3, edges(), edges(), 0_u32..4, pinned, any::<bool>());
    proptest::collection::vec(node, 1..40).prop_map(|lists| {
        let count = lists.len() as u32;
        let mut stage = 0;
        let edge = |bound: u32| move |&(node, needs): &(u32, bool)| Edge { node: node % bound, needs };
        let node = |(number, (step, after, previous, home, pinned, crowded)): (usize, &Drawn)| {
            stage += step.saturating_sub(1);
            let mut after: Vec<Edge> =
                if number == 0 { Vec::new() } else { after.iter().map(edge(number as u32)).collect() };
            let mut previous: Vec<Edge> = previous.iter().map(edge(count)).collect();
            if *crowded && number >= 9 {
                // Many with the same many before: a junction.
                after = (0..9).map(|node| Edge { node, needs: node % 3 != 1 }).collect();
                previous = (5..8).map(|node| Edge { node, needs: node % 2 == 0 }).collect();
            }
            NodeSpec {
                stage,
                home: maniple_realm::machine::ProcessorId(*home),
                pinned: pinned.is_some(),
                others: pinned.iter().flatten().map(|&other| maniple_realm::machine::ProcessorId(other)).collect(),
                takes: false,
                after,
                after_previous: previous,
            }
        };
        let nodes: Vec<NodeSpec> = lists.iter().enumerate().map(node).collect();
        GraphSpec { stages: stage + 1, nodes }
    })
}

/// Which nodes fail or are poisoned, by a walk in program order.
fn poisoned(spec: &GraphSpec, runs: u64, fails: &[GraphPlace]) -> Vec<GraphPlace> {
    let mut poisoned: Vec<GraphPlace> = Vec::new();
    for run in 0..runs {
        for (node, what) in spec.nodes.iter().enumerate() {
            let place = GraphPlace { node: node as u32, run };
            let same = what.after.iter().map(|edge| (edge, run));
            let previous = what.after_previous.iter().filter(|_| run > 0).map(|edge| (edge, run.wrapping_sub(1)));
            let needs = same
                .chain(previous)
                .any(|(edge, run)| edge.needs && poisoned.contains(&GraphPlace { node: edge.node, run }));
            if needs || fails.contains(&place) {
                poisoned.push(place);
            }
        }
    }
    poisoned
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_node_runs_once_a_run_after_what_it_comes_after(
        spec in specs(), workers in 1_usize..5, failing in proptest::collection::vec((0_u32..30, 0_u64..12), 0..3)
    ) {
        const RUNS: u64 = 12;
        let fails: Vec<GraphPlace> = failing.iter().map(|&(node, run)| GraphPlace { node, run }).collect();
        let (fates, stages, _) = run(&spec, workers, RUNS, (&fails, &[Opening::Watched]));
        prop_assert_eq!(fates.len(), spec.nodes.len() * RUNS as usize, "each node once a run");
        let fate = |node: u32, run: u64| {
            &fates.iter().find(|(place, _)| *place == GraphPlace { node, run }).expect("it ran").1
        };
        for (place, mine) in &fates {
            let node = &spec.nodes[place.node as usize];
            for edge in &node.after {
                prop_assert!(fate(edge.node, place.run).end() < mine.begin());
            }
            for edge in node.after_previous.iter().filter(|_| place.run > 0) {
                prop_assert!(fate(edge.node, place.run - 1).end() < mine.begin());
            }
            if let (Fate::Ran { on, .. }, true) = (mine, node.pinned && (node.home.0 as usize) < workers) {
                let is_other = node.others.iter().any(|other| other.0 == *on);
                prop_assert!(*on == node.home.0 || is_other, "pinned nodes stay where they may run");
            }
            let (_, _, end) = stages.iter().find(|&&(run, stage, _)| (run, stage) == (place.run, node.stage)).expect("it ended");
            prop_assert!(mine.end() < *end, "a stage ends after its nodes");
        }
        prop_assert_eq!(stages.len() as u64, u64::from(spec.stages) * RUNS);
        let mut bad: Vec<GraphPlace> =
            fates.iter().filter(|(_, fate)| !matches!(fate, Fate::Ran { .. })).map(|(place, _)| *place).collect();
        bad.sort_by_key(|place| (place.run, place.node));
        prop_assert_eq!(bad, poisoned(&spec, RUNS, &fails));
    }

    #[test]
    fn the_end_of_a_stage_is_told_to_those_who_want_to_know_and_once(
        spec in specs(), workers in 1_usize..5, openings in openings(),
        failing in proptest::collection::vec((0_u32..30, 0_u64..24), 0..3),
    ) {
        const RUNS: u64 = 24;
        let fails: Vec<GraphPlace> = failing.iter().map(|&(node, run)| GraphPlace { node, run }).collect();
        let (fates, told, answers) = run(&spec, workers, RUNS, (&fails, &openings));
        for (run, stage) in (0..RUNS).flat_map(|run| (0..spec.stages).map(move |stage| (run, stage))) {
            let nodes = || fates.iter().filter(|(place, _)| place.run == run && spec.nodes[place.node as usize].stage == stage);
            let last = nodes().map(|(_, fate)| fate.end()).max();
            let ends: Vec<u64> = told.iter().filter(|told| (told.0, told.1) == (run, stage)).map(|told| told.2).collect();
            prop_assert!(ends.len() <= 1, "told once");
            prop_assert!(ends.iter().all(|&end| last.is_none_or(|last| last < end)), "a stage ends after its nodes");
            let has_failed = nodes().any(|(_, fate)| !matches!(fate, Fate::Ran { .. }));
            let is_watched = opening_of(&spec, &openings, run, stage) == Opening::Watched;
            let answer = answers.iter().find(|answer| (answer.0, answer.1) == (run, stage));
            let is_promised = answer.is_some_and(|&(_, _, will_be_told, _)| will_be_told);
            if is_watched || has_failed || is_promised {
                prop_assert_eq!(ends.len(), 1, "stage {} of run {} was not told", stage, run);
            } else if answer.is_none() {
                prop_assert_eq!(ends.len(), 0, "stage {} of run {} was told to nobody", stage, run);
            }
            if let Some(&(_, _, false, at)) = answer {
                prop_assert!(last.is_none_or(|last| last < at), "what is said to have ended has");
            }
        }
    }
}

/// A graph of three stages of a node each, the third after the second, and its log.
fn three_stages() -> (Realm, Arc<Log>, GraphRuns) {
    let node = |stage, after: &[u32]| NodeSpec {
        stage,
        home: maniple_realm::machine::ProcessorId(stage % 2),
        pinned: false,
        others: Vec::new(),
        takes: true,
        after: after.iter().map(|&node| Edge { node, needs: true }).collect(),
        after_previous: Vec::new(),
    };
    started(&GraphSpec { stages: 3, nodes: vec![node(0, &[]), node(1, &[]), node(2, &[1])] })
}

/// A graph that has been started, and its log, which is done when a run has ended.
fn started(spec: &GraphSpec) -> (Realm, Arc<Log>, GraphRuns) {
    let realm = Realm::builder().workers(2).build().unwrap();
    let graph = Arc::new(Graph::new(spec, realm.processors()));
    let done = realm.user_event();
    let log = Arc::new(Log {
        moments: AtomicU64::new(0),
        fates: Mutex::default(),
        fails: Vec::new(),
        stages: Mutex::default(),
        runs_left: AtomicU64::new(1),
        armed: Mutex::default(),
        realm: realm.clone(),
        done,
    });
    let runs = realm.start_graph(&graph, Arc::clone(&log) as Arc<dyn GraphWork>, 4);
    (realm, log, runs)
}

#[test]
fn a_node_is_found_behind_any_number_of_others_that_have_run() {
    const MANY: usize = 1000;
    let node = |stage| NodeSpec {
        stage,
        home: maniple_realm::machine::ProcessorId(0),
        pinned: true,
        others: Vec::new(),
        takes: true,
        after: Vec::new(),
        after_previous: Vec::new(),
    };
    let stages = std::iter::once(0).chain((0..MANY).map(|_| 1)).chain([2]);
    let (realm, log, runs) = started(&GraphSpec { stages: 3, nodes: stages.map(node).collect() });
    let wait_for = |ended: usize| {
        while log.fates.lock().len() < ended {
            std::thread::yield_now();
        }
    };
    runs.open(0, 1);
    wait_for(MANY);
    // The first node of the lane still waits: it may do so for what this one does.
    runs.open(0, 2);
    wait_for(MANY + 1);
    runs.open(0, 0);
    realm.wait(log.done.event()).unwrap();
}

#[test]
fn a_stage_that_is_skipped_ends_without_running() {
    let (realm, log, runs) = three_stages();
    runs.open(0, 0);
    runs.skip(0, 1);
    runs.skip(0, 2);
    realm.wait(log.done.event()).unwrap();
    assert_eq!(log.fates.lock().iter().map(|(place, _)| place.node).collect::<Vec<_>>(), [0]);
    assert_eq!(log.stages.lock().iter().map(|(_, stage, _)| *stage).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_stage_may_be_opened_after_a_later_run_has_ended() {
    // Stages without nodes end when they are opened.
    let (_realm, log, runs) = started(&GraphSpec { stages: 2, nodes: Vec::new() });
    runs.open(0, 0);
    runs.open(1, 0);
    runs.open(1, 1);
    assert_eq!(*log.armed.lock(), [1], "nothing of it comes after the run before");
    runs.open(0, 1);
    assert_eq!(*log.armed.lock(), [1, 0]);
}

#[test]
fn a_stage_that_fails_fails_its_nodes_and_those_that_need_them() {
    let (realm, log, runs) = three_stages();
    runs.open(0, 0);
    runs.fail(0, 1, &Arc::new(Fault::new("no value for the stage".to_owned())));
    runs.open(0, 2);
    realm.wait(log.done.event()).unwrap();
    let fates = log.fates.lock();
    let is_poisoned = |node: u32| {
        let fate = &fates.iter().find(|(place, _)| place.node == node).unwrap().1;
        matches!(fate, Fate::Poisoned { reason, .. } if reason.contains("no value"))
    };
    assert_eq!([0, 1, 2].map(is_poisoned), [false, true, true]);
}

#[test]
fn a_node_that_takes_nothing_runs_though_its_stage_fails() {
    let node = |takes, after| NodeSpec {
        stage: 0,
        home: maniple_realm::machine::ProcessorId(0),
        pinned: false,
        others: Vec::new(),
        takes,
        after,
        after_previous: Vec::new(),
    };
    let second = node(true, vec![Edge { node: 0, needs: true }]);
    let (realm, log, runs) = started(&GraphSpec { stages: 1, nodes: vec![node(false, Vec::new()), second] });
    runs.fail(0, 0, &Arc::new(Fault::new("no value for the stage".to_owned())));
    realm.wait(log.done.event()).unwrap();
    let fates = log.fates.lock();
    let ran = |node: u32| fates.iter().any(|(place, fate)| place.node == node && matches!(fate, Fate::Ran { .. }));
    assert_eq!([0, 1].map(ran), [true, false]);
}

/// Takes its time to go.
struct Sluggish(Arc<AtomicU64>);

impl GraphWork for Sluggish {
    fn run(&self, _: GraphPlace, _: &WorkerContext<'_>) -> Result<(), Arc<Fault>> {
        Ok(())
    }

    fn poisoned(&self, _: GraphPlace, _: &Arc<Fault>) {}

    fn stage_ended(&self, _: u64, _: u32) {}

    fn run_ended(&self, _: u64) {}
}

impl Drop for Sluggish {
    fn drop(&mut self) {
        (0..1000).for_each(|_| std::thread::yield_now());
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn graphs_are_released_when_their_works_have_been_dropped() {
    let realm = Realm::builder().workers(2).build().unwrap();
    let gone = Arc::new(AtomicU64::new(0));
    for round in 1..100 {
        let home = realm.processors()[1];
        let node = NodeSpec {
            stage: 0,
            home,
            pinned: false,
            others: Vec::new(),
            takes: false,
            after: Vec::new(),
            after_previous: Vec::new(),
        };
        let graph = Arc::new(Graph::new(&GraphSpec { stages: 1, nodes: vec![node] }, realm.processors()));
        let runs = realm.start_graph(&graph, Arc::new(Sluggish(Arc::clone(&gone))), 4);
        runs.open(0, 0);
        // Maybe a worker lets go of it last.
        drop(runs);
        realm.release_graphs();
        assert_eq!(gone.load(Ordering::SeqCst), round);
    }
}

#[test]
fn with_more_workers_than_cores_the_first_ones_stand_in_for_all() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let realm = Realm::builder().workers(3 * cores).build().unwrap();
    let processors = realm.processors();
    let worker = |processor| processors.iter().position(|&other| other == realm.stand_in(processor)).unwrap();
    let stand_ins: Vec<usize> = processors.iter().map(|&processor| worker(processor)).collect();
    assert!(stand_ins.is_sorted() && stand_ins.iter().all(|&worker| worker < cores), "{stand_ins:?}");
    assert!((0..cores).all(|core| stand_ins.iter().filter(|&&worker| worker == core).count() == 3), "{stand_ins:?}");
    let few = Realm::builder().workers(1).build().unwrap();
    assert_eq!(few.stand_in(few.processors()[0]), few.processors()[0]);
}

#[test]
fn all_nodes_run_wherever_they_are_at_home_with_many_workers_a_core() {
    let workers = 4 * std::thread::available_parallelism().map_or(1, usize::from);
    let realm = Realm::builder().workers(workers).build().unwrap();
    // Chains that go from worker to worker, so that nearly all sleep nearly always; every third node is pinned.
    let nodes = (0..10 * workers as u32).map(|number| NodeSpec {
        stage: 0,
        home: realm.processors()[(number as usize * 7) % workers],
        pinned: number % 3 == 0,
        others: Vec::new(),
        takes: false,
        after: (number >= 2).then_some(Edge { node: number.wrapping_sub(2), needs: true }).into_iter().collect(),
        after_previous: Vec::new(),
    });
    let spec = GraphSpec { stages: 1, nodes: nodes.collect() };
    drop(realm);
    let (fates, ends, _) = run(&spec, workers, 300, (&[], &[Opening::Watched]));
    assert_eq!((fates.len(), ends.len()), (300 * spec.nodes.len(), 300));
}
