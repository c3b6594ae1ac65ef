//! Statements block by block, as `--split`, `--order`, `--extend` and `--map` have them: which node has which block, what waits for what, what moves, and what is given up.

use std::collections::BTreeSet;
use std::sync::Arc;

use maniple::mapper::Sharding;
use maniple::record::{Kind, OperationNumber, Record};
use maniple::{Context, Result, Runtime};
use maniple_tensor::distributed::{Computation as Distributed, Tensor};
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::{assignment, tensor};

/// The rows and columns of the matrix.
const EXTENTS: [i64; 2] = [400, 300];

/// A product of a matrix and a vector in so many blocks of rows and of columns: those of `points` at the same time, and others one after the other.
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

fn product() -> maniple_tensor::notation::Assignment {
    let [rows, columns] = EXTENTS;
    let tensors: [(&str, &str, &[i64]); 3] =
        [("a", "dense", &[rows]), ("B", "csr", &EXTENTS), ("c", "dense", &[columns])];
    assignment("a(i) = B(i,j) * c(j)", &tensors)
}

/// The result, the matrix and the vector.
fn tensors(cx: &Context) -> Result<[Tensor; 3]> {
    let product = product();
    let [a, b, c] = &product.tensors()[..] else { unreachable!("there are three") };
    let (result, operand) = (Tensor::new(cx, a)?, Tensor::new(cx, c)?);
    operand.write_elements(cx, tensor(c, 1).elements())?;
    Ok([result, Tensor::from_sparse(cx, b, tensor(b, 3))?, operand])
}

/// What the product is.
fn expected() -> Vec<i64> {
    let product = product();
    let [_, b, c] = &product.tensors()[..] else { unreachable!("there are three") };
    let (matrix, vector) = (tensor(b, 3), tensor(c, 1).elements());
    let mut sums = vec![0; EXTENTS[0] as usize];
    matrix.for_each(|at, value| sums[at[0] as usize] += value * vector[at[1] as usize]);
    sums
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
    let runtime = Runtime::builder().workers(2).tracing(false).record_operations(true).build().unwrap();
    let (rows, columns) = (4, 3);
    runtime
        .run(async |cx| {
            let [result, matrix, operand] = tensors(cx)?;
            let plan = plan([rows, columns], &["ib"]);
            let computation = Distributed::new(cx, &plan, &[&result, &matrix, &operand]).await?;
            cx.execution_fence().await?;
            let _ = runtime.take_record();
            computation.launch(cx)?.await?;
            assert_eq!(result.read_elements::<i64>(cx).await?, expected());
            Ok(())
        })
        .unwrap();
    let record = runtime.take_record();
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
    let runtime = Runtime::builder().workers(2).tracing(false).record_operations(true).build().unwrap();
    runtime
        .run(async |cx| {
            let [result, matrix, operand] = tensors(cx)?;
            let computation = Distributed::new(cx, &plan([2, 6], &["ib", "jb"]), &[&result, &matrix, &operand]).await?;
            cx.execution_fence().await?;
            let _ = runtime.take_record();
            computation.launch(cx)?.await?;
            assert_eq!(result.read_elements::<i64>(cx).await?, expected());
            Ok(())
        })
        .unwrap();
    let record = runtime.take_record();
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
            let done = on_nodes(Nodes::new(nodes).dealt(sharding), async |cx, runtime| {
                let [result, matrix, operand] = tensors(cx)?;
                let computation = Distributed::new(cx, &plan, &[&result, &matrix, &operand]).await?;
                computation.launch(cx)?.await?;
                cx.execution_fence().await?;
                let before = runtime.statistics();
                computation.launch(cx)?.await?;
                cx.execution_fence().await?;
                let after = runtime.statistics();
                let moved = after.parcel_bytes_sent - before.parcel_bytes_sent;
                assert_eq!(result.read_elements::<i64>(cx).await?, expected());
                Ok((after.tasks - before.tasks, moved))
            });
            for (node, found) in done.into_iter().enumerate() {
                let (tasks, moved) = found.unwrap();
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
        let done = on_nodes(Nodes::new(nodes), async |cx, runtime| {
            let [result, matrix, operand] = tensors(cx)?;
            let computation = Distributed::new(cx, &plan, &[&result, &matrix, &operand]).await?;
            computation.launch(cx)?.await?;
            cx.execution_fence().await?;
            let before = runtime.statistics().parcel_bytes_sent;
            computation.launch(cx)?.await?;
            let found = result.read_elements::<i64>(cx).await?;
            assert_eq!(found, expected());
            Ok(runtime.statistics().parcel_bytes_sent - before)
        });
        done.into_iter().map(|sent| sent.unwrap()).sum::<u64>()
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
                let [result, matrix, operand] = tensors(cx)?;
                let computation = Distributed::new(cx, &plan, &[&result, &matrix, &operand]).await?;
                cx.execution_fence().await?;
                let mut found = Vec::new();
                for _ in 0..4 {
                    runtime.reset_peaks();
                    computation.launch(cx)?.await?;
                    assert_eq!(result.read_elements::<i64>(cx).await?, expected());
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
