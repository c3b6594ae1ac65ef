//! The files that the book shows byte by byte.

use maniple_files::Number;
use maniple_files::tcs::{Arrays, Level, Split, TcsHeader, TcsLevelKind, Tensor, Width, check};

/// The files in the book: lines with the number of a byte and eight bytes.
fn book() -> Vec<Vec<u8>> {
    let mut files: Vec<Vec<u8>> = Vec::new();
    for line in include_str!("../../../../../docs/src/tcs.md").lines() {
        let Some((place, rest)) = line.split_once("  ").filter(|(place, _)| place.len() == 4) else { continue };
        let Ok(place) = usize::from_str_radix(place, 16) else { continue };
        if place == 0 {
            files.push(Vec::new());
        }
        let file = files.last_mut().expect("the first line is that of byte 0");
        assert_eq!(file.len(), place, "{line}");
        let bytes = rest.split("  ").next().unwrap();
        file.extend(bytes.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    files
}

#[track_caller]
fn same<T: Number + std::fmt::Debug>(file: &Vec<u8>, tensor: &Tensor<T>, width: Width) {
    let mut written = Vec::new();
    tensor.write(width, &mut written).unwrap();
    assert_eq!(&written, file);
    assert_eq!(&Tensor::<T>::read(file).unwrap(), tensor);
    check(file, &TcsHeader::read(file).unwrap()).unwrap();
}

#[test]
fn files_in_the_book_are_those_that_are_written_and_read() {
    let [rows, block, empty] = &book()[..] else { panic!("the book has three files") };
    let dense = Arrays::default();
    let levels = vec![Level::new(TcsLevelKind::Dense, 0, 3), Level::new(TcsLevelKind::Sparse, 1, 2)];
    let arrays = vec![dense.clone(), Arrays { pos: vec![0, 1, 1, 2], idx: vec![1, 0] }];
    same(rows, &Tensor { levels, arrays, values: vec![2.5, 4.0] }, Width::Eight);
    let level = |kind, mode, range: std::ops::Range<u64>, index, count| Level {
        kind,
        mode,
        range: range.clone(),
        split: Some(Split { range, index, count }),
    };
    let levels = vec![level(TcsLevelKind::Sparse, 1, 4..8, 1, 2), level(TcsLevelKind::Dense, 0, 0..3, 0, 1)];
    let arrays = vec![Arrays { pos: vec![0, 1], idx: vec![5] }, dense];
    same(block, &Tensor { levels, arrays, values: vec![1.5_f32, 0.0, -2.0] }, Width::Four);
    let levels = vec![Level::new(TcsLevelKind::Sparse, 0, 1 << 40)];
    same(
        empty,
        &Tensor::<i64> { levels, arrays: vec![Arrays { pos: vec![0, 0], idx: vec![] }], values: vec![] },
        Width::Eight,
    );
}
