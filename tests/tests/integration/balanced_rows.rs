//! Rows cut so that parts have about as many elements each: no part has more than an equal share and a row, and what is
//! computed with these parts is the same.

use std::sync::Arc;

use fastrand::Rng;
use maniple::Result;
use maniple_tensor::distributed::Tensor;
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::{assignment, same};

/// A matrix whose rows have very different lengths, of which some are empty.
fn a_matrix(random: &mut Rng, (rows, columns): (i64, i64), format: &str) -> SparseTensor<i64> {
    let mut entries = EntryList::new(2);
    for row in 0..rows {
        let count = if random.bool() { random.i64(0..=columns) } else { random.i64(0..=2.min(columns)) };
        (0..count).for_each(|column| entries.push(&[row, column], row + column + 1));
    }
    pack(&format.parse().unwrap(), &[rows, columns], 0, entries, Duplicates::Sum).unwrap().tensor
}

#[test]
fn no_part_has_more_than_a_share_and_a_row() {
    for nodes in 1..=3 {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<usize> {
            let mut most_parts = 0;
            for seed in 0..40 {
                let mut random = Rng::with_seed(seed);
                let (rows, columns, parts) = (random.i64(1..60), random.i64(1..40), random.usize(1..9));
                let format = ["csr", "dcsr", "{D,B}", "ell"][random.usize(..4)];
                let stored = a_matrix(&mut random, (rows, columns), format);
                let spmv = assignment(
                    "y(i) = A(i,j) * x(j)",
                    &[("y", "dense", &[rows]), ("A", format, &[rows, columns]), ("x", "dense", &[columns])],
                );
                let tensor = Tensor::from_sparse(cx, &spmv.tensors()[1], stored.clone())?;
                let cuts = tensor.balanced(cx, parts).await?;
                assert!(cuts.len() < parts, "seed {seed}: {cuts:?} in {parts}");
                assert!(cuts.iter().all(|cut| (1..rows).contains(cut)) && cuts.is_sorted_by(|a, b| a < b), "{cuts:?}");
                most_parts = most_parts.max(cuts.len() + 1);
                // Positions, which slots have without elements too.
                let mut of_rows = vec![0_usize; rows as usize];
                let each = stored.values().len() / rows as usize;
                match format {
                    "{D,B}" | "ell" => of_rows.fill(each),
                    _ => stored.for_each(|at, _| of_rows[at[0] as usize] += 1),
                }
                let (all, longest) = (of_rows.iter().sum::<usize>(), of_rows.iter().max().copied().unwrap_or(0));
                let ends = [&[0][..], &cuts, &[rows]].concat();
                for part in ends.windows(2) {
                    let own: usize = of_rows[part[0] as usize..part[1] as usize].iter().sum();
                    assert!(own <= all.div_ceil(parts) + longest, "seed {seed}: {own} of {all}, {cuts:?}, {of_rows:?}");
                }
            }
            Ok(most_parts)
        });
        assert!(results.into_iter().all(|parts| parts.unwrap() == 8));
    }
}

#[test]
fn loops_over_such_parts_compute_the_same() {
    for (seed, format) in [(1, "csr"), (2, "dcsr"), (3, "csr")] {
        let mut random = Rng::with_seed(seed);
        let (rows, columns) = (50, 30);
        let stored = Arc::new(a_matrix(&mut random, (rows, columns), format));
        let spmv = assignment(
            "y(i) = A(i,j) * x(j)",
            &[("y", "dense", &[rows]), ("A", format, &[rows, columns]), ("x", "dense", &[columns])],
        );
        let variables = spmv.tensors();
        let cuts = on_nodes(Nodes::new(2), async |cx, _| -> Result<Vec<i64>> {
            Ok(Tensor::from_sparse(cx, &variables[1], Arc::clone(&stored))?.balanced(cx, 4).await?)
        });
        let cuts: Vec<Vec<i64>> = cuts.into_iter().map(|cuts| cuts.unwrap()).collect();
        assert_eq!(cuts[0], cuts[1]);
        let loops = Computation::new(&spmv).unwrap();
        let statement = loops.statement().split_at("i", "part", "ii", &cuts[0]).unwrap();
        let plan = Arc::new(Plan::new(&statement.distribute_loops(["part"]).unwrap()).unwrap());
        let vector = |name: &str, extent: i64| {
            let elements = (0..extent).map(|at| at % 7).collect();
            (name.to_owned(), Arc::new(SparseTensor::from_elements(&[extent], 0, elements).unwrap()))
        };
        let given = [vector("y", rows), ("A".to_owned(), Arc::clone(&stored)), vector("x", columns)];
        (1..=3).for_each(|nodes| same(nodes, &spmv, &plan, &given));
    }
}
