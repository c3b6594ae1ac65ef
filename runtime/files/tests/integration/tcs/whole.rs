//! Whole tensors, written and read.

use maniple_files::tcs::{Lengths, Level, Split, TcsHeader, TcsLevelKind, TcsPart, Tensor, Width, check, nodes, parts};
use maniple_files::{Complex, Number};
use proptest::prelude::*;

use super::{cases, widths};

fn written<T: Number>(tensor: &Tensor<T>, width: Width) -> Vec<u8> {
    let mut file = Vec::new();
    tensor.write(width, &mut file).unwrap();
    file
}

#[test]
fn tensors_of_all_formats_are_read_as_they_were_written() {
    proptest!(|(case in cases(1..5), width in widths())| {
        let tensor = case.direct();
        let file = written(&tensor, width);
        prop_assert_eq!(Tensor::<f64>::read(&file).unwrap(), tensor);
        check(&file, &TcsHeader::read(&file).unwrap()).unwrap();
    });
}

#[test]
fn all_entries_are_visited_but_zeros_below_dense_levels() {
    proptest!(|(case in cases(1..5))| {
        let mut found = Vec::new();
        case.direct().for_each(|at, value| found.push((at.to_vec(), value)));
        let is_sparse = case.levels.last().unwrap().kind == TcsLevelKind::Sparse;
        // An entry in a sparse level is one, zero or not.
        let expected: Vec<_> = case.listed().into_iter().filter(|(_, value)| is_sparse || *value != 0.0).collect();
        prop_assert_eq!(found, expected);
        let extents = case.direct().extents();
        case.levels.iter().for_each(|level| assert_eq!(extents[level.mode], level.range.end));
    });
}

#[test]
fn tensors_have_up_to_eight_levels() {
    proptest!(ProptestConfig::with_cases(32), |(case in cases(5..9))| {
        let tensor = case.direct();
        prop_assert_eq!(Tensor::<f64>::read(&written(&tensor, Width::Eight)).unwrap(), tensor);
    });
    let level = |mode| Level::new(TcsLevelKind::Sparse, mode, 1);
    let levels: Vec<Level> = (0..9).map(level).collect();
    let error = TcsHeader::new(maniple_files::ElementType::F64, Width::Eight, levels, &[0; 9]).unwrap_err();
    assert_eq!(error.to_string(), "a tensor has 1 to 8 levels, and this one has 9");
}

#[test]
fn elements_of_every_type_are_read_as_they_were_written() {
    fn round<T: Number + std::fmt::Debug>(values: [T; 2]) {
        let levels = vec![Level::new(TcsLevelKind::Dense, 0, 2)];
        let tensor = Tensor { levels, arrays: vec![Default::default()], values: values.to_vec() };
        let file = written(&tensor, Width::Four);
        assert_eq!(Tensor::<T>::read(&file).unwrap(), tensor);
        assert_eq!(file.len(), 200 + 2 * T::TYPE.size());
    }
    round([true, false]);
    round([1_u8, 255]);
    round([-1_i8, 5]);
    round([i16::MIN, 5]);
    round([u32::MAX, 5]);
    round([i32::MIN, 5]);
    round([i64::MIN, 5]);
    round([-1.5_f32, f32::INFINITY]);
    round([-1.5, f64::MIN_POSITIVE]);
    round([Complex::new(1.5_f32, -2.0), Complex::new(0.0, 1.0)]);
    round([Complex::new(1.5, -2.0), Complex::new(0.0, 1.0)]);
    let file = written(
        &Tensor {
            levels: vec![Level::new(TcsLevelKind::Dense, 0, 1)],
            arrays: vec![Default::default()],
            values: vec![1.5],
        },
        Width::Eight,
    );
    assert_eq!(Tensor::<f32>::read(&file).unwrap_err().to_string(), "byte 32: its elements are float64, not float32");
}

#[test]
fn bytes_of_files_are_those_of_memory() {
    proptest!(|(case in cases(1..5))| {
        let tensor = case.direct();
        let file = written(&tensor, Width::Eight);
        let header = TcsHeader::read(&file).unwrap();
        let start = file.as_ptr() as usize;
        for part in header.parts() {
            let section = header.section(part);
            let bytes = &file[section.offset as usize..][..(section.length * header.size(part)) as usize];
            prop_assert_eq!((bytes.as_ptr() as usize - start) % 8, 0);
            let memory: Vec<u8> = match part {
                TcsPart::Pos(level) => {
                    tensor.arrays[level].pos.iter().flat_map(|number| number.to_ne_bytes()).collect()
                }
                TcsPart::Idx(level) => {
                    tensor.arrays[level].idx.iter().flat_map(|number| number.to_ne_bytes()).collect()
                }
                TcsPart::Values => tensor.values.iter().flat_map(|value| value.to_ne_bytes()).collect(),
            };
            prop_assert!(cfg!(target_endian = "big") || bytes == memory);
        }
    });
}

#[test]
fn offsets_and_the_size_of_the_file_follow_from_the_lengths() {
    proptest!(|(case in cases(1..5), width in widths())| {
        let tensor = case.direct();
        let file = written(&tensor, width);
        let header = TcsHeader::read(&file).unwrap();
        let counts: Vec<u64> = tensor.arrays.iter().map(|arrays| arrays.idx.len() as u64).collect();
        let lengths = Lengths::of(&case.levels, &counts).unwrap();
        let mut end = 80 + 120 * case.levels.len() as u64;
        for part in parts(&case.levels) {
            let length = match part {
                TcsPart::Pos(level) => tensor.arrays[level].pos.len(),
                TcsPart::Idx(level) => tensor.arrays[level].idx.len(),
                TcsPart::Values => tensor.values.len(),
            } as u64;
            let section = header.section(part);
            end = end.next_multiple_of(8);
            prop_assert_eq!((section.offset, section.length, lengths.length(part)), (end, length, length));
            end += length * header.size(part);
        }
        prop_assert_eq!((header.bytes(), file.len() as u64), (end, end));
        prop_assert_eq!(nodes(&case.levels, &counts).unwrap(), header.nodes());
    });
}

#[test]
fn headers_of_blocks_hold_the_ends_number_and_count_of_their_ranges() {
    proptest!(|(case in cases(1..5), index in 0..3_u64)| {
        let mut tensor = case.direct();
        for level in &mut tensor.levels {
            level.split = Some(Split { range: level.range.clone(), index, count: 3 });
        }
        let file = written(&tensor, Width::Eight);
        prop_assert_eq!(TcsHeader::read(&file).unwrap().levels, tensor.levels.clone());
        for (number, level) in tensor.levels.iter().enumerate() {
            let word = |place: usize| u64::from_le_bytes(file[80 + 120 * number + place..][..8].try_into().unwrap());
            prop_assert_eq!([word(64), word(72), word(80), word(88)], [level.range.start, level.range.end, index, 3]);
        }
    });
}

#[test]
fn arrays_that_are_no_tensor_are_not_written() {
    let levels = vec![Level::new(TcsLevelKind::Dense, 0, 2), Level::new(TcsLevelKind::Sparse, 1, 3)];
    let write = |pos: &[i64], idx: &[i64], values: usize, width| {
        let arrays = maniple_files::tcs::Arrays { pos: pos.to_vec(), idx: idx.to_vec() };
        let tensor =
            Tensor { levels: levels.clone(), arrays: vec![Default::default(), arrays], values: vec![1.5; values] };
        tensor.write(width, &mut Vec::new()).map_err(|error| error.to_string())
    };
    assert_eq!(write(&[0, 1, 2], &[0, 2], 2, Width::Four), Ok(()));
    assert_eq!(
        write(&[0, 2], &[0, 2], 2, Width::Four),
        Err("pos of level 1 has 2 elements, and levels say 3".to_owned())
    );
    assert_eq!(write(&[0, 1, 2], &[0, 2], 3, Width::Four), Err("val has 3 elements, and levels say 2".to_owned()));
    assert!(
        write(&[0, 2, 2], &[2, 0], 2, Width::Four)
            .unwrap_err()
            .contains("idx of level 1 at 1: expected a coordinate from 3")
    );
    assert!(write(&[0, 1, 2], &[0, -1], 2, Width::Four).is_err());
    let wide = Level::new(TcsLevelKind::Sparse, 0, 1 << 40);
    let tensor = Tensor {
        levels: vec![wide],
        arrays: vec![maniple_files::tcs::Arrays { pos: vec![0, 0], idx: vec![] }],
        values: Vec::<f64>::new(),
    };
    assert_eq!(
        tensor.write(Width::Four, &mut Vec::new()).unwrap_err().to_string(),
        "coordinates of level 0 up to 1099511627776 do not fit 4 bytes"
    );
    tensor.write(Width::Eight, &mut Vec::new()).unwrap();
}
