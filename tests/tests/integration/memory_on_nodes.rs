//! How much memory of each node a tensor takes that is dealt to all, by the runtime's own count: a node has its share,
//! whichever way the tensor came.

use std::fs;
use std::sync::Arc;

use maniple::{Context, Result, Runtime};
use maniple_files::tcs::{TcsHeader, TcsPart, Width};
use maniple_tensor::distributed::{Computation, DistributedError, TcsFile, Tensor, TextForm, Writers};
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::plan::Plan;
use maniple_tensor::rectangle::Rectangle;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse;
use maniple_tensor::storage::{Duplicates, EntryList, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::tcs_files::Case;

/// Bytes that a node may have besides its share: at the ends of its parts, pages of which other nodes have the rest,
/// and small data as a whole.
const SLACK: u64 = 192 << 10;

/// The most bytes of instances that a node had at a time.
fn peak(runtime: &Runtime) -> u64 {
    runtime.memories().iter().map(|memory| memory.peak).sum()
}

/// Checks that no node had more than its share of so many bytes at a time, and all together at least all.
fn check(whole: u64, peaks: &[u64], what: &str) {
    let share = whole / peaks.len() as u64;
    assert!(peaks.iter().all(|peak| *peak <= share * 13 / 10 + SLACK), "{what}: {peaks:?} of {whole}");
    assert!(peaks.iter().sum::<u64>() >= whole, "{what}: {peaks:?} of {whole}");
}

/// The bytes of the arrays of a file in memory, with numbers as narrow as they can be.
fn in_memory(header: &TcsHeader) -> u64 {
    let number = if header.levels.iter().any(|level| level.extent() > 1 << 31) { 8 } else { 4 };
    let size = |part| if part == TcsPart::Values { header.size(part) } else { number };
    header.parts().map(|part| header.section(part).length * size(part)).sum()
}

/// The sums of the rows of a matrix, or of a tensor of more dimensions, each element times that of a vector.
struct Sums {
    plan: Arc<Plan>,
    result: TensorVariable,
    vector: TensorVariable,
}

impl Sums {
    fn of(operand: &TensorVariable, nodes: usize) -> Self {
        let extents = operand.dimensions();
        let vector = |name, extent| TensorVariable::new(name, operand.element(), [extent]);
        let (result, vector) = (vector("a", extents[0]), vector("c", extents[extents.len() - 1]));
        let text = if extents.len() == 2 { "a(i) = B(i,j) * c(j)" } else { "a(i) = B(i,j,k) * c(k)" };
        let variables = [result.clone(), operand.clone(), vector.clone()];
        let assignment = parse(text, &variables).unwrap();
        let loops = sparse::Computation::new(&assignment).unwrap();
        let schedule = format!("distribute(i, io, ii, {})", 2 * nodes);
        let statement = Schedule::parse(&schedule, &variables).unwrap().apply(loops.statement()).unwrap();
        Self { plan: Arc::new(Plan::new(&statement).unwrap()), result, vector }
    }

    /// Computes them twice, for which all that is launched is known the second time.
    async fn run(&self, cx: &Context, operand: &Tensor) -> Result<(), DistributedError> {
        let (result, vector) = (Tensor::new(cx, &self.result)?, Tensor::new(cx, &self.vector)?);
        vector.write_elements(cx, vec![1.0; self.vector.dimensions()[0] as usize])?;
        let computation = Computation::new(cx, &self.plan, &[&result, operand, &vector]).await?;
        for _ in 0..2 {
            computation.launch(cx)?.await?;
        }
        Ok(cx.execution_fence().await?)
    }
}

/// The peaks of all nodes after a tensor was made there, and after it was computed with besides.
fn peaks(
    nodes: usize,
    variable: &TensorVariable,
    make: impl AsyncFn(&Context) -> Result<Tensor, DistributedError> + Sync,
) -> [Vec<u64>; 2] {
    let sums = Sums::of(variable, nodes);
    let job = Nodes::new(nodes).with_memory(1 << 30);
    let done = on_nodes(job, async |cx, runtime| -> Result<(u64, u64)> {
        let tensor = make(cx).await?;
        cx.execution_fence().await?;
        let made = peak(runtime);
        sums.run(cx, &tensor).await?;
        Ok((made, peak(runtime)))
    });
    let (made, used) = done.into_iter().map(Result::unwrap).unzip();
    [made, used]
}

#[test]
fn a_node_has_its_share_of_a_file_that_is_loaded_and_computed_with() {
    let folder = tempfile::tempdir().unwrap();
    for (extents, levels, width) in [
        (&[3000, 400][..], "ds", Width::Four),
        (&[3000, 400], "ds", Width::Eight),
        (&[3000, 400], "ss", Width::Four),
        (&[1 << 40, 1 << 40], "ss", Width::Eight),
        (&[60, 80, 90], "sss", Width::Four),
        (&[60, 80, 90], "sss", Width::Eight),
        (&[60, 80, 90], "dds", Width::Eight),
        (&[900, 300], "dd", Width::Eight),
    ] {
        let modes: Vec<usize> = (0..extents.len()).collect();
        let case = Case::random(extents, (levels, &modes), 100_000, |number| number as f64);
        let path = folder.path().join(format!("{levels}.tcs"));
        fs::write(&path, case.file(width)).unwrap();
        let (variable, whole) = (case.variable("B"), in_memory(TcsFile::open(&path).unwrap().header()));
        for nodes in 1..=4 {
            let load = async |cx: &Context| {
                let file = TcsFile::open(&path).unwrap();
                Ok(Tensor::load(cx, &variable, &file).await?.0)
            };
            let what = format!("{levels} {extents:?} of {width:?} on {nodes}");
            if extents[0] > 1 << 30 {
                // No vector is as long.
                let done = on_nodes(Nodes::new(nodes).with_memory(1 << 30), async |cx, runtime| {
                    load(cx).await?;
                    Ok(peak(runtime))
                });
                check(whole, &done.into_iter().map(Result::unwrap).collect::<Vec<_>>(), &what);
                continue;
            }
            let [loaded, computed] = peaks(nodes, &variable, load);
            check(whole, &loaded, &what);
            check(whole, &computed, &format!("{what}, computed with"));
        }
    }
}

#[test]
fn a_node_has_its_share_of_what_it_writes_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let case = Case::random(&[3000, 400], ("ds", &[0, 1]), 100_000, |number| number as f64);
    let path = folder.path().join("matrix.tcs");
    fs::write(&path, case.file(Width::Four)).unwrap();
    let (variable, whole) = (case.variable("B"), in_memory(TcsFile::open(&path).unwrap().header()));
    let mut texts = Vec::new();
    for nodes in 1..=4 {
        let text = folder.path().join(format!("{nodes}.mtx"));
        let done = on_nodes(Nodes::new(nodes).with_memory(1 << 30), async |cx, runtime| -> Result<u64> {
            let tensor = Tensor::load(cx, &variable, &TcsFile::open(&path).unwrap()).await?.0;
            let written = tensor.store_text(cx, &text, TextForm::MatrixMarket, Writers::Together).await?;
            assert!(written.bytes.iter().all(|bytes| *bytes > 0), "{written:?}");
            cx.execution_fence().await?;
            Ok(peak(runtime))
        });
        let peaks: Vec<u64> = done.into_iter().map(Result::unwrap).collect();
        check(whole, &peaks, &format!("written on {nodes}"));
        texts.push(fs::read(&text).unwrap());
    }
    assert!(texts.iter().all(|text| *text == texts[0]));
}

#[test]
fn a_node_has_its_share_of_dense_elements_that_are_made_or_written() {
    let (rows, columns) = (600_i64, 400_i64);
    let whole = (rows * columns * 8) as u64;
    for nodes in 1..=4 {
        let made = format!("made on {nodes}");
        let variable = TensorVariable::new("B", ElementType::F64, [rows, columns]);
        let slabs: Vec<Rectangle> = (0..2 * nodes as i64)
            .map(|slab| {
                let bounds = [slab, slab + 1].map(|end| end * rows / (2 * nodes as i64));
                Rectangle::new([(bounds[0], bounds[1]), (0, columns)])
            })
            .collect();
        let generate = async |cx: &Context| {
            let tensor = Tensor::new(cx, &variable)?;
            tensor.generate(cx, &slabs, |at| (at[0] + at[1]) as f64)?;
            Ok(tensor)
        };
        for peaks in peaks(nodes, &variable, generate) {
            check(whole, &peaks, &made);
        }
        let elements = Arc::new(vec![1.5; (rows * columns) as usize]);
        let write = async |cx: &Context| {
            let tensor = Tensor::new(cx, &variable)?;
            tensor.write_elements(cx, Arc::clone(&elements))?;
            Ok(tensor)
        };
        for peaks in peaks(nodes, &variable, write) {
            check(whole, &peaks, &format!("written on {nodes}"));
        }
    }
}

#[test]
fn a_node_has_its_share_of_a_sparse_tensor_that_all_are_given() {
    let variable =
        |format: &str| TensorVariable::new("B", ElementType::F64, [3000, 400]).stored(format.parse().unwrap());
    for format in ["csr", "dcsr"] {
        let variable = variable(format);
        let mut entries = EntryList::new(2);
        (0..3000).for_each(|row| (0..34).for_each(|entry| entries.push(&[row, entry * 11 + row % 11], 0.5)));
        let stored = pack(variable.format(), variable.dimensions(), 0.0, entries, Duplicates::Sum).unwrap().tensor;
        let (whole, stored) = (stored.values().len() as u64 * 12, Arc::new(stored));
        for nodes in 1..=4 {
            let give = async |cx: &Context| Tensor::from_sparse(cx, &variable, Arc::clone(&stored));
            for peaks in peaks(nodes, &variable, give) {
                check(whole, &peaks, &format!("{format} on {nodes}"));
            }
        }
    }
}
