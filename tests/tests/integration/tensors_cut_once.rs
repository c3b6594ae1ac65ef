//! Partitions of tensors that are made once, as what levels store does not change: other computations with the same
//! tensors look up nothing. With a tensor that stores something else they do.

use std::sync::Arc;

use maniple::Result;
use maniple_tensor::distributed::{Computation as Distributed, Tensor, assemble};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::assignment;

/// A matrix with three entries a row, which begin so far from the diagonal.
fn matrix(variable: &TensorVariable, shift: i64) -> Arc<SparseTensor<i64>> {
    let (n, mut entries) = (variable.dimensions()[0], EntryList::new(2));
    for row in 0..n {
        (0..3).for_each(|entry| entries.push(&[row, (row + shift + 5 * entry) % n], row + entry));
    }
    Arc::new(pack(variable.format(), variable.dimensions(), 0, entries, Duplicates::Sum).unwrap().tensor)
}

/// A matrix times a vector that has the number of each place.
fn product(matrix: &SparseTensor<i64>) -> Vec<i64> {
    let mut product = vec![0; matrix.dimensions()[0] as usize];
    matrix.for_each(|at, value| product[at[0] as usize] += value * at[1]);
    product
}

#[test]
fn computations_with_the_same_tensors_look_up_nothing_again() {
    let n = 40;
    for nodes in 1..=3 {
        for format in ["csr", "dcsr"] {
            let spmv = assignment(
                "y(i) = A(i,j) * x(j)",
                &[("y", "dense", &[n]), ("A", format, &[n, n]), ("x", "dense", &[n])],
            );
            let variables = spmv.tensors();
            let loops = Computation::new(&spmv).unwrap();
            let plan = loops.statement().distribute(["i"], ["io"], ["ii"], &[4]).unwrap();
            // Another schedule, with the same parts of the operands.
            let other = plan.reorder(["ii", "j"]).unwrap_or_else(|_| plan.clone());
            let plans = [&plan, &plan, &other].map(|statement| Arc::new(Plan::new(statement).unwrap()));
            let results = on_nodes(Nodes::new(nodes), async |cx, runtime| -> Result<()> {
                let [y, x] = [&variables[0], &variables[2]].map(|variable| Tensor::new(cx, variable).unwrap());
                x.generate(cx, &x.slabs(3), |at| at[0])?;
                let mut launches = Vec::new();
                for shift in [0, 7] {
                    let stored = matrix(&variables[1], shift);
                    let a = Tensor::from_sparse(cx, &variables[1], Arc::clone(&stored))?;
                    for plan in &plans {
                        let before = runtime.statistics().launches;
                        let computation = Distributed::new(cx, plan, &[&y, &a, &x]).await?;
                        launches.push(runtime.statistics().launches - before);
                        computation.launch(cx)?.await?;
                        // By what it has now, and not another one had before.
                        assert_eq!(y.read_elements::<i64>(cx).await?, product(&stored), "{format} on {nodes}");
                    }
                }
                assert!(launches[0] > 0 && launches[3] > 0, "{format} on {nodes}: {launches:?}");
                assert_eq!([launches[1], launches[2], launches[4], launches[5]], [0; 4], "{format} on {nodes}");
                Ok(())
            });
            results.into_iter().for_each(|result| result.unwrap());
        }
    }
}

#[test]
fn results_that_are_assembled_again_and_placements_look_up_nothing_more() {
    let n = 40;
    let tensors: [(&str, &str, &[i64]); 3] = [("C", "csr", &[n, n]), ("A", "csr", &[n, n]), ("B", "csr", &[n, n])];
    let product = assignment("C(i,k) = A(i,j) * B(j,k)", &tensors);
    let (variables, loops) = (product.tensors(), Computation::new(&product).unwrap());
    let plan = Arc::new(Plan::new(&loops.statement().distribute(["i"], ["io"], ["ii"], &[4]).unwrap()).unwrap());
    let results = on_nodes(Nodes::new(3), async |cx, runtime| -> Result<()> {
        let a = Tensor::from_sparse(cx, &variables[1], matrix(&variables[1], 0))?;
        let b = Tensor::from_sparse(cx, &variables[2], matrix(&variables[2], 4))?;
        let mut launches = Vec::new();
        for _ in 0..3 {
            let before = runtime.statistics().launches;
            assemble(cx, &plan, &[&a, &b]).await?.destroy(cx)?;
            launches.push(runtime.statistics().launches - before);
        }
        assert!(launches[0] > launches[1] && launches[1] == launches[2], "{launches:?}");
        let machine = "3".parse().unwrap();
        for placement in ["xy -> ~y", "xy -> x", "xy -> y"] {
            let placement = placement.parse().unwrap();
            let mut launches = Vec::new();
            for _ in 0..2 {
                let before = runtime.statistics().launches;
                a.place_levels(cx, &placement, &machine).await?.await?;
                launches.push(runtime.statistics().launches - before);
            }
            // To bring pieces to where they are is one.
            assert!(launches[0] > 1 && launches[1] == 1, "{placement}: {launches:?}");
        }
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}
