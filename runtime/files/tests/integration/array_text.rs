//! Dense matrices as text that are read in parts, at the same time, from a file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::sync::Mutex;

use maniple_files::matrix_market::Reader;
use maniple_files::{ArrayText, Parallel, ReadError};

use crate::whole::{TEAMS, Threads};

/// A matrix of a megabyte, with lines that have no value, and what is wrong with one of its lines.
fn matrix(symmetry: &str, wrong: Option<usize>) -> Vec<u8> {
    let extent = 400_usize;
    let mut text = format!("%%MatrixMarket matrix array real {symmetry}\n{extent} {extent}\n").into_bytes();
    for place in 0..if symmetry == "general" { extent * extent } else { extent * (extent + 1) / 2 } {
        match place % 1000 {
            3 => text.extend(b"% a comment\n"),
            5 => text.extend(b"\n"),
            _ => {}
        }
        let value = (place * 7919 % 10_007).saturating_sub(5000) as f64 / 8.0;
        if wrong == Some(place) { writeln!(text, "{value} x") } else { writeln!(text, "{value}") }.unwrap();
    }
    text
}

type Found = BTreeMap<(u64, u64), f64>;

fn in_parts(text: &ArrayText<File>, parts: usize) -> Result<Found, ReadError> {
    let all = Mutex::new(Vec::new());
    Threads(3).run(parts, &|part| {
        let mut found = Vec::new();
        let read = text.read_part::<f64>(part as u64, parts as u64, |at, value| found.push(((at[0], at[1]), value)));
        all.lock().unwrap().push((part, read.map(|()| found)));
    });
    let mut all = all.into_inner().unwrap();
    all.sort_by_key(|(part, _)| *part);
    let mut found = Found::new();
    for (_, part) in all {
        for (at, value) in part? {
            assert_eq!(found.insert(at, value), None, "{at:?}");
        }
    }
    Ok(found)
}

fn whole(text: &[u8]) -> Result<Found, ReadError> {
    let dense = Reader::new(text)?.dense::<f64>()?;
    let at = |place: usize| (place as u64 / dense.shape[1], place as u64 % dense.shape[1]);
    Ok(dense.elements.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(place, v)| (at(place), *v)).collect())
}

#[test]
fn parts_have_what_the_whole_has_or_tell_the_same_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("matrix.mtx");
    for (symmetry, wrong) in
        [("general", None), ("symmetric", None), ("general", Some(100_001)), ("symmetric", Some(7))]
    {
        let text = matrix(symmetry, wrong);
        fs::write(&path, &text).unwrap();
        let expected = whole(&text).map_err(|error| error.to_string());
        assert_eq!(expected.is_err(), wrong.is_some());
        for team in TEAMS {
            let opened = ArrayText::matrix_market(File::open(&path).unwrap(), team).unwrap();
            assert_eq!(opened.shape(), [400, 400]);
            let found = in_parts(&opened, 1 + 4 * team.parts()).map_err(|error| error.to_string());
            assert!(found == expected, "{:?} and {:?}", found.err(), expected.err());
        }
    }
}

#[test]
fn a_file_with_another_number_of_values_is_not_opened() {
    let mut text = matrix("general", None);
    text.extend(b"\n% the end\n17\n");
    for team in TEAMS {
        let error = ArrayText::matrix_market(text.clone(), team).unwrap_err().to_string();
        assert_eq!(error, whole(&text).unwrap_err().to_string());
        assert!(error.ends_with("'17' is too much: the file says that it has 160000 entries"), "{error}");
    }
}
