//! NumPy's files.

use std::fmt::Debug;

use maniple_files::npy::{NpyHeader, read_elements, write_array};
use maniple_files::{Complex, Dense, ElementType, Number, Order, Problem, ReadError};
use proptest::prelude::*;

use crate::{damaged, elements, shapes};

/// A file as NumPy writes it: version 1.0, then the elements.
fn numpy(header: &str, elements: &[u8]) -> Vec<u8> {
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), elements].concat()
}

fn read<T: Number>(file: &[u8], is_length_known: bool) -> Result<Dense<T>, ReadError> {
    let mut source = file;
    let header = NpyHeader::read(&mut source)?;
    assert_eq!(header.start as usize, file.len() - source.len());
    read_elements(&header, &mut source, is_length_known.then_some(file.len() as u64))
}

#[track_caller]
fn refused(file: &[u8], message: &str) {
    assert_eq!(read::<f64>(file, true).unwrap_err().to_string(), message);
}

fn is_copied<T: Number + Debug + PartialEq>(shape: &[u64], elements: &[T]) -> Result<(), TestCaseError> {
    let mut file = Vec::new();
    write_array(&mut file, shape, elements).unwrap();
    prop_assert_eq!((file.len() - size_of_val(elements)) % 64, 0);
    for is_length_known in [true, false] {
        let copied = read::<T>(&file, is_length_known).unwrap();
        let expected = Dense { shape: shape.to_vec(), order: Order::Rows, elements: elements.to_vec() };
        prop_assert_eq!(copied, expected);
    }
    Ok(())
}

fn are_copied<T: Number + Arbitrary + Debug + PartialEq>() {
    let arrays = shapes(0..5).prop_flat_map(|shape| (elements::<T>(&shape), Just(shape)));
    proptest!(|((elements, shape) in arrays)| is_copied(&shape, &elements)?);
}

#[test]
fn what_is_written_is_read_again() {
    are_copied::<i32>();
    are_copied::<i64>();
    are_copied::<f32>();
    are_copied::<f64>();
    let pairs = shapes(0..5).prop_flat_map(|shape| (elements::<(f64, f64)>(&shape), Just(shape)));
    proptest!(|((pairs, shape) in pairs)| {
        let numbers: Vec<Complex<f64>> = pairs.iter().map(|&(re, im)| Complex::new(re, im)).collect();
        is_copied(&shape, &numbers)?;
        let numbers: Vec<Complex<f32>> = pairs.iter().map(|&(re, im)| Complex::new(re as f32, im as f32)).collect();
        is_copied(&shape, &numbers)?;
    });
    let many: Vec<i64> = (0..100_000).collect();
    is_copied(&[100, 1000], &many).unwrap();
    is_copied::<i64>(&[3, 0], &[]).unwrap();
    assert!(write_array(&mut Vec::new(), &[3], &[1, 2]).is_err());
}

#[test]
fn headers_are_what_numpy_writes() {
    for (shape, elements, text) in
        [(&[][..], 1, "()"), (&[7], 7, "(7,)"), (&[2, 3], 6, "(2, 3)"), (&[2, 1, 2], 4, "(2, 1, 2)")]
    {
        let mut file = Vec::new();
        write_array(&mut file, shape, &vec![1.5_f32; elements]).unwrap();
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {text}, }}");
        assert_eq!(&file[..file.len() - 4 * elements], numpy(&format!("{header:<117}\n"), &[]));
    }
}

#[test]
fn both_orders_of_elements_and_of_bytes_are_read() {
    let values: Vec<u8> = [1_i32, 4, 2, 5, 3, 6].into_iter().flat_map(i32::to_be_bytes).collect();
    let file = numpy("{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3)}", &values);
    let array = read::<i32>(&file, true).unwrap();
    assert_eq!(array, Dense { shape: vec![2, 3], order: Order::Columns, elements: vec![1, 4, 2, 5, 3, 6] });
    let parts: Vec<u8> = [1.5_f32, -2.0].into_iter().flat_map(f32::to_be_bytes).collect();
    let file = numpy("{'descr': '>c8', 'fortran_order': False, 'shape': ()}", &parts);
    assert_eq!(read::<Complex<f32>>(&file, false).unwrap().elements, [Complex::new(1.5, -2.0)]);
}

#[test]
fn headers_that_python_2_wrote_are_read() {
    for shape in ["(2L, 3L)", "(2L,3)", "(2, 3L,)"] {
        let file = numpy(&format!("{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}}}"), &[0; 48]);
        assert_eq!(read::<i64>(&file, true).unwrap().shape, [2, 3], "{shape}");
    }
}

#[test]
fn damaged_files_are_read_or_refused() {
    let mut file = Vec::new();
    write_array(&mut file, &[2, 3], &[1.5_f64; 6]).unwrap();
    proptest!(|(file in damaged(file), is_length_known in any::<bool>())| { _ = read::<f64>(&file, is_length_known) });
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let mut file = Vec::new();
    write_array(&mut file, &[2, 3], &[1.5_f64; 6]).unwrap();
    for length in 6..file.len() {
        for is_length_known in [true, false] {
            let error = read::<f64>(&file[..length], is_length_known).unwrap_err();
            let ReadError::Byte { byte, problem: Problem::Truncated(_) } = error else { panic!("{error}") };
            assert_eq!(byte as usize, length);
        }
    }
}

#[test]
fn elements_that_are_missing_are_found_before_memory_is_taken_for_them() {
    let dense = |shape: &str| numpy(&format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}"), &[0; 24]);
    let file = dense("(1000000000, 1000000000)");
    let length = file.len();
    let told = format!("it says that it has 1000000000 x 1000000000 elements, but has only {length} bytes");
    refused(&file, &format!("byte {length}: {told}"));
    let told = read::<f64>(&file, false).unwrap_err().to_string();
    assert!(told.ends_with("ends after 24 of 8000000000000000000 bytes of its elements"), "{told}");
    let short = dense("(2, 2)");
    let told = "this is no whole .npy file: it ends after 24 of 32 bytes of its elements";
    refused(&short, &format!("byte {}: {told}", short.len()));
    for (shape, told) in [
        ("(4294967296, 4294967296, 2)", "4294967296 x 4294967296 x 2"),
        ("(0, 9223372036854775808, 4)", "0 x 9223372036854775808 x 4"),
        ("[18446744073709551615]", "18446744073709551615"),
    ] {
        let told = format!("byte 10: it says that it has {told} elements, which are more than can be counted");
        refused(&dense(shape), &told);
    }
}

#[test]
fn files_of_other_formats_and_types_are_refused() {
    refused(b"", "byte 0: this is no .npy file: it is empty");
    refused(b"hello world", r"byte 0: this is no .npy file: it starts with 'hello worl', not '\x93NUMPY'");
    refused(b"\x1f\x8b\x08\x00", "byte 0: the file is packed with gzip; unpack it first");
    refused(b"\x93NUMPY\x04\x00\x00\x00", "byte 6: its version of the format is 4; versions 1 to 3 can be read");
    let long = numpy("{'descr': '<f16', 'fortran_order': False, 'shape': (1, 1)}", &[0; 16]);
    refused(
        &long,
        "byte 10: its elements are '<f16'; they must be bool, integers of 8, 16, 32 or 64 bits, float16, float32, float64, complex64 or complex128: convert it with NumPy's astype",
    );
    let integers = numpy("{'descr': '<i4', 'fortran_order': False, 'shape': (1, 1)}", &[0; 4]);
    refused(&integers, "byte 0: its elements are int32, not float64");
    assert_eq!(NpyHeader::read(&mut &integers[..]).unwrap().number, ElementType::I32);
}

#[test]
fn unsigned_integers_of_16_and_64_bits_are_read_as_they_are() {
    for order in ['<', '>'] {
        let file = |name: &str, numbers: &[u64], size: usize| {
            let bytes = numbers.iter().flat_map(|number| match order {
                '<' => number.to_le_bytes()[..size].to_vec(),
                _ => number.to_be_bytes()[8 - size..].to_vec(),
            });
            let shape = numbers.len();
            let header = format!("{{'descr': '{order}{name}', 'fortran_order': False, 'shape': ({shape},)}}");
            numpy(&header, &bytes.collect::<Vec<_>>())
        };
        // More than are read at once.
        let many: Vec<u64> = (0..70_000).map(|number| number * 7 % 65_536).collect();
        let found = file("u2", &many, 2);
        let header = NpyHeader::read(&mut &found[..]).unwrap();
        assert_eq!((header.number, header.bytes()), (ElementType::U16, 140_000));
        let mut source = &found[header.start as usize..];
        let read = read_elements::<u16>(&header, &mut source, Some(found.len() as u64)).unwrap();
        assert!(read.elements.iter().map(|number| u64::from(*number)).eq(many));
        let mut cut = &found[header.start as usize..found.len() - 1];
        let error = read_elements::<u16>(&header, &mut cut, None).unwrap_err().to_string();
        assert!(error.ends_with("it ends after 139999 of 140000 bytes of its elements"), "{error}");

        let found = file("u8", &[0, 7, u64::MAX], 8);
        let header = NpyHeader::read(&mut &found[..]).unwrap();
        let read = read_elements::<u64>(&header, &mut &found[header.start as usize..], None).unwrap();
        assert_eq!((header.number, read.elements), (ElementType::U64, vec![0, 7, u64::MAX]));
    }
}

#[test]
fn floats_of_16_bits_are_read_as_those_of_32() {
    let cases = [
        (0x0000, 0.0),
        (0x8000, -0.0),
        (0x3c00, 1.0),
        (0xc000, -2.0),
        (0x7bff, 65_504.0),
        (0x0400, 6.103_515_6e-5),
        (0x0001, 5.960_464_5e-8),
        (0x03ff, 6.097_555e-5),
        (0x3555, 0.333_251_95),
        (0x7c00, f32::INFINITY),
        (0xfc00, f32::NEG_INFINITY),
    ];
    for order in ['<', '>'] {
        let bytes = cases.into_iter().flat_map(|(bits, _): (u16, f32)| match order {
            '<' => bits.to_le_bytes(),
            _ => bits.to_be_bytes(),
        });
        let header = format!("{{'descr': '{order}f2', 'fortran_order': False, 'shape': ({},)}}", cases.len());
        let file = numpy(&header, &bytes.collect::<Vec<_>>());
        let found = read::<f32>(&file, true).unwrap().elements;
        assert!(
            found.iter().zip(cases).all(|(found, (_, expected))| found.to_bits() == expected.to_bits()),
            "{found:?}"
        );
    }
    let none = numpy("{'descr': '<f2', 'fortran_order': False, 'shape': ()}", &0x7e01_u16.to_le_bytes());
    assert!(read::<f32>(&none, false).unwrap().elements[0].is_nan());
}

#[test]
fn headers_that_make_no_sense_are_refused_in_a_line() {
    let dictionary =
        "its header must be a dictionary such as {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}, and is";
    for (header, told) in [
        ("{'descr': <f8}\n", format!("{dictionary} '{{'descr': <f8}}'")),
        ("", format!("{dictionary} ''")),
        ("{'descr': '<f8', 'fortran_order': False}\n", "its header has no 'shape'".to_owned()),
        (
            "{'descr': '<f8', 'fortran_order': 0, 'shape': ()}\n",
            "the 'fortran_order' in its header is neither True nor False".to_owned(),
        ),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2)}\n",
            "the 'shape' in its header is no tuple of whole numbers from 0 on".to_owned(),
        ),
        (&"(".repeat(101), "its header has 101 brackets, and describes no plain array".to_owned()),
    ] {
        refused(&numpy(header, &[]), &format!("byte 10: {told}"));
    }
    let long = numpy(&" ".repeat(20_000), &[]);
    refused(&long, "byte 8: its header has 20000 bytes, and such headers have at most 10000");
}
