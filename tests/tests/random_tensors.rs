//! Random assignments with random schedules, and with schedules that are chosen: sequentially, and on the runtime on one node and several, the result is that of
//! the definition.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

#[path = "../../tensor/tests/random/mod.rs"]
mod random;

use std::sync::Arc;

use fastrand::Rng;
use maniple::{Error, Result};
use maniple_tensor::choose::choose;
use maniple_tensor::cost::Rates;
use maniple_tensor::distributed::{DistributedError, Tensor, compute};
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::{DenseArray, evaluate};
use maniple_tensor::plan::Plan;
use maniple_tests::nodes::{Nodes, on_nodes};
use random::{Problem, schedule};

/// Elements that hold small whole numbers, and sums and products of some, exactly.
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

    /// The schedule that is chosen for so many processors as the seed says.
    fn chosen(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::of(ELEMENTS[seed as usize % 4], &mut random);
        // Most are distributed if that costs nothing.
        let rates = Rates { launch: 0.0, latency: 0.0, network: 1e12, ..Rates::default() };
        let plan = choose(&problem.assignment, 1 + seed as usize % 12, &rates).best().plan.clone();
        Self::new(seed, problem, plan)
    }

    fn new(seed: u64, problem: Problem, plan: Plan) -> Self {
        let expected = evaluate(&problem.assignment, &problem.operands).unwrap();
        let (found, _) =
            plan.run_sequentially(&problem.operands).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{plan}"));
        assert_eq!(found, expected, "seed {seed}: {}\n{}\n{plan}", problem.assignment, plan.statement);
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
            let done = compute(cx, plan, &tensors).map_err(told)?;
            let found = tensors[0].read(cx).await.map_err(told)?;
            let shown = || format!("{}\n{}\n{plan}", problem.assignment, plan.statement);
            assert!(found == *expected, "seed {seed} on {nodes} nodes: {found:?}, not {expected:?}\n{}", shown());
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
    assert!(distributed > 100, "{distributed}");
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
fn chosen_schedules_on_one_node_and_several() {
    for nodes in 1..=4 {
        let cases: Vec<Case> = (1000..1100).filter(|seed| seed % 4 + 1 == nodes).map(Case::chosen).collect();
        agree(nodes as usize, &cases);
    }
}
