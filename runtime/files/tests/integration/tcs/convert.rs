//! Text to `.tcs` files, in two passes.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};

use maniple_files::tcs::{
    Duplicates, EntryStream, Extent, Level, Listed, Matrix, StoragePlan, TcsHeader, TcsLevelKind, Tensor, Width, sort,
    survey, write,
};
use maniple_files::{ReadError, matrix_market, tns};
use proptest::prelude::*;

use super::{Case, cases, direct, file, widths};

#[test]
fn converted_tensors_are_those_made_from_the_definition() {
    proptest!(ProptestConfig::with_cases(2000), |(case in cases(1..5), width in widths())| {
        let mut expected = Vec::new();
        case.direct().write(width, &mut expected).unwrap();
        prop_assert_eq!(case.file(width), expected);
    });
}

#[test]
fn text_is_converted_as_entries_are() {
    proptest!(|(case in cases(1..4), width in widths())| {
        prop_assume!(!case.entries.is_empty());
        let mut text = Vec::new();
        case.listed().iter().for_each(|(at, value)| tns::write_entry(&mut text, at, *value).unwrap());
        let (plan, mut file) = (case.plan(width), Cursor::new(Vec::new()));
        let open = || tns::Reader::<_, f64>::new(&text[..]).unwrap();
        write(&survey(open(), &plan).unwrap(), open(), &plan, &mut file).unwrap();
        prop_assert_eq!(file.into_inner(), case.file(width));
    });
}

#[test]
fn tensors_without_entries_have_arrays_of_zeros_of_the_usual_lengths() {
    proptest!(|(case in cases(1..5))| {
        let case = Case { entries: Default::default(), ..case };
        let tensor = Tensor::<f64>::read(&case.file(Width::Eight)).unwrap();
        let mut nodes = 1;
        for (level, arrays) in case.levels.iter().zip(&tensor.arrays) {
            match level.kind {
                TcsLevelKind::Dense => nodes *= level.extent() as usize,
                TcsLevelKind::Sparse => {
                    prop_assert_eq!((&arrays.pos, arrays.idx.len()), (&vec![0; nodes + 1], 0));
                    nodes = 0;
                }
            }
        }
        prop_assert_eq!(tensor.values, vec![0.0; nodes]);
    });
}

#[test]
fn ranges_that_are_given_count_and_others_are_those_of_entries() {
    proptest!(|(case in cases(1..5))| {
        prop_assume!(!case.entries.is_empty());
        let ranges = |extent: Option<Extent>| {
            let mut plan = case.plan(Width::Eight);
            if let Some(extent) = extent {
                plan.extents.fill(extent);
            }
            let survey = survey(Listed::new(&case.listed()), &plan).unwrap();
            // With these ranges, what is written is what the definition says.
            let expected = direct(&survey.header.levels, &case.sorted());
            assert_eq!(Tensor::<f64>::read(&file(&plan, &case.listed())).unwrap(), expected);
            survey.header.levels.iter().map(|level| level.range.clone()).collect::<Vec<_>>()
        };
        let coordinates = |level: &Level| case.entries.keys().map(|at| at[level.mode]).collect::<Vec<_>>();
        let end = |level: &Level| coordinates(level).into_iter().max().unwrap() + 1;
        let tight = |level: &Level| coordinates(level).into_iter().min().unwrap()..end(level);
        prop_assert_eq!(ranges(None), case.levels.iter().map(|level| level.range.clone()).collect::<Vec<_>>());
        prop_assert_eq!(ranges(Some(Extent::FromZero)), case.levels.iter().map(|level| 0..end(level)).collect::<Vec<_>>());
        prop_assert_eq!(ranges(Some(Extent::Tight)), case.levels.iter().map(tight).collect::<Vec<_>>());
    });
}

fn plan(order: &[usize], extents: &[u64]) -> StoragePlan<f64> {
    let extents = extents.iter().map(|extent| Extent::Given(0..*extent)).collect();
    StoragePlan {
        kinds: vec![TcsLevelKind::Sparse; order.len()],
        order: order.to_vec(),
        extents,
        width: Width::Eight,
        duplicates: Duplicates::Refuse,
    }
}

#[test]
fn lines_that_are_unsorted_or_outside_or_there_twice_are_told() {
    let told = |order: &[usize], text: &str| {
        let reader = tns::Reader::<_, f64>::new(text.as_bytes()).unwrap();
        survey(reader, &plan(order, &[3, 4])).map(|survey| survey.entries).map_err(|error| error.to_string())
    };
    assert_eq!(told(&[0, 1], "1 1 1\n1 4 1\n3 1 1\n"), Ok(3));
    let unsorted = "line 3: entry (1, 3) comes after (1, 4), and lines must be sorted by coordinate 0, then coordinate 1: sort them first";
    assert_eq!(told(&[0, 1], "1 1 1\n1 4 1\n1 3 1\n"), Err(unsorted.to_owned()));
    let unsorted = "line 2: entry (2, 1) comes after (1, 4), and lines must be sorted by coordinate 1, then coordinate 0: sort them first";
    assert_eq!(told(&[1, 0], "1 4 1\n2 1 1\n"), Err(unsorted.to_owned()));
    assert_eq!(told(&[1, 0], "2 1 1\n1 4 1\n"), Ok(2));
    assert_eq!(
        told(&[0, 1], "1 1 1\n# twice\n1 1 5\n"),
        Err("line 3: entry (1, 1) is there twice: leave one out, or add them".to_owned())
    );
    assert_eq!(
        told(&[0, 1], "1 1 1\n1 5 1\n1 6 1\n"),
        Err("line 2: entry (1, 5) is outside of the tensor: its coordinates 1 go from 1 to 4".to_owned())
    );
    assert_eq!(told(&[0, 1], "1 1 1\n1 x 1\n"), Err("line 2: the coordinate 'x' is not a whole number".to_owned()));
    assert_eq!(
        told(&[0, 1], "1 1 1 1\n"),
        Err("line 1: the entry has 3 coordinates, and is stored in 2 levels".to_owned())
    );
    let all = StoragePlan { extents: vec![Extent::FromZero; 2], ..plan(&[0, 1], &[0, 0]) };
    let huge = tns::Reader::<_, f64>::new(&b"18446744073709551615 1 1\n"[..]).unwrap();
    assert_eq!(survey(huge, &all).unwrap_err().to_string(), "line 1: coordinate 18446744073709551615 is too large");
    let twice = StoragePlan { order: vec![1, 1], ..all };
    assert!(
        survey(Listed::<f64>::new(&[]), &twice)
            .unwrap_err()
            .to_string()
            .starts_with("2 levels store the dimensions [1, 1]")
    );
}

#[test]
fn entries_at_the_same_place_are_added_if_that_is_asked_for() {
    let plan = StoragePlan { duplicates: Duplicates::Add(|one, other| one + other), ..plan(&[0], &[9]) };
    let entries: Vec<(Vec<u64>, f64)> =
        [(1, 1.0), (1, 2.0), (3, 4.0), (7, 8.0), (7, 16.0), (7, 32.0)].map(|(at, value)| (vec![at], value)).into();
    let found = survey(Listed::new(&entries), &plan).unwrap();
    assert_eq!((found.entries, found.added), (3, 3));
    let tensor = Tensor::<f64>::read(&file(&plan, &entries)).unwrap();
    assert_eq!((tensor.arrays[0].idx.as_slice(), tensor.values.as_slice()), (&[1, 3, 7][..], &[3.0, 4.0, 56.0][..]));
}

#[test]
fn entries_in_any_order_are_converted_once_they_are_sorted() {
    let scrambled = cases(1..5).prop_flat_map(|case| {
        let listed = case.listed();
        let twice: Vec<_> = listed.iter().chain(listed.iter().take(5)).cloned().collect();
        (Just(case), Just(twice).prop_shuffle())
    });
    proptest!(|((case, entries) in scrambled, memory in prop_oneof![Just(0_usize), 100..2000_usize, Just(1 << 20)])| {
        let plan = StoragePlan { duplicates: Duplicates::Add(|one, other| one + other), ..case.plan(Width::Eight) };
        let mut sum = Case { levels: case.levels.clone(), entries: Default::default() };
        entries.iter().for_each(|(at, value)| *sum.entries.entry(at.clone()).or_insert(0.0) += value);
        let mut sorted = sort(Listed::new(&entries), &plan, Cursor::new(Vec::new()), memory).unwrap();
        let found = survey(sorted.entries().unwrap(), &plan).unwrap();
        let mut file = Cursor::new(Vec::new());
        write(&found, sorted.entries().unwrap(), &plan, &mut file).unwrap();
        prop_assert_eq!(found.added, (entries.len() - case.entries.len()) as u64);
        prop_assert_eq!(file.into_inner(), sum.file(Width::Eight));
    });
}

#[test]
fn sorted_entries_at_the_same_place_stay_in_their_order_and_keep_their_lines() {
    let entries: Vec<(Vec<u64>, f64)> = (0..300).map(|line| (vec![line % 7], line as f64)).collect();
    let plan = plan(&[0], &[7]);
    let mut sorted = sort(Listed::new(&entries), &plan, Cursor::new(Vec::new()), 400).unwrap();
    let (mut merge, mut at, mut found) = (sorted.entries().unwrap(), Vec::new(), Vec::new());
    while let Some(value) = merge.next_entry(&mut at).unwrap() {
        assert_eq!(merge.line(), value as u64 + 1);
        found.push((at.clone(), value));
    }
    let mut expected = entries.clone();
    expected.sort_by(|one: &(Vec<u64>, f64), other| one.0.cmp(&other.0));
    assert_eq!(found, expected);
    let twice = survey(sorted.entries().unwrap(), &plan).unwrap_err();
    assert_eq!(twice.to_string(), "line 8: entry (1) is there twice: leave one out, or add them");
}

#[test]
fn what_follows_by_symmetry_is_converted_too() {
    let text = "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 5\n3 1 -2\n";
    let open = || Matrix::<_, f64>::new(matrix_market::Reader::new(text.as_bytes()).unwrap());
    let plan = plan(&[0, 1], &[3, 3]);
    let unsorted = survey(open(), &plan).unwrap_err().to_string();
    assert!(unsorted.starts_with("line 3: entry (1, 2) comes after (2, 1)"), "{unsorted}");
    let mut sorted = sort(open(), &plan, Cursor::new(Vec::new()), 1000).unwrap();
    let (mut merge, mut at, mut found) = (sorted.entries().unwrap(), Vec::new(), Vec::new());
    while let Some(value) = merge.next_entry(&mut at).unwrap() {
        found.push((at.clone(), value));
    }
    assert_eq!(found, [(vec![0, 1], -5.0), (vec![0, 2], 2.0), (vec![1, 0], 5.0), (vec![2, 0], -2.0)]);
}

/// A file that remembers the most bytes it was given at once, and no more than a few of its last bytes.
#[derive(Default)]
struct Sink {
    place: u64,
    length: u64,
    most: usize,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.place += bytes.len() as u64;
        (self.length, self.most) = (self.length.max(self.place), self.most.max(bytes.len()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Sink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(place) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        self.place = place;
        Ok(place)
    }
}

/// Entries of a large matrix, made as they are asked for.
struct Made {
    next: u64,
    count: u64,
}

impl EntryStream<f64> for Made {
    fn next_entry(&mut self, at: &mut Vec<u64>) -> Result<Option<f64>, ReadError> {
        if self.next == self.count {
            return Ok(None);
        }
        at.clear();
        at.extend([self.next / 10, self.next % 10]);
        self.next += 1;
        Ok(Some(1.5))
    }

    fn line(&self) -> u64 {
        self.next
    }
}

#[test]
fn what_is_held_in_memory_does_not_depend_on_the_size_of_the_tensor() {
    let most = |count: u64| {
        let plan =
            StoragePlan { kinds: vec![TcsLevelKind::Dense, TcsLevelKind::Sparse], ..plan(&[0, 1], &[1 << 20, 10]) };
        let survey = survey(Made { next: 0, count }, &plan).unwrap();
        let mut sink = Sink::default();
        write(&survey, Made { next: 0, count }, &plan, &mut sink).unwrap();
        assert_eq!((sink.length, survey.entries), (survey.header.bytes(), count));
        sink.most
    };
    assert_eq!((most(50_000), most(200_000)), (1 << 16, 1 << 16));
}

#[test]
fn a_file_that_changes_between_the_passes_is_told() {
    let entries = |count: u64| -> Vec<(Vec<u64>, f64)> { (0..count).map(|at| (vec![at, at], 1.0)).collect() };
    let plan = plan(&[0, 1], &[9, 9]);
    let survey = survey(Listed::new(&entries(4)), &plan).unwrap();
    for other in [3, 5] {
        let error = write(&survey, Listed::new(&entries(other)), &plan, &mut Cursor::new(Vec::new())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the entries changed while they were read: leave the file alone until it is converted"
        );
    }
    write(&survey, Listed::new(&entries(4)), &plan, &mut Cursor::new(Vec::new())).unwrap();
}

#[test]
fn a_tensor_of_more_than_a_file_holds_is_refused_before_anything_is_written() {
    let entries = [(vec![1 << 40, 1 << 40, 1 << 40], 1.0)];
    let plan = |kinds: [TcsLevelKind; 3]| StoragePlan {
        kinds: kinds.to_vec(),
        extents: vec![Extent::FromZero; 3],
        ..plan(&[0, 1, 2], &[])
    };
    let sparse = survey(Listed::new(&entries), &plan([TcsLevelKind::Sparse; 3])).unwrap();
    assert_eq!(sparse.header.bytes(), 80 + 360 + 8 * (6 + 3 + 1));
    let dense = survey(Listed::new(&entries), &plan([TcsLevelKind::Dense; 3])).unwrap_err().to_string();
    assert_eq!(
        dense,
        "level 1 has 2^63 nodes or more: 1099511627777 nodes above, and 1099511627777 coordinates in each; make it sparse"
    );
    let rows = survey(Listed::new(&entries), &plan([TcsLevelKind::Dense, TcsLevelKind::Sparse, TcsLevelKind::Sparse]))
        .unwrap();
    assert!(rows.header.bytes() > 8 << 40);
}

#[test]
fn a_reader_that_fails_is_told() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the cable is out"))
        }
    }
    let reader = tns::Reader::<_, f64>::new(io::BufReader::new((&b"1 1\n"[..]).chain(Broken))).unwrap();
    let error = survey(reader, &plan(&[0], &[9])).unwrap_err();
    assert_eq!(error.to_string(), "cannot be read: the cable is out");
    let full = TcsHeader::new(
        maniple_files::ElementType::F64,
        Width::Eight,
        vec![Level::new(TcsLevelKind::Dense, 0, 1)],
        &[0],
    )
    .unwrap();
    assert_eq!(full.bytes(), 208);
}
