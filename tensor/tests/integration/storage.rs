//! Tensors in all formats, against maps from coordinates to elements.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{Complex, Element, Scalar};
use maniple_tensor::format::{Format, Level, LevelExpression, Properties};
use maniple_tensor::level::{Array, Component, LevelError, Width};
use maniple_tensor::notation::cast;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, StorageError, pack};

type Model<T> = BTreeMap<Vec<i64>, T>;

/// Formats that store nothing but what is there: for tensors of any extents.
const SPARSE: &[&str] = &[
    "{C}",
    "{C~o}",
    "{H}",
    "(i) -> (i/4: C, i%4: C)",
    "(i) -> (i/4: C, i%4: B)",
    "(i) -> (i/4: H, i%4: D)",
    "coo",
    "dcsr",
    "dcsc",
    "hash",
    "{C~u,S}(1,0)",
    "{H,C}",
    "{C,H}(1,0)",
    "{C<ranges>,C<ranges>}",
    "{C~o,C~o}(1,0)",
    "(i,j) -> (j-i: C, i: C)",
    "(i,j) -> (i+j: H, j: H)",
    "(i,j) -> (#i: C, i: C~u, j: S)",
    "(i,j) -> (j: C, #j: C, i: S)",
    "(i,j) -> (i/2: C, j/3: C, i%2: C, j%3: D)",
    "(i,j) -> (i/2: C, j/2: C, i%2: D, j%2: B)",
    "csf:3",
    "coo:3",
    "{C,C,C}(1,2,0)",
    "{H,C,H}(2,0,1)",
    "(i,j,k) -> (k-i: C, j: C, i: C)",
    "{C,C,C,C}(3,1,0,2)",
    "coo:4",
];

/// Formats with positions for coordinates that are not there.
const FULL: &[&str] = &[
    "{}",
    "{D}",
    "{B}",
    "rows",
    "columns",
    "csr",
    "csc",
    "bcsr:2x3",
    "bcsr:1x4",
    "bcsr:3x1",
    "ell",
    "dia",
    "bitmap",
    "{C,D}",
    "{C,D}(1,0)",
    "{D,H}",
    "{H,D}(1,0)",
    "{B,C}",
    "{B,B}(1,0)",
    "{C,E}(1,0)",
    "{E,C}",
    "{D,C<ranges>}",
    "{D,C<i64,i64>}(1,0)",
    "(i,j) -> (i+j: C, j: R)",
    "(i,j) -> (i-j: D, j: R)",
    "(i,j) -> (i-j: B, i: R)",
    "(i,j) -> (#i: D, i: D, j: S)",
    "(i,j) -> (i: D, #i: D, j: S)",
    "(i,j) -> (i/2: D, j: C, i%2: D)",
    "{D,C,C}(2,0,1)",
    "{D,D,C}",
    "{C,D,C}(2,1,0)",
    "{D,B,C}",
    "{D,E,E}",
    "(i,j,k) -> (i: D, k-j: C, j: R)",
    "(i,j,k) -> (#(i,j): D, i: D, j: D, k: S)",
    "{D,C,D,C}(1,3,0,2)",
    "{L}",
    "{D,L}",
    "{C,L<i64,i32>}(1,0)",
    "{H,L}",
    "{D,C,L}(1,2,0)",
];

fn format(text: &str) -> Format {
    text.parse().unwrap()
}

fn element<T: Element>(value: i64) -> T {
    T::from_scalar(cast(Scalar::I64(value), T::TYPE)).unwrap()
}

/// Entries without duplicates, in any order: few, many, one row, or all.
fn model<T: Element>(dimensions: &[i64], random: &mut Rng) -> Model<T> {
    let mut model = Model::new();
    if dimensions.contains(&0) {
        return model;
    }
    let all = dimensions.iter().try_fold(1_i64, |all, extent| all.checked_mul(*extent)).filter(|all| *all < 1000);
    let row = random.i64(0..dimensions.first().copied().unwrap_or(1));
    let kind = random.u8(..5);
    let count = match (all, kind) {
        (Some(_), 0) => 0,
        (Some(all), 1 | 2) => 40 * all,
        (Some(all), _) => random.i64(0..all + 1),
        (None, _) => 50,
    };
    for _ in 0..count {
        let mut coordinates: Vec<i64> = dimensions.iter().map(|&extent| random.i64(0..extent)).collect();
        if kind == 2 && !coordinates.is_empty() {
            coordinates[0] = row;
        }
        // The fill value among them.
        model.insert(coordinates, element(random.i64(-3..4)));
    }
    model
}

fn list<T: Element>(model: &Model<T>, rank: usize, random: &mut Rng) -> EntryList<T> {
    let mut shuffled: Vec<_> = model.iter().collect();
    if random.bool() {
        random.shuffle(&mut shuffled);
    }
    let mut entries = EntryList::new(rank);
    shuffled.into_iter().for_each(|(coordinates, value)| entries.push(coordinates, *value));
    entries
}

/// The entries of a tensor, each once.
fn map<T: Element>(tensor: &SparseTensor<T>) -> Model<T> {
    let mut model = Model::new();
    for (coordinates, value) in tensor.entries().iter() {
        assert!(model.insert(coordinates, value).is_none(), "{} has an entry twice", tensor.format());
    }
    model
}

fn without_fill<T: Element>(model: &Model<T>, fill: T) -> Model<T> {
    model
        .iter()
        .filter(|(_, value)| **value != fill)
        .map(|(coordinates, value)| (coordinates.clone(), *value))
        .collect()
}

/// Entries visited within ranges of so many positions, one after the other, are all entries.
#[track_caller]
fn is_whole_in_parts<T: Element>(tensor: &SparseTensor<T>, length: usize) {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    tensor.for_each(|coordinates, value| whole.push((coordinates.to_vec(), value)));
    let positions = tensor.values().len();
    for first in (0..positions).step_by(length) {
        let (before, range) = (parts.len(), first..positions.min(first + length));
        tensor.for_each_within(range.clone(), |coordinates, value| parts.push((coordinates.to_vec(), value)));
        assert_eq!(tensor.count_within(range), parts.len() - before, "{}", tensor.format());
    }
    assert_eq!(parts, whole, "{} in parts of {length}", tensor.format());
    tensor.for_each_within(positions..positions, |_, _| unreachable!("there are no positions"));
}

fn holds<T: Element>(tensor: &SparseTensor<T>, model: &Model<T>) {
    tensor.check().unwrap();
    [2, 1_000].into_iter().for_each(|length| is_whole_in_parts(tensor, length));
    let expected = if tensor.keeps_fill() { model.clone() } else { without_fill(model, tensor.fill()) };
    assert_eq!(map(tensor), expected, "{} {:?}", tensor.format(), tensor.dimensions());
    for (coordinates, value) in model {
        assert_eq!(tensor.get(coordinates), *value, "{} {coordinates:?}", tensor.format());
    }
}

fn round_trips<T: Element>(texts: &[&str], extents: &[i64], cases: usize) {
    let mut random = Rng::with_seed(11);
    let formats: Vec<Format> = texts.iter().map(|text| format(text)).collect();
    for from in &formats {
        for _ in 0..self::cases(cases) {
            let dimensions: Vec<i64> = (0..from.rank()).map(|_| extents[random.usize(..extents.len())]).collect();
            let fill = element(if random.u8(..4) == 0 { 2 } else { 0 });
            let model = model::<T>(&dimensions, &mut random);
            let entries = list(&model, dimensions.len(), &mut random);
            let packed = pack(from, &dimensions, fill, entries, Duplicates::Refuse).unwrap();
            assert_eq!(packed.duplicates, 0);
            let tensor = packed.tensor;
            holds(&tensor, &model);
            for _ in 0..20 {
                let at: Vec<i64> = dimensions.iter().map(|&extent| random.i64(-1..extent + 1)).collect();
                assert_eq!(tensor.get(&at), model.get(&at).copied().unwrap_or(fill), "{from} {at:?}");
            }
            let of_rank: Vec<_> = formats.iter().filter(|format| format.rank() == from.rank()).collect();
            let to = of_rank[random.usize(..of_rank.len())];
            let expected = if tensor.keeps_fill() { model.clone() } else { without_fill(&model, fill) };
            holds(&tensor.convert(to).unwrap(), &expected);
            holds(&tensor.drop(0.0).unwrap(), &without_fill(&model, fill));
            let components = tensor.levels().iter().map(|level| level.components.clone()).collect();
            let again = SparseTensor::from_components(from, &dimensions, fill, components, tensor.values().to_vec());
            match again {
                Err(StorageError::Uncounted { .. }) => assert!(from.to_string().contains('#')),
                again => assert_eq!(map(&again.unwrap()), map(&tensor)),
            }
        }
    }
}

/// So many cases, or as many times more as `MANIPLE_STORAGE_TIMES` says: 25 for a thousand tensors a format.
fn cases(count: usize) -> usize {
    count * std::env::var("MANIPLE_STORAGE_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

fn all_formats() -> Vec<&'static str> {
    [SPARSE, FULL].concat()
}

const EXTENTS: [i64; 6] = [0, 1, 2, 3, 5, 7];

#[test]
fn tensors_are_packed_found_and_converted_in_every_format() {
    round_trips::<f64>(&all_formats(), &EXTENTS, 40);
}

#[test]
fn elements_have_any_type() {
    round_trips::<i32>(&all_formats(), &EXTENTS, 8);
    round_trips::<i64>(&all_formats(), &EXTENTS, 8);
    round_trips::<f32>(&all_formats(), &EXTENTS, 8);
    round_trips::<Complex<f32>>(&all_formats(), &EXTENTS, 8);
    round_trips::<Complex<f64>>(&all_formats(), &EXTENTS, 8);
}

#[test]
fn extents_may_be_far_larger_than_memory() {
    round_trips::<f64>(SPARSE, &[1 << 40, 3, 1 << 33], 20);
}

#[test]
fn many_entries_are_sorted_by_counting() {
    let mut random = Rng::with_seed(3);
    let dimensions = [300, 1 << 20];
    let mut expected = Model::new();
    for _ in 0..5000 {
        expected.insert(vec![random.i64(0..300), random.i64(0..1 << 20)], random.i64(..));
    }
    for text in
        ["csr", "dcsc", "coo", "hash", "{C,C}(1,0)", "(i,j) -> (j-i: C, i: C)", "(i,j) -> (#j: C, j: C~u, i: S)"]
    {
        let entries = list(&expected, 2, &mut random);
        holds(&pack(&format(text), &dimensions, 0, entries, Duplicates::Refuse).unwrap().tensor, &expected);
    }
}

#[test]
fn duplicates_are_added_or_chosen_or_refused() {
    for text in all_formats().into_iter().filter(|text| format(text).rank() == 2) {
        let packed = |duplicates| {
            let mut entries = EntryList::new(2);
            for (row, column, value) in [(1, 2, 5), (0, 0, 1), (1, 2, 7), (1, 1, 1), (1, 2, 11)] {
                entries.push(&[row, column], value);
            }
            pack(&format(text), &[2, 3], 0_i64, entries, duplicates)
        };
        for (duplicates, value) in [(Duplicates::Sum, 23), (Duplicates::First, 5), (Duplicates::Last, 11)] {
            let packed = packed(duplicates).unwrap();
            assert_eq!((packed.tensor.get(&[1, 2]), packed.duplicates), (value, 2), "{text}");
        }
        let refused = packed(Duplicates::Refuse).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "there are two entries [1, 2]: say whether they are added, or the first or the last counts"
        );
    }
}

#[test]
fn entries_outside_of_the_tensor_are_refused() {
    for coordinates in [[2, 0], [0, 3], [-1, 0]] {
        let mut entries = EntryList::new(2);
        entries.push(&coordinates, 1.0);
        let error = pack(&format("csr"), &[2, 3], 0.0, entries, Duplicates::Sum).unwrap_err();
        assert_eq!(error, StorageError::Outside { coordinates: coordinates.into(), dimensions: vec![2, 3] });
    }
    let wrong = pack(&format("csr"), &[2], 0.0, EntryList::new(1), Duplicates::Sum).unwrap_err();
    assert_eq!(wrong.to_string(), "a format of 2 levels does not store a tensor of 1 dimension");
    let negative = pack(&format("csr"), &[2, -1], 0.0, EntryList::new(2), Duplicates::Sum).unwrap_err();
    assert!(matches!(negative, StorageError::Extents { .. }), "{negative}");
}

fn packed_of(
    text: &str,
    dimensions: &[i64],
    all: impl Iterator<Item = Vec<i64>>,
) -> Result<SparseTensor<f64>, StorageError> {
    let mut entries = EntryList::new(dimensions.len());
    all.for_each(|coordinates| entries.push(&coordinates, 1.5));
    Ok(pack(&format(text), dimensions, 0.0, entries, Duplicates::Refuse)?.tensor)
}

#[test]
fn positions_and_coordinates_that_do_not_fit_their_width_are_refused() {
    let column = |count: i64| (0..count).map(|row| vec![row, 0]);
    assert_eq!(packed_of("{C<u8>,C<u8,u8>}", &[255, 1], column(255)).unwrap().bytes(), 2 + 255 + 256 + 255 + 255 * 8);
    for (text, extents, count, level, component, width) in [
        ("{D,C<u8>}", [300, 1], 256, 1, "pos", "u8"),
        ("{D,C<u8,ranges>}", [300, 1], 256, 1, "pos", "u8"),
        ("{C<u8,_>,C}", [300, 1], 256, 0, "pos", "u8"),
        ("{C<_,u8>,C}", [257, 1], 1, 0, "crd", "u8"),
        ("{C~u,S<u8>}", [3, 256], 1, 1, "crd", "u8"),
        ("{H<_,u8>,C}", [256, 1], 1, 0, "crd", "u8"),
        ("{H<u8,_>,C}", [256, 1], 129, 0, "pos", "u8"),
        ("{D,E<i16>}", [3, 1 << 15 | 1], 1, 1, "crd", "i16"),
    ] {
        let error = packed_of(text, &extents, column(count)).unwrap_err();
        let StorageError::Level {
            level: found, error: LevelError::Narrow { component: part, width: narrow, .. }, ..
        } = &error
        else {
            panic!("{text}: {error}");
        };
        assert_eq!((*found, *part, narrow.to_string().as_str()), (level, component, width), "{text}");
    }
    let error = packed_of("{D,C<u8>}", &[300, 1], column(256)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "level 1 of {D,C<u8>}(0,1): its pos holds numbers up to 256, and u8 only those up to 255: choose a wider type, or none"
    );
}

#[test]
fn widths_are_the_narrowest_that_fit() {
    let width = |text: &str, columns: i64, level: usize| {
        let tensor = packed_of(text, &[2, columns], [vec![1, 0]].into_iter()).unwrap();
        tensor.levels()[level].component("crd").width()
    };
    assert_eq!(
        [width("csr", 256, 1), width("csr", 257, 1), width("csr", 1 << 15, 1)],
        [Width::U8, Width::I16, Width::I16]
    );
    assert_eq!([width("csr", (1 << 15) + 1, 1), width("csr", (1 << 31) + 1, 1)], [Width::I32, Width::I64]);
    // Diagonals have negative numbers.
    assert_eq!([width("dia", 5, 0), width("{D,C<_,i64>}", 5, 1)], [Width::I16, Width::I64]);
}

#[test]
fn formats_take_the_memory_that_their_components_need() {
    let mut random = Rng::with_seed(5);
    let entries = 20_000;
    let all: std::collections::BTreeSet<_> =
        (0..entries).map(|_| vec![random.i64(0..1_000_000_000), random.i64(0..1_000_000_000)]).collect();
    let dcsr = packed_of("dcsr", &[1_000_000_000, 1_000_000_000], all.into_iter()).unwrap();
    assert!(dcsr.bytes() <= 26 * entries, "{}", dcsr.bytes());
    let rows = 10_000;
    let all: std::collections::BTreeSet<_> =
        (0..entries).map(|_| vec![random.i64(0..rows), random.i64(0..100_000)]).collect();
    let count = all.len();
    let csr = packed_of("csr", &[rows, 100_000], all.into_iter()).unwrap();
    assert_eq!(csr.bytes(), 4 * (rows as usize + 1) + 12 * count);
}

#[test]
fn what_does_not_fit_in_memory_is_an_error() {
    for text in ["rows", "bitmap", "csr", "bcsr:4x4"] {
        let error = packed_of(text, &[1 << 50, 1 << 50], std::iter::empty()).unwrap_err();
        let is_told = matches!(
            error,
            StorageError::Level { error: LevelError::Large { .. } | LevelError::Memory { .. }, .. }
                | StorageError::Memory(_)
        );
        assert!(is_told, "{text}: {error}");
    }
    // It takes little memory, and would be read for hours.
    let error = packed_of("{C,L}", &[1, 1 << 40], [vec![0, 5]].into_iter()).unwrap_err();
    assert!(matches!(error, StorageError::Level { error: LevelError::Large { parents: 1, .. }, .. }), "{error}");
}

#[test]
fn singletons_have_room_for_one() {
    let all = [vec![0, 1], vec![0, 2]];
    let error = packed_of("{D,S}", &[2, 3], all.into_iter()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "level 1 of {D,S}(0,1): it has room for one coordinate at position 0, and there are 1 and 2: let the level above be C~u, or use C"
    );
    let permutation = packed_of("{D,S}", &[2, 3], [vec![1, 2]].into_iter()).unwrap();
    assert_eq!((permutation.get(&[1, 2]), permutation.get(&[0, 0])), (1.5, 0.0));
}

#[test]
fn coordinates_in_any_order_are_found_where_the_format_allows_them() {
    let component = |name, array| Component { name, array };
    let of = |text: &str, crd: Vec<u8>| {
        let inner = vec![component("pos", Array::I32(vec![0, 3, 4])), component("crd", Array::U8(crd))];
        SparseTensor::from_components(&format(text), &[2, 5], 0.0, vec![vec![], inner], vec![1.0, 2.0, 3.0, 4.0])
    };
    let unordered = of("{D,C~o}", vec![4, 0, 2, 1]).unwrap();
    assert_eq!([unordered.get(&[0, 4]), unordered.get(&[0, 2]), unordered.get(&[1, 0])], [1.0, 3.0, 0.0]);
    assert_eq!(unordered.convert(&format("csr")).unwrap().values(), [2.0, 3.0, 1.0, 4.0]);
    let told = |text: &str, crd: Vec<u8>| of(text, crd).unwrap_err().to_string();
    assert_eq!(
        told("csr", vec![4, 0, 2, 1]),
        "level 1 of {D,C}(0,1): its crd must have ascending coordinates below a parent, 5 or more after 4, and has 0 at 1"
    );
    assert!(
        told("{D,C~o}", vec![4, 0, 4, 1])
            .ends_with("its crd must have each coordinate once below a parent, and has 4 twice at 0")
    );
    assert!(told("{D,C~o}", vec![4, 0, 5, 1]).contains("coordinates from 0 to 4, and has 5 at 2"));
    // Coordinates that are there twice are one element.
    let twice = of("{D,C~u}", vec![0, 3, 3, 1]).unwrap();
    assert_eq!(twice.convert(&format("csr")).unwrap().values(), [1.0, 5.0, 4.0]);
}

#[test]
fn damaged_components_are_refused_or_read_without_harm() {
    let mut random = Rng::with_seed(17);
    let (mut refused, mut accepted) = (0, 0);
    for text in all_formats() {
        for _ in 0..200 {
            let from = format(text);
            let dimensions: Vec<i64> = (0..from.rank()).map(|_| random.i64(1..6)).collect();
            let model = model::<f64>(&dimensions, &mut random);
            let tensor =
                pack(&from, &dimensions, 0.0, list(&model, from.rank(), &mut random), Duplicates::Sum).unwrap().tensor;
            let mut components: Vec<Vec<Component>> =
                tensor.levels().iter().map(|level| level.components.clone()).collect();
            let mut values = tensor.values().to_vec();
            let mut numbers: Vec<_> =
                components.iter_mut().flatten().filter(|component| !component.array.is_empty()).collect();
            match random.u8(..4) {
                0 => _ = values.pop(),
                _ if numbers.is_empty() => {}
                1 => components[random.usize(..from.levels().len())].truncate(random.usize(..2)),
                _ => {
                    let at = random.usize(..numbers.len());
                    let array = &mut numbers[at].array;
                    let place = random.usize(..array.len());
                    let width = array.width();
                    let value =
                        [array.get(place) + random.i64(-2..3), width.least(), width.greatest()][random.usize(..3)];
                    array.set(place, value.clamp(width.least(), width.greatest()));
                }
            }
            match SparseTensor::from_components(&from, &dimensions, 0.0, components, values) {
                Err(_) => refused += 1,
                Ok(tensor) => {
                    accepted += 1;
                    tensor.check().unwrap();
                    let entries = tensor.entries();
                    assert!(
                        entries
                            .iter()
                            .all(|(at, _)| at.iter().zip(&dimensions).all(|(at, extent)| (0..*extent).contains(at)))
                    );
                    tensor.convert(&Format::dense(from.rank())).unwrap();
                }
            }
        }
    }
    assert!(refused > 1000 && accepted > 1000, "{refused} {accepted}");
}

#[test]
fn neighbours_with_the_same_element_share_a_position_of_a_run_length_level() {
    let mut entries = EntryList::new(2);
    (2..90).for_each(|column| entries.push(&[1, column], if column < 50 { 7 } else { 8 }));
    let tensor = pack(&format("{D,L}"), &[3, 100], 0, entries, Duplicates::Refuse).unwrap().tensor;
    assert_eq!(tensor.values(), [0, 0, 7, 8, 0, 0]);
    assert_eq!(tensor.levels()[1].component("ends"), &Array::U8(vec![100, 2, 50, 90, 100, 100]));
    let misplaced = "{L,C}".parse::<Format>().unwrap_err().to_string();
    assert_eq!(misplaced, "level 0 of {L,C}(0,1) is RunLength, which must be the last level: use another kind");
}

#[test]
fn small_entries_are_dropped_and_explicit_fill_is_kept() {
    let mut entries = EntryList::new(1);
    for (at, value) in [(0, 0.0), (1, 1e-9), (2, 1.0), (3, f64::NAN), (4, -1e-9)] {
        entries.push(&[at], value);
    }
    let tensor = pack(&format("{C}"), &[5], 0.0, entries, Duplicates::Sum).unwrap().tensor;
    let left = |tolerance| tensor.drop(tolerance).unwrap().values().len();
    assert_eq!((tensor.values().len(), left(0.0), left(1e-9)), (5, 4, 2));
    let coordinates = tensor.convert(&format("coo:1")).unwrap();
    assert_eq!(coordinates.values().len(), 5);
    let dense = SparseTensor::from_elements(&[2, 2], 0.0, vec![0.0, 1.0, 1e-3, 0.0]).unwrap();
    assert_eq!(dense.convert(&format("csr")).unwrap().drop(0.1).unwrap().values(), [1.0]);
}

/// Levels that store `rank` dimensions, in any order, of any kinds.
fn random_format(rank: usize, random: &mut Rng) -> Option<Format> {
    let mut expressions = Vec::new();
    for mode in 0..rank {
        let other = random.usize(0..rank);
        match random.u8(..6) {
            0 => {
                let size = random.i64(1..4);
                expressions.extend([LevelExpression::Block(mode, size), LevelExpression::Within(mode, size)]);
            }
            1 if other < mode => expressions.push(LevelExpression::Sum(mode, other)),
            2 if other < mode => expressions.push(LevelExpression::Difference(mode, other)),
            3 if other < mode => expressions.push(LevelExpression::Difference(other, mode)),
            _ => expressions.push(LevelExpression::Mode(mode)),
        }
    }
    if random.u8(..5) == 0 {
        expressions.push(LevelExpression::Count(vec![random.usize(0..rank)]));
    }
    random.shuffle(&mut expressions);
    let level = |expression| {
        let kind = Level::ALL[random.usize(0..Level::ALL.len())];
        let is_compressed = kind == Level::Compressed;
        let properties = Properties {
            unique: !(is_compressed && random.u8(..4) == 0),
            ordered: !(is_compressed && random.u8(..4) == 0),
            ranges: is_compressed && random.u8(..4) == 0,
            positions: kind.kind().capabilities().has_positions.then_some(Width::I64).filter(|_| random.bool()),
            coordinates: kind.kind().capabilities().has_coordinates.then_some(Width::I16).filter(|_| random.bool()),
        };
        (expression, kind, properties)
    };
    Format::of_levels(rank, expressions.into_iter().map(level).collect()).ok()
}

#[test]
fn random_formats_are_read_as_written_and_store_what_they_are_given() {
    let (mut random, mut stored) = (Rng::with_seed(23), 0);
    for _ in 0..cases(6000) {
        let rank = random.usize(1..4);
        let Some(from) = random_format(rank, &mut random) else { continue };
        assert_eq!(from.to_string().parse::<Format>().as_ref(), Ok(&from), "{from}");
        let dimensions: Vec<i64> = (0..rank).map(|_| EXTENTS[random.usize(0..EXTENTS.len())]).collect();
        let model = model::<i64>(&dimensions, &mut random);
        match pack(&from, &dimensions, 0, list(&model, rank, &mut random), Duplicates::Refuse) {
            Ok(packed) => {
                holds(&packed.tensor, &model);
                stored += 1;
            }
            // Singletons below what is there once.
            Err(StorageError::Level { error: LevelError::Crowded { .. }, .. }) => {}
            Err(error) => panic!("{from} {dimensions:?}: {error}"),
        }
    }
    assert!(stored > 1000, "{stored}");
}
