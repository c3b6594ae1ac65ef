//! Statements block by block, as `--split`, `--order`, `--extend` and `--map` have them: which node has which block,
//! what waits for what, what moves, and what is given up.

use std::collections::BTreeSet;
use std::sync::Arc;

use maniple::mapper::Sharding;
use maniple::record::{Kind, OperationNumber, Record};
use maniple::{Context, Result, Runtime};
use maniple_tensor::distributed::{Computation as Distributed, Tensor};
use maniple_tensor::notation::{Assignment, TensorVariable};
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::{assignment, tensor};

/// The rows and columns of the matrix.
const EXTENTS: [i64; 2] = [400, 300];

/// A product of a matrix and a vector in so many blocks of rows and of columns: those of `points` at the same time, and
/// others one after the other.
fn plan([rows, columns]: [i64; 2], points: &[&str]) -> Arc<Plan> {
    let product = product();
    let steps: Vec<&str> = ["jb", "ib"].into_iter().filter(|block| !points.contains(block)).collect();
    let order = [points, &steps, &["ii", "ji"]].concat().join(", ");
    let split = format!("divide(i, ib, ii, {rows}); divide(j, jb, ji, {columns}); reorder({{{order}}})");
    let communicate = steps.last().map_or_else(String::new, |step| format!("; communicate({{B, c}}, {step})"));
    let text = format!("{split}; distribute({{{}}}){communicate}", points.join(", "));
    let schedule = Schedule::parse(&text, &product.tensors()).unwrap();
    let loops = Computation::new(&product).unwrap();
    Arc::new(Plan::new(&schedule.apply(loops.statement()).unwrap()).unwrap())
}

fn product() -> Assignment {
    let [rows, columns] = EXTENTS;
    let tensors: [(&str, &str, &[i64]); 3] =
        [("a", "dense", &[rows]), ("B", "csr", &EXTENTS), ("c", "dense", &[columns])];
    assignment("a(i) = B(i,j) * c(j)", &tensors)
}

/// The product by a plan, on tensors that are there, and its result.
struct Prepared {
    computation: Distributed,
    result: Tensor,
}

impl Prepared {
    async fn new(cx: &Context, plan: &Arc<Plan>) -> Result<Self> {
        let [a, b, c] = variables();
        let (result, operand) = (Tensor::new(cx, &a)?, Tensor::new(cx, &c)?);
        operand.write_elements(cx, tensor(&c, 1).elements())?;
        let matrix = Tensor::from_sparse(cx, &b, tensor(&b, 3))?;
        let computation = Distributed::new(cx, plan, &[&result, &matrix, &operand]).await?;
        cx.execution_fence().await?;
        Ok(Self { computation, result })
    }

    /// Computes the product.
    async fn run(&self, cx: &Context) -> Result<()> {
        Ok(self.computation.launch(cx)?.await?)
    }

    /// Reads the result, and compares it with what the product is.
    async fn check(&self, cx: &Context) -> Result<()> {
        let [_, b, c] = variables();
        let (matrix, vector) = (tensor(&b, 3), tensor(&c, 1).elements());
        let mut sums = vec![0; EXTENTS[0] as usize];
        matrix.for_each(|at, value| sums[at[0] as usize] += value * vector[at[1] as usize]);
        assert_eq!(self.result.read_elements::<i64>(cx).await?, sums);
        Ok(())
    }
}

/// The result, the matrix and the vector.
fn variables() -> [TensorVariable; 3] {
    product().tensors().try_into().expect("there are three")
}

/// The record of two workers that compute the product by a plan.
fn recorded(plan: &Arc<Plan>) -> Record {
    let runtime = Runtime::builder().workers(2).tracing(false).record_operations(true).build().unwrap();
    runtime
        .run(async |cx| {
            let prepared = Prepared::new(cx, plan).await?;
            let _ = runtime.take_record();
            prepared.run(cx).await?;
            prepared.check(cx).await
        })
        .unwrap();
    runtime.take_record()
}

/// The tasks and the traffic of a node when the product is computed again.
struct Again {
    tasks: u64,
    /// The bytes that it has sent before the result was read, and then.
    sent: [u64; 2],
}

/// The tasks and the traffic of each node when the product is computed again by a plan.
fn again(job: Nodes, plan: &Arc<Plan>) -> Vec<Again> {
    let done = on_nodes(job, async |cx, runtime| {
        let prepared = Prepared::new(cx, plan).await?;
        prepared.run(cx).await?;
        cx.execution_fence().await?;
        let before = runtime.statistics();
        prepared.run(cx).await?;
        cx.execution_fence().await?;
        let after = runtime.statistics();
        prepared.check(cx).await?;
        let sent = [after.parcel_bytes_sent, runtime.statistics().parcel_bytes_sent];
        Ok(Again { tasks: after.tasks - before.tasks, sent: sent.map(|sent| sent - before.parcel_bytes_sent) })
    });
    done.into_iter().map(|again| again.unwrap()).collect()
}

/// The tasks that compute blocks in a record, in program order, with the number of each one's point.
fn kernels(record: &Record) -> Vec<(OperationNumber, u64)> {
    let of_kernel = |kind: &Kind| match kind {
        Kind::Task(task) if task.name == "a" && task.point.is_some() => Some(task.place.index),
        _ => None,
    };
    record.numbered().filter_map(|(number, operation)| Some((number, of_kernel(&operation.kind)?))).collect()
}

/// All that an operation came after, however indirectly.
fn before(record: &Record, operation: OperationNumber) -> BTreeSet<OperationNumber> {
    let (mut found, mut open) = (BTreeSet::new(), vec![operation]);
    while let Some(next) = open.pop() {
        for &earlier in record.operation(next).into_iter().flat_map(|operation| &operation.after) {
            if found.insert(earlier) {
                open.push(earlier);
            }
        }
    }
    found
}

#[test]
fn kernels_of_a_block_of_the_result_follow_each_other_and_wait_for_no_other_block() {
    let (rows, columns) = (4, 3);
    let record = recorded(&plan([rows, columns], &["ib"]));
    let kernels = kernels(&record);
    assert_eq!(kernels.len() as i64, rows * columns);
    for (later, (kernel, block)) in kernels.iter().enumerate() {
        let before = before(&record, *kernel);
        for (earlier, other) in &kernels[..later] {
            assert_eq!(before.contains(earlier), block == other, "blocks {other} and {block}");
        }
    }
}

#[test]
fn partial_results_are_computed_by_all_workers_at_the_same_time() {
    let record = recorded(&plan([2, 6], &["ib", "jb"]));
    let kernels = kernels(&record);
    assert_eq!(kernels.len(), 12);
    for (later, (kernel, point)) in kernels.iter().enumerate() {
        let before = before(&record, *kernel);
        // There is a buffer for each worker, and what comes next uses one again.
        let (block, neighbour) = (point / 6, later.checked_sub(1));
        let waits = (0..later).filter(|earlier| before.contains(&kernels[*earlier].0));
        let expected = (0..later).filter(|earlier| kernels[*earlier].1 / 6 == block && Some(*earlier) != neighbour);
        let (waits, most): (BTreeSet<_>, BTreeSet<_>) = (waits.collect(), expected.collect());
        assert!(waits.is_subset(&most), "{point} waits for {waits:?}");
    }
}

#[test]
fn each_node_runs_the_kernels_of_the_blocks_that_are_dealt_to_it_in_all_steps() {
    let around: fn(usize, &maniple::mapper::TaskInfo<'_>, usize) -> Sharding = |_, _, _| Sharding::Cyclic;
    let blocked: fn(usize, &maniple::mapper::TaskInfo<'_>, usize) -> Sharding = |_, _, _| Sharding::Blocked;
    for (nodes, blocks, steps) in [(2, 8, 3), (3, 7, 2), (3, 2, 4)] {
        for (sharding, is_cyclic) in [(around, true), (blocked, false)] {
            let plan = plan([blocks, steps], &["ib"]);
            let done = again(Nodes::new(nodes).dealt(sharding), &plan);
            for (node, Again { tasks, sent: [moved, _] }) in done.into_iter().enumerate() {
                let (own, rest) = (tasks as i64 / steps, tasks as i64 % steps);
                let around = (0..blocks).filter(|block| *block as usize % nodes == node).count() as i64;
                let equal = blocks / nodes as i64..=(blocks + nodes as i64 - 1) / nodes as i64;
                let is_own = if is_cyclic { own == around } else { equal.contains(&own) };
                assert!(is_own && rest == 0, "{tasks} kernels of {blocks} blocks on node {node} of {nodes}");
                assert_eq!(moved, 0, "blocks stay where they are computed");
            }
        }
    }
}

#[test]
fn contributions_of_a_node_are_added_up_before_they_go_to_others() {
    let moved = |nodes: usize, columns: i64| {
        let plan = plan([1, columns], &["jb"]);
        again(Nodes::new(nodes), &plan).into_iter().map(|again| again.sent[1]).sum::<u64>()
    };
    for nodes in [2, 3] {
        let few = moved(nodes, nodes as i64);
        // Each node has all of the result in the end: it gets one contribution, at most, of each other.
        let most = (nodes * (nodes - 1)) as u64 * 8 * EXTENTS[0] as u64;
        assert!(few > 0 && few <= most, "{few} of {most} bytes on {nodes} nodes");
        assert_eq!(moved(nodes, 8 * nodes as i64), few, "{nodes} nodes");
    }
}

#[test]
fn what_was_added_up_is_given_up() {
    let memory = |runtime: &Runtime| {
        let memories = runtime.memories();
        let sum = |of: fn(&maniple::MemoryStatistics) -> u64| memories.iter().map(of).sum::<u64>();
        (sum(|memory| memory.used), sum(|memory| memory.peak))
    };
    let result_bytes = 8 * EXTENTS[0] as u64;
    let run = |points: &[&str], columns: i64| {
        let plan = plan([4, columns], points);
        let runtime = Runtime::builder().workers(2).build().unwrap();
        runtime
            .run(async |cx| {
                let prepared = Prepared::new(cx, &plan).await?;
                let mut found = Vec::new();
                for _ in 0..4 {
                    runtime.reset_peaks();
                    prepared.run(cx).await?;
                    prepared.check(cx).await?;
                    cx.execution_fence().await?;
                    found.push(memory(&runtime));
                }
                Ok(found)
            })
            .unwrap()
    };
    // Steps take no room, however many there are; nor do further runs.
    let (few, many) = (run(&["ib"], 2), run(&["ib"], 50));
    assert!(many[3].1 <= few[3].1 + result_bytes / 2, "{few:?} {many:?}");
    // Partial results do, until they are added up, and no more in further runs.
    let extended = run(&["ib", "jb"], 50);
    assert!(extended.iter().all(|(_, peak)| *peak <= few[3].1 + 51 * result_bytes), "{extended:?} {few:?}");
    assert!(extended[3].0 <= extended[1].0, "{extended:?}");
}
