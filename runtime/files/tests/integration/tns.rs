//! FROSTT's files.

use maniple_files::tns::{Reader, write_entry};
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
    let entry = |order| (proptest::collection::vec(0..u64::MAX, order), any::<f64>());
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
    refused(b"1 0 2.5\n", "line 1: coordinate 0 is not between 1 and 18446744073709551615");
    refused(b"1 1 2.5\n1 x 2.5\n", "line 2: the coordinate 'x' is not a whole number");
    refused(b"1 1 one\n", "line 1: 'one' is not a number");
}
