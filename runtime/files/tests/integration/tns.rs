//! FROSTT's files.

use maniple_files::tns::{Reader, write_entries, write_entry};
use maniple_files::{Number, ReadError};
use proptest::prelude::*;

use crate::damaged;

fn read<T: Number>(text: &[u8]) -> Result<Vec<(Vec<u64>, T)>, ReadError> {
    let mut reader = Reader::<_, T>::new(text)?;
    let (mut entries, mut coordinates) = (Vec::new(), Vec::new());
    while let Some(value) = reader.next_entry(&mut coordinates)? {
        assert_eq!(coordinates.len(), reader.order());
        entries.push((coordinates.clone(), value));
    }
    Ok(entries)
}

#[track_caller]
fn refused(text: &[u8], message: &str) {
    assert_eq!(read::<f64>(text).unwrap_err().to_string(), message);
}

#[test]
fn what_is_written_is_read_again() {
    let entry = |order| (proptest::collection::vec(0..i64::MAX as u64 / 4, order), any::<f64>());
    let entries = (1..6_usize).prop_flat_map(move |order| proptest::collection::vec(entry(order), 1..9));
    proptest!(|(entries in entries)| {
        let mut text = b"# a comment\n\n".to_vec();
        for (coordinates, value) in &entries {
            write_entry(&mut text, coordinates, *value).unwrap();
        }
        prop_assert_eq!(read::<f64>(&text).unwrap(), entries);
    });
}

#[test]
fn coordinates_beyond_the_extents_of_tensors_are_too_large() {
    let last = i64::MAX / 4;
    assert_eq!(read::<f64>(format!("{last} 1\n").as_bytes()).unwrap().len(), 1);
    for number in [last as u64 + 1, u64::MAX] {
        refused(format!("1 1\n{number} 1\n").as_bytes(), &format!("line 2: coordinate {number} is too large"));
    }
    refused(b"1 1\n99999999999999999999 1\n", "line 2: coordinate 99999999999999999999 is too large");
}

#[test]
fn text_after_the_value_is_told() {
    let reason = "'500 1 1.0 # c' has text after the value: comments have lines of their own";
    refused(b"1 1 2\n500 1 1.0 # c\n", &format!("line 2: {reason}"));
}

#[test]
fn damaged_files_are_read_or_refused() {
    let file = b"1 1 1 1.5\n1 2 3 -1e3\n4\t1 1 1\r\n".to_vec();
    proptest!(|(file in damaged(file))| { _ = read::<f64>(&file) });
}

#[test]
fn lines_that_make_no_sense_are_refused_where_they_stand() {
    refused(b"# nothing\n", "line 1: the file has no entries, of which the first tells the number of dimensions");
    refused(b"\x1f\x8b\x08\x00", "line 1: the file is packed with gzip; unpack it first");
    refused(b"1\n", "line 1: expected coordinates and a value, found '1'");
    refused(b"1 1 2.5\n1 2.5\n", "line 2: expected 2 coordinates and a value, found '1 2.5'");
    refused(b"1 1 2.5\n1 2 3 2.5\n", "line 2: expected 2 coordinates and a value, found '1 2 3 2.5'");
    refused(b"1 0 2.5\n", "line 1: coordinate 0 is below 1, where coordinates begin");
    refused(b"1 1 2.5\n1 x 2.5\n", "line 2: the coordinate 'x' is not a whole number");
    refused(b"1 1 one\n", "line 1: 'one' is not a number");
}

#[test]
fn coordinates_may_be_counted_from_zero_and_checked_against_extents() {
    let text = &b"0 2 1.5\n3 0 2\n"[..];
    let reader = || Reader::<_, f64>::new(text).unwrap();
    let mut coordinates = Vec::new();
    let mut from_zero = reader().from_zero().within(&[4, 3]).unwrap();
    assert_eq!((from_zero.next_entry(&mut coordinates).unwrap(), coordinates.as_slice()), (Some(1.5), &[0, 2][..]));
    assert_eq!((from_zero.next_entry(&mut coordinates).unwrap(), coordinates.as_slice()), (Some(2.0), &[3, 0][..]));
    let told = |reader: Reader<&[u8], f64>| {
        let mut reader = reader;
        let mut coordinates = Vec::new();
        while reader.next_entry(&mut coordinates).map_err(|error| error.to_string())?.is_some() {}
        Ok::<(), String>(())
    };
    assert_eq!(told(reader()), Err("line 1: coordinate 0 is below 1, where coordinates begin".to_owned()));
    assert_eq!(
        told(reader().from_zero().within(&[3, 3]).unwrap()),
        Err("line 2: coordinate 3 is not between 0 and 2".to_owned())
    );
    assert_eq!(
        told(reader().from_zero().within(&[9, 0]).unwrap()),
        Err("line 1: coordinate 2 is in a dimension of extent 0".to_owned())
    );
    let other = reader().within(&[3]).unwrap_err().to_string();
    assert_eq!(other, "line 1: the file has 2 coordinates an entry, and 1 extents are given");
}

#[test]
fn extents_are_the_largest_coordinates_or_those_that_are_given() {
    let mut file = Vec::new();
    write_entries(&mut file, &[(vec![3, 0], 1.5), (vec![0, 2], 2.0), (vec![0, 1], 1e300)]).unwrap();
    assert_eq!(String::from_utf8(file.clone()).unwrap(), "1 2 1e+300\n1 3 2.0\n4 1 1.5\n");
    let mut reader = Reader::<_, f64>::new(&file[..]).unwrap();
    assert_eq!(reader.extents(), [0, 0]);
    while reader.next_entry(&mut Vec::new()).unwrap().is_some() {}
    assert_eq!(reader.extents(), [4, 3]);
    assert_eq!(Reader::<_, f64>::new(&file[..]).unwrap().within(&[9, 9]).unwrap().extents(), [9, 9]);
}

#[test]
fn files_of_others_are_read() {
    let toy = b"# test tns\n1 1 3 1 2.0\n2 1 1 2 4.0\n";
    assert_eq!(read::<f64>(toy).unwrap(), [(vec![0, 0, 2, 0], 2.0), (vec![1, 0, 0, 1], 4.0)]);
}
