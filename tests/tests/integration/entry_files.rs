//! Tensors in files of which each node reads its own ranges of bytes: what is stored is what the whole file has.

use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use maniple::Result;
use maniple_files::npz::{ArrayValues, Compression, Sparse, Structure};
use maniple_files::{InTurn, npy};
use maniple_tensor::distributed::{DistributedError, EntryFile, Tensor, Writers, is_made_by_tasks};
use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::notation::{TensorVariable, cast};
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tensor::with_element;
use maniple_tests::nodes::{Nodes, on_nodes};

/// The contents of a file: entries in the order of the text, each with those that follow by symmetry.
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

    /// The tensor that one reader stores of it.
    fn stored(&self, format: &str) -> SparseTensor<f64> {
        let format = format.parse().unwrap();
        pack(&format, &self.extents, 0.0, self.entries.clone(), Duplicates::Sum).unwrap().tensor
    }
}

fn opened(path: &Path) -> EntryFile {
    match path.extension().unwrap().to_str().unwrap() {
        "mtx" => EntryFile::matrix_market(path, &InTurn).unwrap(),
        "tns" => EntryFile::tns(path, &InTurn).unwrap(),
        "npy" => EntryFile::npy(path).unwrap(),
        _ => EntryFile::npz(path).unwrap().unwrap(),
    }
}

impl Case {
    /// Writes it to one of the files that it may be in.
    fn write(&self, folder: &Path, rng: &mut Rng) -> PathBuf {
        let shape: Vec<u64> = self.extents.iter().map(|&extent| extent as u64).collect();
        let path = |extension: &str| folder.join("tensor").with_extension(extension);
        match rng.u8(0..4) {
            0 => {
                let dense = self.stored(&format!("dense:{}", shape.len())).values().to_vec();
                match (&shape[..], rng.bool()) {
                    // A text that lists all elements, or those below the diagonal.
                    (&[rows, columns], true) => {
                        let path = path("mtx");
                        let is_symmetric = self.text.contains(" symmetric");
                        let symmetry = if is_symmetric { "symmetric" } else { "general" };
                        let mut text = format!("%%MatrixMarket matrix array real {symmetry}\n{rows} {columns}\n");
                        for column in 0..columns {
                            for row in if is_symmetric { column } else { 0 }..rows {
                                writeln!(text, "{}", dense[(row * columns + column) as usize]).unwrap();
                            }
                        }
                        fs::write(&path, text).unwrap();
                        path
                    }
                    _ => {
                        let path = path("npy");
                        npy::write_array(&mut File::create(&path).unwrap(), &shape, &dense).unwrap();
                        path
                    }
                }
            }
            1 | 2 => {
                let (coordinates, values) = self.entries.clone().into_parts();
                let (structure, values) = match shape.len() {
                    2 if rng.bool() => {
                        let row = rng.usize(0..2);
                        let mut order: Vec<usize> = (0..values.len()).collect();
                        order.sort_by_key(|&entry| coordinates[row][entry]);
                        let before = |row: &i64, all: &[i64]| all.iter().filter(|other| *other < row).count() as i64;
                        let starts = (0..=self.extents[row]).map(|at| before(&at, &coordinates[row])).collect();
                        let columns = order.iter().map(|&entry| coordinates[1 - row][entry]).collect();
                        let structure = Structure::Compressed { rows: vec![row], starts, columns };
                        (structure, order.iter().map(|&entry| values[entry]).collect())
                    }
                    _ => (Structure::Coordinates(coordinates), values),
                };
                let path = path("npz");
                let sparse = Sparse::new(shape, structure, ArrayValues::F64(values), None).unwrap();
                let compression = if rng.bool() { Compression::None } else { Compression::Deflate };
                sparse.write(File::create(&path).unwrap(), compression).unwrap();
                path
            }
            _ => {
                let path = path(if self.is_matrix { "mtx" } else { "tns" });
                fs::write(&path, &self.text).unwrap();
                path
            }
        }
    }
}

#[test]
fn what_nodes_read_together_is_what_the_file_has() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let case = Case::random(&mut rng);
        let path = case.write(folder.path(), &mut rng);
        let formats = match case.extents.len() {
            1 => &["{C}", "{B}", "{H}", "dense:1"][..],
            2 => &["csr", "csc", "dcsr", "coo:2", "bitmap", "bcsr:2x3", "dia", "dense:2", "{D,D}(1,0)"],
            _ => &["csf:3", "coo:3", "{D,C,D}(2,0,1)", "dense:3", "{D,D,D}(1,2,0)"],
        };
        let format = formats[rng.usize(..formats.len())];
        let nodes = rng.usize(1..5);
        let done = on_nodes(Nodes::new(nodes), async |cx, _| {
            let file = opened(&path);
            let variable = case.variable(format);
            assert!(is_made_by_tasks(variable.format()));
            let (tensor, bytes) = Tensor::read_entries(cx, &variable, &file).await?;
            assert_eq!(bytes.len(), nodes);
            if !variable.format().is_dense() {
                return Ok(tensor.read_sparse::<f64>(cx).await?);
            }
            let elements = tensor.read_elements::<f64>(cx).await?;
            Ok(SparseTensor::from_elements(&case.extents, 0.0, elements).unwrap())
        });
        for found in done {
            let (found, right) = (found.unwrap(), case.stored(format));
            let list = |tensor: &SparseTensor<f64>| {
                let mut all = Vec::new();
                tensor.for_each(|at, value| all.push((at.to_vec(), value)));
                // Zeros of dense arrays are not stored, and dense tensors have all.
                all.retain(|(_, value)| *value != 0.0);
                all.sort_by(|(one, _), (other, _)| one.cmp(other));
                all
            };
            let name = path.display();
            assert_eq!(list(&found), list(&right), "seed {seed}: {name} as {format} on {nodes}\n{}", case.text);
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
    // Entries are kept from when they are counted until they are listed, where there is room for them.
    let cases = [1, 2, 4].map(|nodes| (nodes, 1 << 30, 1)).into_iter().chain([(1, 8 << 20, 2), (2, 4 << 20, 2)]);
    for (nodes, memory, times) in cases {
        let done = on_nodes(Nodes::new(nodes).with_memory(memory), async |cx, runtime| -> Result<_> {
            let (_tensor, bytes) = Tensor::read_entries(cx, &variable, &opened(&path)).await?;
            cx.execution_fence().await?;
            Ok((bytes, runtime.memories().iter().map(|memory| memory.peak).sum::<u64>()))
        });
        for done in done {
            let (bytes, peak) = done.unwrap();
            // Once or twice, what is looked at for ends of lines, and samples of the whole.
            let share = times * text.len() as u64 / nodes as u64;
            let most = share + share / 20 + (320 << 10);
            let is_share = |bytes: &u64| (share * 4 / 5..most).contains(bytes);
            assert!(bytes.iter().all(is_share), "{bytes:?} of {} on {nodes}, {memory}", text.len());
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
            on_nodes(Nodes::new(3), async |cx, _| match Tensor::read_entries(cx, &variable, &opened(&path)).await {
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
    let fewer = text.replace(&format!("\n{line}\n"), "\n");
    for text in [&fewer, fewer.trim_end()] {
        assert_eq!(told(text), ":100001: the file ends after 99999 of 100000 entries");
    }
    let more = format!("{text}1 1 1\n");
    assert!(told(&more).contains("has 100001 entries, and says that it has 100000"));
}

#[test]
fn coordinates_that_no_tensor_has_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.tns");
    for at in ["18446744069414584322", "9223372036854775808"] {
        fs::write(&path, format!("1 1 2\n{at} 1 5\n")).unwrap();
        let refused = EntryFile::tns(&path, &InTurn).err().unwrap().to_string();
        assert!(refused.contains(&format!("line 2: coordinate {at} is too large")), "{refused}");
    }
}

/// A matrix whose elements all differ.
fn numbers(rows: usize, columns: usize) -> Vec<f64> {
    (0..rows * columns).map(|number| number as f64 - 7.5).collect()
}

#[test]
fn dense_tensors_are_read_once_in_the_order_of_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dense.npy");
    for (rows, columns) in [(1500, 300), (40_000, 7), (1, 9), (3, 1)] {
        let all = numbers(rows, columns);
        npy::write_array(&mut File::create(&path).unwrap(), &[rows as u64, columns as u64], &all).unwrap();
        let extents = vec![rows as i64, columns as i64];
        let variable = TensorVariable::new("B", ElementType::F64, extents).stored("dense:2".parse().unwrap());
        for nodes in [1, 2, 3] {
            let done = on_nodes(Nodes::new(nodes).with_memory(1 << 30), async |cx, runtime| {
                let file = opened(&path);
                let (tensor, bytes) = Tensor::read_entries(cx, &variable, &file).await?;
                let peak = runtime.memories().iter().map(|memory| memory.peak).sum::<u64>();
                Ok((tensor.read_elements::<f64>(cx).await?, bytes, peak))
            });
            for done in done {
                let (found, bytes, peak) = done.unwrap();
                assert!(found == all, "{rows} x {columns} on {nodes}");
                let share = (8 * all.len() / nodes) as u64;
                let most = share * 13 / 10 + (320 << 10);
                assert!(bytes.iter().all(|&bytes| bytes <= most) && peak <= most, "{bytes:?}, {peak} of {share}");
            }
        }
    }
}

#[test]
fn dense_tensors_are_read_once_in_another_order_than_that_of_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let (binary, text) = (folder.path().join("rows.npy"), folder.path().join("columns.mtx"));
    // One column is more than what is read at once, or many are.
    for (rows, columns) in [(150_000, 2), (2, 150_000), (600, 500), (1, 9), (3, 1)] {
        let all = numbers(rows, columns);
        let shape = [rows as u64, columns as u64];
        npy::write_array(&mut File::create(&binary).unwrap(), &shape, &all).unwrap();
        let mut lines = format!("%%MatrixMarket matrix array real general\n{rows} {columns}\n");
        for place in 0..all.len() {
            writeln!(lines, "{}", all[place % rows * columns + place / rows]).unwrap();
        }
        fs::write(&text, lines).unwrap();
        let variable = TensorVariable::new("B", ElementType::F64, vec![rows as i64, columns as i64]);
        for (path, format) in [(&binary, "{D,D}(1,0)"), (&text, "dense:2"), (&text, "{D,D}(1,0)")] {
            let variable = variable.stored(format.parse().unwrap());
            let nodes = 1 + all.len() % 3;
            for done in on_nodes(Nodes::new(nodes).with_memory(1 << 30), async |cx, _| {
                let (tensor, bytes) = Tensor::read_entries(cx, &variable, &opened(path)).await?;
                Ok((tensor.read_elements::<f64>(cx).await?, bytes))
            }) {
                let (found, bytes) = done.unwrap();
                let name = path.display();
                assert!(found == all, "{rows} x {columns} of {name} as {format} on {nodes}");
                // From the text, some lines are read to come to those that are wanted.
                let length = fs::metadata(path).unwrap().len();
                let most = length / nodes as u64 * 13 / 10 + (2 << 20);
                assert!(bytes.iter().all(|&bytes| bytes <= most), "{bytes:?} of {length} bytes of {name}");
            }
        }
    }
}

#[test]
fn numbers_of_any_type_are_read_as_elements_of_any_that_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let shorts = [0_i16, 3, -4, 0, 5, 1];
    npy::write_array(&mut File::create(path("shorts.npy")).unwrap(), &[2, 3], &shorts).unwrap();
    fs::write(path("real.mtx"), "%%MatrixMarket matrix coordinate real general\n2 3 4\n1 2 3\n1 3 -4\n2 2 5\n2 3 1\n")
        .unwrap();
    fs::write(path("all.mtx"), "%%MatrixMarket matrix array real general\n2 3\n0\n0\n3\n5\n-4\n1\n").unwrap();
    fs::write(path("entries.tns"), "1 2 3\n1 3 -4\n2 2 5\n2 3 1\n").unwrap();
    let coordinates = Structure::Coordinates(vec![vec![0, 0, 1, 1], vec![1, 2, 1, 2]]);
    let sparse = Sparse::new(vec![2, 3], coordinates, ArrayValues::F32(vec![3.0, -4.0, 5.0, 1.0]), None).unwrap();
    sparse.write(File::create(path("sparse.npz")).unwrap(), Compression::Deflate).unwrap();
    let right: Vec<f64> = shorts.iter().map(|&number| f64::from(number)).collect();
    for name in ["shorts.npy", "real.mtx", "all.mtx", "entries.tns", "sparse.npz"] {
        for element in [ElementType::I8, ElementType::I64, ElementType::F32, ElementType::F64, ElementType::C64] {
            for format in ["csr", "dense:2"] {
                let variable = TensorVariable::new("B", element, vec![2, 3]).stored(format.parse().unwrap());
                for found in on_nodes(Nodes::new(2), async |cx, _| {
                    let (tensor, _) = Tensor::read_entries(cx, &variable, &opened(&path(name))).await?;
                    let stored = match format {
                        "csr" => tensor.converted(cx, &variable.stored("dense:2".parse().unwrap())).await?,
                        _ => tensor,
                    };
                    Ok(with_element!(element, T => {
                        stored.read_elements::<T>(cx).await?.into_iter().map(Element::to_scalar).collect::<Vec<_>>()
                    }))
                }) {
                    let found: Vec<f64> = found.unwrap().into_iter().filter_map(real).collect();
                    assert_eq!(found, right, "{name} as {element} in {format}");
                }
            }
        }
        // 5 is no truth value, and -4 no natural number, as text or as what it was read as.
        for (element, number) in [(ElementType::U8, "-4"), (ElementType::Bool, "")] {
            let variable = TensorVariable::new("B", element, vec![2, 3]).stored("csr".parse().unwrap());
            for told in on_nodes(Nodes::new(2), async |cx, _| {
                match Tensor::read_entries(cx, &variable, &opened(&path(name))).await {
                    Err(DistributedError::File { reason, is_input: true, .. }) => Ok(reason),
                    other => panic!("{name} as {element}: {other:?}"),
                }
            }) {
                let told = told.unwrap();
                let (begin, end) = (format!("it has the element {number}"), format!("which is no {element}: read it"));
                let of_text =
                    ["the value '-4' is below zero, and uint8 has no sign", "the value '3' is no truth value, 0 or 1"];
                let is_text = of_text[usize::from(element == ElementType::Bool)] == told;
                assert!(is_text || told.starts_with(&begin) && told.contains(&end), "{told}");
            }
        }
    }
}

/// The number, if it is real.
fn real(scalar: Scalar) -> Option<f64> {
    match cast(scalar, ElementType::C64) {
        Scalar::C64(number) if number.im == 0.0 => Some(number.re),
        _ => None,
    }
}

#[test]
fn arrays_by_columns_are_read_as_tensors_by_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("columns.npy");
    let all = numbers(50, 40);
    let head = npy::header_of("<f8", maniple_files::Order::Columns, &[40, 50]).unwrap();
    let bytes: Vec<u8> = all.iter().flat_map(|number| number.to_le_bytes()).collect();
    fs::write(&path, [head, bytes].concat()).unwrap();
    let variable = TensorVariable::new("B", ElementType::F64, vec![40, 50]).stored("{D,D}(1,0)".parse().unwrap());
    let right: Vec<f64> = (0..2000).map(|place| all[place % 50 * 40 + place / 50]).collect();
    for done in on_nodes(Nodes::new(2), async |cx, _| {
        let (tensor, _) = Tensor::read_entries(cx, &variable, &opened(&path)).await?;
        Ok(tensor.read_elements::<f64>(cx).await?)
    }) {
        assert_eq!(done.unwrap(), right);
    }
}

/// The errors that all nodes get of files, of which each node reads its own.
fn told_of(paths: &[PathBuf], meddle: impl Fn(usize) + Sync) -> Vec<String> {
    let variable = TensorVariable::new("B", ElementType::F64, vec![300, 200]).stored("csr".parse().unwrap());
    let done = on_nodes(Nodes::new(paths.len()), async |cx, runtime| {
        let file = opened(&paths[runtime.node()]);
        meddle(runtime.node());
        match Tensor::read_entries(cx, &variable, &file).await {
            Err(DistributedError::File { reason, is_input: true, .. }) => Ok(reason),
            other => panic!("{other:?}"),
        }
    });
    done.into_iter().map(Result::unwrap).collect()
}

#[test]
fn damaged_arrays_are_told_of_on_all_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.npz");
    let (starts, columns) = ((0..=300).map(|row| row * 10).collect(), (0..3000).map(|entry| entry % 200).collect());
    let structure = Structure::Compressed { rows: vec![0], starts, columns };
    let sparse = Sparse::new(vec![300, 200], structure, ArrayValues::F64(numbers(300, 10)), None).unwrap();
    sparse.write(File::create(&path).unwrap(), Compression::None).unwrap();
    let right = fs::read(&path).unwrap();
    let find = |name: &str| {
        let begin = right.windows(name.len()).position(|found| found == name.as_bytes()).unwrap();
        begin + right[begin..].windows(6).position(|found| found == b"\x93NUMPY").unwrap() + 128
    };
    for (name, place, said) in [
        ("data", 20_001, "array 'data' is damaged: its checksum is "),
        ("indices", 4 * 2500, "array 'indices' is damaged: its checksum is "),
        ("indices", 4 * 2500 + 3, "'indices' has the number "),
        ("indptr", 4 * 299 + 3, "'indptr' has "),
    ] {
        let mut damaged = right.clone();
        damaged[find(&format!("{name}.npy")) + place] ^= 1;
        fs::write(&path, damaged).unwrap();
        let told = told_of(&[path.clone(), path.clone()], |_| {});
        assert!(told[0].contains(said) && told[0] == told[1], "{told:?}");
    }
}

#[test]
fn a_file_that_one_node_cannot_read_is_told_of_on_all() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..3).map(|node| folder.path().join(format!("{node}.mtx"))).collect();
    let lines: String = (0..6000).map(|entry| format!("{} {} 1\n", entry / 20 + 1, entry % 200 + 1)).collect();
    let text = format!("%%MatrixMarket matrix coordinate real general\n300 200 6000\n{lines}");
    paths.iter().for_each(|path| fs::write(path, &text).unwrap());
    let shorten = |node: usize| {
        if node == 1 {
            File::options().write(true).open(&paths[1]).unwrap().set_len(100).unwrap();
        }
    };
    let told = told_of(&paths, shorten);
    assert!(told[0].starts_with("cannot be read: ") && told.iter().all(|one| *one == told[0]), "{told:?}");
    fs::write(&paths[1], text.replace("\n1 1 1\n", "\n1 1 2\n")).unwrap();
    let told = told_of(&paths, |_| {});
    let said = "it is not the same on node 1 as on node 0: all nodes must have the same file";
    assert!(told.iter().all(|one| one == said), "{told:?}");
}

#[test]
fn dense_tensors_are_written_by_all_nodes_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dense.npy");
    let cases: [(&str, &[i64]); 4] =
        [("dense:1", &[70_000]), ("dense:2", &[300, 250]), ("{D,D}(1,0)", &[40, 900]), ("dense:3", &[20, 30, 40])];
    for (format, extents) in cases {
        let variable = TensorVariable::new("A", ElementType::I64, extents.to_vec()).stored(format.parse().unwrap());
        let value = |at: &[i64]| at.iter().fold(7, |value, at| value * 1000 + at);
        for (nodes, writers) in [(1, Writers::Together), (3, Writers::Together), (2, Writers::InTurn)] {
            let done = on_nodes(Nodes::new(nodes), async |cx, _| {
                let tensor = Tensor::new(cx, &variable)?;
                tensor.generate(cx, &tensor.slabs(nodes), value)?;
                let written = tensor.store_npy(cx, &path, writers).await?;
                let (again, _) = Tensor::read_entries(cx, &variable, &opened(&path)).await?;
                Ok((written.bytes, again.read_elements::<i64>(cx).await?, tensor.read_elements::<i64>(cx).await?))
            });
            for done in done {
                let (bytes, again, all) = done.unwrap();
                assert_eq!(bytes.iter().sum::<u64>() as usize, 8 * all.len());
                assert!(bytes.iter().all(|bytes| *bytes > 0), "{bytes:?}");
                assert!(
                    again == all && all[all.len() - 1] == value(&extents.iter().map(|&e| e - 1).collect::<Vec<_>>())
                );
            }
            let file = fs::read(&path).unwrap();
            let mut source = &file[..];
            let header = npy::NpyHeader::read(&mut source).unwrap();
            let dense = npy::read_elements::<i64>(&header, &mut source, None).unwrap().by_rows();
            assert_eq!(dense.shape, extents.iter().map(|&extent| extent as u64).collect::<Vec<_>>());
            assert_eq!(dense.elements[1], value(&[vec![0; extents.len() - 1], vec![1]].concat()));
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}

#[test]
fn archives_that_differ_in_a_byte_are_told_of_on_all_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..2).map(|node| folder.path().join(format!("{node}.npz"))).collect();
    let coordinate = |entry: i64, extent: i64| entry * 7919 % extent;
    let all = [300, 200].map(|extent| (0..60_000).map(|entry| coordinate(entry, extent)).collect());
    let sparse =
        Sparse::new(vec![300, 200], Structure::Coordinates(all.to_vec()), ArrayValues::F64(numbers(300, 200)), None)
            .unwrap();
    sparse.write(File::create(&paths[0]).unwrap(), Compression::None).unwrap();
    let right = fs::read(&paths[0]).unwrap();
    for name in ["data.npy", "row.npy", "col.npy"] {
        let begin = right.windows(name.len()).position(|found| found == name.as_bytes()).unwrap();
        let head = begin + right[begin..].windows(2).position(|found| found == b"  ").unwrap();
        let mut other = right.clone();
        // A blank of the header, so that what is read is the same.
        other[head] = b'\t';
        fs::write(&paths[1], other).unwrap();
        let told = told_of(&paths, |_| {});
        assert!(told[0] == told[1] && (told[0].contains("is damaged") || told[0].contains("not the same")), "{told:?}");
    }
}

#[test]
fn numbers_that_do_not_fit_a_dense_tensor_are_told_of_on_all_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.npy");
    let head = npy::header_of("<u8", maniple_files::Order::Rows, &[3]).unwrap();
    fs::write(&path, [head, [5_u64, 1 << 63, 7].iter().flat_map(|number| number.to_le_bytes()).collect()].concat())
        .unwrap();
    let variable = TensorVariable::new("c", ElementType::I64, vec![3]).stored("dense:1".parse().unwrap());
    for told in on_nodes(Nodes::new(2), async |cx, _| match Tensor::read_entries(cx, &variable, &opened(&path)).await {
        Err(DistributedError::File { reason, is_input: true, .. }) => Ok(reason),
        other => panic!("{other:?}"),
    }) {
        let expected = "element [1] is 9223372036854775808, which is no i64: read it as elements of another type";
        assert_eq!(told.unwrap(), expected);
    }
}
