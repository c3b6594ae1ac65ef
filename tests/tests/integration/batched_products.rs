//! Products of a sparse matrix and a dense one in rounds over columns of the dense one: how much of it a node has at a
//! time, as the runtime counts bytes of instances.

use std::sync::Arc;

use maniple::{Context, Result};
use maniple_tensor::distributed::{Computation as Distributed, Tensor};
use maniple_tensor::notation::Assignment;
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::assignment;

/// The rows of the sparse matrix, its columns, and the columns of the dense one.
const EXTENTS: [i64; 3] = [8, 1024, 128];

/// The bytes of the dense matrix, beside which the others are small.
const WHOLE: u64 = 8 * 1024 * 128;

fn product() -> Assignment {
    let [i, k, j] = EXTENTS;
    let tensors: [(&str, &str, &[i64]); 3] = [("A", "dense", &[i, j]), ("B", "csr", &[i, k]), ("C", "dense", &[k, j])];
    assignment("A(i,j) = B(i,k) * C(k,j)", &tensors)
}

/// Blocks of rows and columns of the result on a grid of points, each in so many rounds over parts of its columns.
fn plan([rows, columns]: [usize; 2], rounds: i64) -> Arc<Plan> {
    let product = product();
    let commands = format!(
        "divide(i, io, ii, {rows}); divide(j, jo, ji, {columns}); divide(ji, jr, jc, {rounds}); \
         reorder({{io, jo, jr, ii, k, jc}}); distribute({{io, jo}}); communicate({{A, C}}, jr)"
    );
    let schedule = Schedule::parse(&commands, &product.tensors()).unwrap();
    Arc::new(Plan::new(&schedule.apply(Computation::new(&product).unwrap().statement()).unwrap()).unwrap())
}

/// A matrix of which every row names every third column.
fn sparse() -> SparseTensor<i64> {
    let mut entries = EntryList::new(2);
    for row in 0..EXTENTS[0] {
        (row % 3..EXTENTS[1]).step_by(3).for_each(|column| entries.push(&[row, column], (row + column) % 5 + 1));
    }
    pack(product().tensors()[1].format(), &EXTENTS[..2], 0, entries, Duplicates::Refuse).unwrap().tensor
}

fn element(at: &[i64]) -> i64 {
    at[0] * 7 % 11 + at[1] * 5 % 13 - 4
}

async fn check(cx: &Context, result: &Tensor, sparse: &SparseTensor<i64>) -> Result<()> {
    let [rows, _, columns] = EXTENTS;
    let mut sums = vec![0; (rows * columns) as usize];
    sparse.for_each(|at, value| {
        (0..columns).for_each(|column| sums[(at[0] * columns + column) as usize] += value * element(&[at[1], column]));
    });
    assert_eq!(result.read_elements::<i64>(cx).await?, sums);
    Ok(())
}

/// Computes the product twice, in steps or with all of them launched, on nodes that have so much memory each, and a
/// share of the rows of the dense matrix: the most bytes that a node had, or why not.
fn compute(grid: [usize; 2], rounds: i64, memory: u64, in_steps: bool) -> Vec<Result<u64>> {
    let (nodes, plan, matrix) = (grid[0] * grid[1], plan(grid, rounds), Arc::new(sparse()));
    on_nodes(Nodes::new(nodes).with_memory(memory), async |cx, runtime| {
        let [a, b, c] = product().tensors().try_into().expect("there are three");
        let (result, dense) = (Tensor::new(cx, &a)?, Tensor::new(cx, &c)?);
        let sparse = Tensor::from_sparse(cx, &b, Arc::clone(&matrix))?;
        dense.generate(cx, &dense.slabs(nodes), element)?;
        let computation = Distributed::new(cx, &plan, &[&result, &sparse, &dense]).await?;
        cx.execution_fence().await?;
        runtime.reset_peaks();
        for _ in 0..2 {
            match in_steps {
                true => computation.run_in_steps(cx).await?,
                false => computation.launch(cx)?.await?,
            }
        }
        cx.execution_fence().await?;
        let most = runtime.memories().iter().map(|memory| memory.peak).sum();
        check(cx, &result, &matrix).await?;
        Ok(most)
    })
}

/// The bytes of what is not of the dense matrix: the result, and the sparse matrix with a copy.
const OTHERS: u64 = 8 * 8 * 128 + 2 * 12 * 8 * 342;

#[test]
fn rounds_over_columns_need_room_for_few_of_them() {
    for (grid, rounds) in [([2, 1], 16), ([2, 2], 16), ([4, 1], 8), ([4, 2], 8)] {
        let (nodes, columns) = ((grid[0] * grid[1]) as u64, WHOLE / grid[1] as u64);
        // The rows that it has from the beginning, and the columns of two rounds, with a copy of each.
        let needed = WHOLE / nodes + 4 * columns / rounds as u64;
        // What the published promise is: the columns of its points, and two rounds.
        let promised = columns + 2 * columns / rounds as u64;
        for most in compute(grid, rounds, needed + OTHERS, true) {
            let most = most.unwrap_or_else(|error| panic!("{grid:?} in {rounds} rounds: {error}"));
            let expected = WHOLE / nodes + columns / rounds as u64..=promised;
            assert!(expected.contains(&most), "{most} bytes on {grid:?} in {rounds} rounds, not {expected:?}");
        }
        for kept in compute(grid, rounds, needed + OTHERS, false) {
            kept.expect_err("all columns do not fit");
        }
    }
}
