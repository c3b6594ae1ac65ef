//! Dense matrices of all kinds, with checkpoints near to each other: parts have what the whole has, also where it is
//! wrong.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

use std::fmt::Debug;

use proptest::prelude::*;

use super::*;
use crate::{Dense, InTurn};

/// So many threads.
struct Threads(usize);

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

const TEAMS: [&dyn Parallel; 2] = [&InTurn, &Threads(3)];

/// Checkpoints at distances of a few bytes up to more than most files have.
const NEAR: [Steps; 4] = [
    Steps { most: 4096, bytes: 1 },
    Steps { most: 5, bytes: 1 },
    Steps { most: 4096, bytes: 7 },
    Steps { most: 4096, bytes: 100 },
];

/// The layout of the text between values.
#[derive(Clone, Debug)]
struct Style {
    /// Before each value, and after the last one: lines that have none.
    between: Vec<Vec<&'static str>>,
    end: &'static str,
    has_end: bool,
    is_indented: bool,
}

fn styles() -> impl Strategy<Value = Style> {
    let nothing =
        prop::sample::select(vec!["", "  \t", "%", "% a comment, longer than all else, of 1 2 3", " % \u{e9}"]);
    let few = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(nothing, 0..3)];
    let ends = (prop::sample::select(vec!["\n", "\r\n"]), any::<bool>());
    (prop::collection::vec(few, 1..9), ends, any::<bool>()).prop_map(|(between, (end, has_end), is_indented)| Style {
        between,
        end,
        has_end,
        is_indented,
    })
}

fn text(head: &str, values: &[String], style: &Style) -> Vec<u8> {
    let mut lines: Vec<String> = head.lines().map(str::to_owned).collect();
    let blank = if style.is_indented { " " } else { "" };
    let mut between = style.between.iter().cycle();
    for value in values {
        lines.extend(between.next().into_iter().flatten().map(|line| (*line).to_owned()));
        lines.push(format!("{blank}{value}{blank}"));
    }
    lines.extend(between.next().into_iter().flatten().map(|line| (*line).to_owned()));
    let mut text = lines.join(style.end);
    if style.has_end {
        text += style.end;
    }
    text.into_bytes()
}

fn dense<T: Number>(text: &[u8]) -> Result<Dense<T>, ReadError> {
    Reader::new(text)?.dense()
}

/// The matrix of all parts, and how often they give a value for each element.
fn in_parts<T: Number>(text: &ArrayText<Vec<u8>>, parts: u64) -> Result<(Vec<T>, Vec<u64>), ReadError> {
    let [rows, columns] = text.shape();
    let mut elements = vec![T::zeroed(); (rows * columns) as usize];
    let mut visits = vec![0; elements.len()];
    for part in 0..parts {
        text.read_part::<T>(part, parts, |at, value| {
            let place = (at[0] * columns + at[1]) as usize;
            elements[place] = value;
            visits[place] += 1;
        })?;
    }
    Ok((elements, visits))
}

/// Reads a file in every way, and compares with the whole: the same elements, or the same error.
fn agree<T: Number + Debug>(text: &[u8], parts: u64) {
    let whole = dense::<T>(text).map_err(|error| error.to_string());
    for (steps, team) in NEAR.into_iter().chain([STEPS]).zip(TEAMS.into_iter().cycle()) {
        let opened = ArrayText::with_steps(text.to_vec(), team, steps);
        let found = opened.and_then(|text| Ok((in_parts::<T>(&text, parts)?, text)));
        let (Ok((_, opened)), Ok(whole)) = (&found, &whole) else {
            assert_eq!(
                found.map(|((elements, _), _)| elements).map_err(|e| e.to_string()),
                whole.clone().map(|w| w.elements)
            );
            continue;
        };
        let (elements, visits) = in_parts::<T>(opened, parts).unwrap();
        assert_eq!(elements, whole.elements);
        let expected: Vec<u64> = elements.iter().map(|value| u64::from(*value != T::zeroed())).collect();
        assert_eq!(visits, expected);
        agree_on_elements(opened, whole, parts);
    }
}

/// Elements of a general matrix, from all places on.
fn agree_on_elements<T: Number + Debug>(text: &ArrayText<Vec<u8>>, whole: &Dense<T>, parts: u64) {
    let [rows, columns] = text.shape();
    let count = rows * columns;
    if text.order().is_none() {
        assert!(text.read_elements::<T>(0..0).is_err());
        return;
    }
    let at = |place: u64| whole.elements[(place % rows * columns + place / rows) as usize];
    for number in 0..parts {
        let own = share(count, number, parts);
        let expected: Vec<T> = own.clone().map(at).collect();
        assert_eq!(text.read_elements::<T>(own).unwrap(), expected);
        let rest = share(count, number, parts).start..count;
        assert_eq!(text.read_elements::<T>(rest.clone()).unwrap(), rest.map(at).collect::<Vec<T>>());
    }
    assert!(text.read_elements::<T>(0..count + 1).is_err());
    #[expect(clippy::reversed_empty_ranges, reason = "it is refused")]
    let reversed = text.read_elements::<T>(1..0);
    assert!(reversed.is_err());
}

/// How many values a file lists, by its own count.
fn listed(symmetry: &str, (rows, columns): (u64, u64)) -> u64 {
    (0..columns)
        .flat_map(|column| (0..rows).map(move |row| (row, column)))
        .filter(|(row, column)| match symmetry {
            "general" => true,
            "skew-symmetric" => row > column,
            _ => row >= column,
        })
        .count() as u64
}

/// A field, a symmetry, extents, and values for each that is listed.
fn matrices() -> impl Strategy<Value = (&'static str, String, Vec<String>)> {
    let kinds = prop::sample::select(vec![
        ("real", "general"),
        ("real", "symmetric"),
        ("real", "skew-symmetric"),
        ("integer", "general"),
        ("integer", "symmetric"),
        ("integer", "skew-symmetric"),
        ("complex", "general"),
        ("complex", "symmetric"),
        ("complex", "skew-symmetric"),
        ("complex", "hermitian"),
    ]);
    (kinds, 1..7_u64, 1..7_u64).prop_flat_map(|((field, symmetry), rows, columns)| {
        let columns = if symmetry == "general" { columns } else { rows };
        let head = format!("%%MatrixMarket matrix array {field} {symmetry}\n% of what\n\n{rows} {columns}");
        let count = listed(symmetry, (rows, columns)) as usize;
        let value = (-3..4_i32, any::<i16>(), any::<bool>()).prop_map(move |(small, large, is_small)| {
            let number = if is_small { small } else { large.into() };
            match field {
                "integer" => number.to_string(),
                "real" => format!("{}e-1", number),
                _ => format!("{number} {:.2}", f64::from(small) / 2.0),
            }
        });
        prop::collection::vec(value, count).prop_map(move |values| (field, head.clone(), values))
    })
}

fn agree_on(field: &str, text: &[u8], parts: u64) {
    match field {
        "integer" => agree::<i64>(text, parts),
        "real" => agree::<f64>(text, parts),
        _ => agree::<Complex<f64>>(text, parts),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn parts_have_what_the_whole_has((field, head, values) in matrices(), style in styles(), parts in 1..60_u64) {
        let text = text(&head, &values, &style);
        assert!(ArrayText::with_steps(text.clone(), &InTurn, NEAR[2]).is_ok());
        agree_on(field, &text, parts);
    }

    #[test]
    fn a_line_that_makes_no_sense_is_told_as_by_the_whole(
        (field, head, mut values) in matrices(), style in styles(), parts in 1..60_u64, place in any::<prop::sample::Index>(),
        nonsense in prop::sample::select(vec!["x", "1 2 3", "1e999", "\u{fffd}", "1.5 % 2", "99999999999"]),
    ) {
        if !values.is_empty() {
            *place.get_mut(&mut values) = nonsense.to_owned();
        }
        agree_on(field, &text(&head, &values, &style), parts);
    }

    #[test]
    fn too_few_and_too_many_values_are_told_as_by_the_whole(
        (field, head, mut values) in matrices(), style in styles(), left_out in 0..4_usize, more in 0..3_usize,
    ) {
        values.truncate(values.len().saturating_sub(left_out));
        values.extend(std::iter::repeat_n("1".to_owned(), more));
        if field == "complex" {
            values.iter_mut().filter(|value| *value == "1").for_each(|value| *value = "1 0".to_owned());
        }
        agree_on(field, &text(&head, &values, &style), 3);
    }

    #[test]
    fn damaged_files_are_read_or_refused_as_a_whole(
        (field, head, values) in matrices(), style in styles(), place in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut text = text(&head, &values, &style);
        *place.get_mut(&mut text) = byte;
        agree_on(field, &text, 3);
    }
}

#[test]
fn a_matrix_has_a_row_and_a_column_and_one_that_is_skew_may_have_no_values() {
    for sizes in ["0 3", "3 0", "0 0", "-1 1", "1", "1 1 1"] {
        agree::<f64>(format!("%%MatrixMarket matrix array real general\n{sizes}\n").as_bytes(), 2);
    }
    for end in ["", "\n", "\n\n", "\n% nothing", "\n5\n"] {
        agree::<f64>(format!("%%MatrixMarket matrix array real skew-symmetric\n1 1{end}").as_bytes(), 2);
    }
    agree::<f64>(b"%%MatrixMarket matrix array real general\n9999999999 9999999999\n1\n", 2);
    agree::<f64>(b"", 2);
}

#[test]
fn values_of_another_type_are_refused_where_they_begin() {
    let text = b"%%MatrixMarket matrix array complex general\n% of what\n1 2\n\n1 2\n3 4\n";
    agree::<f64>(text, 2);
    agree::<i32>(b"%%MatrixMarket matrix array real general\n1 1\n1.0\n", 2);
    agree::<f32>(b"%%MatrixMarket matrix array integer general\n2 1\n1\n1.0\n", 2);
}

#[test]
fn lines_that_are_too_long_or_no_text_are_refused_as_by_the_whole() {
    let head = "%%MatrixMarket matrix array real general\n3 1\n1\n";
    for line in ["7".repeat(70_000), format!("%{}", "x".repeat(70_000)), " ".repeat(70_000)] {
        for end in ["\n2\n3\n", ""] {
            agree::<f64>(format!("{head}{line}{end}").as_bytes(), 2);
        }
    }
    for line in [&b"\xff\n2\n3\n"[..], b"% \xff\n2\n3\n", b"2\n3\n\xff\n", b"2\n3\n% \xff\n"] {
        agree::<f64>(&[head.as_bytes(), line].concat(), 2);
    }
}

#[test]
fn a_file_without_ends_of_lines_is_not_read_once_for_each_checkpoint() {
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug)]
    struct Counted(Vec<u8>, AtomicU64);

    impl Source for &Counted {
        fn length(&self) -> io::Result<u64> {
            self.0.length()
        }

        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
            self.1.fetch_add(into.len() as u64, Ordering::Relaxed);
            self.0.read_at(offset, into)
        }
    }

    let mut file = b"%%MatrixMarket matrix array real general\n3 1\n".to_vec();
    file.resize(4 << 20, b'7');
    let file = Counted(file, AtomicU64::new(0));
    let error = ArrayText::with_steps(&file, &Threads(2), Steps { most: 4096, bytes: 100 }).unwrap_err();
    assert!(error.to_string().starts_with("line 3: the line that starts with '777"), "{error}");
    assert!(file.1.load(Ordering::Relaxed) < 16 * file.0.len() as u64);
}

#[test]
fn a_sparse_matrix_lists_places_with_its_values() {
    let text = b"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 4\n".to_vec();
    let error = ArrayText::matrix_market(text.clone(), &InTurn).unwrap_err();
    assert_eq!(error.to_string(), dense::<f64>(&text).unwrap_err().to_string());
}

#[test]
fn few_elements_are_read_from_the_checkpoint_before_them() {
    let mut file = b"%%MatrixMarket matrix array integer general\n1000 1000\n".to_vec();
    for number in 0..1_000_000 {
        number.write(&mut file).unwrap();
        file.push(b'\n');
    }
    let text = ArrayText::matrix_market(file, &Threads(2)).unwrap();
    assert_eq!(text.before.len(), 107);
    for first in (0..999_000).step_by(98_765) {
        let expected: Vec<i64> = (first as i64..first as i64 + 1000).collect();
        assert_eq!(text.read_elements::<i64>(first..first + 1000).unwrap(), expected);
    }
    assert_eq!((text.shape(), text.order(), text.header().entries), ([1000, 1000], Some(Order::Columns), 1_000_000));
}
