//! Tensors in levels that the tasks of all nodes make by a generator, each some rows: the same on any number of nodes,
//! as one makes them; and no node has all of one.

use fastrand::Rng;
use maniple::{Context, Result, Runtime};
use maniple_tensor::distributed::{DistributedError, Tensor, is_packed_by_tasks};
use maniple_tensor::element::ElementType;
use maniple_tensor::format::Format;
use maniple_tensor::generate::Generator;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::storage::{Duplicates, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_placements::FORMATS;

/// A generator, and extents of which it makes tensors.
fn a_generator(random: &mut Rng) -> (Generator, Vec<i64>) {
    let number = random.i64(1..40);
    let text = match random.usize(..8) {
        0 => format!("uniform:0.{:02}", random.usize(..40)),
        1 => format!("zipf:{}", 5 * number),
        2 => format!("band:{number}"),
        3 => format!("poisson:{}", 1 + number % 9),
        4 => format!("poisson3:{}", 1 + number % 4),
        5 => format!("rmat:{}", 1 + number % 5),
        6 => "arrow".to_owned(),
        _ => format!("hypersparse:{number}"),
    };
    let generator: Generator = text.parse().unwrap();
    let order = match generator {
        Generator::Band { .. } | Generator::Arrow => 2,
        _ => random.usize(1..=3),
    };
    let extents = generator.dimensions().unwrap_or_else(|| (0..order).map(|_| random.i64(0..40)).collect());
    (generator, extents)
}

#[test]
fn tensors_that_nodes_make_are_those_that_one_makes() {
    let most = std::env::var("MANIPLE_TESTS_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(160_u64);
    for nodes in 1..=4 {
        let results = on_nodes(Nodes::new(nodes as usize), async |cx, _| -> Result<usize> {
            let mut entries = 0;
            for seed in (nodes - 1) * most / 4..nodes * most / 4 {
                let mut random = Rng::with_seed(seed);
                let (generator, extents) = a_generator(&mut random);
                let formats = FORMATS[extents.len() - 1];
                let format: Format = formats[random.usize(..formats.len())].parse().unwrap();
                if !is_packed_by_tasks(&format) {
                    continue;
                }
                let variable = TensorVariable::new("B", ElementType::I64, extents.clone()).stored(format.clone());
                let about = format!("seed {seed}: {generator} of {extents:?} as {format} on {nodes} nodes");
                let made = Tensor::generated(cx, &variable, &generator, seed).await?.read_sparse::<i64>(cx).await?;
                let rows = generator.rows::<i64>(&extents, 0..extents[0], seed).unwrap();
                let expected = pack(&format, &extents, 0, rows, Duplicates::Sum).unwrap().tensor;
                assert_eq!(made.entries(), expected.entries(), "{about}");
                assert_eq!(made.values(), expected.values(), "{about}");
                entries += expected.values().len();
            }
            Ok(entries)
        });
        assert!(results.into_iter().all(|entries| entries.unwrap() > 500));
    }
}

#[test]
fn a_node_has_its_share_of_a_tensor_that_is_made() {
    for (generator, format) in
        [("poisson:100", "csr"), ("zipf:60000", "csr"), ("uniform:0.002", "dcsr"), ("band:9", "coo")]
    {
        let generator: Generator = generator.parse().unwrap();
        let extents = generator.dimensions().unwrap_or_else(|| vec![8000; 2]);
        let variable = TensorVariable::new("B", ElementType::F64, extents).stored(format.parse().unwrap());
        let peaks = |nodes: usize| -> Vec<u64> {
            let made = async |cx: &Context, runtime: &Runtime| -> Result<u64> {
                Tensor::generated(cx, &variable, &generator, 1).await?;
                cx.execution_fence().await?;
                Ok(runtime.memories().iter().map(|memory| memory.peak).sum())
            };
            on_nodes(Nodes::new(nodes).with_memory(1 << 30), made).into_iter().map(Result::unwrap).collect()
        };
        let whole = peaks(1)[0];
        for nodes in 2..=4 {
            let peaks = peaks(nodes);
            // Of the entries of a block the parts of all nodes are brought together, where each has its own.
            let most = whole / nodes as u64 * 14 / 10 + (256 << 10);
            assert!(peaks.iter().all(|peak| *peak <= most), "{generator} as {format}: {peaks:?} of {whole}");
        }
    }
}

#[test]
fn what_no_generator_makes_is_refused_on_all_nodes() {
    let results = on_nodes(Nodes::new(2), async |cx, _| -> Result<()> {
        let variable = |format: &str, extents: Vec<i64>| {
            TensorVariable::new("B", ElementType::F64, extents).stored(format.parse().unwrap())
        };
        let band: Generator = "band:3".parse().unwrap();
        let error = Tensor::generated(cx, &variable("csf:3", vec![4; 3]), &band, 0).await.unwrap_err();
        assert!(matches!(error, DistributedError::Generate { .. }), "{error}");
        assert_eq!(error.to_string(), "B: band:3 makes matrices, and no tensor of extents [4, 4, 4]");
        let blocks = variable("(i,j) -> (i/2: D, j/2: D, i%2: D, j%2: D)", vec![4; 2]);
        let error = Tensor::generated(cx, &blocks, &band, 0).await.unwrap_err();
        assert!(matches!(error, DistributedError::Dense { .. }), "{error}");
        let dense = Tensor::generated(cx, &variable("rows", vec![4; 2]), &band, 0).await?;
        let listed = Tensor::generated(cx, &variable("coo", vec![4; 2]), &band, 0).await?;
        let found = dense.read_elements::<f64>(cx).await?;
        let right = listed.converted(cx, &variable("rows", vec![4; 2])).await?.read_elements::<f64>(cx).await?;
        assert!(found == right && found.iter().filter(|element| **element != 0.0).count() == 10, "{found:?}");
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}
