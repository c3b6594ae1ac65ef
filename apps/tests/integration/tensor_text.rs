//! Tensors written as text: whatever the format and the number of threads, a line for each entry in the order of
//! coordinates.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use maniple_files::{matrix_market, tns, write_parts};
use maniple_tensor::files::TensorFile;
use maniple_tensor::kernel::{Scoped, Team};
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};

/// Entries in the order of their coordinates, without two at the same place.
type Sorted = Vec<(Vec<i64>, f64)>;

fn random_entries(extents: &[i64], count: usize, random: &mut Rng) -> Sorted {
    let mut at: Vec<Vec<i64>> =
        (0..count).map(|_| extents.iter().map(|&extent| random.i64(0..extent)).collect()).collect();
    at.sort_unstable();
    at.dedup();
    at.into_iter().map(|at| (at, random.f64() * 10_f64.powi(random.i32(-30..30)))).collect()
}

fn tensor(format: &str, extents: &[i64], entries: &Sorted) -> SparseTensor<f64> {
    let mut list = EntryList::new(extents.len());
    entries.iter().for_each(|(at, value)| list.push(at, *value));
    pack(&format.parse().unwrap(), extents, 0.0, list, Duplicates::Refuse).unwrap().tensor
}

fn lines(entries: &Sorted, order: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for (at, value) in entries {
        let at: Vec<u64> = (0..order).map(|mode| at.get(mode).map_or(0, |&at| at as u64)).collect();
        tns::write_entry(&mut text, &at, *value).unwrap();
    }
    text
}

/// The text of a tensor is that of its entries.
#[track_caller]
fn is_written(format: &str, extents: &[i64], entries: &Sorted) {
    let (tensor, order) = (tensor(format, extents, entries).into(), extents.len());
    let name = |extension| format!("{}/tensor_text.{extension}", env!("CARGO_TARGET_TMPDIR"));
    let (flat, matrix) = (name("tns"), name("mtx"));
    TensorFile::of(Path::new(&flat)).unwrap().write(&tensor).unwrap();
    assert!(fs::read(&flat).unwrap() == lines(entries, order), "{format} {extents:?}");
    if order <= 2 {
        let (rows, columns) = (extents[0] as u64, extents.get(1).map_or(1, |&extent| extent as u64));
        let mut expected = Vec::new();
        if ["{D}", "{D,D}"].contains(&format) {
            let mut elements = vec![0.0; (rows * columns) as usize];
            let number = |at: &[i64]| at.get(1).map_or(0, |column| column * extents[0]) + at[0];
            entries.iter().for_each(|(at, value)| elements[number(at) as usize] = *value);
            matrix_market::write_array(&mut expected, rows, columns, elements).unwrap();
        } else {
            matrix_market::write_head::<f64>(&mut expected, rows, columns, entries.len() as u64).unwrap();
            expected.extend(lines(entries, 2));
        }
        TensorFile::of(Path::new(&matrix)).unwrap().write(&tensor).unwrap();
        assert!(fs::read(&matrix).unwrap() == expected, "{format} {extents:?}");
    }
}

/// A team of `Scoped` threads, for text.
struct Threads(Scoped);

impl maniple_files::Parallel for Threads {
    fn parts(&self) -> usize {
        self.0.size()
    }

    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) {
        self.0.run(parts, body);
    }
}

#[test]
fn text_has_the_entries_of_tensors_of_all_formats() {
    let mut random = Rng::with_seed(5);
    let matrices = ["csr", "csc", "dcsr", "coo", "{D,D}", "{C,D}", "{D,C<ranges>}", "hash"];
    for extents in [[300, 200], [1, 100_000], [100_000, 1], [7, 30_000]] {
        for count in [0, 1, 9_000, 40_000] {
            let entries = random_entries(&extents, count, &mut random);
            matrices.iter().for_each(|format| is_written(format, &extents, &entries));
        }
    }
    for extents in [[40, 30, 50], [1, 1, 70_000], [1_000_000_000, 2, 3]] {
        let entries = random_entries(&extents, 30_000, &mut random);
        ["csf:3", "coo:3", "{C,C,C}(1,2,0)"].iter().for_each(|format| is_written(format, &extents, &entries));
    }
    let vector = random_entries(&[50_000], 20_000, &mut random);
    ["{C}", "{D}"].iter().for_each(|format| is_written(format, &[50_000], &vector));
}

#[test]
fn text_is_the_same_whatever_the_parts_and_threads() {
    let extents = [50, 60];
    let entries = random_entries(&extents, 1_500, &mut Rng::with_seed(6));
    for format in ["csr", "csc", "dcsr", "coo", "{D,D}"] {
        let tensor = tensor(format, &extents, &entries);
        let total = tensor.values().len();
        let mut sorted = Vec::new();
        tensor.for_each(|at, value| sorted.push((at.to_vec(), value)));
        for (threads, length) in [(1, 1), (2, 1), (3, 7), (8, 64), (2, 10_000)] {
            let mut text = Vec::new();
            let add = |part: usize, lines: &mut maniple_files::EntryLines| {
                let positions = part * length..total.min((part + 1) * length);
                tensor.for_each_within(positions, |at, value| lines.add(at, value));
            };
            write_parts(&mut text, total.div_ceil(length), &Threads(Scoped { threads }), add).unwrap();
            assert!(text == lines(&sorted, 2), "{format} by {threads} threads in parts of {length}");
        }
    }
}
