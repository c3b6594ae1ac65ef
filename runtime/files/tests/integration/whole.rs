//! Text read and written by several threads: the same as line by line, and the same errors.

use std::fmt::Write;

use maniple_files::matrix_market::{self, Reader};
use maniple_files::{Complex, Entries, InTurn, Number, Parallel, ReadError, tns};
use proptest::prelude::*;

/// So many threads.
pub(crate) struct Threads(pub(crate) usize);

impl Parallel for Threads {
    fn parts(&self) -> usize {
        self.0
    }

    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for part in 0..parts {
                scope.spawn(move || body(part));
            }
        });
    }
}

pub(crate) const TEAMS: [&dyn Parallel; 4] = [&InTurn, &Threads(2), &Threads(3), &Threads(7)];

/// All entries, one by one: first those of the file.
fn one_by_one<T: Number>(text: &[u8]) -> Result<Entries<T>, ReadError> {
    let mut reader = Reader::new(text)?;
    let symmetry = reader.header().symmetry;
    let mut listed = Vec::new();
    while let Some(entry) = reader.next_entry::<T>()? {
        listed.push(entry);
    }
    let mirrored: Vec<_> = listed.iter().filter_map(|entry| entry.mirrored(symmetry)).collect();
    let all: Vec<_> = listed.into_iter().chain(mirrored).collect();
    Ok(Entries {
        coordinates: vec![
            all.iter().map(|entry| entry.row as i64).collect(),
            all.iter().map(|entry| entry.column as i64).collect(),
        ],
        values: all.iter().map(|entry| entry.value).collect(),
    })
}

/// Both give the same entries, or the same message.
fn agree<T: Number + std::fmt::Debug>(text: &str) {
    agree_by::<T>(text, &TEAMS);
}

fn agree_by<T: Number + std::fmt::Debug>(text: &str, teams: &[&dyn Parallel]) {
    let expected = one_by_one::<T>(text.as_bytes()).map_err(|error| error.to_string());
    for team in teams {
        let found = matrix_market::read_entries::<T>(text.as_bytes(), *team);
        assert_eq!(
            found.map(|(_, entries)| entries).map_err(|error| error.to_string()),
            expected,
            "{} parts",
            team.parts()
        );
    }
}

/// A file of 7 columns and as many entries as are asked for, a number each; lines are as odd as `odd` says.
fn file(kind: &str, entries: usize, odd: impl Fn(usize) -> Option<&'static str>) -> String {
    let mut text = format!("%%MatrixMarket matrix coordinate {kind}\n% a comment\n\n{entries} {entries} {entries}\n");
    for entry in 0..entries {
        let (row, column) = (entry + 1, entry / 2 + 1);
        let value = match kind.split(' ').next() {
            Some("real") => format!(" {}e-3", entry as f64 * 0.37 - 11.0),
            Some("integer") => format!(" {}", entry as i64 - 40),
            Some("complex") => format!(" {entry} -{entry}.5"),
            _ => String::new(),
        };
        match odd(entry) {
            Some(line) => text += line,
            None => write!(text, "{row} {column}{value}").unwrap(),
        }
        text.push('\n');
    }
    text
}

#[test]
fn matrices_of_all_kinds_are_read_as_line_by_line() {
    for symmetry in ["general", "symmetric"] {
        for entries in [1, 9, 30_000] {
            agree::<f64>(&file(&format!("real {symmetry}"), entries, |_| None));
            agree::<f32>(&file(&format!("integer {symmetry}"), entries, |_| None));
            agree::<i64>(&file(&format!("integer {symmetry}"), entries, |_| None));
            agree::<i32>(&file(&format!("pattern {symmetry}"), entries, |_| None));
        }
    }
    agree::<Complex<f64>>(&file("complex hermitian", 20_000, |_| None));
    agree::<f64>(&file("real skew-symmetric", 5, |entry| (entry == 0).then_some("1 1 0")));
    agree::<f64>(&file("real general", 20_000, |_| None).replace('\n', "\r\n"));
    agree::<f64>("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n");
}

#[test]
fn odd_lines_are_read_or_refused_as_line_by_line_wherever_they_are() {
    let lines = [
        "",
        "% a comment",
        "1 1",
        "1 1 2 3",
        "0 1 2",
        "1 0 2",
        "99999 1 2",
        "1 99999 2",
        "1 1 1e999",
        "1 1 inf",
        "1 1 1.5D+3",
        "1\t1\t2",
        "  1   1   2  ",
        "+1 1 2",
        "1 1 +2",
        "1 1 x",
        "x 1 1",
        "1 1 2 % no comment",
        "1,1,2",
        "99999999999999999999 1 1",
        "1 1 0x10",
        "-1 1 1",
        "1 1 2\0",
        "1 1 \u{e9}",
        "1 2 3",
        "1",
    ];
    for line in lines {
        for at in [0, 8_999] {
            for kind in ["real general", "integer symmetric"] {
                let text = file(kind, 9_000, |entry| (entry == at).then_some(line));
                agree_by::<f64>(&text, &[&Threads(2)]);
            }
        }
        agree::<f64>(&file("pattern general", 9, |entry| (entry == 4).then_some(line)));
    }
    let whole = file("real general", 9_000, |_| None);
    agree::<f64>(&whole[..whole.len() / 2]);
    agree::<f64>(&format!("{whole}1 1 1\n"));
    agree::<f64>(&format!("{whole}\n\n  \n% the end"));
    agree::<i64>(&whole);
    agree::<f64>(&whole.replace("9000 9000 9000", "9000 9000 99999999999"));
}

#[test]
fn tensors_are_read_as_line_by_line() {
    let by_lines = |text: &str, extents: Option<&[u64]>| {
        let read = || {
            let mut reader = tns::Reader::<_, f64>::new(text.as_bytes())?;
            if let Some(extents) = extents {
                reader = reader.within(extents)?;
            }
            let (mut entries, mut at) =
                (Entries { coordinates: vec![Vec::new(); reader.order()], values: Vec::new() }, Vec::new());
            while let Some(value) = reader.next_entry(&mut at)? {
                entries.coordinates.iter_mut().zip(&at).for_each(|(all, &at)| all.push(at as i64));
                entries.values.push(value);
            }
            Ok((reader.extents().to_vec(), entries))
        };
        read().map_err(|error: ReadError| error.to_string())
    };
    let lines: Vec<String> = (0..20_000)
        .map(|entry| format!("{} {} {} {}", entry % 77 + 1, entry + 1, entry / 9 + 1, entry as f64 / 7.0))
        .collect();
    let plain = format!("# a comment\n\n{}\n", lines.join("\n"));
    let mut odd =
        vec![plain.clone(), plain.trim_end().to_owned(), "1 2\n".to_owned(), String::new(), "# x\n".to_owned()];
    for line in ["", "# a comment", "1 1 1", "1 1 1 1 1", "0 1 1 1", "1 1 1 x", "1 1 1e3 1", "9999999 1 1 1"] {
        for at in [1, 9_000, 19_999] {
            let mut lines = lines.clone();
            line.clone_into(&mut lines[at]);
            odd.push(lines.join("\n"));
        }
    }
    for text in &odd {
        for extents in [None, Some(&[77, 20_000, 2_223][..]), Some(&[76, 20_000, 2_223]), Some(&[1, 2])] {
            let expected = by_lines(text, extents);
            for team in TEAMS {
                let found = tns::read_entries::<f64>(text.as_bytes(), 1, extents, team);
                assert_eq!(found.map_err(|error| error.to_string()), expected, "{} parts", team.parts());
            }
        }
    }
    let (extents, entries) = tns::read_entries::<f64>(b"0 4 1.5\n2 0 1\n", 0, None, &InTurn).unwrap();
    assert_eq!((extents, entries.coordinates), (vec![3, 5], vec![vec![0, 2], vec![4, 0]]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_is_written_by_several_threads_is_read_again(values in prop::collection::vec((0_i64..90, 0_i64..80, any::<f64>()), 0..300), times in 1_usize..200) {
        let repeated = || (0..times).flat_map(|_| &values).filter(|entry| entry.2.is_finite());
        let entries = Entries {
            coordinates: vec![repeated().map(|entry| entry.0).collect(), repeated().map(|entry| entry.1).collect()],
            values: repeated().map(|entry| entry.2).collect(),
        };
        let mut texts = Vec::new();
        for team in TEAMS {
            let (mut market, mut lines) = (Vec::new(), Vec::new());
            matrix_market::write_entries(&mut market, 90, 80, &entries, team).unwrap();
            tns::write_lines(&mut lines, &entries, team).unwrap();
            let mut one_by_one = Vec::new();
            for (entry, &value) in entries.values.iter().enumerate() {
                let at = [&entries.coordinates[0], &entries.coordinates[1]].map(|all| all[entry] as u64);
                tns::write_entry(&mut one_by_one, &at, value).unwrap();
            }
            prop_assert_eq!(&one_by_one, &lines);
            prop_assert_eq!(&matrix_market::read_entries::<f64>(&market, team).unwrap().1, &entries);
            if !entries.values.is_empty() {
                prop_assert_eq!(&tns::read_entries::<f64>(&lines, 1, None, team).unwrap().1, &entries);
            }
            texts.push((market, lines));
        }
        prop_assert!(texts.windows(2).all(|pair| pair[0] == pair[1]));
        prop_assert!(matrix_market::write_entries(&mut Vec::new(), 1, 1, &entries, &InTurn).is_err() || entries.values.is_empty() || entries.coordinates.iter().flatten().all(|&at| at == 0));
    }
}
