//! Matrices of which points are given the rows that their parts of another operand name, dense ones and those in
//! levels: nothing else is moved, and what is computed is the same.

use std::sync::Arc;

use fastrand::Rng;
use maniple::Result;
use maniple_tensor::distributed::{Computation as Distributed, Tensor, assemble};
use maniple_tensor::notation::Assignment;
use maniple_tensor::plan::{Graph, Plan};
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::{assignment, same, tensor};

/// A statement in so many blocks of rows.
fn in_rows(assignment: &Assignment, blocks: i64) -> Arc<Plan> {
    let loops = Computation::new(assignment).unwrap();
    Arc::new(Plan::new(&loops.statement().distribute(["i"], ["io"], ["ii"], &[blocks]).unwrap()).unwrap())
}

/// A matrix by rows with two diagonals, of which the second ends in the last column.
fn two_diagonals(n: i64) -> Arc<SparseTensor<i64>> {
    let mut entries = EntryList::new(2);
    for row in 0..n {
        entries.push(&[row, row], 2);
        entries.push(&[row, (row + 1).min(n - 1)], row);
    }
    Arc::new(pack(&"csr".parse().unwrap(), &[n, n], 0, entries, Duplicates::Sum).unwrap().tensor)
}

#[test]
fn rows_of_a_dense_matrix_are_moved_as_far_as_columns_name_them() {
    let (n, columns) = (60_i64, 5_i64);
    for (nodes, format) in [(2, "rows"), (3, "rows"), (4, "rows"), (3, "{D,D}(1,0)")] {
        let tensors: [(&str, &str, &[i64]); 3] =
            [("Y", "dense", &[n, columns]), ("A", "csr", &[n, n]), ("X", format, &[n, columns])];
        let spmm = assignment("Y(i,k) = A(i,j) * X(j,k)", &tensors);
        let (plan, variables) = (in_rows(&spmm, nodes), spmm.tensors());
        let graph = Graph::gathering(std::slice::from_ref(&plan)).to_string();
        assert!(graph.contains("X.0 = X at A.1\n"), "{graph}");
        let a = two_diagonals(n);
        let moved = on_nodes(Nodes::new(nodes as usize), async |cx, runtime| -> Result<u64> {
            let y = Tensor::new(cx, &variables[0])?;
            let a = Tensor::from_sparse(cx, &variables[1], Arc::clone(&a))?;
            let x = Tensor::new(cx, &variables[2])?;
            let computation = Distributed::new(cx, &plan, &[&y, &a, &x]).await?;
            let mut moved = 0;
            for round in 0..3 {
                let slabs = (0..nodes).map(|slab| {
                    let rows = (slab * n / nodes, (slab + 1) * n / nodes);
                    maniple_tensor::rectangle::Rectangle::new([rows, (0, columns)])
                });
                x.generate(cx, &slabs.collect::<Vec<_>>(), move |at| 10 * at[0] + at[1] + round)?;
                cx.execution_fence().await?;
                let before = runtime.statistics().parcel_bytes_received;
                computation.launch(cx)?.await?;
                cx.execution_fence().await?;
                moved = runtime.statistics().parcel_bytes_received - before;
                let found: Vec<i64> = y.read_elements(cx).await?;
                for (place, found) in (0..).zip(found) {
                    let (row, column) = (place / columns, place % columns);
                    let value = |at: i64| 10 * at + column + round;
                    assert_eq!(found, 2 * value(row) + row * value((row + 1).min(n - 1)), "{row}, {column}");
                }
            }
            Ok(moved)
        });
        // The first row of the next block.
        let moved: Vec<u64> = moved.into_iter().map(|moved| moved.unwrap()).collect();
        let mut expected = vec![8 * columns as u64; nodes as usize];
        expected[nodes as usize - 1] = 0;
        assert_eq!(moved, expected, "{format} on {nodes} nodes");
    }
}

#[test]
fn rows_of_a_sparse_matrix_are_moved_as_far_as_columns_name_them() {
    let (n, entries) = (60_i64, 7_i64);
    for nodes in 2..=4 {
        let tensors: [(&str, &str, &[i64]); 3] = [("C", "csr", &[n, n]), ("A", "csr", &[n, n]), ("B", "csr", &[n, n])];
        let product = assignment("C(i,k) = A(i,j) * B(j,k)", &tensors);
        let (plan, variables) = (in_rows(&product, nodes), product.tensors());
        let graph = Graph::gathering(std::slice::from_ref(&plan)).to_string();
        assert!(graph.contains("B.0 = offsets of level 1 of B at A.1\nB.1 = level 1 of B below B.0\n"), "{graph}");
        let (a, mut listed) = (two_diagonals(n), EntryList::new(2));
        (0..n)
            .for_each(|row| (0..entries).for_each(|entry| listed.push(&[row, (3 * row + 5 * entry) % n], row + entry)));
        let b = pack(&"csr".parse().unwrap(), &[n, n], 0, listed, Duplicates::Sum).unwrap().tensor;
        let (b, mut expected) = (Arc::new(b), EntryList::new(2));
        let (mut rows, mut whole) = (vec![Vec::new(); n as usize], 0);
        b.for_each(|at, value| rows[at[0] as usize].push((at[1], value)));
        for row in 0..n {
            rows[row as usize].iter().for_each(|(column, value)| expected.push(&[row, *column], 2 * value));
            let next = (row + 1).min(n - 1);
            rows[next as usize].iter().for_each(|(column, value)| expected.push(&[row, *column], row * value));
            whole += rows[row as usize].len() as u64 * 12 + 4;
        }
        let expected = pack(&"csr".parse().unwrap(), &[n, n], 0, expected, Duplicates::Sum).unwrap().tensor;
        let moved = on_nodes(Nodes::new(nodes as usize), async |cx, runtime| -> Result<u64> {
            let a = Tensor::from_sparse(cx, &variables[1], Arc::clone(&a))?;
            let b = Tensor::from_sparse(cx, &variables[2], Arc::clone(&b))?;
            cx.execution_fence().await?;
            let before = runtime.statistics().parcel_bytes_received;
            let made = assemble(cx, &plan, &[&a, &b]).await?;
            cx.execution_fence().await?;
            let moved = runtime.statistics().parcel_bytes_received - before;
            assert_eq!(made.read_sparse::<i64>(cx).await?.entries(), expected.entries());
            Ok(moved)
        });
        // A row, where it begins and ends, and what tells how many entries there are; not a share of all.
        for moved in moved {
            let moved = moved.unwrap();
            assert!(moved < whole / nodes as u64 / 3, "{moved} of {whole} on {nodes} nodes");
        }
    }
}

#[test]
fn what_is_computed_with_rows_that_are_named_is_the_same() {
    let mut random = Rng::with_seed(5);
    for (text, result) in [
        ("Y(i,k) = A(i,j) * X(j,k)", "dense"),
        ("Y(i,k) = A(i,j) * X(k,j)", "dense"),
        ("Y(i,k) = A(i,j) * X(j,k) + A(i,j) * X(j,k)", "dense"),
        ("Y(i,k) = A(i,j) * B(j,k)", "csr"),
        ("Y(i,k) = A(i,j) * B(j,k)", "dense"),
        ("Y(i,k) = A(i,j) * B(j,l) * X(l,k)", "dense"),
        ("Y(i,k) = A(i,j) * A(j,k)", "csr"),
        ("Y(i,k) = A(i,k) * X(i,j) * X(k,j)", "csr"),
    ] {
        for a in ["csr", "dcsr", "{D,C~u}", "coo", "ell"] {
            let n = random.i64(1..30);
            let all: [(&str, &str, &[i64]); 4] =
                [("Y", result, &[n, n]), ("A", a, &[n, n]), ("B", "csr", &[n, n]), ("X", "dense", &[n, n])];
            let used: Vec<_> = all.into_iter().filter(|(name, ..)| text.contains(&format!("{name}("))).collect();
            let assignment = assignment(text, &used);
            let loops = Computation::new(&assignment).unwrap();
            if !loops.conversions().is_empty() {
                continue;
            }
            let plan = in_rows(&assignment, random.i64(1..6));
            let given: Vec<(String, Arc<SparseTensor<i64>>)> = assignment
                .tensors()
                .into_iter()
                .map(|variable| (variable.name().to_owned(), Arc::new(tensor(&variable, random.i64(1..9)))))
                .collect();
            for nodes in 1..=4 {
                same(nodes, &assignment, &plan, &given);
            }
        }
    }
}
