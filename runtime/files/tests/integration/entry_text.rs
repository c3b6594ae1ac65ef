//! Text files that are read in parts: what all parts have is what the whole file has, also where it is wrong.

use maniple_files::matrix_market::Reader;
use maniple_files::{EntryText, ReadError, tns};
use proptest::prelude::*;

type Found = Vec<(Vec<u64>, f64)>;

/// A line as files have it: an entry, or something that is left out, or something that makes no sense.
#[derive(Clone, Debug)]
enum Line {
    Entry([u64; 2], f64, &'static str),
    Nothing(&'static str),
    Nonsense(&'static str),
}

fn line(is_right: bool) -> impl Strategy<Value = Line> {
    let blanks = prop::sample::select(vec![" ", "  ", "\t"]);
    let entry = (1..=9_u64, 1..=9_u64, any::<i16>(), blanks)
        .prop_map(|(row, column, value, blank)| Line::Entry([row.max(column), row.min(column)], value.into(), blank));
    let nothing = prop::sample::select(vec!["", "  ", "# or %", "% a comment that is longer than all else"]);
    let nonsense = prop::sample::select(vec!["1 1", "1 x 3", "10 1 4", "1 2 3 4", "\u{fffd}"]);
    prop_oneof![
        8 => entry,
        2 => nothing.prop_map(Line::Nothing),
        u32::from(!is_right) => nonsense.prop_map(Line::Nonsense),
    ]
}

/// Lines with a comment sign of one kind, and an end that may be missing.
fn text(lines: &[Line], comment: char, (end, has_end): (&str, bool)) -> String {
    let lines = lines.iter().map(|line| match line {
        Line::Entry([row, column], value, blank) => format!("{row}{blank}{column} {value}"),
        Line::Nothing(text) => text.replace(['#', '%'], &comment.to_string()),
        Line::Nonsense(text) => (*text).to_owned(),
    });
    let mut all = lines.collect::<Vec<_>>().join(end);
    if has_end {
        all += end;
    }
    all
}

fn in_parts(text: &EntryText<Vec<u8>>, parts: u64) -> Result<Found, ReadError> {
    let (mut found, mut listed) = (Vec::new(), 0);
    for part in 0..parts {
        listed += text.read_part::<f64>(part, parts, |at, value| found.push((at.to_vec(), value)))?;
    }
    text.check_listed(listed)?;
    Ok(found)
}

fn whole_matrix(text: &[u8]) -> Result<Found, ReadError> {
    let mut found = Vec::new();
    Reader::new(text)?.for_each::<f64>(|entry| {
        found.push((vec![entry.row, entry.column], entry.value));
        Ok(())
    })?;
    Ok(found)
}

fn whole_tensor(text: &[u8]) -> Result<Found, ReadError> {
    let mut reader = tns::Reader::<_, f64>::new(text)?;
    let (mut found, mut at) = (Vec::new(), Vec::new());
    while let Some(value) = reader.next_entry(&mut at)? {
        found.push((at.clone(), value));
    }
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn parts_of_matrices_have_what_the_whole_has(
        lines in any::<bool>().prop_flat_map(|is_right| prop::collection::vec(line(is_right), 0..30)),
        symmetry in prop::sample::select(vec!["general", "symmetric"]), ends in any::<(bool, bool)>(), parts in 1..12_u64,
    ) {
        let count = lines.iter().filter(|line| !matches!(line, Line::Nothing(_))).count();
        let end = if ends.0 { "\r\n" } else { "\n" };
        let lines = text(&lines, '%', (end, ends.1));
        let text = format!("%%MatrixMarket matrix coordinate real {symmetry}\n% of what\n9 9 {count}\n{lines}");
        let found = EntryText::matrix_market(text.clone().into_bytes()).and_then(|text| in_parts(&text, parts));
        prop_assert_eq!(shown(found), shown(whole_matrix(text.as_bytes())));
    }

    #[test]
    fn parts_of_tensors_have_what_the_whole_has(
        lines in any::<bool>().prop_flat_map(|is_right| prop::collection::vec(line(is_right), 0..30)),
        ends in any::<(bool, bool)>(), parts in 1..12_u64,
    ) {
        let text = text(&lines, '#', (if ends.0 { "\r\n" } else { "\n" }, ends.1));
        let found = EntryText::tns(text.clone().into_bytes()).and_then(|text| in_parts(&text, parts));
        prop_assert_eq!(shown(found), shown(whole_tensor(text.as_bytes())));
    }
}

/// The entries that were found, or the text of the error.
fn shown(found: Result<Found, ReadError>) -> Result<Found, String> {
    found.map_err(|error| error.to_string())
}

#[test]
fn a_matrix_with_more_or_fewer_entries_than_it_says_is_refused() {
    let told = |count: u64| {
        let text = format!("%%MatrixMarket matrix coordinate real general\n2 2 {count}\n1 1 1\n2 1 3\n");
        in_parts(&EntryText::matrix_market(text.into_bytes()).unwrap(), 3).map_err(|error| error.to_string())
    };
    assert_eq!(told(2).unwrap().len(), 2);
    assert_eq!(told(3).unwrap_err(), "line 4: the file ends after 2 of 3 entries");
    assert_eq!(told(1).unwrap_err(), "line 4: the file has 2 entries, and says that it has 1 entry");
}

#[test]
fn a_dense_matrix_has_no_lines_that_tell_their_places() {
    let text = b"%%MatrixMarket matrix array real general\n1 1\n4\n".to_vec();
    assert!(EntryText::matrix_market(text).unwrap_err().to_string().contains("is dense"));
}
