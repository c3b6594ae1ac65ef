//! Tensors in levels, converted to other formats by the tasks of all nodes: the same as in the memory of one. And what
//! is given back of results that are made again and again.

use std::sync::Arc;

use fastrand::Rng;
use maniple::{Result, Runtime};
use maniple_tensor::concrete::Statement;
use maniple_tensor::distributed::{Computation as Distributed, Tensor, assemble};
use maniple_tensor::element::ElementType;
use maniple_tensor::format::{Format, LevelExpression};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_placements::{FORMATS, a_tensor};
use crate::sparse_tensors::{assignment, tensor};

/// Whether a format has a level that counts.
fn counts(format: &Format) -> bool {
    format.expressions().iter().any(|level| matches!(level, LevelExpression::Count(_)))
}

#[test]
fn tensors_are_the_same_converted_by_tasks_as_in_memory() {
    let most = std::env::var("MANIPLE_TESTS_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(120_u64);
    for nodes in 1..=3 {
        let results = on_nodes(Nodes::new(nodes as usize), async |cx, _| -> Result<()> {
            for seed in (nodes - 1) * most / 3..nodes * most / 3 {
                let mut random = Rng::with_seed(seed);
                let (variable, stored) = a_tensor(&mut random);
                let formats = FORMATS[variable.order() - 1];
                let format: Format = formats[random.usize(..formats.len())].parse().unwrap();
                let other = variable.stored(format.clone());
                let own = Tensor::from_sparse(cx, &variable, stored.clone())?;
                let about = format!("seed {seed}: {} to {format} on {nodes} nodes", variable.format());
                if counts(&format) && format != *variable.format() {
                    let error = own.converted(cx, &other).await.unwrap_err().to_string();
                    assert!(error.contains("T is stored as"), "{about}: {error}");
                    continue;
                }
                let made = own.converted(cx, &other).await?;
                assert_eq!(made.variable(), &other);
                if counts(&format) {
                    continue;
                }
                let expected = stored.convert(&format).unwrap();
                let found = made.read_sparse::<i64>(cx).await?;
                assert_eq!(found.entries(), expected.entries(), "{about}");
                assert_eq!(found.values(), expected.values(), "{about}");
                found.check().unwrap();
                // And back again.
                if !counts(variable.format()) {
                    let back = made.converted(cx, &variable).await?.read_sparse::<i64>(cx).await?;
                    assert_eq!(back.entries(), expected.convert(variable.format()).unwrap().entries(), "{about}, back");
                }
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

/// A matrix with some elements.
fn matrix(variable: &TensorVariable, at: &[[i64; 2]]) -> SparseTensor<i64> {
    let mut entries = EntryList::new(2);
    at.iter().for_each(|at| entries.push(at, at[0] % 5 + 1));
    pack(variable.format(), variable.dimensions(), 0, entries, Duplicates::Sum).unwrap().tensor
}

#[test]
fn extents_may_be_huge_and_matrices_empty() {
    let last = (1_i64 << 40) - 1;
    let results = on_nodes(Nodes::new(3), async |cx, _| -> Result<()> {
        for (extents, at) in [
            ([1 << 40, 1 << 40], &[[0, last], [last, 0], [1 << 39, 7], [3, 3]][..]),
            ([1 << 40, 1 << 40], &[]),
            ([1, 1], &[[0, 0]]),
            ([0, 5], &[]),
        ] {
            let variable =
                |format: &str| TensorVariable::new("A", ElementType::I64, extents).stored(format.parse().unwrap());
            for from in ["dcsr", "coo", "{H,H}"] {
                let stored = matrix(&variable(from), at);
                let own = Tensor::from_sparse(cx, &variable(from), stored.clone())?;
                for to in ["dcsc", "csf:2", "{C~u,S}(1,0)", "{C,H}"] {
                    let made = own.converted(cx, &variable(to)).await?.read_sparse::<i64>(cx).await?;
                    let expected = stored.convert(variable(to).format()).unwrap();
                    assert_eq!(made.entries(), expected.entries(), "{from} to {to}");
                }
            }
        }
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn other_tensors_are_not_converted_and_dense_ones_to_dense_ones_alone() {
    let results = on_nodes(Nodes::new(1), async |cx, _| -> Result<()> {
        let variable = |format: &str, extents: [i64; 2]| {
            TensorVariable::new("A", ElementType::I64, extents).stored(format.parse().unwrap())
        };
        let csr = Tensor::from_sparse(cx, &variable("csr", [4, 6]), matrix(&variable("csr", [4, 6]), &[[1, 2]]))?;
        let error = csr.converted(cx, &variable("csc", [6, 4])).await.unwrap_err().to_string();
        assert!(error.contains("[4, 6]") && error.contains("[6, 4]"), "{error}");
        let mut elements = vec![0_i64; 24];
        matrix(&variable("csr", [4, 6]), &[[1, 2]])
            .for_each(|at, value| elements[(at[0] * 6 + at[1]) as usize] = value);
        let mut dense = csr.clone();
        for format in ["rows", "columns", "rows"] {
            dense = dense.converted(cx, &variable(format, [4, 6])).await?;
            assert_eq!(dense.read_elements::<i64>(cx).await?, elements, "{format}");
        }
        let error = dense.converted(cx, &variable("csr", [4, 6])).await.unwrap_err().to_string();
        assert!(error.contains("A is dense"), "{error}");
        let error = csr.converted(cx, &variable("{D,C<ranges>}", [4, 6])).await.unwrap_err().to_string();
        assert!(error.contains("without ranges"), "{error}");
        // In the same format it is the same tensor under another name.
        let named = csr.converted(cx, &variable("csr", [4, 6]).renamed("B")).await?;
        assert_eq!((named.variable().name(), named.region().tree().id()), ("B", csr.region().tree().id()));
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

/// The most bytes of instances that a node had at a time.
fn peak(runtime: &Runtime) -> u64 {
    runtime.memories().iter().map(|memory| memory.peak).max().unwrap_or(0)
}

#[test]
fn no_node_needs_memory_for_all_of_what_is_converted() {
    let (n, nodes) = (500_i64, 28);
    let variable = |format: &str| TensorVariable::new("A", ElementType::I64, [n, n]).stored(format.parse().unwrap());
    let at: Vec<[i64; 2]> = (0..n).flat_map(|row| (0..40).map(move |k| [row, (row * 7 + k * 12) % n])).collect();
    let stored = Arc::new(matrix(&variable("csr"), &at));
    // Less than all coordinates of one dimension take, or the elements. There is room for the parts of both matrices
    // that a node has, and for its entries and those of its blocks.
    let memory = at.len() as u64 * 39 / 10;
    let converted = on_nodes(Nodes::new(nodes).with_memory(memory), async |cx, _| -> Result<()> {
        let own = Tensor::from_sparse(cx, &variable("csr"), Arc::clone(&stored))?;
        own.converted(cx, &variable("csc")).await?;
        cx.execution_fence().await?;
        Ok(())
    });
    converted.into_iter().for_each(|converted| converted.unwrap());
}

/// Assembles a product on two nodes, again and again, and has it converted; gives the most bytes after each time on
/// each node, and how many the result has.
fn repeated(format: &str, times: usize, is_destroyed: bool) -> (Vec<Vec<u64>>, u64) {
    let n = 600;
    let matrices: [(&str, &str, &[i64]); 3] = [("Y", "dcsr", &[n, n]), ("A", "csr", &[n, n]), ("B", "csr", &[n, n])];
    let product = assignment("Y(i,j) = A(i,k) * B(k,j)", &matrices);
    let rows = |statement: &Statement| statement.distribute(["i"], ["io"], ["ii"], &[2]).unwrap();
    let plan = Arc::new(Plan::new(&rows(Computation::new(&product).unwrap().statement())).unwrap());
    let variables = product.tensors();
    let declared = variables[0].stored(format.parse().unwrap());
    let operands: Vec<Arc<SparseTensor<i64>>> =
        variables[1..].iter().map(|variable| Arc::new(tensor(variable, 97))).collect();
    let found = on_nodes(Nodes::new(2), async |cx, runtime| -> Result<(Vec<u64>, u64)> {
        let mut given = Vec::new();
        for (variable, stored) in variables[1..].iter().zip(&operands) {
            given.push(Tensor::from_sparse(cx, variable, Arc::clone(stored))?);
        }
        let (mut peaks, mut bytes) = (Vec::new(), 0);
        let mut last: Option<Tensor> = None;
        for _ in 0..times {
            if let Some(last) = last.take().filter(|_| is_destroyed) {
                last.destroy(cx)?;
            }
            let assembled = assemble(cx, &plan, &given.iter().collect::<Vec<_>>()).await?;
            let made = assembled.converted(cx, &declared).await?;
            if is_destroyed && declared.format() != assembled.variable().format() {
                assembled.destroy(cx)?;
            }
            cx.execution_fence().await?;
            peaks.push(peak(runtime));
            last = Some(made);
        }
        if let Some(last) = last {
            bytes = last.read_sparse::<i64>(cx).await?.bytes() as u64;
        }
        Ok((peaks, bytes))
    });
    let found: Vec<_> = found.into_iter().map(|found| found.unwrap()).collect();
    let bytes = found[0].1;
    (found.into_iter().map(|(peaks, _)| peaks).collect(), bytes)
}

#[test]
fn what_is_assembled_is_given_back_before_it_is_assembled_again() {
    for format in ["dcsr", "bitmap"] {
        let (peaks, bytes) = repeated(format, 6, true);
        for peaks in peaks {
            let (first, last) = (peaks[0], peaks[5]);
            assert!(last <= first + bytes / 4, "{format}: {peaks:?}, where a node has half of {bytes} bytes");
        }
    }
    // What is not destroyed stays.
    let (peaks, bytes) = repeated("dcsr", 6, false);
    for peaks in peaks {
        assert!(peaks[5] >= peaks[0] + bytes, "{peaks:?}, where a node has half of {bytes} bytes");
    }
}

#[test]
fn what_is_destroyed_is_refused_and_what_shares_its_levels_stays() {
    let results = on_nodes(Nodes::new(2), async |cx, _| -> Result<()> {
        let sampled = assignment("Y(i,j) = A(i,j) * 3", &[("Y", "csr", &[9, 7]), ("A", "csr", &[9, 7])]);
        let variables = sampled.tensors();
        let loops = Computation::new(&sampled).unwrap().statement().distribute(["i"], ["io"], ["ii"], &[2]).unwrap();
        let plan = Arc::new(Plan::new(&loops).unwrap());
        let stored = tensor(&variables[1], 2);
        let a = Tensor::from_sparse(cx, &variables[1], stored.clone())?;
        // As often as a region has room for fields, and more.
        for _ in 0..600 {
            let y = Tensor::for_result(cx, &plan, &[&a])?;
            y.destroy(cx)?;
            assert!(y.destroy(cx).is_err());
        }
        let y = Tensor::for_result(cx, &plan, &[&a])?;
        Distributed::new(cx, &plan, &[&y, &a]).await?.launch(cx)?.await?;
        let expected = stored.entries().map(|value| 3 * value);
        assert_eq!(y.read_sparse::<i64>(cx).await?.entries(), expected);
        y.destroy(cx)?;
        assert_eq!(a.read_sparse::<i64>(cx).await?.entries(), stored.entries());
        a.destroy(cx)?;
        let error = a.read_sparse::<i64>(cx).await.unwrap_err().to_string();
        assert!(error.contains("destroyed"), "{error}");
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}
