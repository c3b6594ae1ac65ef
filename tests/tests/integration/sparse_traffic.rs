//! The bytes that products of a placed matrix and a vector move between nodes, as the runtime counts them: of the
//! matrix none, of the vector what rows name elsewhere, of the result the sums of rows that two points share.

use std::collections::BTreeSet;
use std::sync::Arc;

use fastrand::Rng;
use maniple::{Context, Result, Runtime};
use maniple_tensor::distributed::{Computation as Distributed, Tensor};
use maniple_tensor::machine::Machine;
use maniple_tensor::notation::Assignment;
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::assignment;

/// The rows and columns of the matrices, which all numbers of nodes divide.
const EXTENT: i64 = 96;

/// So many nodes the bytes are counted on.
const NODES: [usize; 4] = [2, 3, 4, 8];

/// The product of a matrix in a format and a vector.
fn product(format: &str) -> Assignment {
    let tensors: [(&str, &str, &[i64]); 3] =
        [("y", "dense", &[EXTENT]), ("A", format, &[EXTENT, EXTENT]), ("x", "dense", &[EXTENT])];
    assignment("y(i) = A(i,j) * x(j)", &tensors)
}

/// The plan of these commands.
fn plan(product: &Assignment, commands: &str) -> Arc<Plan> {
    let schedule = Schedule::parse(commands, &product.tensors()).unwrap();
    Arc::new(Plan::new(&schedule.apply(Computation::new(product).unwrap().statement()).unwrap()).unwrap())
}

fn stored(format: &str, entries: EntryList<i64>) -> Arc<SparseTensor<i64>> {
    Arc::new(pack(&format.parse().unwrap(), &[EXTENT; 2], 0, entries, Duplicates::Sum).unwrap().tensor)
}

/// The bytes that this node has received since a count.
async fn received(cx: &Context, runtime: &Runtime, before: u64) -> Result<u64> {
    cx.execution_fence().await?;
    Ok(runtime.statistics().parcel_bytes_received - before)
}

/// Checks that a computation gives the product of a matrix and a vector.
async fn check(cx: &Context, y: &Tensor, a: &SparseTensor<i64>, x: impl Fn(i64) -> i64) -> Result<()> {
    let mut sums = vec![0; EXTENT as usize];
    a.for_each(|at, value| sums[at[0] as usize] += value * x(at[1]));
    assert_eq!(y.read_elements::<i64>(cx).await?, sums);
    Ok(())
}

/// A matrix with rows of very different lengths, some without entries.
fn scattered(nodes: usize) -> EntryList<i64> {
    let (mut random, mut entries) = (Rng::with_seed(nodes as u64), EntryList::new(2));
    for row in 0..EXTENT {
        for _ in 0..[0, 1, 3, 9][random.usize(..4)] {
            entries.push(&[row, random.i64(0..EXTENT)], random.i64(1..9));
        }
    }
    entries
}

#[test]
fn rows_where_they_are_placed_move_the_elements_of_the_vector_that_they_name_elsewhere_and_nothing_else() {
    for (format, nodes) in ["csr", "dcsr"].into_iter().flat_map(|format| NODES.map(|nodes| (format, nodes))) {
        let product = product(format);
        let variables = product.tensors();
        let plan = plan(&product, &format!("distribute(i, io, ii, {nodes})"));
        let a = stored(format, scattered(nodes));
        let block = EXTENT / nodes as i64;
        let mut elsewhere = vec![BTreeSet::new(); nodes];
        a.for_each(|at, _| {
            if at[0] / block != at[1] / block {
                elsewhere[(at[0] / block) as usize].insert(at[1]);
            }
        });
        let moved = on_nodes(Nodes::new(nodes), async |cx, runtime| -> Result<Vec<u64>> {
            let machine: Machine = nodes.to_string().parse().unwrap();
            let (y, x) = (Tensor::new(cx, &variables[0])?, Tensor::new(cx, &variables[2])?);
            let matrix = Tensor::from_sparse(cx, &variables[1], Arc::clone(&a))?;
            matrix.place_levels(cx, &"xy -> x".parse().unwrap(), &machine).await?.await?;
            let computation = Distributed::new(cx, &plan, &[&y, &matrix, &x]).await?;
            let mut moved = Vec::new();
            for round in [0, 0, 1] {
                // The second time the vector is the same, and has come.
                if moved.len() != 1 {
                    x.generate(cx, &x.slabs(nodes), move |at| at[0] + round)?;
                }
                cx.execution_fence().await?;
                let before = runtime.statistics().parcel_bytes_received;
                computation.launch(cx)?.await?;
                moved.push(received(cx, runtime, before).await?);
                check(cx, &y, &a, |at| at + round).await?;
            }
            Ok(moved)
        });
        for (node, (moved, elsewhere)) in moved.into_iter().zip(&elsewhere).enumerate() {
            let of_vector = 8 * elsewhere.len() as u64;
            assert_eq!(moved.unwrap(), [of_vector, 0, of_vector], "{format} on node {node} of {nodes}");
        }
    }
}

/// A matrix with rows of very different lengths.
fn triangle() -> EntryList<i64> {
    let mut entries = EntryList::new(2);
    (0..EXTENT).for_each(|row| (0..=row).for_each(|column| entries.push(&[row, column], row - column)));
    entries
}

/// A matrix with five entries in each row but the first, which has three: equal parts of the entries end with the first
/// two of a row, and have as many rows.
fn fives() -> EntryList<i64> {
    let mut entries = EntryList::new(2);
    for row in 0..EXTENT {
        let named = (0..if row == 0 { 3 } else { 5 }).map(|number| (row * 7 + number * 11) % EXTENT);
        named.for_each(|column| entries.push(&[row, column], row + 1 - column));
    }
    entries
}

/// The bytes that all nodes receive in each of two runs of plans, of which the first is a product of a matrix, which
/// may be placed, and a vector that all have.
fn moved(nodes: usize, stored: &Arc<SparseTensor<i64>>, plans: &[Arc<Plan>], placement: Option<&str>) -> [u64; 2] {
    let [y, a, x] = product(&stored.format().to_string()).tensors().try_into().unwrap();
    let moved = on_nodes(Nodes::new(nodes), async |cx, runtime| -> Result<[u64; 2]> {
        let machine: Machine = nodes.to_string().parse().unwrap();
        let (result, vector) = (Tensor::new(cx, &y)?, Tensor::new(cx, &x)?);
        let next = Tensor::new(cx, &copy().tensors()[0])?;
        let matrix = Tensor::from_sparse(cx, &a, Arc::clone(stored))?;
        vector.write_elements(cx, vec![1_i64; EXTENT as usize])?;
        vector.place(cx, &"x -> *".parse().unwrap(), &machine)?.await?;
        if let Some(placement) = placement {
            matrix.place_levels(cx, &placement.parse().unwrap(), &machine).await?.await?;
        }
        let computation = Distributed::in_order(cx, plans, &[&result, &matrix, &vector, &next]).await?;
        cx.execution_fence().await?;
        let mut moved = [0; 2];
        for moved in &mut moved {
            let before = runtime.statistics().parcel_bytes_received;
            computation.launch(cx)?.await?;
            *moved = received(cx, runtime, before).await?;
        }
        check(cx, if plans.len() > 1 { &next } else { &result }, stored, |_| 1).await?;
        Ok(moved)
    });
    moved.into_iter().map(|moved| moved.unwrap()).fold([0; 2], |sum, moved| [sum[0] + moved[0], sum[1] + moved[1]])
}

/// The result of the product once more, so that each point uses the sums of its rows.
fn copy() -> Assignment {
    assignment("z(i) = y(i)", &[("z", "dense", &[EXTENT]), ("y", "dense", &[EXTENT])])
}

/// The commands for equal parts of the entries.
fn equal_parts(nodes: usize) -> String {
    format!("fuse(i, j, f); pos(f, p, A); divide(p, po, pi, {nodes}); distribute(po)")
}

#[test]
fn a_product_moves_no_matrix_that_is_placed_where_it_is_used_nor_any_again() {
    for (format, nodes) in ["csr", "dcsr"].into_iter().flat_map(|format| NODES.map(|nodes| (format, nodes))) {
        let (product, stored) = (product(format), stored(format, triangle()));
        let rows = format!("distribute(i, io, ii, {nodes})");
        for (commands, placement) in [(rows, "xy -> x"), (equal_parts(nodes), "xy -> f : ~f")] {
            let plans = [plan(&product, &commands)];
            let [other, placed] = [None, Some(placement)].map(|placement| moved(nodes, &stored, &plans, placement));
            let what = format!("{format} placed by {placement} on {nodes} nodes: {placed:?}, else {other:?}");
            assert!(other[0] > 0 && other[1] == 0 && placed == [0; 2], "{what}");
        }
    }
}

#[test]
fn equal_parts_of_the_entries_move_two_elements_of_the_result_at_most_for_each_cut() {
    for (format, nodes) in ["csr", "dcsr"].into_iter().flat_map(|format| NODES.map(|nodes| (format, nodes))) {
        let plans = [
            plan(&product(format), &equal_parts(nodes)),
            // Of two points one has the sum of the row that they share.
            plan(&copy(), &format!("distribute(i, io, ii, {nodes})")),
        ];
        let cuts = nodes as u64 - 1;
        for moved in moved(nodes, &stored(format, fives()), &plans, Some("xy -> f : ~f")) {
            assert!((8 * cuts..=2 * 8 * cuts).contains(&moved), "{format} on {nodes} nodes: {moved} bytes");
        }
    }
}

#[test]
fn placing_levels_where_they_are_moves_nothing() {
    let variable = &product("csr").tensors()[1];
    let placements = ["xy -> x", "xy -> f : ~f"];
    for (nodes, turned) in NODES.into_iter().flat_map(|nodes| [false, true].map(|turned| (nodes, turned))) {
        let [before, placement] = if turned { [placements[1], placements[0]] } else { placements };
        let a = stored("csr", scattered(nodes));
        let moved = on_nodes(Nodes::new(nodes), async |cx, runtime| -> Result<[u64; 2]> {
            let machine: Machine = nodes.to_string().parse().unwrap();
            let matrix = Tensor::from_sparse(cx, variable, Arc::clone(&a))?;
            let place =
                async |placement: &str| matrix.place_levels(cx, &placement.parse().unwrap(), &machine).await?.await;
            place(before).await?;
            let mut moved = [0; 2];
            for moved in &mut moved {
                cx.execution_fence().await?;
                let before = runtime.statistics().parcel_bytes_received;
                place(placement).await?;
                *moved = received(cx, runtime, before).await?;
            }
            Ok(moved)
        });
        let moved: Vec<[u64; 2]> = moved.into_iter().map(|moved| moved.unwrap()).collect();
        let sum = |of: usize| moved.iter().map(|moved| moved[of]).sum::<u64>();
        assert!(sum(0) > 0 && sum(1) == 0, "{placement} after {before} on {nodes} nodes: {moved:?}");
    }
}
