//! Nodes whose programs differ and end, or wait for their own operations, without a point where nodes compare: they are
//! told so in whatever order messages come.

use fastrand::Rng;
use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::Simulation;
use maniple::{Machine, Result, Runtime};

#[derive(Fields)]
struct Cell {
    value: i64,
}

/// The outcomes of nodes that make a region, one of them perhaps a larger one.
fn outcomes(seed: u64, nodes: usize, larger: Option<usize>) -> Vec<Result<()>> {
    simulate((seed, nodes, 1024), move |node| {
        async move |cx: &Context| {
            let cells = cx.region::<Cell>(if larger == Some(node) { 20 } else { 10 })?;
            cx.fill(&cells, Cell::value, 1)
        }
    })
}

/// The outcomes of nodes that run these programs in windows of so many operations.
fn simulate<P>((seed, nodes, window): (u64, usize, usize), program_of: impl Fn(usize) -> P) -> Vec<Result<()>>
where
    P: AsyncFnOnce(&Context) -> Result<()> + 'static,
{
    let network = Network::seeded(nodes, seed, 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let answers: Vec<_> = (0..nodes)
        .map(|node| {
            let transport = network.node(NodeId(node as u16));
            let program = program_of(node);
            simulation.thread(format!("node {node}"), move || {
                let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 20)).workers(1).window(window);
                builder.network(transport).build().unwrap().run(program)
            })
        })
        .collect();
    simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
    answers.into_iter().map(|answer| answer.take().unwrap()).collect()
}

#[test]
fn nodes_that_end_with_other_things_done_are_told_in_whatever_order_messages_come() {
    for seed in 0..300 {
        let nodes = 2 + seed as usize % 3;
        for outcome in outcomes(seed, nodes, Some(nodes - 1)) {
            let error = outcome.expect_err(&format!("seed {seed}")).to_string();
            let both = ["makes Cell region", "(10 points)", "(20 points)"];
            assert!(both.iter().all(|part| error.contains(part)), "seed {seed}: {error}");
        }
    }
}

#[test]
fn nodes_that_do_the_same_end_well_in_whatever_order_messages_come() {
    for seed in 0..100 {
        outcomes(seed, 2 + seed as usize % 3, None).into_iter().for_each(|outcome| outcome.unwrap());
    }
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|cell| cells.value[cell] += amount);
}

/// An action of programs on a region.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Fill(i64),
    /// Each node adds to points of its own.
    AddToPieces(i64),
    /// One node adds to all points of a half, for which it needs those of others.
    AddToHalf(i64, i64),
}

impl Act {
    fn random(random: &mut Rng) -> Self {
        let amount = random.i64(1..100);
        match random.u8(..4) {
            0 => Self::Fill(amount),
            1 => Self::AddToPieces(amount),
            _ => Self::AddToHalf(random.i64(0..2), amount),
        }
    }
}

async fn run(cx: &Context, acts: Vec<Act>) -> Result<()> {
    let cells = cx.region::<Cell>(24)?;
    let (pieces, halves) = (cells.partition(8).equal()?, cells.partition(2).equal()?);
    cx.fill(&cells, Cell::value, 0)?;
    for act in acts {
        match act {
            Act::Fill(value) => cx.fill(&cells, Cell::value, value)?,
            Act::AddToPieces(amount) => drop(cx.index_launch(8, add(&pieces, amount))),
            Act::AddToHalf(half, amount) => drop(cx.launch(add(&halves.piece(half)?, amount))),
        }
    }
    Ok(())
}

#[test]
fn random_programs_of_which_one_is_changed_end_on_all_nodes_whatever_the_window() {
    for seed in 0..400 {
        let mut random = Rng::with_seed(seed);
        let (nodes, window) = (random.usize(2..5), random.usize(1..6));
        let acts: Vec<Act> = (0..random.usize(1..14)).map(|_| Act::random(&mut random)).collect();
        let (odd, at) = (random.usize(..nodes), random.usize(..acts.len()));
        let mut changed = acts.clone();
        match random.u8(..4) {
            0 => drop(changed.remove(at)),
            1 => changed.insert(at, Act::random(&mut random)),
            _ => changed[at] = Act::random(&mut random),
        }
        let is_same = acts == changed;
        let outcomes = simulate((seed, nodes, window), |node| {
            let acts = if node == odd { changed.clone() } else { acts.clone() };
            async move |cx: &Context| run(cx, acts).await
        });
        for outcome in outcomes {
            let told = outcome.as_ref().is_err_and(|error| error.to_string().contains("do not run the same program"));
            assert!(told != is_same && outcome.is_ok() == is_same, "seed {seed}: {outcome:?}");
        }
    }
}
