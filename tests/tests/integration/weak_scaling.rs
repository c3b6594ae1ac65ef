//! The circuit, and products of a sparse matrix, one piece a node: what a node does in a step is the same on 16 nodes
//! and on many more. `nodes.rs` has a stencil.
//!
//! Many are 256, or as many as `MANIPLE_MANY_NODES` says. 1,024 take a minute or two and 6 GB, as each node finds out
//! once which of all others it exchanges what with.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::{Result, Runtime};
use maniple_tensor::distributed::{Computation as Distributed, Tensor};
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::circuit::Circuit;
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::assignment;

/// The work of a node: launches, visits of the analysis, parcels, frames.
type Work = [u64; 4];

fn work(runtime: &Runtime, network: &Network) -> Work {
    let (done, sent) = (runtime.statistics(), network.traffic(NodeId(runtime.node() as u16)));
    [done.launches, done.logical_visits, done.parcels_sent, sent.frames]
}

/// The work of the busiest node, from the counts of each node before and after.
fn busiest(nodes: impl IntoIterator<Item = [Work; 2]>) -> Work {
    let done = nodes.into_iter().map(|[before, after]| std::array::from_fn(|count| after[count] - before[count]));
    done.reduce(|most: Work, one| std::array::from_fn(|count| most[count].max(one[count]))).unwrap()
}

/// Checks that on many nodes the busiest one does not do more than on 16.
fn does_not_grow(few: Work, many: Work, nodes: usize) {
    println!("launches, visits, parcels, frames: {few:?} on 16 nodes, {many:?} on {nodes}");
    for (few, many) in few.into_iter().zip(many) {
        assert!(few > 0 && many <= 2 * few, "{many} on {nodes} nodes, {few} on 16");
    }
}

/// The work of the busiest of so many nodes, each with one piece, in ten steps, once all is known, and the result of
/// the circuit.
fn work_of_steps(nodes: usize) -> (Work, i64) {
    let network = Network::seeded(nodes, nodes as u64, 10);
    let job = Nodes::over_loopback(nodes, &network);
    let outcomes = on_nodes(job, async |cx, runtime| {
        let circuit = Circuit::new(cx, nodes)?;
        for _ in 0..3 {
            circuit.step(cx, nodes);
        }
        cx.execution_fence().await?;
        let before = work(runtime, &network);
        for _ in 0..9 {
            circuit.step(cx, nodes);
        }
        let last = circuit.step(cx, nodes);
        cx.execution_fence().await?;
        let after = work(runtime, &network);
        Ok(([before, after], last.reduce(Sum).await?))
    });
    let (work, sums): (Vec<[Work; 2]>, Vec<i64>) = outcomes.into_iter().map(Result::unwrap).unzip();
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    (busiest(work), sums[0])
}

/// The result of the circuit on one node.
fn expected(pieces: usize) -> i64 {
    let outcome = on_nodes(Nodes::new(1), async |cx, _| {
        let circuit = Circuit::new(cx, pieces)?;
        for _ in 0..12 {
            circuit.step(cx, pieces);
        }
        circuit.step(cx, pieces).reduce(Sum).await
    });
    outcome.into_iter().next().unwrap().unwrap()
}

/// How many nodes many are, and what keeps them the only such job: there is memory for one.
fn many_nodes() -> (usize, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let many = std::env::var("MANIPLE_MANY_NODES");
    let many = many.map_or(256, |many| many.parse().expect("MANIPLE_MANY_NODES is a number"));
    (many, ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn what_a_node_does_in_a_step_of_the_circuit_does_not_grow_with_the_number_of_nodes() {
    let (nodes, _alone) = many_nodes();
    let ((few, sum_of_few), (many, sum_of_many)) = (work_of_steps(16), work_of_steps(nodes));
    assert_eq!((sum_of_few, sum_of_many), (expected(16), expected(nodes)), "what the circuit comes to");
    does_not_grow(few, many, nodes);
}

/// A matrix with so many rows for each node: each names all columns of its node, and one of each neighbour.
fn blocks(nodes: i64, rows: i64) -> SparseTensor<i64> {
    let (all, mut entries) = (nodes * rows, EntryList::new(2));
    for row in 0..all {
        let first = row / rows * rows;
        let named = (first - 1).max(0)..(first + rows + 1).min(all);
        named.for_each(|column| entries.push(&[row, column], (row + column) % 3 - 1));
    }
    pack(&"csr".parse().unwrap(), &[all, all], 0, entries, Duplicates::Refuse).unwrap().tensor
}

/// So many steps are made before they are counted, and then.
const STEPS: [usize; 2] = [3, 8];

/// The work of the busiest of so many nodes, each with so many rows, in steps of a computation that is prepared: a
/// product of the matrix and a vector, which becomes the next vector.
fn work_of_products(nodes: usize, rows: i64) -> Work {
    let all = [nodes as i64 * rows; 2];
    let tensors: [(&str, &str, &[i64]); 3] = [("y", "dense", &all[..1]), ("A", "csr", &all), ("x", "dense", &all[..1])];
    let (product, next) = (assignment("y(i) = A(i,j) * x(j)", &tensors), assignment("x(i) = y(i)", &tensors));
    let plan = |assignment| {
        let loops = Computation::new(assignment).unwrap().on_grid(&[nodes as i64]).unwrap();
        Arc::new(Plan::new(loops.statement()).unwrap())
    };
    let (plans, variables) = ([plan(&product), plan(&next)], product.tensors());
    let matrix = Arc::new(blocks(nodes as i64, rows));
    let network = Network::seeded(nodes, nodes as u64, 10);
    let job = Nodes::over_loopback(nodes, &network);
    let outcomes = on_nodes(job, async |cx, runtime| {
        let (y, x) = (Tensor::new(cx, &variables[0])?, Tensor::new(cx, &variables[2])?);
        let a = Tensor::from_sparse(cx, &variables[1], Arc::clone(&matrix))?;
        x.generate(cx, &x.slabs(nodes), |at| at[0] % 5)?;
        let computation = Distributed::in_order(cx, &plans, &[&y, &a, &x]).await?;
        let mut counted = [[0; 4]; 2];
        for (counted, steps) in counted.iter_mut().zip(STEPS) {
            for _ in 0..steps {
                drop(computation.launch(cx)?);
            }
            cx.execution_fence().await?;
            *counted = work(runtime, &network);
        }
        // Of many nodes each would get the whole vector.
        let found = if nodes > 16 { Vec::new() } else { x.read_elements::<i64>(cx).await? };
        Ok((counted, found))
    });
    let (work, found): (Vec<[Work; 2]>, Vec<Vec<i64>>) = outcomes.into_iter().map(Result::unwrap).unzip();
    if nodes <= 16 {
        let mut expected: Vec<i64> = (0..all[0]).map(|at| at % 5).collect();
        for _ in 0..STEPS.iter().sum::<usize>() {
            let mut sums = vec![0; expected.len()];
            matrix.for_each(|at, value| sums[at[0] as usize] += value * expected[at[1] as usize]);
            expected = sums;
        }
        assert!(found.iter().all(|found| *found == expected), "{found:?}, not {expected:?}");
    }
    busiest(work)
}

#[test]
fn what_a_node_does_in_a_prepared_product_does_not_grow_with_the_number_of_nodes() {
    let (nodes, _alone) = many_nodes();
    does_not_grow(work_of_products(16, 3), work_of_products(nodes, 3), nodes);
}

#[test]
fn what_a_node_does_in_a_prepared_product_does_not_depend_on_the_number_of_entries() {
    // 14 and 1,672 entries a node.
    let [few, many] = [2, 40].map(|rows| work_of_products(16, rows));
    assert_eq!(few[..3], many[..3], "launches, visits and parcels");
}
