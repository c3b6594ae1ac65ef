//! Sparse arrays in NumPy's archives.

use std::io::Cursor;

use maniple_files::npz::{Archive, Array, ArrayValues, Compression, Sparse, Structure, write_arrays};
use maniple_files::{Complex, ReadError};
use proptest::prelude::*;

use crate::damaged;

fn read(file: &[u8]) -> Result<Sparse, ReadError> {
    Sparse::read(&mut Archive::new(Cursor::new(file))?)
}

pub(crate) fn written(sparse: &Sparse, compression: Compression) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    sparse.write(&mut file, compression).unwrap();
    file.into_inner()
}

fn values(count: usize) -> impl Strategy<Value = ArrayValues> {
    let numbers = proptest::collection::vec(any::<i64>(), count);
    (numbers, 0..6).prop_map(|(numbers, kind)| {
        let pair = |number: &i64| Complex::new(f64::from(*number as i32), f64::from((*number >> 32) as i32));
        match kind {
            0 => ArrayValues::I32(numbers.iter().map(|&number| number as i32).collect()),
            1 => ArrayValues::I64(numbers),
            2 => ArrayValues::F32(numbers.iter().map(|&number| number as f32).collect()),
            3 => ArrayValues::F64(numbers.iter().map(|&number| number as f64).collect()),
            4 => ArrayValues::C32(
                numbers
                    .iter()
                    .map(|number| pair(number).to_string().len())
                    .map(|n| Complex::new(n as f32, 1.0))
                    .collect(),
            ),
            _ => ArrayValues::C64(numbers.iter().map(pair).collect()),
        }
    })
}

/// The starts and columns of compressed rows.
fn compressed(rows: usize, columns: i64) -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    let row = proptest::collection::vec(0..columns, 0..4);
    proptest::collection::vec(row, rows).prop_map(|rows| {
        let mut starts = vec![0];
        rows.iter().for_each(|row| starts.push(starts[starts.len() - 1] + row.len() as i64));
        (starts, rows.concat())
    })
}

pub(crate) fn sparse() -> impl Strategy<Value = Sparse> {
    let coordinates = (0..4_usize, 0..5_usize).prop_flat_map(|(rank, count)| {
        let all = proptest::collection::vec(proptest::collection::vec(0..5_i64, count), rank);
        // Without dimensions there is nothing to tell how many elements there are.
        all.prop_map(move |all| (vec![5; rank], Structure::Coordinates(all), count))
    });
    let rows = (any::<bool>(), compressed(4, 6)).prop_map(|(turned, (starts, columns))| {
        let (shape, rows) = if turned { (vec![6, 4], vec![1]) } else { (vec![4, 6], vec![0]) };
        let count = columns.len();
        (shape, Structure::Compressed { rows, starts, columns }, count)
    });
    let axes = compressed(6, 20).prop_map(|(starts, columns)| {
        let count = columns.len();
        (vec![2, 4, 3, 5], Structure::Compressed { rows: vec![0, 2], starts, columns }, count)
    });
    let blocks = compressed(2, 3).prop_map(|(starts, columns)| {
        let count = 6 * columns.len();
        (vec![4, 9], Structure::Blocks { size: [2, 3], starts, columns }, count)
    });
    let diagonals = proptest::collection::btree_set(-9..9_i64, 0..4).prop_map(|offsets| {
        let count = 6 * offsets.len();
        (vec![4, 6], Structure::Diagonals { offsets: offsets.into_iter().collect(), length: 6 }, count)
    });
    prop_oneof![coordinates, rows, axes, blocks, diagonals].prop_flat_map(|(shape, structure, count)| {
        values(count).prop_map(move |values| Sparse::new(shape.clone(), structure.clone(), values, None).unwrap())
    })
}

#[test]
fn what_is_written_is_read_again() {
    proptest!(|(sparse in sparse(), packs in any::<bool>())| {
        let file = written(&sparse, if packs { Compression::Deflate } else { Compression::None });
        prop_assert_eq!(read(&file).unwrap(), sparse);
    });
}

#[test]
fn damaged_files_are_read_or_refused() {
    let files = (sparse(), any::<bool>()).prop_flat_map(|(sparse, packs)| {
        damaged(written(&sparse, if packs { Compression::Deflate } else { Compression::None }))
    });
    proptest!(|(file in files)| {
        if let Ok(sparse) = read(&file) {
            sparse.for_each(|_, place| assert!(place < sparse.values().len()));
        }
    });
}

#[test]
fn entries_are_visited_with_their_coordinates() {
    let entries = |shape: &[u64], structure, values: &[i64]| {
        let sparse = Sparse::new(shape.to_vec(), structure, ArrayValues::I64(values.to_vec()), None).unwrap();
        let mut entries = Vec::new();
        sparse.for_each(|at, place| entries.push((at.to_vec(), values[place])));
        entries
    };
    let columns = Structure::Compressed { rows: vec![1], starts: vec![0, 1, 1, 3], columns: vec![1, 0, 1] };
    assert_eq!(entries(&[2, 3], columns, &[7, 8, 0]), [(vec![1, 0], 7), (vec![0, 2], 8), (vec![1, 2], 0)]);
    let axes = Structure::Compressed { rows: vec![1], starts: vec![0, 0, 1, 2], columns: vec![5, 0] };
    assert_eq!(entries(&[2, 3, 4], axes, &[7, 8]), [(vec![1, 1, 1], 7), (vec![0, 2, 0], 8)]);
    let blocks = Structure::Blocks { size: [2, 1], starts: vec![0, 0, 1], columns: vec![2] };
    assert_eq!(entries(&[4, 3], blocks, &[7, 8]), [(vec![2, 2], 7), (vec![3, 2], 8)]);
    let diagonals = Structure::Diagonals { offsets: vec![1, -2], length: 3 };
    assert_eq!(
        entries(&[4, 3], diagonals, &[9, 1, 2, 3, 4, 9]),
        [(vec![0, 1], 1), (vec![1, 2], 2), (vec![2, 0], 3), (vec![3, 1], 4)]
    );
}

#[test]
fn arrays_that_do_not_fit_together_are_refused() {
    let told = |structure, shape: &[u64], count: usize| {
        Sparse::new(shape.to_vec(), structure, ArrayValues::F64(vec![1.0; count]), None).unwrap_err().to_string()
    };
    let rows = |starts: &[i64], columns: &[i64]| Structure::Compressed {
        rows: vec![0],
        starts: starts.to_vec(),
        columns: columns.to_vec(),
    };
    let expected = [
        (rows(&[0, 1], &[0]), "'indptr' has 2 numbers, and must have 3"),
        (rows(&[0, 2, 1], &[0]), "'indptr' has 1 after 2, and must not descend"),
        (rows(&[0, 1, 2], &[0]), "'indptr' goes from 0 to 2, and must go from 0 to 1"),
        (rows(&[0, 1, 1], &[3]), "'indices' has the number 3, and must have numbers from 0 on that are less than 3"),
        (rows(&[0, 1, 1], &[-1]), "'indices' has the number -1, and must have numbers from 0 on that are less than 3"),
        (rows(&[0, 1, 2], &[0, 1]), "'indices' has 2 numbers, and there are 1 elements: expected one for each"),
        (
            Structure::Compressed { rows: vec![2], starts: vec![0], columns: vec![0] },
            "its compressed axes are [2], and must be some of 0 to 1, each once",
        ),
        (Structure::Coordinates(vec![vec![0]]), "it has coordinates of 1 dimensions, and its shape has 2"),
        (
            Structure::Coordinates(vec![vec![2], vec![0]]),
            "'coordinates of dimension 0' has the number 2, and must have numbers from 0 on that are less than 2",
        ),
        (
            Structure::Blocks { size: [2, 2], starts: vec![0, 0], columns: vec![] },
            "blocks of 2 x 2 do not fill a matrix of 2 x 3",
        ),
        (
            Structure::Blocks { size: [1, 1], starts: vec![0, 0, 0], columns: vec![] },
            "'indices' has 0 numbers for blocks of 1 x 1, and there are 1 elements",
        ),
        (
            Structure::Diagonals { offsets: vec![0], length: 3 },
            "'offsets' has 1 numbers, and there are 1 elements of diagonals of 3",
        ),
        (
            Structure::Diagonals { offsets: vec![], length: u64::MAX },
            "'offsets' has 0 numbers, and there are 1 elements of diagonals of 18446744073709551615",
        ),
    ];
    for (structure, message) in expected {
        assert_eq!(told(structure, &[2, 3], 1), format!("byte 0: {message}"));
    }
    assert!(told(rows(&[0], &[]), &[u64::MAX, 2], 0).ends_with("which is too large"));
}

#[test]
fn files_that_are_no_sparse_arrays_are_refused() {
    let told = |file: &[u8]| read(file).unwrap_err().to_string();
    assert_eq!(told(b""), "byte 0: this is no .npz file: it is empty");
    assert_eq!(told(b"\x93NUMPY"), r"byte 0: this is no .npz file: it starts with '\x93NUM', not 'PK'");
    assert!(told(b"PK\x03\x04and then nothing").starts_with("byte 0: this is no .npz file that can be read: "));
    let archive = |arrays: &[(&str, &Array)]| {
        let mut file = Cursor::new(Vec::new());
        write_arrays(&mut file, Compression::None, arrays.iter().copied()).unwrap();
        file.into_inner()
    };
    let text = |text: &str| Array::rows(vec![], ArrayValues::Text(text.to_owned()));
    let numbers = Array::rows(vec![2], ArrayValues::I64(vec![2, 3]));
    assert_eq!(
        told(&archive(&[("a", &numbers)])),
        "byte 0: there is no sparse array in the file, which would have a text 'format'; there are a"
    );
    let lil = archive(&[("format", &text("lil")), ("shape", &numbers), ("data", &numbers)]);
    assert_eq!(told(&lil), "byte 0: its form is 'lil'; csr, csc, coo, bsr, dia and gcxs can be read");
    let lacking = archive(&[("format", &text("csr")), ("shape", &numbers), ("data", &numbers)]);
    assert_eq!(told(&lacking), "byte 0: there is no array 'indptr'; there are format, shape, data");
    let mut cut = archive(&[("format", &text("csr"))]);
    let place = cut.windows(5).position(|window| window == b"c\0\0\0s").unwrap();
    cut[place] = b'x';
    assert!(told(&cut).starts_with("byte 0: array 'format' is damaged: "), "{}", told(&cut));
}

#[test]
fn archives_that_unpack_to_far_more_than_they_are_are_refused() {
    let zeros = Array::rows(vec![1 << 16], ArrayValues::I64(vec![0; 1 << 16]));
    let mut file = Cursor::new(Vec::new());
    write_arrays(&mut file, Compression::Deflate, [("data", &zeros)]).unwrap();
    assert!(file.get_ref().len() < 5000);
    let mut archive = Archive::new(file.clone()).unwrap();
    assert_eq!(
        (archive.names(), archive.array("data").unwrap(), archive.array("other").unwrap()),
        (vec!["data".to_owned()], Some(zeros), None)
    );
    let error = Archive::new(file).unwrap().limited_to(100_000).array("data").unwrap_err();
    let reason = "the arrays are far larger than the file, as no sparse array is; save them without compression";
    assert_eq!(error.to_string(), format!("byte 0: array 'data': {reason}"));
}

#[test]
fn arrays_of_more_dimensions_than_numpy_has_are_refused() {
    let axes = 0..100_000_usize;
    let many = Structure::Compressed { rows: axes.collect(), starts: vec![0, 0], columns: Vec::new() };
    let told = Sparse::new(vec![1; 100_000], many.clone(), ArrayValues::F64(Vec::new()), None).unwrap_err().to_string();
    assert_eq!(told, "byte 0: its shape has 100000 dimensions, and may have 64");
    let told = Sparse::new(vec![1; 2], many, ArrayValues::F64(Vec::new()), None).unwrap_err().to_string();
    assert!(told.len() < 200 && told.ends_with(", and must be some of 0 to 1, each once"), "{told}");
}
