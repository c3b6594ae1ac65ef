//! Random programs in which something fails on one node alone, at any call that can: all nodes come to the same, with a
//! value or an error, in whatever order messages come.

use fastrand::Rng;
use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::Simulation;
use maniple::{Error, Machine, Result, Runtime};

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|cell| cells.value[cell] += amount);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

/// An action of programs on a region.
#[derive(Clone, Copy, Debug)]
enum Act {
    Fill(i64),
    /// Each node adds to points of its own.
    AddToPieces(i64),
    /// One node adds to all points of a half, for which it needs those of others.
    AddToHalf(i64, i64),
    Look,
    Fence,
}

/// The failure of one node, and whether its program handles it and goes on.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// An outcome that nodes share, such as of reading a file.
    Outcome { is_handled: bool },
    /// Memory that is too short there.
    Attachment { is_handled: bool },
    /// The function returns.
    Return,
    /// The node leaves before the program begins.
    Leave,
}

impl Act {
    fn random(random: &mut Rng) -> Self {
        let amount = random.i64(1..100);
        match random.u8(..7) {
            0 => Self::Fill(amount),
            1 | 2 => Self::AddToPieces(amount),
            3 | 4 => Self::AddToHalf(random.i64(0..2), amount),
            5 => Self::Look,
            _ => Self::Fence,
        }
    }
}

impl Failure {
    fn random(random: &mut Rng) -> Self {
        let is_handled = random.bool();
        match random.u8(..7) {
            0 | 1 => Self::Outcome { is_handled },
            2 | 3 => Self::Attachment { is_handled },
            4 | 5 => Self::Return,
            _ => Self::Leave,
        }
    }
}

/// A program, with what fails before which of its acts, here or on another node.
#[derive(Clone, Debug)]
struct Program {
    acts: Vec<Act>,
    failure: Failure,
    at: usize,
}

fn planned() -> Error {
    Error::application("as planned")
}

impl Program {
    async fn run(self, cx: &Context, fails: bool) -> Result<i64> {
        let cells = cx.region::<Cell>(24)?;
        let (pieces, halves) = (cells.partition(8).equal()?, cells.partition(2).equal()?);
        cx.fill(&cells, Cell::value, 0)?;
        for (number, act) in self.acts.iter().enumerate() {
            if number == self.at {
                self.fail(cx, &cells, fails).await?;
            }
            match *act {
                Act::Fill(value) => cx.fill(&cells, Cell::value, value)?,
                Act::AddToPieces(amount) => drop(cx.index_launch(8, add(&pieces, amount))),
                Act::AddToHalf(half, amount) => drop(cx.launch(add(&halves.piece(half)?, amount))),
                Act::Look => drop(cx.index_launch(8, sum(&pieces)).reduce(Sum).await?),
                Act::Fence => cx.execution_fence().await?,
            }
        }
        cx.index_launch(8, sum(&pieces)).reduce(Sum).await
    }

    /// Comes to what fails on one node.
    async fn fail(&self, cx: &Context, cells: &Region<Cell>, fails: bool) -> Result<()> {
        let (outcome, is_handled) = match self.failure {
            Failure::Leave => return Ok(()),
            Failure::Return if fails => return Err(planned()),
            Failure::Return => return Ok(()),
            Failure::Outcome { is_handled } => {
                (cx.share_outcome(if fails { Err(planned()) } else { Ok(()) }).await, is_handled)
            }
            Failure::Attachment { is_handled } => {
                let values = vec![1; if fails { 3 } else { 24 }];
                (cx.attach_vec(cells, Cell::other, values).map(drop), is_handled)
            }
        };
        match outcome {
            Err(_) if is_handled => cx.fill(cells, Cell::value, 1_000),
            outcome => outcome,
        }
    }
}

#[test]
fn random_programs_in_which_one_node_fails_come_to_the_same_on_all() {
    let mut handled = 0;
    for seed in 0..500 {
        let mut random = Rng::with_seed(seed);
        let (nodes, window, odd) = (random.usize(2..5), random.usize(1..6), random.usize(..2));
        let acts: Vec<Act> = (0..random.usize(1..12)).map(|_| Act::random(&mut random)).collect();
        let program = Program { at: random.usize(..acts.len()), failure: Failure::random(&mut random), acts };
        let network = Network::seeded(nodes, seed, 20);
        let mut simulation = Simulation::new(seed).network(&network);
        let answers: Vec<_> = (0..nodes)
            .map(|node| {
                let (transport, program) = (network.node(NodeId(node as u16)), program.clone());
                simulation.thread(format!("node {node}"), move || {
                    let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 20)).workers(1).window(window);
                    let runtime = builder.network(transport).build().unwrap();
                    if node == odd && matches!(program.failure, Failure::Leave) {
                        runtime.note_failure(planned());
                        return Err(planned());
                    }
                    runtime.run(async |cx: &Context| program.run(cx, node == odd).await)
                })
            })
            .collect();
        simulation.run().unwrap_or_else(|hang| panic!("seed {seed}, {program:?}: {hang}"));
        let outcomes: Vec<Result<i64>> = answers.into_iter().map(|answer| answer.take().unwrap()).collect();
        let values: Vec<i64> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok().copied()).collect();
        let is_alike = values.is_empty() || values.len() == nodes && values.iter().all(|value| *value == values[0]);
        assert!(is_alike, "seed {seed}, {program:?}: {outcomes:?}");
        handled += usize::from(!values.is_empty());
        // Whatever goes wrong, all know of what has failed.
        if !matches!(program.failure, Failure::Attachment { .. }) {
            let told = |outcome: &Result<i64>| {
                outcome.as_ref().map_or_else(|error| error.to_string().contains("as planned"), |_| true)
            };
            assert!(outcomes.iter().all(told), "seed {seed}, {program:?}: {outcomes:?}");
        }
    }
    assert!(handled > 40, "{handled}");
}
