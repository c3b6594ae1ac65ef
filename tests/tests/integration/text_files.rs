//! Tensors in text files of which each node reads its own ranges of bytes: what is stored is what the whole file has.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use fastrand::Rng;
use maniple::Result;
use maniple_tensor::distributed::{DistributedError, Tensor, TextFile};
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

/// A file, and what is in it: entries in the order of the file, each with those that follow by symmetry.
struct Case {
    text: String,
    is_matrix: bool,
    extents: Vec<i64>,
    entries: EntryList<f64>,
}

impl Case {
    /// Some entries at random places, several of them at one.
    fn random(rng: &mut Rng) -> Self {
        let is_matrix = rng.bool();
        let is_symmetric = is_matrix && rng.bool();
        let order = if is_matrix { 2 } else { rng.usize(1..4) };
        let mut extents: Vec<i64> = (0..order).map(|_| rng.i64(1..30)).collect();
        if is_symmetric {
            extents[1] = extents[0];
        }
        let (mut entries, mut lines, mut largest) = (EntryList::new(order), String::new(), vec![0; order]);
        let count = rng.usize(usize::from(!is_matrix)..200);
        for number in 0..count {
            let mut at: Vec<i64> = extents.iter().map(|&extent| rng.i64(0..extent)).collect();
            if is_symmetric && at[1] > at[0] {
                at.swap(0, 1);
            }
            largest.iter_mut().zip(&at).for_each(|(largest, at)| *largest = (*largest).max(*at));
            let value = number as f64 / 4.0 - 3.0;
            at.iter().for_each(|at| write!(lines, "{} ", at + 1).unwrap());
            writeln!(lines, "{value}").unwrap();
            entries.push(&at, value);
            if is_symmetric && at[0] != at[1] {
                entries.push(&[at[1], at[0]], value);
            }
            if rng.usize(..20) == 0 {
                lines += if is_matrix { "% a remark\n\n" } else { "# a remark\n\n" };
            }
        }
        if !is_matrix {
            // The extents are those of what is there.
            (extents.iter_mut().zip(&largest)).for_each(|(extent, largest)| *extent = *largest + 1);
        }
        let symmetry = if is_symmetric { "symmetric" } else { "general" };
        let head = match &extents[..] {
            [rows, columns] if is_matrix => {
                format!("%%MatrixMarket matrix coordinate real {symmetry}\n{rows} {columns} {count}\n")
            }
            _ => String::new(),
        };
        Self { text: head + &lines, is_matrix, extents, entries }
    }

    fn variable(&self, format: &str) -> TensorVariable {
        TensorVariable::new("B", ElementType::F64, self.extents.clone()).stored(format.parse().unwrap())
    }

    /// What one reader stores of it.
    fn stored(&self, format: &str) -> SparseTensor<f64> {
        let format = format.parse().unwrap();
        pack(&format, &self.extents, 0.0, self.entries.clone(), Duplicates::Sum).unwrap().tensor
    }
}

fn opened(path: &Path, is_matrix: bool) -> TextFile {
    let file = if is_matrix { TextFile::matrix_market(path) } else { TextFile::tns(path) };
    file.unwrap()
}

#[test]
fn what_nodes_read_together_is_what_the_file_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tensor");
    for seed in 0..120 {
        let mut rng = Rng::with_seed(seed);
        let case = Case::random(&mut rng);
        fs::write(&path, &case.text).unwrap();
        let formats = match case.extents.len() {
            1 => &["{C}", "{B}", "{H}"][..],
            2 => &["csr", "csc", "dcsr", "coo:2", "bitmap", "bcsr:2x3", "dia"],
            _ => &["csf:3", "coo:3", "{D,C,D}(2,0,1)"],
        };
        let format = formats[rng.usize(..formats.len())];
        let nodes = rng.usize(1..5);
        let done = on_nodes(Nodes::new(nodes), async |cx, _| {
            let file = opened(&path, case.is_matrix);
            let (tensor, bytes) = Tensor::read_text(cx, &case.variable(format), &file).await?;
            assert_eq!(bytes.len(), nodes);
            Ok(tensor.read_sparse::<f64>(cx).await?)
        });
        for found in done {
            let (found, right) = (found.unwrap(), case.stored(format));
            let list = |tensor: &SparseTensor<f64>| {
                let mut all = Vec::new();
                tensor.for_each(|at, value| all.push((at.to_vec(), value)));
                all
            };
            assert_eq!(list(&found), list(&right), "seed {seed}: as {format} on {nodes}\n{}", case.text);
        }
    }
}

/// A matrix of about two megabytes of text.
fn large() -> String {
    let mut text = "%%MatrixMarket matrix coordinate real general\n2000 2000 100000\n".to_owned();
    (0..100_000_u64)
        .for_each(|number| writeln!(text, "{} {} {}.5", number * 7 % 2000 + 1, number / 50 + 1, number).unwrap());
    text
}

#[test]
fn each_node_reads_its_own_bytes_and_has_its_share() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.mtx");
    let text = large();
    fs::write(&path, &text).unwrap();
    let variable = TensorVariable::new("B", ElementType::F64, vec![2000, 2000]).stored("csr".parse().unwrap());
    for nodes in [1, 2, 4] {
        let done = on_nodes(Nodes::new(nodes).with_memory(1 << 30), async |cx, runtime| -> Result<_> {
            let (_tensor, bytes) = Tensor::read_text(cx, &variable, &opened(&path, true)).await?;
            cx.execution_fence().await?;
            Ok((bytes, runtime.memories().iter().map(|memory| memory.peak).sum::<u64>()))
        });
        for done in done {
            let (bytes, peak) = done.unwrap();
            // Twice, and what is looked at for ends of lines.
            let share = 2 * text.len() as u64 / nodes as u64;
            let most = share + share / 5 + (64 << 10);
            assert!(bytes.iter().all(|&bytes| (share * 4 / 5..most).contains(&bytes)), "{bytes:?} of {}", text.len());
            // Entries of 16 bytes are listed; what is stored has 12.
            let share = 100_000 * (16 + 12) / nodes as u64;
            assert!(peak <= share * 13 / 10 + (256 << 10), "{peak} of {share} on {nodes}");
        }
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line_on_all_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.mtx");
    let variable = TensorVariable::new("B", ElementType::F64, vec![2000, 2000]).stored("csr".parse().unwrap());
    let told = |text: &str| {
        fs::write(&path, text).unwrap();
        let done =
            on_nodes(Nodes::new(3), async |cx, _| match Tensor::read_text(cx, &variable, &opened(&path, true)).await {
                Err(DistributedError::File { name, reason, is_input: true }) => {
                    Ok(format!("{}: {reason}", name.strip_prefix(&path.display().to_string()).unwrap()))
                }
                other => panic!("{other:?}"),
            });
        let mut told: Vec<String> = done.into_iter().map(Result::unwrap).collect();
        told.dedup();
        assert_eq!(told.len(), 1, "{told:?}");
        told.remove(0)
    };
    let text = large();
    let line = text.lines().nth(69_999).unwrap();
    assert!(told(&text.replace(&format!("\n{line}\n"), "\n2001 1 1\n")).starts_with(":70000: "));
    assert_eq!(
        told(&text.replace(&format!("\n{line}\n"), "\n")),
        ":100001: the file ends after 99999 of 100000 entries"
    );
    let more = format!("{text}1 1 1\n");
    assert!(told(&more).contains("has 100001 entries, and says that it has 100000"));
}

#[test]
fn coordinates_that_no_tensor_has_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.tns");
    for at in ["18446744069414584322", "9223372036854775808"] {
        fs::write(&path, format!("{at} 1 5\n1 1 2\n")).unwrap();
        let file = opened(&path, false);
        let variable = TensorVariable::new("B", ElementType::F64, file.dimensions().to_vec());
        let variable = variable.stored("csr".parse().unwrap());
        for outcome in on_nodes(Nodes::new(2), async |cx, _| Ok(Tensor::read_text(cx, &variable, &file).await.err())) {
            assert!(outcome.unwrap().is_some(), "{at}");
        }
    }
}
