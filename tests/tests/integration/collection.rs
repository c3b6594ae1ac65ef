//! Instances, results and what nodes keep for each other go when nothing can need them any more, and not before: random
//! programs which make, use, drop and destroy regions, partitions, fields, futures and future maps on 2 to 4 nodes,
//! while tasks, parcels and results are under way.
//!
//! Each runs in a simulation, where a seed decides whose turn it is and how long each message takes; those of different
//! pairs of nodes overtake each other, and some connections are held up. Everything that is read is compared with a
//! model, so what was taken away too early is found; and at the end every node looks for what is left: bytes in any
//! memory, results (each has a [`Token`] that counts itself), and open exchanges: parcels, gatherings, tasks and slices
//! that are away, messages.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use maniple::machine::{Affinity, MemoryKind, NodeId, ProcessorKind};
use maniple::mapper::{Mapper, RandomMapper, Sharding, ShardingMapper};
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::record::check;
use maniple::simulation::Simulation;
use maniple::threads::nap;
use maniple::{AnySpace, Field, FieldId, FieldType, Future, FutureMap, Machine, Partition, Rect, Region, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many tokens of each run there are.
static TOKENS: Mutex<Option<HashMap<u64, i64>>> = Mutex::new(None);

fn count_tokens(run: u64, more: i64) -> i64 {
    let mut tokens = TOKENS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let count = tokens.get_or_insert_default().entry(run).or_default();
    *count += more;
    *count
}

/// Part of a result, which knows how many there are of it, on all nodes together.
#[derive(Debug)]
struct Token {
    run: u64,
}

impl Token {
    fn new(run: u64) -> Self {
        count_tokens(run, 1);
        Self { run }
    }
}

impl Clone for Token {
    fn clone(&self) -> Self {
        Self::new(self.run)
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        count_tokens(self.run, -1);
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.run.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::new)
    }
}

#[derive(Fields)]
struct Row {
    value: i64,
    total: i64,
}

#[task(leaf)]
fn add(#[writes(value)] rows: Piece<Row>, amount: i64) {
    rows.points().for_each(|point| rows.value[point] += amount * (point[0] + 1));
}

#[task(leaf)]
fn contribute(#[reduces(Sum, total)] rows: Piece<Row>, amount: i64) {
    rows.points().for_each(|point| rows.total.fold(point, amount + point[0]));
}

#[task(leaf)]
fn sum(#[reads(value, total)] rows: Piece<Row>, run: u64) -> (i64, Token) {
    (rows.points().map(|point| rows.value[point] + 3 * rows.total[point]).sum(), Token::new(run))
}

#[task(leaf)]
fn give(#[point] at: Point<1>, run: u64) -> (i64, Token) {
    (at[0], Token::new(run))
}

/// Makes regions of its own and launches all kinds of tasks, others like itself among them; some of what it has
/// launched it does not wait for, and some of what it has made it destroys; all, if it is tidy.
#[task]
async fn branch(cx: &Context, depth: i64, seed: i64, run: u64, is_tidy: bool) -> Result<(i64, Token)> {
    let size = 1 + (seed + depth) % 4;
    let rows = cx.region::<Row>(3 * size as usize)?;
    let split = rows.partition(size as usize).equal()?;
    cx.fill(&rows, Row::value, seed)?;
    cx.index_launch(0..size, add(&split, depth));
    let sums = cx.index_launch(0..size, sum(&split, run));
    let given = cx.index_launch(0..size, give(run));
    let (first, mut value) = (given.get(0)?, 0);
    if seed % 2 == 0 {
        drop(given);
        cx.destroy_region(&rows)?;
        drop(split);
    } else {
        value += given.all().await?.into_iter().map(|(at, _)| at).sum::<i64>();
    }
    if depth > 0 {
        let unseen = cx.launch(branch(depth - 1, seed + 2, run, is_tidy));
        let seen = cx.launch(branch(depth - 1, seed + 1, run, is_tidy));
        drop(unseen);
        value += seen.await?.0;
    }
    value += sums.map(|(sum, _)| sum).reduce(Sum).await?;
    if is_tidy && seed % 2 != 0 {
        cx.destroy_region(&rows)?;
    }
    Ok((value + first.await?.0, Token::new(run)))
}

fn branched(depth: i64, seed: i64) -> i64 {
    let size = 1 + (seed + depth) % 4;
    let mut value = (0..3 * size).map(|row| seed + depth * (row + 1)).sum();
    if seed % 2 != 0 {
        value += (0..size).sum::<i64>();
    }
    if depth > 0 { value + branched(depth - 1, seed + 1) } else { value }
}

/// A region of the program, and what it holds.
struct Known {
    region: Region<Row>,
    splits: Vec<Partition<Row>>,
    value: Vec<i64>,
    total: Vec<i64>,
}

impl Known {
    /// The results of `sum` for each piece of a partition.
    fn sums(&self, split: &Partition<Row>) -> Vec<i64> {
        let of = |row: usize| self.value[row] + 3 * self.total[row];
        split.pieces().map(|piece| piece.points().map(|point| of(point[0] as usize)).sum()).collect()
    }
}

/// Results to come, and what they will be.
enum Promised {
    Map(FutureMap<(i64, Token)>, Vec<i64>),
    One(Future<(i64, Token)>, i64),
    Plain(Future<i64>, i64),
}

impl Promised {
    async fn check(self, how: usize) -> Result<()> {
        match self {
            Self::Map(map, expected) if how == 0 => {
                let found: Vec<i64> = map.all().await?.into_iter().map(|(sum, _)| sum).collect();
                assert_eq!(found, expected);
            }
            Self::Map(map, expected) => {
                // The map itself goes before what is computed from it.
                let sum = map.map(|(sum, _)| sum).reduce(Sum);
                drop(map);
                assert_eq!(sum.await?, expected.iter().sum::<i64>());
            }
            Self::One(one, expected) => assert_eq!(one.await?.0, expected),
            Self::Plain(one, expected) => assert_eq!(one.await?, expected),
        }
        Ok(())
    }
}

/// A program under way: what follows from the seed is the same on all nodes, but for when they drop what the program
/// has done with.
struct World<'a> {
    cx: &'a Context,
    run: u64,
    /// Whether tasks destroy all that they make: else it is the program's until it ends.
    is_tidy: bool,
    random: Rng,
    /// This node's own.
    whim: Rng,
    known: Vec<Known>,
    promised: Vec<Promised>,
    /// Handles that only wait to be dropped.
    limbo: Vec<Box<dyn std::any::Any>>,
}

impl World<'_> {
    /// The program has done with something. When it goes is another matter on each node.
    fn done_with(&mut self, handle: impl std::any::Any) {
        if self.whim.bool() {
            self.limbo.push(Box::new(handle));
        }
        while self.limbo.len() > self.whim.usize(..6) {
            let which = self.whim.usize(..self.limbo.len());
            drop(self.limbo.swap_remove(which));
        }
    }

    fn make(&mut self) -> Result<()> {
        let rows = self.random.usize(1..30);
        let region = self.cx.region::<Row>(rows)?;
        let start = self.random.i64(-5..5);
        self.cx.fill(&region, Row::value, start)?;
        self.known.push(Known { region, splits: Vec::new(), value: vec![start; rows], total: vec![0; rows] });
        Ok(())
    }

    /// One of the regions, with one of its partitions: disjoint and complete.
    fn pick(&mut self) -> Result<Option<(usize, Partition<Row>)>> {
        if self.known.is_empty() {
            return Ok(None);
        }
        let which = self.random.usize(..self.known.len());
        let (Known { region, splits, .. }, random) = (&mut self.known[which], &mut self.random);
        if splits.is_empty() || random.usize(..3) == 0 {
            let weights: Vec<u64> = (0..random.usize(1..6)).map(|_| random.u64(1..4)).collect();
            splits.push(region.partition(weights.len()).weighted(&weights)?);
        }
        let splits = &self.known[which].splits;
        Ok(Some((which, splits[self.random.usize(..splits.len())].clone())))
    }

    /// An amount, as it is or still to come.
    fn change(&mut self) -> Result<()> {
        let Some((which, split)) = self.pick()? else { return Ok(()) };
        let colors = split.colors();
        let (tag, contributes) = (self.random.u64(..3), self.random.bool());
        let plain = self.promised.iter().position(|promised| matches!(promised, Promised::Plain(..)));
        let (amount, launched) = match plain.filter(|_| self.random.bool()) {
            Some(at) => {
                let Promised::Plain(future, amount) = self.promised.swap_remove(at) else { unreachable!() };
                let launched = match contributes {
                    true => self.cx.index_launch(colors, contribute(&split, &future).tag(tag)),
                    false => self.cx.index_launch(colors, add(&split, &future).tag(tag)),
                };
                self.done_with(future);
                (amount, launched)
            }
            None => {
                let amount = self.random.i64(-9..9);
                let launched = match contributes {
                    true => self.cx.index_launch(colors, contribute(&split, amount).tag(tag)),
                    false => self.cx.index_launch(colors, add(&split, amount).tag(tag)),
                };
                (amount, launched)
            }
        };
        let Known { value, total, .. } = &mut self.known[which];
        for row in 0..value.len() {
            match contributes {
                true => total[row] = total[row].wrapping_add(amount.wrapping_add(row as i64)),
                false => value[row] = value[row].wrapping_add(amount.wrapping_mul(row as i64 + 1)),
            }
        }
        self.done_with(launched);
        Ok(())
    }

    fn total(&mut self) -> Result<()> {
        let Some((which, split)) = self.pick()? else { return Ok(()) };
        let expected = self.known[which].sums(&split);
        let map = self.cx.index_launch(split.colors(), sum(&split, self.run).tag(self.random.u64(..3)));
        let promised = match self.random.usize(..3) {
            0 => {
                let at = self.random.usize(..expected.len());
                Promised::One(map.get(at as i64)?, expected[at])
            }
            1 => {
                // Small, as it may become an amount.
                let small = |sum: i64| sum.rem_euclid(7);
                let expected = expected.iter().map(|&sum| small(sum)).sum();
                Promised::Plain(map.map(move |(sum, _)| small(sum)).reduce(Sum), expected)
            }
            _ => Promised::Map(map.clone(), expected),
        };
        self.promised.push(promised);
        self.done_with(map);
        Ok(())
    }

    fn launch_tree(&mut self) {
        let (depth, seed) = (self.random.i64(0..3), self.random.i64(0..8));
        let tree = self.cx.launch(branch(depth, seed, self.run, self.is_tidy));
        self.promised.push(Promised::One(tree, branched(depth, seed)));
    }

    async fn check_one(&mut self) -> Result<()> {
        if self.promised.is_empty() {
            return Ok(());
        }
        let (which, how) = (self.random.usize(..self.promised.len()), self.random.usize(..2));
        self.promised.swap_remove(which).check(how).await
    }

    fn drop_one(&mut self) {
        if !self.promised.is_empty() {
            let which = self.random.usize(..self.promised.len());
            let promised = self.promised.swap_remove(which);
            self.done_with(promised);
        }
    }

    async fn read_one(&mut self) -> Result<()> {
        let Some((which, split)) = self.pick()? else { return Ok(()) };
        let Known { region, value, .. } = &self.known[which];
        assert_eq!(&self.cx.map_read(region, Row::value).await?.to_vec(), value);
        self.done_with(split);
        Ok(())
    }

    fn destroy_one(&mut self) -> Result<()> {
        if self.known.is_empty() {
            return Ok(());
        }
        let which = self.random.usize(..self.known.len());
        let Known { region, mut splits, .. } = self.known.swap_remove(which);
        if let (Some(split), true) = (splits.pop(), self.random.bool()) {
            self.cx.destroy_partition(split.logical().partitioning())?;
            self.done_with(split);
        }
        self.cx.destroy_region(&region)?;
        self.done_with(region);
        self.done_with(splits);
        Ok(())
    }

    /// Fields that come and go; one that takes the place of another begins as zero.
    async fn churn_fields(&mut self) -> Result<()> {
        let (cx, fields) = (self.cx, self.cx.field_space(2));
        let allocate = |name: &str| fields.allocate(name, FieldType::of::<i64>());
        let typed = Field::<Row, i64>::new as fn(FieldId) -> Field<Row, i64>;
        let (kept, freed) = (allocate("kept")?, allocate("freed")?);
        let rows = cx.index_space(&AnySpace::from(Rect::<1>::from(0..9)));
        let region = Region::<Row>::try_from_logical(cx.logical_region(&rows, &fields)?)?;
        cx.fill(&region, typed(kept), 5)?;
        cx.fill(&region, typed(freed), 6)?;
        drop(cx.copy(region.field(typed(freed)), region.field(typed(kept))));
        cx.free_field(&fields, freed)?;
        let renewed = allocate("renewed")?;
        if self.random.bool() {
            assert_eq!(cx.map_read(&region, typed(renewed)).await?.to_vec(), [0; 9]);
        }
        assert_eq!(cx.map_read(&region, typed(kept)).await?.to_vec(), [6; 9]);
        cx.destroy_region(&region)?;
        cx.destroy_field_space(&fields)?;
        self.done_with(region);
        Ok(())
    }

    async fn step(&mut self) -> Result<()> {
        match self.random.usize(..16) {
            0 | 1 => self.make(),
            2..=5 => self.change(),
            6..=8 => self.total(),
            9 => {
                self.launch_tree();
                Ok(())
            }
            10 => self.check_one().await,
            11 => {
                self.drop_one();
                Ok(())
            }
            12 => self.read_one().await,
            13 | 14 => self.destroy_one(),
            _ => self.churn_fields().await,
        }
    }
}

/// Whether something is so, soon.
fn soon(is_so: impl Fn() -> bool) -> bool {
    for _ in 0..40_000 {
        if is_so() {
            return true;
        }
        nap(Duration::from_micros(500));
    }
    is_so()
}

/// Bytes in use in each memory.
fn used(runtime: &Runtime) -> Vec<u64> {
    runtime.machine().memories().iter().map(|memory| runtime.bytes_used(memory.id)).collect()
}

/// Runs a program of a seed on a node, and looks for what is left there.
fn run(runtime: &Runtime, seed: u64, steps: usize) -> Result<()> {
    let is_empty = || used(runtime).iter().all(|&bytes| bytes == 0);
    runtime.run(async |cx| {
        let (random, whim) = (Rng::with_seed(seed), Rng::with_seed(seed + 1 + runtime.node() as u64));
        let (known, promised, limbo) = (Vec::new(), Vec::new(), Vec::new());
        let mut world = World { cx, run: seed, is_tidy: seed.is_multiple_of(2), random, whim, known, promised, limbo };
        for _ in 0..steps {
            world.step().await?;
        }
        // In the midst of a program too nothing is left once all is destroyed, and what used it has ended.
        if world.random.bool() {
            while !world.known.is_empty() {
                world.destroy_one()?;
            }
            cx.execution_fence().await?;
            assert!(!world.is_tidy || soon(is_empty), "seed {seed}: bytes in use: {:?}", used(runtime));
            for _ in 0..steps / 4 {
                world.step().await?;
            }
        }
        Ok(())
    })
}

/// Looks for what is left on a node when a program has ended on all.
fn look_for_what_is_left(runtime: &Runtime, seed: u64) {
    let is_empty = || used(runtime).iter().all(|&bytes| bytes == 0);
    assert!(soon(is_empty), "seed {seed}: bytes in use: {:?}", used(runtime));
    let open = || runtime.statistics().open_exchanges;
    assert!(soon(|| open() == 0), "seed {seed}: {} exchanges do not end", open());
    let tokens = || count_tokens(seed, 0);
    assert!(soon(|| tokens() == 0), "seed {seed}: {} results are kept", tokens());
}

/// Two memories, between which mappers that decide by chance copy to and fro.
fn machine(processors: usize) -> Machine {
    let mut builder = Machine::builder();
    let memories = [MemoryKind::System, MemoryKind::Socket].map(|kind| builder.memory(kind, 1 << 22));
    for _ in 0..processors {
        let processor = builder.processor(ProcessorKind::Cpu);
        for memory in memories {
            builder.sees(processor, memory, Affinity { bandwidth_mb_s: 10, latency_ns: 10 });
        }
    }
    builder.build().unwrap()
}

/// Counts of a simulation: the parcels, tasks and slices that were sent, and the turns.
#[derive(Default)]
struct Done {
    sent: u64,
    turns: u64,
}

fn simulate(seed: u64, stalled: Option<u64>) -> Done {
    let mut random = Rng::with_seed(seed);
    let (nodes, workers) = (2 + seed as usize % 3, 1 + random.usize(..2));
    let (steps, window) = (random.usize(10..60), random.usize(4..100));
    let network = Network::seeded(nodes, seed, random.u64(..40));
    let mut simulation = Simulation::new(seed).network(&network);
    if let Some(turns) = stalled {
        // One connection after the other is held up for a while: what others send overtakes it.
        for _ in 0..3 {
            let from = random.usize(..nodes);
            let [from, to] = [from, (from + random.usize(1..nodes)) % nodes].map(|node| NodeId(node as u16));
            let begin = random.u64(..turns.max(1));
            let (stalling, resuming) = (network.clone(), network.clone());
            simulation.at(begin, move || stalling.stall(from, to));
            simulation.at(begin + random.u64(1..=turns.max(1)), move || resuming.resume(from, to));
        }
    }
    let have_looked = Arc::new(AtomicUsize::new(0));
    let answers: Vec<_> = (0..nodes)
        .map(|node| {
            let (transport, have_looked) = (network.node(NodeId(node as u16)), Arc::clone(&have_looked));
            simulation.thread(format!("node {node}"), move || {
                let factory = move |_: &Machine, processor: maniple::ProcessorId| {
                    let seed = seed + 100 * node as u64 + u64::from(processor.0);
                    let mapper =
                        if seed.is_multiple_of(3) { RandomMapper::steady(seed) } else { RandomMapper::new(seed) };
                    let sharding = |launch: &maniple::mapper::TaskInfo<'_>, nodes: usize| match launch.tag {
                        0 => Sharding::Blocked,
                        1 => Sharding::Cyclic,
                        _ => Sharding::OnOne(nodes - 1),
                    };
                    Box::new(ShardingMapper::new(mapper, sharding)) as Box<dyn Mapper>
                };
                let builder = Runtime::builder().machine(machine(workers)).workers(workers);
                let builder = builder.record_operations(seed.is_multiple_of(4));
                let runtime = builder.mapper_for(factory).window(window).network(transport).build().unwrap();
                for (number, program) in [seed, seed + 1_000_000].into_iter().enumerate() {
                    run(&runtime, program, steps).unwrap_or_else(|error| panic!("seed {program}: {error}"));
                    check(&runtime.take_record()).unwrap_or_else(|wrong| panic!("seed {program}: {wrong}"));
                    look_for_what_is_left(&runtime, program);
                    // What a node sends that begins the next one is open for a node that does not.
                    have_looked.fetch_add(1, Ordering::Relaxed);
                    assert!(
                        soon(|| have_looked.load(Ordering::Relaxed) >= (number + 1) * nodes),
                        "seed {seed}: a node is lost"
                    );
                }
                runtime.statistics()
            })
        })
        .collect();
    let report = simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
    assert!(report.left.is_empty(), "seed {seed}: threads are left: {:?}", report.left);
    let statistics =
        answers.iter().map(|answer| answer.take().unwrap_or_else(|| panic!("seed {seed}: a node panicked")));
    let sent = statistics.map(|node| node.parcels_sent + node.tasks_sent + node.slices_sent).sum();
    Done { sent, turns: report.turns }
}

#[test]
fn nothing_goes_early_and_nothing_is_left_in_whatever_order_messages_come() {
    let done: Vec<Done> = (0..120).map(|seed| simulate(seed, None)).collect();
    let sum = |of: fn(&Done) -> u64| done.iter().map(of).sum::<u64>();
    println!("{} parcels, tasks and slices in {} turns", sum(|done| done.sent), sum(|done| done.turns));
    assert!(sum(|done| done.sent) > 10_000);
}

#[test]
fn nothing_goes_early_and_nothing_is_left_if_connections_are_held_up() {
    for seed in 5000..5060 {
        let Done { turns, .. } = simulate(seed, None);
        simulate(seed, Some(turns));
    }
}
