//! Arrays that are read in parts: what all parts have is what the whole file has, and what is damaged is refused.

use std::fmt::Debug;
use std::io::Cursor;

use maniple_files::npy::{NpyHeader, header_of, read_elements, write_array};
use maniple_files::npz::{Archive, Array, ArrayValues, Compression, Sparse, Structure, write_arrays};
use maniple_files::{Complex, ElementType, EntryArrays, Number, Order, ReadError};
use proptest::prelude::*;

use crate::npz::{sparse, written};
use crate::{damaged, elements, shapes};

pub(crate) type Found<T> = Vec<(Vec<u64>, T)>;

pub(crate) fn in_parts<T: Number>(arrays: &EntryArrays<Vec<u8>>, parts: u64) -> Result<Found<T>, ReadError> {
    let (mut found, mut read) = (Vec::new(), Vec::new());
    for part in 0..parts {
        read.push(arrays.read_part::<T>(part, parts, |at, value| found.push((at.to_vec(), value)))?);
    }
    arrays.check_read(&read)?;
    Ok(found)
}

pub(crate) fn whole<T: Copy>(sparse: &Sparse, values: &[T]) -> Found<T> {
    let mut found = Vec::new();
    sparse.for_each(|at, place| found.push((at.to_vec(), values[place])));
    found
}

/// Does the same with whatever the elements are.
macro_rules! with_values {
    ($values:expr, $elements:ident: $ty:ident => $result:expr) => {{
        macro_rules! of {
            ($elements2:expr, $number:ty) => {{
                type $ty = $number;
                let $elements: &[$ty] = $elements2;
                $result
            }};
        }
        match $values {
            ArrayValues::Bool(all) => of!(all, bool),
            ArrayValues::U8(all) => of!(all, u8),
            ArrayValues::I8(all) => of!(all, i8),
            ArrayValues::U16(all) => of!(all, u16),
            ArrayValues::I16(all) => of!(all, i16),
            ArrayValues::U32(all) => of!(all, u32),
            ArrayValues::I32(all) => of!(all, i32),
            ArrayValues::U64(all) => of!(all, u64),
            ArrayValues::I64(all) => of!(all, i64),
            ArrayValues::F32(all) => of!(all, f32),
            ArrayValues::F64(all) => of!(all, f64),
            ArrayValues::C32(all) => of!(all, Complex<f32>),
            ArrayValues::C64(all) => of!(all, Complex<f64>),
            ArrayValues::Text(_) => unreachable!("sparse arrays have numbers"),
        }
    }};
}

pub(crate) use with_values;

#[test]
fn parts_of_sparse_arrays_have_what_the_whole_has() {
    proptest!(|(sparse in sparse(), parts in 1..12_u64)| {
        let arrays = EntryArrays::npz(written(&sparse, Compression::None)).unwrap().unwrap();
        prop_assert_eq!(arrays.shape(), sparse.shape());
        prop_assert_eq!(Some(arrays.number()), sparse.values().number());
        with_values!(sparse.values(), values: T => {
            prop_assert_eq!(in_parts::<T>(&arrays, parts).unwrap(), whole(&sparse, values));
        });
    });
}

/// Longer than what is read at once.
#[test]
fn parts_of_long_arrays_have_what_the_whole_has() {
    let (rows, count) = (5000_u64, 50_000_i64);
    // Most rows are empty, and one is long.
    let start = |row: u64| match row {
        0..100 => 0,
        100..4000 => (row as i64 - 99) * 5,
        _ => count,
    };
    let starts: Vec<i64> = (0..=rows).map(start).collect();
    let columns: Vec<i64> = (0..count).map(|entry| entry * 7919 % 1000).collect();
    let values: Vec<f64> = (0..count).map(|entry| entry as f64 * 0.5).collect();
    let structure = Structure::Compressed { rows: vec![0], starts, columns: columns.clone() };
    let compressed = Sparse::new(vec![rows, 1000], structure, ArrayValues::F64(values.clone()), None).unwrap();
    let blocks = Structure::Blocks { size: [100, 250], starts: vec![0, 0, 1, 2], columns: vec![3, 0] };
    let blocks = Sparse::new(vec![300, 1000], blocks, ArrayValues::F64(values.clone()), None).unwrap();
    let diagonals = Structure::Diagonals { offsets: vec![-3, 7], length: 25_000 };
    let diagonals = Sparse::new(vec![20_000, 25_000], diagonals, ArrayValues::F64(values.clone()), None).unwrap();
    let coordinates = Structure::Coordinates(vec![columns.clone(), columns]);
    let coordinates = Sparse::new(vec![1000, 1000], coordinates, ArrayValues::F64(values.clone()), None).unwrap();
    for sparse in [compressed, blocks, diagonals, coordinates] {
        let arrays = EntryArrays::npz(written(&sparse, Compression::None)).unwrap().unwrap();
        for parts in [1, 2, 3, 64] {
            assert!(in_parts::<f64>(&arrays, parts).unwrap() == whole(&sparse, &values));
        }
    }
}

fn are_in_parts<T: Number + Arbitrary + Debug + PartialEq>() {
    let arrays = shapes(0..5).prop_flat_map(|shape| (elements::<T>(&shape), Just(shape)));
    proptest!(|((elements, shape) in arrays, parts in 1..7_u64, by_columns in any::<bool>())| {
        let mut file = Vec::new();
        write_array(&mut file, &shape, &elements).unwrap();
        if by_columns {
            let described = NpyHeader::read(&mut &file[..]).unwrap();
            let name = match described.number {
                ElementType::F64 => "<f8",
                ElementType::U8 => "|u1",
                _ => "<i2",
            };
            let data = file.split_off(described.start as usize);
            file = [header_of(name, Order::Columns, &shape).unwrap(), data].concat();
        }
        let mut source = &file[..];
        let header = NpyHeader::read(&mut source).unwrap();
        let all = read_elements::<T>(&header, &mut source, None).unwrap();
        let arrays = EntryArrays::npy(file).unwrap();
        prop_assert_eq!(arrays.order(), Some(if by_columns { Order::Columns } else { Order::Rows }));
        let own: Vec<T> = arrays.read_elements(0..elements.len() as u64).unwrap();
        prop_assert_eq!(&own, &all.elements);
        if !own.is_empty() {
            prop_assert_eq!(&arrays.read_elements::<T>(1..own.len() as u64).unwrap()[..], &own[1..]);
        }
        prop_assert!(arrays.read_elements::<T>(0..elements.len() as u64 + 1).is_err());
        let mut dense = vec![T::zeroed(); elements.len()];
        for (at, value) in in_parts::<T>(&arrays, parts).unwrap() {
            let place = at.iter().zip(&shape).fold(0, |place, (at, extent)| place * extent + at);
            dense[place as usize] = value;
        }
        prop_assert_eq!(dense, all.by_rows().elements);
    });
}

#[test]
fn parts_of_dense_arrays_have_what_the_whole_has() {
    are_in_parts::<u8>();
    are_in_parts::<i16>();
    // NaN differs from itself.
    let numbers = shapes(0..4).prop_flat_map(|shape| (elements::<i32>(&shape), Just(shape)));
    proptest!(|((numbers, shape) in numbers, parts in 1..5_u64)| {
        let numbers: Vec<f64> = numbers.into_iter().map(f64::from).collect();
        let mut file = Vec::new();
        write_array(&mut file, &shape, &numbers).unwrap();
        let found = in_parts::<f64>(&EntryArrays::npy(file).unwrap(), parts).unwrap();
        let expected: Vec<f64> = numbers.into_iter().filter(|number| *number != 0.0).collect();
        prop_assert_eq!(found.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), expected);
    });
}

/// A file that is accepted in parts is accepted as a whole too, with the same entries.
#[test]
fn damaged_files_are_refused_in_parts_as_they_are_whole() {
    let files = sparse().prop_flat_map(|sparse| damaged(written(&sparse, Compression::None)));
    proptest!(ProptestConfig::with_cases(2000), |(file in files, parts in 1..4_u64)| {
        if let Ok(Some(arrays)) = EntryArrays::npz(file.clone()) {
            macro_rules! compare {
                ($($number:ident $values:ident $ty:ty),*) => {
                    match arrays.number() {
                        $(ElementType::$number => if let Ok(found) = in_parts::<$ty>(&arrays, parts) {
                            let sparse = Sparse::read(&mut Archive::new(Cursor::new(&file)).unwrap()).unwrap();
                            let ArrayValues::$values(values) = sparse.values() else { panic!("{:?}", sparse.values()) };
                            prop_assert_eq!(found, whole(&sparse, values));
                        },)*
                        _ => {}
                    }
                };
            }
            compare!(I32 I32 i32, I64 I64 i64, F32 F32 f32, F64 F64 f64, C32 C32 Complex<f32>, C64 C64 Complex<f64>);
        }
    });
}

#[test]
fn each_changed_byte_of_an_array_is_noticed() {
    let rows = Structure::Compressed { rows: vec![0], starts: vec![0, 2, 3], columns: vec![0, 1, 2] };
    let sparse = Sparse::new(vec![2, 3], rows, ArrayValues::F64(vec![0.5, 1.5, 2.5]), None).unwrap();
    let file = written(&sparse, Compression::None);
    for (name, bytes) in [("data", 24), ("indices", 12), ("indptr", 12)] {
        let name = format!("{name}.npy");
        let begin = file.windows(name.len()).position(|found| found == name.as_bytes()).unwrap();
        let header = file[begin..].windows(6).position(|found| found == b"\x93NUMPY").unwrap();
        for place in 0..bytes {
            let mut file = file.clone();
            file[begin + header + 128 + place] ^= 1;
            let arrays = EntryArrays::npz(file).map(Option::unwrap);
            assert!(arrays.and_then(|arrays| in_parts::<f64>(&arrays, 2)).is_err(), "{name}, byte {place}");
        }
    }
}

#[test]
fn packed_arrays_and_other_fill_values_are_not_read_in_parts() {
    let rows = || Structure::Compressed { rows: vec![0], starts: vec![0, 1, 2], columns: vec![0, 1] };
    let values = || ArrayValues::F64(vec![1.0, 2.0]);
    let plain = Sparse::new(vec![2, 3], rows(), values(), None).unwrap();
    assert!(EntryArrays::npz(written(&plain, Compression::Deflate)).unwrap().is_none());
    let filled = Sparse::new(vec![2, 3], rows(), values(), Some(ArrayValues::F64(vec![7.0]))).unwrap();
    assert!(EntryArrays::npz(written(&filled, Compression::None)).unwrap().is_none());
    assert!(EntryArrays::npz(written(&plain, Compression::None)).unwrap().is_some());
}

#[test]
fn what_is_wrong_with_arrays_is_told_in_parts_too() {
    let line = |values: ArrayValues| Array::rows(vec![values.len() as u64], values);
    let told = |indptr: &[i64], indices: ArrayValues, count: usize| {
        let format = Array::rows(vec![], ArrayValues::Text("csr".to_owned()));
        let shape = line(ArrayValues::I64(vec![2, 3]));
        let (indptr, indices) = (line(ArrayValues::I64(indptr.to_vec())), line(indices));
        let data = line(ArrayValues::F64(vec![1.0; count]));
        let mut file = Cursor::new(Vec::new());
        let arrays =
            [("format", &format), ("shape", &shape), ("indptr", &indptr), ("indices", &indices), ("data", &data)];
        write_arrays(&mut file, Compression::None, arrays).unwrap();
        let read = EntryArrays::npz(file.into_inner()).map(Option::unwrap);
        read.and_then(|arrays| in_parts::<f64>(&arrays, 3)).unwrap_err().to_string()
    };
    let two = || ArrayValues::I32(vec![0, 1]);
    assert_eq!(told(&[0, 1], two(), 2), "byte 0: 'indptr' has 2 numbers, and must have 3");
    assert_eq!(told(&[0, 1, 3], two(), 2), "byte 0: 'indptr' goes from 0 to 3, and must go from 0 to 2");
    assert_eq!(told(&[0, 5, 2], two(), 2), "byte 0: 'indptr' has 2 after 5, and must not descend");
    let outside = "byte 0: 'indices' has the number 3, and must have numbers from 0 on that are less than 3";
    assert_eq!(told(&[0, 1, 2], ArrayValues::I32(vec![0, 3]), 2), outside);
    let fewer = "byte 0: 'indices' has 2 numbers, and there are 3 elements: expected one for each";
    assert_eq!(told(&[0, 1, 3], two(), 3), fewer);
    assert_eq!(told(&[0, 1, 2], ArrayValues::F64(vec![0.0, 1.0]), 2), "byte 0: array 'indices' must have integers");
}
