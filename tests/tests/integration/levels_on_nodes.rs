//! Operands in levels of diagonals and bits, of which points are given parts as they are, and go through them without a
//! conversion: the same as one kernel on the whole.

use std::sync::Arc;

use maniple::Result;
use maniple_tensor::concrete::Statement;
use maniple_tensor::distributed::{Computation as Distributed, Tensor};
use maniple_tensor::oracle::{SparseMap, evaluate};
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::{agrees, assignment, tensor};

/// Formats of matrices by rows, and what points are given of each.
const BY_ROWS: [(&str, &[&str]); 5] = [
    ("dia", &["A.0 = level 1 of A in 4 pieces"]),
    ("(i,j) -> (i+j: C, i: R)", &["A.0 = level 1 of A in 4 pieces"]),
    ("bitmap", &["A.0 = bits of level 1 of A in 4 pieces", "A.1 = level 1 of A in 4 pieces"]),
    ("{B,C}", &["bits of level 0 of A below 4 parts", "level 1 of A below 4 parts"]),
    ("{B,B}", &["bits of level 0 of A below 4 parts", "bits of level 1 of A below 4 parts"]),
];

fn rows(statement: &Statement) -> Statement {
    statement.distribute(["i"], ["io"], ["ii"], &[4]).unwrap()
}

#[test]
fn points_are_given_rows_of_diagonals_and_bits() {
    // Words have bits of several pieces.
    for (number, (format, pieces)) in BY_ROWS.into_iter().enumerate() {
        let (y, x, n): (&[i64], &[i64], &[i64]) = (&[31], &[17], &[31, 17]);
        let matrices: [(&str, &str, &[i64]); 6] = [
            ("Y", "csr", n),
            ("A", format, n),
            ("B", "csr", n),
            ("C", "dense", &[17, 3]),
            ("x", "dense", x),
            ("y", "dense", y),
        ];
        let spmv = assignment("y(i) = A(i,j) * x(j)", &matrices);
        for nodes in 1..=4 {
            let done = agrees(nodes, &spmv, rows);
            assert!(pieces.iter().all(|piece| done.contains(piece)), "{format}\n{done}");
        }
        for text in [
            "y(i) = A(i,j) * B(i,j)",
            "y(i) += A(i,j) + B(i,j) * x(j)",
            "Y(i,j) = A(i,j) + B(i,j)",
            "Y(i,j) = A(i,j) * B(i,j)",
            "Y(i,j) = B(i,j) ? A(i,j) * 2",
            "y(i) = reduce(max, j, A(i,j) * x(j))",
            "y(i) = A(i,j+1) * x(j) - A(i,j)",
        ] {
            agrees(1 + number % 4, &assignment(text, &matrices), rows);
        }
        let wide: [(&str, &str, &[i64]); 3] = [("Y", "dense", &[31, 3]), matrices[1], matrices[3]];
        agrees(2, &assignment("Y(i,k) = A(i,j) * C(j,k)", &wide), rows);
    }
}

#[test]
fn columns_of_diagonals_and_bits_are_those_of_transposed_ones() {
    for format in ["(i,j) -> (j-i: C, i: R)", "{D,B}(1,0)", "{B,C}(1,0)"] {
        let tensors: [(&str, &str, &[i64]); 3] =
            [("y", "dense", &[17]), ("A", format, &[31, 17]), ("x", "dense", &[31])];
        let product = assignment("y(j) = A(i,j) * x(i)", &tensors);
        let computation = Computation::new(&product).unwrap();
        if computation.conversions().is_empty() {
            for nodes in 1..=3 {
                agrees(nodes, &product, |statement| {
                    let outer = statement.spine()[0].variable.clone();
                    statement.distribute([outer], ["po"], ["pi"], &[4]).unwrap()
                });
            }
        }
    }
}

#[test]
fn more_levels_are_gone_through_too() {
    let extents: &[i64] = &[11, 5, 7];
    for (number, format) in ["{D,B,C}", "{C,B,C}", "{D,C,B}"].into_iter().enumerate() {
        let tensors: [(&str, &str, &[i64]); 4] =
            [("y", "dense", &[11]), ("A", format, extents), ("B", "csf:3", extents), ("x", "dense", &[7])];
        for text in ["y(i) = A(i,j,k) * x(k)", "y(i) = A(i,j,k) * B(i,j,k)", "y(i) = A(i,j,k) + B(i,j,k)"] {
            agrees(1 + number % 4, &assignment(text, &tensors), rows);
        }
    }
}

#[test]
fn matrices_may_be_empty_or_have_fewer_rows_than_points() {
    for extents in [[0, 4], [4, 0], [1, 1], [2, 9], [3, 100]] {
        for (format, _) in BY_ROWS {
            let tensors: [(&str, &str, &[i64]); 3] =
                [("y", "dense", &extents[..1]), ("A", format, &extents), ("x", "dense", &extents[1..])];
            let spmv = assignment("y(i) = A(i,j) * x(j)", &tensors);
            for nodes in [1, 3] {
                agrees(nodes, &spmv, rows);
            }
        }
    }
}

/// Of diagonals and bits what belongs to its rows, and nothing again.
#[test]
fn nodes_get_no_more_than_their_rows() {
    let (n, nodes) = (240_i64, 3_usize);
    for (format, bytes_of_row) in [("dia", 60), ("bitmap", n as u64 * 8 + n as u64 / 8 + 8)] {
        let tensors: [(&str, &str, &[i64]); 3] = [("y", "dense", &[n]), ("A", format, &[n, n]), ("x", "dense", &[n])];
        let spmv = assignment("y(i) = A(i,j) * x(j)", &tensors);
        let variables = spmv.tensors();
        let mut entries = EntryList::new(2);
        (0..n).for_each(|row| entries.push(&[row, row], row + 1));
        (1..n).for_each(|row| entries.push(&[row, row - 1], 2));
        let a = Arc::new(pack(variables[1].format(), &[n, n], 0, entries, Duplicates::Sum).unwrap().tensor);
        let maps = [("A", SparseMap::of_tensor(&*a)), ("x", SparseMap::of_tensor(&tensor(&variables[2], 1)))];
        let expected = evaluate(&spmv, &maps.map(|(name, map)| (name.to_owned(), map)).into()).unwrap();
        let loops = Computation::new(&spmv).unwrap().on_grid(&[nodes as i64]).unwrap();
        let plan = Arc::new(Plan::new(loops.statement()).unwrap());
        let moved = on_nodes(Nodes::new(nodes), async |cx, runtime| -> Result<[u64; 2]> {
            let y = Tensor::new(cx, &variables[0])?;
            let x = Tensor::new(cx, &variables[2])?;
            x.write_elements(cx, tensor(&variables[2], 1).elements())?;
            let all = Tensor::from_sparse(cx, &variables[1], Arc::clone(&a))?;
            let computation = Distributed::new(cx, &plan, &[&y, &all, &x]).await?;
            cx.execution_fence().await?;
            let mut moved = [0; 2];
            for moved in &mut moved {
                let before = runtime.statistics().parcel_bytes_received;
                computation.launch(cx)?.await?;
                cx.execution_fence().await?;
                *moved = runtime.statistics().parcel_bytes_received - before;
            }
            let found = y.read_elements::<i64>(cx).await?;
            let found = SparseMap::of_tensor(&SparseTensor::from_elements(&[n], 0, found).unwrap());
            assert_eq!(expected.difference(&found, |one, other| one == other), None, "{format}");
            Ok(moved)
        });
        let moved: Vec<[u64; 2]> = moved.into_iter().map(|moved| moved.unwrap()).collect();
        let most = bytes_of_row * (n as u64 / nodes as u64 + 2) + n as u64 * 8;
        assert!(moved.iter().all(|[first, second]| *first <= most && *second == 0), "{format}: {moved:?}, not {most}");
    }
}
