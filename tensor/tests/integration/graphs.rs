//! Plans of several statements as one graph: every tensor is what the program means, and pieces that statements share
//! are made once.

use crate::random;
use std::collections::BTreeMap;
use std::sync::Arc;

use fastrand::Rng;
use maniple_tensor::choose::on_grid;
use maniple_tensor::concrete::Statement;
use maniple_tensor::cost::Rates;
use maniple_tensor::element::ElementType::I64;
use maniple_tensor::element::Scalar;
use maniple_tensor::notation::{DenseArray, IndexVariable};
use maniple_tensor::plan::{Graph, GraphOperation, Plan};
use maniple_tensor::program::Program;
use random::{Problem, fused, nested, schedule};

/// How many launches that run leaves, and others, a graph makes.
fn launches(graph: &Graph) -> (usize, usize) {
    let (mut leaves, mut others) = (0, 0);
    let counted = graph.run(&mut |operation, _| {
        if let GraphOperation::Launch(launching) = operation {
            *if launching.runs_leaf { &mut leaves } else { &mut others } += 1;
        }
        Ok::<_, ()>(())
    });
    counted.map(|()| (leaves, others)).unwrap()
}

#[test]
fn a_graph_of_one_plan_gives_its_result() {
    let (mut compared, mut before) = (0, 0);
    for seed in 0..600 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let statement = match seed % 3 {
            0 => Some(schedule(&problem.assignment, &mut random).0),
            1 => fused(&problem.assignment, &mut random),
            _ => nested(&problem.assignment, &mut random),
        };
        let Some(Ok(plan)) = statement.map(|statement| Plan::new(&statement)) else { continue };
        let (expected, _) = plan.run_sequentially(&problem.operands).unwrap();
        let graph = Graph::new(&[Arc::new(plan.clone())]);
        let found =
            graph.run_sequentially(&problem.operands).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{graph}"));
        assert_eq!(found[plan.statement.result().name()], expected, "seed {seed}\n{graph}\n{plan}");
        let (leaves, others) = launches(&graph);
        assert_eq!(leaves as i64, plan.order().steps(), "seed {seed}\n{graph}");
        compared += 1;
        before += usize::from(others > 0);
    }
    assert!(compared > 300 && before > 20, "{compared} {before}");
}

const PROGRAMS: [&str; 6] = [
    "T(i,k) = B(i,j) * C(j,k); A(i,k) = T(i,k) + B(i,k)",
    "A(i,j) = B(i,j) + C(i,j); B(j,i) = A(i,j); A(i,j) += B(i,j)",
    "s = B(i,j) * C(i,j); A(i,j) = s * B(i,j); y(i) = A(i,j) * x(j)",
    "A(i,k) = B(i,j) * C(j,k) + B(i,k)",
    "A(i,l) = B(i,j) * C(j,k) * D(k,l)",
    "y(i) = reduce(max, j, B(i,j)); y(i) += x(i); z = y(i) * x(i)",
];

#[test]
fn a_graph_of_several_plans_gives_all_results_of_the_program() {
    let mut random = Rng::with_seed(3);
    let mut rounds = 0;
    for text in PROGRAMS {
        for _ in 0..12 {
            let n = random.i64(1..9);
            let extents: Vec<_> =
                ["i", "j", "k", "l"].map(IndexVariable::new).into_iter().map(|name| (name, n)).collect();
            let program = Program::parse_with_extents(text, I64, &extents).unwrap().divided(&Rates::default());
            let mut array =
                |dimensions: &[i64]| DenseArray::from_fn(I64, dimensions, |_| Scalar::I64(random.i64(-4..5)));
            let mut operands: BTreeMap<String, DenseArray> = BTreeMap::new();
            for tensor in program.inputs() {
                operands.insert(tensor.name().to_owned(), array(tensor.dimensions()));
            }
            let plans: Vec<Arc<Plan>> = program
                .statements()
                .iter()
                .map(|statement| {
                    let plan = loop {
                        let scheduled = match random.u8(..3) {
                            0 => Some(schedule(statement, &mut random).0),
                            1 => fused(statement, &mut random),
                            _ => nested(statement, &mut random),
                        };
                        if let Some(Ok(plan)) = scheduled.map(|scheduled| Plan::new(&scheduled)) {
                            break plan;
                        }
                    };
                    Arc::new(plan)
                })
                .collect();
            let (graph, expected) = (Graph::new(&plans), program.evaluate(&operands).unwrap());
            let found = graph.run_sequentially(&operands).unwrap_or_else(|error| panic!("{text}: {error}\n{graph}"));
            for tensor in program.tensors() {
                assert_eq!(found[tensor.name()], expected[tensor.name()], "{text}: {tensor}\n{graph}");
            }
            rounds += 1;
        }
    }
    assert_eq!(rounds, 72);
}

#[test]
fn statements_share_the_pieces_that_both_use() {
    let extents: Vec<_> = ["i", "j", "k"].map(|name| (IndexVariable::new(name), 12)).into();
    let text = "T(i,j) = B(i,k) * C(k,j); A(i,j) = T(i,j) + B(i,j); B(k,j) = A(k,j)";
    let program = Program::parse_with_extents(text, I64, &extents).unwrap();
    let plans: Vec<Arc<Plan>> = program
        .statements()
        .iter()
        .map(|statement| Arc::new(on_grid(statement, &[2, 3], &Rates::default()).unwrap().plan))
        .collect();
    let graph = Graph::new(&plans);
    // The product's operands in rows and columns; all else in one set of tiles for each tensor, whatever the loops are
    // called.
    let of =
        |name: &str| graph.partitions.iter().filter(|partition| graph.tensors[partition.tensor].name() == name).count();
    assert_eq!(["T", "A", "C", "B"].map(of), [1, 1, 1, 2], "{graph}");
    // Tiles of another size are others.
    let other = Statement::new(&program.statements()[2]).distribute(["k"], ["ko"], ["ki"], &[2]).unwrap();
    let with = [&plans[..], &[Arc::new(Plan::new(&other).unwrap())]].concat();
    let graph = Graph::new(&with);
    assert_eq!(graph.partitions.iter().filter(|partition| graph.tensors[partition.tensor].name() == "A").count(), 2);
}
