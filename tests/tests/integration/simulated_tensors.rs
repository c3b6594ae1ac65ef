//! Random statements on tensors in random formats, in random places and distributed at random, in a simulation of
//! several nodes: all nodes, workers and messages in one thread, in an order that a seed decides, with and without
//! misfortune.
//!
//! Results are right, and all runs end: where a node is lost, the others have the right result or an error. 100 seeds;
//! for more, `MANIPLE_TESTS_COUNT=5000 cargo test --release -p maniple-tests --test integration -- simulated_tensors`.
//! A failure names its seed, and `MANIPLE_TESTS_SEED` runs that one.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use maniple::machine::NodeId;
use maniple::mapper::{Mapper, RandomMapper};
use maniple::net::loopback::Network;
use maniple::record::check;
use maniple::simulation::Simulation;
use maniple::{Context, Machine, Runtime};
use maniple_tensor::distributed::{
    Computation as Distributed, DistributedError, Tensor, TensorMapper, assemble, check_placement,
};
use maniple_tensor::element::ElementType;
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::lower::Output;
use maniple_tensor::machine::Machine as Processors;
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::placement::Placement;
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Command;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::SparseTensor;
use maniple_tests::trial::{Faults, Misfortune};
use maniple_tests::watch::silence_planned_panics;

use crate::random::{Problem, command, positions, size};
use crate::sparse_placements::FORMATS;
use crate::sparse_tensors::random_statements::elements;

/// Blocks that loops go through as they are stored, besides [all kinds of levels](FORMATS).
const BLOCKS: [&str; 4] = [
    "bcsr:2x2",
    "(i,j) -> (j/3: D, i: D, j%3: C)",
    "(i,j) -> (i/2: C, j/2: C, i%2: D, j%2: D)",
    "(i,j) -> (j/2: D, i/2: D, j%2: D, i%2: C)",
];

/// Placements of tensors of one, two and three dimensions.
const PLACEMENTS: [&[&str]; 3] = [
    &["x -> x", "x -> ~x", "x -> *", "x -> cyclic(x, 2)"],
    &["xy -> x", "xy -> y", "xy -> ~y", "xy -> f : ~f", "xy -> cyclic(y, 1)", "xy -> cyclic(x, 2)", "xy -> *"],
    &["xyz -> x", "xyz -> z", "xyz -> ~z", "xyz -> f : ~f", "xyz -> cyclic(y, 1)"],
];

/// Elements that are not zero, by coordinates.
type Elements = BTreeMap<Vec<i64>, i64>;

/// A statement as a plan, its operands, and what it gives.
struct Case {
    nodes: usize,
    about: String,
    plan: Plan,
    declared: TensorVariable,
    /// As the plan calls them, and as they are stored where loops use them; and what each has, by its name in the
    /// statement.
    operands: Vec<(TensorVariable, TensorVariable)>,
    given: BTreeMap<String, (Arc<SparseTensor<i64>>, Option<Placement>)>,
    expected: Elements,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        loop {
            if let Some(case) = Self::drawn(seed, &mut random) {
                return case;
            }
        }
    }

    fn drawn(seed: u64, random: &mut Rng) -> Option<Self> {
        let problem = Problem::of(ElementType::I64, random);
        let variables = problem.assignment.tensors().into_iter().map(|variable| {
            let formats = match variable.order() {
                2 if random.u8(..4) == 0 => Some(&BLOCKS[..]),
                order => order.checked_sub(1).and_then(|at| FORMATS.get(at)).copied(),
            };
            match formats.filter(|_| random.u8(..3) > 0) {
                Some(formats) => variable.stored(formats[random.usize(..formats.len())].parse().unwrap()),
                None => variable,
            }
        });
        let variables: Vec<TensorVariable> = variables.collect();
        let assignment = parse(&problem.assignment.to_string(), &variables).ok()?;
        let declared = assignment.left().tensor.clone();
        let own = Computation::new(&assignment).ok()?;
        // The old elements of what is not dense are an operand.
        let computation = own.with_old_elements().ok()?;
        let computation = match computation.by_entries().ok()? {
            Some(entries) if random.bool() => entries,
            _ => computation,
        };
        // Levels that count are made by packing alone.
        if declared.format().to_string().contains('#') {
            return None;
        }
        let forms = if declared.format().is_dense() { Vec::new() } else { computation.assembled() };
        let computation = match forms.get(random.usize(..3)).map(|format| computation.storing(format)) {
            Some(Ok(other)) => other,
            _ => computation,
        };
        let nodes = 1 + seed as usize % 5;
        let grid: Vec<i64> = (0..random.usize(1..3)).map(|_| random.i64(1..5)).collect();
        let (statement, computation) = match random.u8(..4) {
            0 => {
                let mut statement = computation.statement().clone();
                let mut commands = positions(&statement, random);
                commands.retain(|command| !matches!(command, Command::Parallelize { .. }));
                let last = commands.iter().rposition(|command| matches!(command, Command::Pos { .. }))?;
                let Command::Pos { position, .. } = commands[last].clone() else { return None };
                for command in &commands[..=last] {
                    statement = command.apply(&statement).ok()?;
                }
                let statement = statement.divide(position, "po", "pi", random.i64(1..6)).ok()?;
                (statement.distribute_loops(["po"]).ok()?, computation)
            }
            _ => {
                let on_grid = computation.on_grid(&grid).ok()?;
                let mut statement = on_grid.statement().clone();
                for _ in 0..random.usize(..4) {
                    let Some(command) = command(&statement, random) else { break };
                    if let Ok(changed) = command.apply(&statement)
                        && size(&changed) < 10_000.0
                    {
                        statement = changed;
                    }
                }
                (statement, on_grid)
            }
        };
        let plan = Plan::new(&statement).ok()?;
        if plan.order().steps() * plan.order().points() > 40 || plan.launches().is_empty() {
            return None;
        }
        let machine: Processors = nodes.to_string().parse().unwrap();
        let mut given = BTreeMap::new();
        for variable in assignment.tensors() {
            let stored = Arc::new(elements(&problem, &variable, random));
            let placements = variable.order().checked_sub(1).and_then(|at| PLACEMENTS.get(at));
            let placement = placements.filter(|_| random.bool()).map(|all| all[random.usize(..all.len())]);
            let placement: Option<Placement> = placement.map(|text| text.parse().unwrap());
            let placement = placement.filter(|one| check_placement(&variable, one, &machine).is_ok());
            given.insert(variable.name().to_owned(), (stored, placement));
        }
        let operands: Vec<(&str, &SparseTensor<i64>)> =
            given.iter().map(|(name, (stored, _))| (name.as_str(), &**stored)).collect();
        let expected = own.run_by(&operands, &Kernels::new(None, None), &Serial).ok()?;
        let used = plan.statement.operands().iter().filter(|operand| **operand != *plan.statement.result());
        let operands = used.map(|operand| (operand.clone(), computation.stored_as(operand))).collect();
        let placed: Vec<String> = given
            .iter()
            .map(|(name, (stored, placement))| {
                let placed = placement.as_ref().map_or_else(String::new, |placement| format!(" at {placement}"));
                format!("{name} as {}{placed}", stored.format())
            })
            .collect();
        let about = format!("seed {seed}: {assignment} on {nodes} nodes, {}\n{}", placed.join(", "), plan.statement);
        Some(Self { nodes, about, declared, operands, given, expected: of(&expected), plan })
    }

    /// Runs the program of a node, and gives the elements of the result.
    async fn run(&self, cx: &Context) -> Result<Elements, DistributedError> {
        let machine: Processors = cx.nodes().to_string().parse().unwrap();
        let plan = Arc::new(self.plan.clone());
        let mut tensors = Vec::new();
        for (operand, as_used) in &self.operands {
            let (stored, placement) = &self.given[as_used.name()];
            let own = as_used.with_dimensions(stored.dimensions()).stored(stored.format().clone());
            let tensor = match own.format().is_dense() {
                true => {
                    let tensor = Tensor::new(cx, &own)?;
                    tensor.write_elements(cx, stored.elements())?;
                    tensor
                }
                false => Tensor::from_sparse(cx, &own, Arc::clone(stored))?,
            };
            match placement {
                Some(placement) if own.format().is_dense() => tensor.place(cx, placement, &machine)?.await?,
                Some(placement) => tensor.place_levels(cx, placement, &machine).await?.await?,
                None => {}
            }
            tensors.push(match operand.dimensions() == as_used.dimensions() {
                true => tensor.converted(cx, operand).await?,
                false => tensor.converted(cx, as_used).await?.reshaped(operand)?,
            });
        }
        let mut all: Vec<&Tensor> = tensors.iter().collect();
        if plan.leaf().output == Output::Entries {
            let made = assemble(cx, &plan, &all).await?;
            return Ok(of(&made.converted(cx, &self.declared).await?.read_sparse(cx).await?));
        }
        let made = Tensor::for_result(cx, &plan, &all)?;
        all.insert(0, &made);
        let computation = Distributed::new(cx, &plan, &all).await?;
        for _ in 0..2 {
            if plan.statement.accumulates() {
                made.write_elements(cx, self.given[self.declared.name()].0.elements())?;
            }
            computation.launch(cx)?.await?;
        }
        Ok(match plan.pattern() {
            Some(_) => of(&made.converted(cx, &self.declared).await?.read_sparse(cx).await?),
            None => {
                let elements = made.read_elements::<i64>(cx).await?;
                of(&SparseTensor::from_elements(self.declared.dimensions(), 0, elements).unwrap())
            }
        })
    }
}

fn of(stored: &SparseTensor<i64>) -> Elements {
    let mut elements = Elements::new();
    stored.for_each(|at, value| assert!(elements.insert(at.to_vec(), value).is_none(), "{at:?} is there twice"));
    elements.retain(|_, value| *value != 0);
    elements
}

/// Runs a case in a simulation, and checks what nodes come to; gives how many turns it takes, and how many nodes had an
/// error, or what is wrong.
fn simulate(case: &Arc<Case>, seed: u64, misfortune: Misfortune) -> Result<(u64, usize), String> {
    let network = Network::seeded(case.nodes, seed, seed % 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let answers: Vec<_> = (0..case.nodes)
        .map(|node| {
            let (case, transport) = (Arc::clone(case), network.node(NodeId(node as u16)));
            simulation.thread(format!("node {node}"), move || {
                let workers = 1 + seed as usize % 2;
                let mapper = move |_: &Machine, processor: maniple::ProcessorId| -> Box<dyn Mapper> {
                    match seed % 3 {
                        0 => Box::new(RandomMapper::new(seed + 100 * node as u64 + u64::from(processor.0))),
                        _ => Box::new(TensorMapper::new()),
                    }
                };
                let builder = Runtime::builder().machine(Machine::uniform(workers as u32, 1 << 26)).workers(workers);
                let builder = builder.mapper_for(mapper).record_operations(misfortune == Misfortune::None);
                let builder = if case.nodes > 1 { builder.network(transport) } else { builder.alone() };
                let runtime = builder.build().unwrap();
                let outcome = runtime.run(async |cx| Ok(case.run(cx).await));
                let is_lawful = match misfortune {
                    Misfortune::None => {
                        check(&runtime.take_record()).map(|_| ()).map_err(|violation| violation.to_string())
                    }
                    _ => Ok(()),
                };
                match outcome {
                    Ok(Ok(elements)) => is_lawful.map(|()| elements),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(error) => Err(error.to_string()),
                }
            })
        })
        .collect();
    misfortune.befall(&mut simulation, &network, &answers);
    let wrong = |what: String| format!("{misfortune:?}: {what}\n{}", case.about);
    let report = simulation.run().map_err(|hang| wrong(hang.to_string()))?;
    let is_loss = misfortune.is_loss();
    let mut errors = 0;
    for (node, answer) in answers.iter().enumerate() {
        match answer.take() {
            Some(Ok(elements)) if elements == case.expected => {}
            Some(Ok(elements)) => return Err(wrong(format!("node {node} has {elements:?}, not {:?}", case.expected))),
            Some(Err(_)) if is_loss => errors += 1,
            Some(Err(error)) => return Err(wrong(format!("node {node}: {error}"))),
            // It was killed.
            None if is_loss => {}
            None => return Err(wrong(format!("node {node} has come to nothing"))),
        }
    }
    Ok((report.turns, errors))
}

#[test]
fn random_statements_on_simulated_nodes_are_right_or_end_with_an_error_where_a_node_is_lost() {
    silence_planned_panics();
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("MANIPLE_TESTS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MANIPLE_TESTS_COUNT").unwrap_or(100),
    };
    let (mut several, mut placed, mut errors, mut stalled) = (0, 0, 0, 0);
    let mut failures: Vec<String> = Vec::new();
    for seed in seeds.clone() {
        let case = Arc::new(Case::new(seed));
        several += usize::from(case.nodes > 1);
        placed += usize::from(case.given.values().any(|(_, placement)| placement.is_some()));
        let faults = [Faults::Stalls, Faults::Deaths, Faults::Silences][(seed / 5) as usize % 3];
        let outcome = simulate(&case, seed, Misfortune::None).and_then(|(turns, _)| match case.nodes {
            1 => Ok((0, 0)),
            nodes => simulate(&case, seed, Misfortune::drawn(faults, nodes, turns, &mut Rng::with_seed(seed))),
        });
        match outcome {
            Ok((_, lost)) => {
                stalled += usize::from(case.nodes > 1 && faults == Faults::Stalls);
                errors += usize::from(lost > 0);
            }
            Err(wrong) => failures.push(wrong),
        }
    }
    assert!(failures.is_empty(), "{} are wrong:\n{}", failures.len(), failures.join("\n\n"));
    let count = seeds.count();
    println!(
        "{count} statements, {several} on several nodes, {placed} with placements, {stalled} stalled, {errors} lost"
    );
    assert!(count < 50 || several > count / 2 && placed > count / 3 && errors > count / 10, "{errors} lost");
}
