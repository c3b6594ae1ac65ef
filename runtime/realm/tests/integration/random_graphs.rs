//! Random graphs of operations against the plainest model: each body runs once, after everything that it waits for, and
//! a failure reaches exactly what needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use maniple_realm::machine::ProcessorId;
use maniple_realm::{After, Class, Event, Fault, Realm, Spawn, Target, UserEvent};
use proptest::prelude::*;

/// The kind of operation at a node of a graph.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Task,
    Async,
    Callback,
    Merge,
    User,
}

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    /// Whether it fails by itself, if it runs at all.
    fails: bool,
    target: u32,
    priority: i32,
    /// Earlier nodes.
    needs: Vec<usize>,
    follows: Vec<usize>,
}

/// When each node's body started and ended, by a clock that ticks at each; 0 is never.
struct Trace {
    clock: AtomicU32,
    started: Vec<AtomicU32>,
    ended: Vec<AtomicU32>,
}

impl Trace {
    fn new(nodes: usize) -> Arc<Self> {
        let zeros = || (0..nodes).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self { clock: AtomicU32::new(1), started: zeros(), ended: zeros() })
    }

    /// A node's body.
    fn run(&self, node: usize) {
        let tick = || self.clock.fetch_add(1, Ordering::Relaxed);
        assert_eq!(self.started[node].swap(tick(), Ordering::Relaxed), 0, "node {node} runs once");
        self.ended[node].store(tick(), Ordering::Relaxed);
    }

    fn ran(&self, node: usize) -> bool {
        self.ended[node].load(Ordering::Relaxed) > 0
    }

    /// Whether `before` ended before `after` started; true if one of them never ran.
    fn in_order(&self, before: usize, after: usize) -> bool {
        let (ended, started) =
            (self.ended[before].load(Ordering::Relaxed), self.started[after].load(Ordering::Relaxed));
        ended == 0 || started == 0 || ended < started
    }
}

fn failure(node: usize) -> Fault {
    Fault::new(format!("node {node} failed"))
}

fn outcome(node: usize, fails: bool) -> Result<(), Fault> {
    if fails { Err(failure(node)) } else { Ok(()) }
}

/// Builds one node; a user event still has to be triggered.
fn build(realm: &Realm, trace: &Arc<Trace>, index: usize, node: &Node, events: &[Event]) -> (Event, Option<UserEvent>) {
    let needs: Vec<Event> = node.needs.iter().map(|&before| events[before]).collect();
    let follows: Vec<Event> = node.follows.iter().map(|&before| events[before]).collect();
    let after = After { needs: &needs, follows: &follows };
    let (trace, fails) = (Arc::clone(trace), node.fails);
    let workers = realm.processors().len() as u32;
    let processor = ProcessorId(node.target % workers);
    let target = match node.target % 5 {
        0 => Target::On(processor),
        1 => Target::Near(processor),
        _ => Target::Any,
    };
    let class = if node.target.is_multiple_of(7) { Class::Runtime } else { Class::Task };
    let spawn = Spawn { target, priority: node.priority, class, ..Spawn::after(after) };
    match node.kind {
        Kind::Merge => (realm.merge(after), None),
        Kind::User => {
            let user = realm.user_event();
            (user.event(), Some(user))
        }
        Kind::Callback => {
            let called = realm.when_event(after, move |result| {
                if result.is_ok() {
                    trace.run(index);
                }
                assert!(!fails, "node {index} failed");
            });
            (called, None)
        }
        Kind::Task => {
            let body = move || {
                trace.run(index);
                outcome(index, fails)
            };
            (realm.spawn(spawn, body), None)
        }
        Kind::Async => {
            let yielded = realm.event_future(realm.spawn(spawn, || ()));
            let body = async move {
                let _ = yielded.await;
                trace.run(index);
                outcome(index, fails)
            };
            (realm.spawn_async(spawn, body), None)
        }
    }
}

/// Which nodes must end poisoned.
fn poisoned(nodes: &[Node]) -> Vec<bool> {
    let mut poisoned = vec![false; nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        let by_needs = node.needs.iter().any(|&before| poisoned[before]);
        let by_itself = node.fails && !matches!(node.kind, Kind::Merge);
        poisoned[index] = match node.kind {
            // Triggered by hand: nothing precedes it.
            Kind::User => node.fails,
            _ => by_needs || by_itself,
        };
    }
    poisoned
}

fn node_strategy(index: usize) -> impl Strategy<Value = Node> {
    let kind = prop_oneof![
        4 => Just(Kind::Task),
        1 => Just(Kind::Async),
        1 => Just(Kind::Callback),
        2 => Just(Kind::Merge),
        1 => Just(Kind::User),
    ];
    let edges = |most| proptest::collection::vec(any::<prop::sample::Index>(), 0..most);
    let urgency = prop_oneof![3 => Just(0), 1 => -2..3_i32];
    (kind, proptest::bool::weighted(0.05), any::<u32>(), urgency, edges(9), edges(3)).prop_map(
        move |(kind, fails, target, priority, needs, follows)| {
            let earlier = |edges: Vec<prop::sample::Index>| match (index, kind) {
                (0, _) | (_, Kind::User) => Vec::new(),
                _ => edges.into_iter().map(|edge| edge.index(index)).collect(),
            };
            Node { kind, fails, target, priority, needs: earlier(needs), follows: earlier(follows) }
        },
    )
}

fn graph_strategy() -> impl Strategy<Value = Vec<Node>> {
    (1..50_usize).prop_flat_map(|nodes| (0..nodes).map(node_strategy).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_random_graph_runs_as_the_model_says(nodes in graph_strategy(), workers in 1..4_usize, late in any::<bool>()) {
        let realm = Realm::builder().workers(workers).build().unwrap();
        let trace = Trace::new(nodes.len());
        let mut events = Vec::new();
        let mut users = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let (event, user) = build(&realm, &trace, index, node, &events);
            events.push(event);
            users.extend(user.map(|user| (index, user)));
            if !late {
                trigger_users(&realm, &nodes, &mut users);
            }
        }
        trigger_users(&realm, &nodes, &mut users);
        for (index, (&event, poisoned)) in events.iter().zip(poisoned(&nodes)).enumerate() {
            prop_assert_eq!(realm.wait(event).is_err(), poisoned, "node {}", index);
            let by_needs = nodes[index].needs.iter().any(|&before| realm.status(events[before]).fault().is_some());
            let runs = !matches!(nodes[index].kind, Kind::Merge | Kind::User) && !by_needs;
            prop_assert_eq!(trace.ran(index), runs, "node {}", index);
            let mut waited = nodes[index].needs.iter().chain(&nodes[index].follows);
            prop_assert!(waited.all(|&before| trace.in_order(before, index)), "node {}", index);
        }
    }
}

fn trigger_users(realm: &Realm, nodes: &[Node], users: &mut Vec<(usize, UserEvent)>) {
    for (index, user) in users.drain(..) {
        if nodes[index].fails {
            realm.poison(user, failure(index));
        } else {
            realm.trigger(user);
        }
    }
}

/// A pseudo-random number (SplitMix64, Steele et al. 2014).
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)) as usize
}

#[test]
fn a_hundred_thousand_operations_run_once_each_after_their_predecessors() {
    const NODES: usize = 100_000;
    for workers in 1..=4 {
        let realm = Realm::builder().workers(workers).build().unwrap();
        let trace = Trace::new(NODES);
        let first = realm.user_event();
        let mut events = vec![first.event()];
        let mut state = workers as u64;
        let mut edges = Vec::new();
        for node in 1..NODES {
            if node == NODES / 2 {
                realm.trigger(first);
            }
            // Mostly recent predecessors, so that the graph is deep, and operations end while others are made.
            let reach = if random(&mut state).is_multiple_of(4) { node } else { node.min(20) };
            let waited: Vec<usize> =
                (0..random(&mut state) % 6).map(|_| node - 1 - random(&mut state) % reach).collect();
            let needs: Vec<Event> = waited.iter().map(|&before| events[before]).collect();
            edges.extend(waited.into_iter().map(|before| (before, node)));
            let trace = Arc::clone(&trace);
            events.push(realm.spawn(&needs, move || trace.run(node)));
        }
        realm.wait(realm.merge(&events)).unwrap();
        assert!((1..NODES).all(|node| trace.ran(node)));
        assert!(edges.iter().all(|&(before, after)| trace.in_order(before, after)));
    }
}

#[test]
fn several_threads_spawn_into_one_graph() {
    const EACH: usize = 20_000;
    let realm = Realm::builder().workers(3).build().unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (realm, runs) = (&realm, &runs);
            scope.spawn(move || {
                let mut state = seed;
                let mut recent = [Event::NONE; 8];
                for _ in 0..EACH {
                    let pair = [recent[random(&mut state) % 8], recent[random(&mut state) % 8]];
                    let runs = Arc::clone(runs);
                    recent[random(&mut state) % 8] = realm.spawn(&pair, move || {
                        runs.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    assert!(realm.help_while(|| runs.load(Ordering::Relaxed) < 3 * EACH as u32));
}
