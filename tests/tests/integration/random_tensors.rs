//! Random assignments with random schedules, and with schedules that are chosen: sequentially, and on the runtime on
//! one node and several, the result is that of the definition.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::random::{Problem, fused, nested, same, schedule};
use fastrand::Rng;
use maniple::{Error, Result};
use maniple_tensor::choose::choose;
use maniple_tensor::concrete::{Statement, Unit};
use maniple_tensor::cost::Rates;
use maniple_tensor::distributed::{Computation, DistributedError, Tensor, compute};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::notation::{DenseArray, IndexVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::{Graph, Plan};
use maniple_tensor::program::Program;
use maniple_tensor::schedule::Races;
use maniple_tests::nodes::{Nodes, on_nodes};

/// Elements that hold small whole numbers, and sums and products of some, exactly, and infinities and NaNs.
const ELEMENTS: [ElementType; 4] = [ElementType::I64, ElementType::F64, ElementType::I32, ElementType::C64];

/// A problem, a plan for it, and the right result.
struct Case {
    seed: u64,
    problem: Problem,
    plan: Arc<Plan>,
    expected: DenseArray,
}

impl Case {
    /// A random schedule, which is distributed as often as not.
    fn scheduled(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let element = ELEMENTS[seed as usize % 4];
        loop {
            let problem = Problem::of(element, &mut random);
            let (statement, _) = schedule(&problem.assignment, &mut random);
            let Ok(plan) = Plan::new(&statement) else { continue };
            let tasks = plan.order().steps() * plan.order().points();
            if tasks > 200 || plan.launches().is_empty() && random.bool() {
                continue;
            }
            return Self::new(seed, problem, plan);
        }
    }

    /// Blocks of fused loops, or launches in launches.
    fn special(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        loop {
            let problem = Problem::of(ELEMENTS[seed as usize % 4], &mut random);
            let make = if seed.is_multiple_of(2) { fused } else { nested };
            let Some(statement) = make(&problem.assignment, &mut random) else { continue };
            let Ok(plan) = Plan::new(&statement) else { continue };
            if plan.order().steps() * plan.order().points() <= 200 {
                return Self::new(seed, problem, plan);
            }
        }
    }

    /// The schedule that is chosen for so many processors as the seed says.
    fn chosen(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::of(ELEMENTS[seed as usize % 4], &mut random);
        // Most are distributed if that costs nothing.
        let rates = Rates { launch: 0.0, latency: 0.0, network: 1e12, ..Rates::default() };
        let processors = if seed.is_multiple_of(5) { 64 } else { 1 + seed as usize % 12 };
        let plan = choose(&problem.assignment, processors, &rates).best().plan.clone();
        Self::new(seed, problem, plan)
    }

    fn new(seed: u64, problem: Problem, plan: Plan) -> Self {
        let expected = evaluate(&problem.assignment, &problem.operands).unwrap();
        let (found, _) =
            plan.run_sequentially(&problem.operands).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{plan}"));
        assert!(
            same(&found, &expected),
            "seed {seed}: {found:?}, not {expected:?}\n{}\n{}\n{plan}",
            problem.assignment,
            plan.statement
        );
        Self { seed, problem, plan: Arc::new(plan), expected }
    }
}

fn told(error: DistributedError) -> Error {
    match error {
        DistributedError::Runtime(error) => error,
        other => Error::from_task(other),
    }
}

/// Runs all cases on so many nodes.
fn agree(nodes: usize, cases: &[Case]) {
    let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
        for Case { seed, problem, plan, expected } in cases {
            let mut tensors = Vec::new();
            for variable in plan.statement.tensors() {
                let tensor = Tensor::new(cx, variable).map_err(told)?;
                tensor.write(cx, &problem.operands[variable.name()]).map_err(told)?;
                tensors.push(tensor);
            }
            let tensors: Vec<&Tensor> = tensors.iter().collect();
            let done = compute(cx, plan, &tensors).await.map_err(told)?;
            let found = tensors[0].read(cx).await.map_err(told)?;
            let shown = || format!("{}\n{}\n{plan}", problem.assignment, plan.statement);
            assert!(same(&found, expected), "seed {seed} on {nodes} nodes: {found:?}, not {expected:?}\n{}", shown());
            done.await?;
        }
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn random_schedules_on_one_node() {
    let cases: Vec<Case> = (0..200).map(Case::scheduled).collect();
    let distributed = cases.iter().filter(|case| !case.plan.launches().is_empty()).count();
    assert!(distributed > 75, "{distributed}");
    agree(1, &cases);
}

#[test]
fn random_schedules_on_several_nodes() {
    for nodes in 2..=4 {
        let cases: Vec<Case> = (0..200).filter(|seed| seed % 3 + 2 == nodes).map(Case::scheduled).collect();
        agree(nodes as usize, &cases);
    }
}

#[test]
fn fused_and_nested_launches_on_one_node_and_several() {
    for nodes in 1..=4 {
        let cases: Vec<Case> = (2000..2160).filter(|seed| seed / 2 % 4 + 1 == nodes).map(Case::special).collect();
        agree(nodes as usize, &cases);
    }
}

/// The plans of a program's statements, by random schedules.
fn plans(program: &Program, random: &mut Rng) -> Vec<Arc<Plan>> {
    let plan = |statement| loop {
        let scheduled = match random.u8(..3) {
            0 => Some(schedule(statement, random).0),
            1 => fused(statement, random),
            _ => nested(statement, random),
        };
        if let Some(Ok(plan)) = scheduled.map(|scheduled| Plan::new(&scheduled))
            && plan.order().steps() * plan.order().points() <= 100
        {
            return Arc::new(plan);
        }
    };
    program.statements().iter().map(plan).collect()
}

#[test]
fn programs_on_one_node_and_several() {
    let texts = [
        "T(i,k) = B(i,j) * C(j,k); A(i,k) = T(i,k) + B(i,k); s = A(i,k) * T(i,k)",
        "A(i,j) = B(i,j) + C(i,j); B(j,i) = A(i,j); A(i,j) += B(i,j)",
        "y(i) = reduce(max, j, B(i,j)); y(i) += x(i); z = y(i) * x(i); B(i,j) = z * y(j)",
    ];
    for nodes in 1..=3 {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
            for (seed, text) in (0..8).flat_map(|seed| texts.map(|text| (seed, text))) {
                let mut random = Rng::with_seed(seed * 4 + nodes as u64);
                let n = random.i64(1..9);
                let extents: Vec<_> = ["i", "j", "k"].map(|name| (IndexVariable::new(name), n)).into();
                let program = Program::parse_with_extents(text, ElementType::I64, &extents).unwrap();
                let mut operands = BTreeMap::new();
                for tensor in program.inputs() {
                    let value = |_: &[i64]| Scalar::I64(random.i64(-4..5));
                    let array = DenseArray::from_fn(ElementType::I64, tensor.dimensions(), value);
                    operands.insert(tensor.name().to_owned(), array);
                }
                let (expected, plans) = (program.evaluate(&operands).unwrap(), plans(&program, &mut random));
                let mut tensors = Vec::new();
                for variable in program.tensors() {
                    let tensor = Tensor::new(cx, &variable).map_err(told)?;
                    if let Some(array) = operands.get(variable.name()) {
                        tensor.write(cx, array).map_err(told)?;
                    }
                    tensors.push(tensor);
                }
                let computation =
                    Computation::in_order(cx, &plans, &tensors.iter().collect::<Vec<_>>()).await.map_err(told)?;
                let done = computation.launch(cx).map_err(told)?;
                for tensor in &tensors {
                    let (found, name) = (tensor.read(cx).await.map_err(told)?, tensor.variable().name());
                    assert_eq!(
                        found,
                        expected[name],
                        "{name} of {text}, seed {seed} on {nodes} nodes\n{}\n{}",
                        Graph::new(&plans),
                        plans.iter().map(|plan| plan.statement.to_string()).collect::<String>()
                    );
                }
                done.await?;
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn chosen_schedules_on_one_node_and_several() {
    for nodes in 1..=4 {
        let cases: Vec<Case> = (1000..1100).filter(|seed| seed % 4 + 1 == nodes).map(Case::chosen).collect();
        agree(nodes as usize, &cases);
    }
}

/// Every length up to 40, cut for every number of processors up to so many, with a NaN in every place.
#[test]
fn a_nan_is_the_least_and_greatest_on_any_grid() {
    for nodes in [1, 2] {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
            for length in 1..=40_i64 {
                let (text, minimum) = match length % 2 {
                    0 => ("a = reduce(max, j, B(j))", false),
                    _ => ("a = reduce(min, j, B(j))", true),
                };
                let extents = [(IndexVariable::new("j"), length)];
                let assignment = parse_with_extents(text, ElementType::F64, &extents).unwrap();
                let grid = 1 + length * 7 % 5;
                let statement = Statement::new(&assignment).distribute(["j"], ["jo"], ["ji"], &[grid]).unwrap();
                let statement = statement.parallelize("ji", Unit::Vector, Races::Reduced).unwrap();
                let plan = Arc::new(Plan::new(&statement).unwrap());
                let tensors = plan.statement.tensors().into_iter().map(|variable| Tensor::new(cx, variable));
                let tensors: Vec<Tensor> = tensors.collect::<std::result::Result<_, _>>().map_err(told)?;
                let computation =
                    Computation::new(cx, &plan, &tensors.iter().collect::<Vec<_>>()).await.map_err(told)?;
                for place in 0..=length {
                    let mut elements: Vec<f64> = (0..length).map(|number| (number * 7 % 11 - 5) as f64).collect();
                    let fold = if minimum { f64::min } else { f64::max };
                    let mut expected = elements.iter().copied().reduce(fold).unwrap();
                    if let Some(element) = elements.get_mut(place as usize) {
                        (*element, expected) = (f64::NAN, f64::NAN);
                    }
                    tensors[1].write_elements(cx, elements).map_err(told)?;
                    computation.launch(cx).map_err(told)?.await?;
                    let found = tensors[0].read_elements::<f64>(cx).await.map_err(told)?[0];
                    assert!(
                        found == expected || found.is_nan() && expected.is_nan(),
                        "{text} of {length} on {grid}, NaN at {place}: {found}"
                    );
                }
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}
