//! Loops over threads in the leaves of plans: run by workers that have nothing else to do, with the result of one
//! thread.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use maniple::profile::{Record, Recording};
use maniple::{Context, Machine, Result, Runtime, RuntimeBuilder};
use maniple_tensor::concrete::{Statement, Substitution, Unit};
use maniple_tensor::distributed::{Computation, Tensor};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::kernel::Kernels;
use maniple_tensor::notation::{Assignment, DenseArray, IndexVariable, TensorVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Races;
use maniple_tests::nodes::{Connections, each_node};

fn assignment(text: &str, element: ElementType, extents: &[i64]) -> Assignment {
    let names = ["i", "j", "k"].map(IndexVariable::new);
    parse_with_extents(text, element, &names.into_iter().zip(extents.iter().copied()).collect::<Vec<_>>()).unwrap()
}

/// A plan with what it computes on.
struct Job {
    plan: Arc<Plan>,
    operands: BTreeMap<String, DenseArray>,
    expected: DenseArray,
}

impl Job {
    fn new(assignment: &Assignment, statement: &Statement) -> Self {
        let mut random = fastrand::Rng::with_seed(11);
        let mut array = |tensor: &TensorVariable| {
            DenseArray::from_fn(tensor.element(), tensor.dimensions(), |_| match tensor.element() {
                ElementType::I64 => Scalar::I64(random.i64(-9..10)),
                // Such that sums depend on their order.
                _ => Scalar::F64(random.f64() - 0.5),
            })
        };
        let operands: BTreeMap<String, DenseArray> =
            assignment.tensors().iter().map(|tensor| (tensor.name().to_owned(), array(tensor))).collect();
        let expected = evaluate(assignment, &operands).unwrap();
        Self { plan: Arc::new(Plan::new(statement).unwrap()), operands, expected }
    }

    /// The results of so many runs.
    async fn results(&self, cx: &Context, runs: usize) -> Result<Vec<DenseArray>> {
        let mut tensors = Vec::new();
        for variable in self.plan.statement.tensors() {
            let tensor = Tensor::new(cx, variable)?;
            tensor.write(cx, &self.operands[variable.name()])?;
            tensors.push(tensor);
        }
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        let computation = Computation::new(cx, &self.plan, &tensors).await?;
        let result = tensors.iter().find(|tensor| tensor.variable() == self.plan.statement.result()).unwrap();
        let mut results = Vec::new();
        for _ in 0..runs {
            computation.launch(cx)?.await?;
            results.push(result.read(cx).await?);
        }
        Ok(results)
    }

    /// Runs often, and compares; tells in how many loops another worker took part.
    fn helped(&self, name: &str) -> usize {
        let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let runtime = Runtime::builder().workers(2).profile(&profile).build().unwrap();
        let results = runtime.run(async |cx| self.results(cx, 50).await).unwrap();
        assert!(results.iter().all(|result| *result == self.expected), "{}", self.plan);
        drop(runtime);
        let recording = Recording::read(&profile).unwrap();
        let is_part = |record: &&Record| match record {
            Record::Span { tag, .. } => recording.label(tag.label).is_some_and(|label| label.name == "part of a loop"),
            _ => false,
        };
        recording.threads.iter().flat_map(|thread| &thread.records).filter(is_part).count()
    }
}

/// Rows times a vector, the rows dealt to threads.
fn rows(extents: &[i64]) -> Job {
    let assignment = assignment("a(i) = B(i,k) * c(k)", ElementType::I64, extents);
    let statement = Statement::new(&assignment).parallelize("i", Unit::Threads, Races::Forbidden).unwrap();
    Job::new(&assignment, &statement)
}

#[test]
fn idle_workers_take_part_in_a_loop_over_threads() {
    // Without a compiler there are no threads.
    let job = rows(&[64, 1, 8192]);
    let is_compiled = Kernels::shared().get(&job.plan.leaf().kernel).unwrap().is_compiled();
    assert!(!is_compiled || (0..20).any(|_| job.helped("rows.mprof") > 0));
}

#[test]
fn idle_workers_take_part_in_a_matrix_product() {
    let assignment = assignment("A(i,j) = B(i,k) * C(k,j)", ElementType::I64, &[64, 64, 64]);
    let statement = Statement::new(&assignment).substitute(["i", "j", "k"], Substitution::GEMM).unwrap();
    let job = Job::new(&assignment, &statement);
    assert!((0..20).any(|_| job.helped("product.mprof") > 0));
}

#[test]
fn a_loop_is_not_cut_where_points_give_all_workers_something_to_do() {
    let assignment = assignment("A(i,j) = B(i,k) * C(k,j)", ElementType::I64, &[64, 64, 64]);
    let statement = Statement::new(&assignment)
        .distribute(["i"], ["io"], ["ii"], &[2])
        .and_then(|statement| statement.substitute(["ii", "j", "k"], Substitution::GEMM))
        .unwrap();
    assert_eq!(Job::new(&assignment, &statement).helped("points.mprof"), 0);
}

/// The results of ten runs each, on so many nodes with so many workers each.
fn on(nodes: usize, workers: usize, job: &Job) -> Vec<DenseArray> {
    let builder = |workers| -> RuntimeBuilder {
        Runtime::builder().machine(Machine::uniform(workers as u32, 1 << 26)).workers(workers)
    };
    if nodes == 1 {
        return builder(workers).build().unwrap().run(async |cx| job.results(cx, 10).await).unwrap();
    }
    let connections = Connections::new(nodes);
    let results = each_node(nodes, |node| {
        let runtime = builder(workers).network(connections.node(node)).build().unwrap();
        runtime.run(async |cx| job.results(cx, 10).await).unwrap()
    });
    results.into_iter().flatten().collect()
}

#[test]
fn the_result_is_that_of_one_thread_on_any_nodes_and_workers() {
    let assignment = assignment("a(i) = B(i,k) * c(k)", ElementType::I64, &[37, 1, 41]);
    let statement = Statement::new(&assignment);
    let alone = statement.parallelize("i", Unit::Threads, Races::Forbidden).unwrap();
    let shared = statement
        .distribute(["i"], ["io"], ["ii"], &[2])
        .and_then(|statement| statement.parallelize("ii", Unit::Threads, Races::Forbidden))
        .unwrap();
    for statement in [alone, shared] {
        let job = Job::new(&assignment, &statement);
        for (nodes, workers) in [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)] {
            let results = on(nodes, workers, &job);
            assert!(results.iter().all(|result| *result == job.expected), "{nodes} nodes of {workers}: {}", job.plan);
        }
    }
}

#[test]
fn a_sum_by_threads_is_the_same_on_every_run() {
    let assignment = assignment("a = B(i,k) * C(i,k)", ElementType::F64, &[50, 1, 300]);
    let statement = Statement::new(&assignment).parallelize("i", Unit::Threads, Races::Reduced).unwrap();
    let job = Job::new(&assignment, &statement);
    let results: Vec<DenseArray> = (0..5).flat_map(|_| on(1, 3, &job)).collect();
    assert!(results.iter().all(|result| *result == results[0]));
}
