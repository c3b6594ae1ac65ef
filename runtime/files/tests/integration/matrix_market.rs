//! Matrix Market files.

use std::fmt::{Debug, Write as _};
use std::io::{self, BufReader};

use maniple_files::matrix_market::{
    Field, MatrixEntry, MatrixLayout, Reader, Symmetry, read_entries, write_array, write_coordinates,
};
use maniple_files::{Complex, InTurn, Number, Order, Problem, ReadError};
use proptest::prelude::*;

use crate::{damaged, elements, shapes};

fn read<T: Number>(text: impl AsRef<[u8]>) -> Result<Vec<MatrixEntry<T>>, ReadError> {
    let mut reader = Reader::new(text.as_ref())?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push(entry);
    }
    Ok(entries)
}

#[track_caller]
fn refused(text: &str, message: &str) {
    assert_eq!(read::<f64>(text).unwrap_err().to_string(), message);
}

fn dense<T: Number>(text: impl AsRef<[u8]>) -> Vec<T> {
    Reader::new(text.as_ref()).and_then(Reader::dense).unwrap().elements
}

/// The elements of a file that is written from these, by columns, and read.
fn copied<T: Number>(shape: &[u64], elements: &[T]) -> Vec<T> {
    let mut file = Vec::new();
    write_array(&mut file, shape[0], shape[1], elements.iter().copied()).unwrap();
    let dense = Reader::new(&file[..]).and_then(Reader::dense).unwrap();
    assert_eq!((dense.shape.as_slice(), dense.order), (shape, Order::Rows));
    let (rows, columns) = (shape[0] as usize, shape[1] as usize);
    (0..columns)
        .flat_map(|column| (0..rows).map(move |row| row * columns + column))
        .map(|place| dense.elements[place])
        .collect()
}

fn is_copied<T: Number + Arbitrary + Debug + PartialEq>() {
    let arrays = shapes(2).prop_flat_map(|shape| (elements::<T>(&shape), Just(shape)));
    proptest!(|((elements, shape) in arrays)| prop_assert_eq!(copied(&shape, &elements), elements));
}

#[test]
fn what_is_written_is_read_again_to_the_last_bit() {
    is_copied::<i32>();
    is_copied::<i64>();
    is_copied::<f32>();
    is_copied::<f64>();
    let pairs = shapes(2).prop_flat_map(|shape| (elements::<(f64, f64)>(&shape), Just(shape)));
    proptest!(|((pairs, shape) in pairs)| {
        let numbers: Vec<Complex<f64>> = pairs.iter().map(|&(re, im)| Complex::new(re, im)).collect();
        prop_assert_eq!(copied(&shape, &numbers), numbers);
        let numbers: Vec<Complex<f32>> = pairs.iter().map(|&(re, im)| Complex::new(re as f32, im as f32)).collect();
        prop_assert_eq!(copied(&shape, &numbers), numbers);
    });
    let words = [f64::INFINITY, f64::NEG_INFINITY];
    assert_eq!(copied(&[2, 1], &words), words);
    assert!(copied(&[1, 1], &[f32::NAN])[0].is_nan());
}

#[test]
fn entries_come_in_the_order_of_the_file() {
    let entries = proptest::collection::vec((1..9_u64, 1..5_u64, any::<i64>()), 0..9);
    proptest!(|(entries in entries)| {
        let mut text = format!("%%MatrixMarket matrix coordinate integer general\n%\n8 4 {}\n", entries.len());
        entries.iter().for_each(|(row, column, value)| _ = writeln!(text, " {row}\t{column}  {value} \r\n% a comment"));
        let entry = |&(row, column, value): &_| MatrixEntry { row: row - 1, column: column - 1, value };
        let expected: Vec<_> = entries.iter().map(entry).collect();
        prop_assert_eq!(read::<i64>(&text).unwrap(), expected);
    });
}

#[test]
fn damaged_files_are_read_or_refused() {
    let coordinate = "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 2e3 4\n";
    let array = "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n-2.5\n3D1\n";
    let files = prop_oneof![Just(coordinate), Just(array)].prop_flat_map(|file| damaged(file.as_bytes().to_vec()));
    proptest!(|(file in files)| {
        _ = read::<f64>(&file);
        _ = read::<Complex<f64>>(&file);
        _ = Reader::new(&file[..]).and_then(Reader::dense::<f64>);
    });
}

#[test]
fn what_follows_by_symmetry_is_added() {
    let symmetric = "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3D0\n";
    assert_eq!(dense::<f64>(symmetric), [1.0, 2.0, 2.0, 3.0]);
    let skew = "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n";
    assert_eq!(dense::<i32>(skew), [0, -1, -2, 1, 0, -3, 2, 3, 0]);
    assert_eq!(dense::<f64>(skew), [0.0, -1.0, -2.0, 1.0, 0.0, -3.0, 2.0, 3.0, 0.0]);
    let hermitian = "%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n";
    let expected = [(1.0, 0.0), (2.0, -3.0), (2.0, 3.0), (4.0, 0.0)];
    assert_eq!(dense::<Complex<f64>>(hermitian), expected.map(|(re, im)| Complex::new(re, im)));
    assert_eq!(Symmetry::Skew.mirrored(i32::MIN), Some(i32::MIN));
}

#[test]
fn the_first_line_and_the_sizes_are_the_header() {
    let text = "%%matrixmarket MATRIX Coordinate Pattern General\r\n% Universit\u{e4}t\n\n  2 3 1 \n2 3\n";
    let mut reader = Reader::new(text.as_bytes()).unwrap();
    let header = *reader.header();
    assert_eq!((header.layout, header.rows, header.columns, header.entries), (MatrixLayout::Coordinate, 2, 3, 1));
    assert_eq!(reader.line(), 4);
    assert_eq!(reader.next_entry().unwrap(), Some(MatrixEntry { row: 1, column: 2, value: 1.0 }));
    assert_eq!(reader.line(), 5);
    assert_eq!(reader.next_entry::<f64>().unwrap(), None);
    assert_eq!(read::<i32>(text).unwrap()[0].value, 1);
}

#[test]
fn what_is_no_matrix_market_file_is_refused() {
    let first = "the first line of a Matrix Market file is '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'";
    refused("", "line 1: the file is empty");
    refused("1 1 1\n", &format!("line 1: {first}, not '1 1 1'"));
    refused("\n", &format!("line 1: {first}, not ''"));
    let short = "%%MatrixMarket matrix coordinate real";
    refused(short, &format!("line 1: {first}, not '{short}'"));
    refused(&format!("\u{feff}{short}"), "line 1: the file starts with a byte order mark; save it without");
    let endless = Reader::new(BufReader::new(io::repeat(0))).unwrap_err().to_string();
    assert_eq!(endless, format!("line 1: {first}, not '{}...'", r"\0".repeat(40)));
    let binary = Reader::new(&b"\x7fELF\x02\xff\n"[..]).unwrap_err().to_string();
    assert_eq!(binary, format!(r"line 1: {first}, not '\u{{7f}}ELF\u{{2}}\xff'"));
}

#[test]
fn headers_that_make_no_sense_are_refused() {
    let header = |rest: &str| format!("%%MatrixMarket {rest}\n1 1 1\n1 1 1\n");
    let vector = "line 1: the object is 'vector'; only a 'matrix' is of use here";
    refused(&header("vector coordinate real general"), vector);
    let format = "line 1: the format 'sparse' is none of 'coordinate', 'array'";
    refused(&header("matrix sparse real general"), format);
    let field = "line 1: the field 'float' is none of 'real', 'integer', 'unsigned-integer', 'complex', 'pattern'";
    refused(&header("matrix coordinate float general"), field);
    let pattern = "line 1: an 'array' has all entries, so it can't be a 'pattern'";
    refused(&header("matrix array pattern general"), pattern);
    let hermitian = "line 1: a hermitian matrix has complex entries; this one is 'symmetric'";
    refused(&header("matrix coordinate real hermitian"), hermitian);
    let complex = "line 3: the entries are complex, which do not fit float64";
    refused("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", complex);
    let sparse = header("matrix coordinate real general");
    let told = Reader::new(sparse.as_bytes()).unwrap().dense::<f64>().unwrap_err().to_string();
    assert_eq!(told, "line 1: the matrix is sparse ('coordinate'); an 'array' has all elements");
}

#[test]
fn sizes_and_entries_that_make_no_sense_are_refused_where_they_stand() {
    let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
    let refused = |rest: &str, message: &str| refused(&format!("{symmetric}{rest}"), message);
    refused("", "line 1: the file ends before the line 'ROWS COLUMNS ENTRIES'");
    refused("2 2\n", "line 2: expected 'ROWS COLUMNS ENTRIES', found '2 2'");
    refused("0 0 1\n1 1 1\n", "line 3: row 1 is not between 1 and 0");
    refused("-1 -1 1\n", "line 2: expected rows and columns from 0 on, found -1 and -1");
    refused("1 2 1\n", "line 2: the matrix is 1 by 2; a symmetric one is square");
    refused("1 1 -1\n", "line 2: expected a number of entries from 0 on, found -1");
    refused("1 1 2\n1 1 1\n", "line 3: the file ends after 1 of 2 entries");
    refused("1 1 1\n1 1 1\n1 1 2\n", "line 4: '1 1 2' is too much: the file says that it has 1 entry");
    let huge = "99999999999999999999";
    refused(&format!("{huge} 1 1\n"), &format!("line 2: '{huge}' is too large a number for 'ROWS COLUMNS ENTRIES'"));
    let promised = format!("1 1 {}\n1 1 1\n", i64::MAX);
    refused(&promised, "line 3: the file ends after 1 of 9223372036854775807 entries");
    refused(&format!("1 1 1\n{huge} 1 1\n"), &format!("line 3: row {huge} is not between 1 and 1"));
    refused("1 1 1\n1 1 1\0\n", r"line 3: '1\0' is not a number");
    refused("1 1 1\n1 2 1\n", "line 3: column 2 is not between 1 and 1");
    refused("1 1 1\n0 1 1\n", "line 3: row 0 is not between 1 and 1");
    for line in ["1", "1 1", "1 1 1 1"] {
        refused(&format!("1 1 1\n{line}\n"), &format!("line 3: expected 'ROW COLUMN VALUE', found '{line}'"));
    }
    refused("1 1 1\n1 1 one\n", "line 3: 'one' is not a number");
    let above = "line 3: entry (1, 2) is above the diagonal; a symmetric file lists those below, and the diagonal";
    refused("2 2 2\n1 2 1\n2 2 1\n", above);
    let integer = "%%MatrixMarket matrix coordinate integer symmetric\n1 1 1\n1 1 1.5\n";
    assert_eq!(read::<f64>(integer).unwrap_err().to_string(), "line 3: '1.5' is not a whole number");
    let large = format!("%%MatrixMarket matrix array integer general\n1 1\n{huge}\n");
    assert_eq!(dense::<f64>(&large), [1e20]);
    assert!(read::<i64>(&large).unwrap_err().to_string().ends_with("is too large for 64 bits"));
}

#[test]
fn matrices_without_rows_or_columns_are_files_too() {
    for (rows, columns) in [(0, 0), (0, 3), (3, 0)] {
        for layout in ["array", "coordinate"] {
            let none = if layout == "coordinate" { " 0" } else { "" };
            let text = format!("%%MatrixMarket matrix {layout} real general\n{rows} {columns}{none}\n");
            assert_eq!(read::<f64>(&text).unwrap(), [], "{text}");
            let (header, entries) = read_entries::<f64>(text.as_bytes(), &InTurn).unwrap();
            assert_eq!((header.rows, header.columns, entries.values.len()), (rows, columns, 0));
            if layout == "array" {
                let dense = Reader::new(text.as_bytes()).and_then(Reader::dense::<f64>).unwrap();
                assert_eq!((dense.shape, dense.elements.len()), (vec![rows, columns], 0));
            }
        }
    }
    let skew = "%%MatrixMarket matrix array real skew-symmetric\n0 0\n";
    assert_eq!(dense::<f64>(skew), []);
}

#[test]
fn unsigned_integers_are_read_where_they_fit() {
    let file = |value: &str| format!("%%MatrixMarket matrix coordinate unsigned-integer general\n1 2 1\n1 2 {value}\n");
    let largest = file("9223372036854775807");
    assert_eq!(read::<i64>(&largest).unwrap()[0].value, i64::MAX);
    assert_eq!(read_entries::<i64>(largest.as_bytes(), &InTurn).unwrap().1.values, [i64::MAX]);
    assert_eq!(read::<u64>(file("18446744073709551615")).unwrap()[0].value, u64::MAX);
    assert_eq!(read::<u8>(file("255")).unwrap()[0].value, 255);
    let told = |value: &str| {
        let error = read::<i64>(file(value)).unwrap_err().to_string();
        assert_eq!(read_entries::<i64>(file(value).as_bytes(), &InTurn).unwrap_err().to_string(), error);
        error
    };
    assert_eq!(told("9223372036854775808"), "line 3: the value '9223372036854775808' does not fit int64");
    assert_eq!(told("-1"), "line 3: '-1' has a sign, and the file says that none has");
    assert_eq!(told("0.5"), "line 3: '0.5' is not a whole number");
    let array = "%%MatrixMarket matrix array unsigned-integer symmetric\n2 2\n1\n2\n3\n";
    assert_eq!(dense::<i64>(array), [1, 2, 2, 3]);
}

#[test]
fn what_is_not_its_own_mirror_image_is_not_on_a_diagonal() {
    for (kinds, lines, told) in [
        ("complex hermitian", "2 1 2 3\n1 1 1 5", "entry (1, 1) is on the diagonal, which is real in a hermitian file"),
        (
            "real skew-symmetric",
            "2 1 2\n1 1 1",
            "entry (1, 1) is on the diagonal, which is zero in a skew-symmetric file",
        ),
    ] {
        let text = format!("%%MatrixMarket matrix coordinate {kinds}\n2 2 2\n{lines}\n");
        let error = read::<Complex<f64>>(&text).map(|_| ()).or_else(|_| read::<f64>(&text).map(|_| ()));
        let whole = match kinds.starts_with("complex") {
            true => read_entries::<Complex<f64>>(text.as_bytes(), &InTurn).map(|_| ()),
            false => read_entries::<f64>(text.as_bytes(), &InTurn).map(|_| ()),
        };
        assert_eq!(whole.unwrap_err().to_string(), format!("line 4: {told}"), "{kinds}");
        assert!(error.is_err());
    }
    let array = "%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0.5\n";
    let error = Reader::new(array.as_bytes()).and_then(Reader::dense::<Complex<f64>>).unwrap_err().to_string();
    assert_eq!(error, "line 5: entry (2, 2) is on the diagonal, which is real in a hermitian file");
    let real = "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 nan -0.0\n";
    assert!(read::<Complex<f64>>(real).unwrap()[0].value.re.is_nan());
    // Of a pattern, and of what has no sign, nothing has an opposite.
    for (field, told) in [
        ("pattern", "a 'pattern' has ones alone, and a skew-symmetric matrix has those of both signs"),
        ("unsigned-integer", "an unsigned matrix has no entries below zero, as a skew-symmetric one has"),
    ] {
        refused(
            &format!("%%MatrixMarket matrix coordinate {field} skew-symmetric\n1 1 0\n"),
            &format!("line 1: {told}"),
        );
    }
    let skew = "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 -128\n";
    assert_eq!(read::<i16>(skew).unwrap()[0].value, -128);
    let told = "line 3: entry (2, 1) of a skew-symmetric file has an opposite that does not fit int8";
    assert_eq!(read::<i8>(skew).unwrap_err().to_string(), told);
    assert_eq!(read_entries::<i8>(skew.as_bytes(), &InTurn).unwrap_err().to_string(), told);
    assert!(
        read_entries::<u8>(skew.replace('-', "").replace("skewsymmetric", "skew-symmetric").as_bytes(), &InTurn)
            .is_err()
    );
}

fn entries(list: &[(u64, u64, f64)]) -> Vec<MatrixEntry<f64>> {
    list.iter().map(|&(row, column, value)| MatrixEntry { row, column, value }).collect()
}

#[test]
fn entries_that_follow_by_symmetry_come_after_those_that_they_follow_from() {
    let read = |rest: &str| {
        let text = format!("%%MatrixMarket matrix {rest}");
        let mut entries = Vec::new();
        let take = |entry| {
            entries.push(entry);
            Ok(())
        };
        Reader::new(text.as_bytes()).unwrap().for_each(take).unwrap();
        entries
    };
    let symmetric = "coordinate double symmetric\n2 2 2\n2 1 3\n2 2 4\n";
    assert_eq!(read(symmetric), entries(&[(1, 0, 3.0), (0, 1, 3.0), (1, 1, 4.0)]));
    assert_eq!(read("array real skew-symmetric\n2 2\n3\n"), entries(&[(1, 0, 3.0), (0, 1, -3.0)]));
    let symmetric_text = format!("%%MatrixMarket matrix {symmetric}");
    let unread = Reader::new(symmetric_text.as_bytes()).unwrap();
    let told = unread.for_each(|entry: MatrixEntry<f64>| match entry.value {
        4.0 => Err(Problem::Unsupported("no fours".to_owned())),
        _ => Ok(()),
    });
    assert_eq!(told.unwrap_err().to_string(), "line 4: no fours");
    let diagonal = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n";
    refused(diagonal, "line 3: entry (2, 2) is on the diagonal, which is zero in a skew-symmetric file");
}

#[test]
fn coordinates_are_written_sorted_and_read_again() {
    let entry = (0..5_u64, 0..4_u64, any::<f64>());
    proptest!(|(list in proptest::collection::vec(entry, 0..9))| {
        let mut expected = entries(&list);
        let mut file = Vec::new();
        write_coordinates(&mut file, 5, 4, Field::Real, Symmetry::General, &expected).unwrap();
        expected.sort_by_key(|entry| (entry.row, entry.column));
        prop_assert_eq!(read::<f64>(file).unwrap(), expected);
    });
    let written = |field, symmetry, list: &[(u64, u64, f64)]| {
        let mut file = Vec::new();
        write_coordinates(&mut file, 3, 3, field, symmetry, &entries(list)).map(|()| String::from_utf8(file).unwrap())
    };
    assert_eq!(
        written(Field::Pattern, Symmetry::Symmetric, &[(2, 1, 1.0), (0, 0, 1.0)]).unwrap(),
        "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 2\n"
    );
    for (field, symmetry, at) in [
        (Field::Real, Symmetry::Symmetric, (0, 1)),
        (Field::Real, Symmetry::Skew, (1, 1)),
        (Field::Real, Symmetry::General, (3, 0)),
        (Field::Real, Symmetry::Hermitian, (0, 0)),
        (Field::Integer, Symmetry::General, (0, 0)),
    ] {
        assert!(written(field, symmetry, &[(at.0, at.1, 1.0)]).is_err(), "{field} {symmetry}");
    }
}

#[test]
fn files_that_other_readers_are_tried_with_are_refused() {
    let body = "%%GraphBLAS double\n% a comment\n";
    for (kinds, rest, message) in [
        ("vector coordinate real general", "1 1 1\n1 1 1\n", "line 1: the object is 'vector'"),
        ("matrix list real general", "1 1 1\n1 1 1\n", "line 1: the format 'list' is none of"),
        ("matrix coordinate text general", "1 1 1\n1 1 1\n", "line 1: the field 'text' is none of"),
        ("matrix coordinate real diagonal", "1 1 1\n1 1 1\n", "line 1: the symmetry 'diagonal' is none of"),
        ("matrix coordinate pattern hermitian", "2 2 1\n2 2\n", "line 1: a hermitian matrix has complex entries"),
        ("matrix coordinate real general", "3\n1 1\n", "line 4: expected 'ROWS COLUMNS ENTRIES', found '3'"),
        (
            "matrix coordinate real symmetric",
            "3 4 1\n1 1 1\n",
            "line 4: the matrix is 3 by 4; a symmetric one is square",
        ),
        ("matrix coordinate real general", "3 4 3\n1 1 3.0\n2 2 3.4\n", "line 6: the file ends after 2 of 3 entries"),
        ("matrix coordinate real general", "3 4 1\n1 zero 2\n", "line 5: the column 'zero' is not a whole number"),
        ("matrix coordinate real general", "3 4 1\n1 1 pi\n", "line 5: 'pi' is not a number"),
        ("matrix coordinate real general", "3 4 1\n1 1\n", "line 5: expected 'ROW COLUMN VALUE', found '1 1'"),
        ("matrix coordinate real general", "3 4 1\n3 9999 3.4\n", "line 5: column 9999 is not between 1 and 4"),
        ("matrix coordinate integer general", "3 4 1\n3 1 3.4\n", "line 5: '3.4' is not a whole number"),
    ] {
        let text = format!("%%MatrixMarket {kinds}\n{body}{rest}");
        let told = read::<f64>(text).unwrap_err().to_string();
        assert!(told.starts_with(message), "{told}");
    }
}
