//! Tensors packed and converted by several threads: the same as by one, and as by maps.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::format::Format;
use maniple_tensor::kernel::{Scoped, Serial, Team};
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, StorageError, pack_by};

const NAMED: [&str; 14] = [
    "rows",
    "columns",
    "csr",
    "csc",
    "coo",
    "dcsr",
    "dcsc",
    "bcsr:2x3",
    "ell",
    "dia",
    "bitmap",
    "hash",
    "{D,C<ranges>}",
    "{C,E}(1,0)",
];

fn teams() -> Vec<Box<dyn Team>> {
    let scoped = [2, 3, 7].map(|threads| Box::new(Scoped { threads }) as Box<dyn Team>);
    std::iter::once(Box::new(Serial) as Box<dyn Team>).chain(scoped).collect()
}

/// Entries in any order, some of them several times and some rows without any; of values whose sums depend on the
/// order.
fn entries(dimensions: &[i64], count: usize, random: &mut Rng) -> EntryList<f64> {
    let mut entries = EntryList::new(dimensions.len());
    if dimensions.iter().all(|&extent| extent > 0) {
        let (step, sorted) = (random.i64(1..4), random.u8(..3) == 0);
        let mut all: Vec<Vec<i64>> = (0..count)
            .map(|_| dimensions.iter().map(|&extent| random.i64(0..extent) / step * step).collect())
            .collect();
        if sorted {
            all.sort();
        }
        all.iter().for_each(|at| entries.push(at, random.f64() * 10_f64.powi(random.i32(-8..9))));
    }
    entries
}

/// The entries as a map: the sums of those with equal coordinates, in their order.
fn summed(entries: &EntryList<f64>) -> BTreeMap<Vec<i64>, f64> {
    let mut map = BTreeMap::new();
    for (at, value) in entries.iter() {
        map.entry(at).and_modify(|sum| *sum += value).or_insert(value);
    }
    map
}

fn holds(tensor: &SparseTensor<f64>, map: &BTreeMap<Vec<i64>, f64>) {
    tensor.check().unwrap();
    let found: BTreeMap<_, _> = tensor.entries().iter().collect();
    assert_eq!(&found, map, "{}", tensor.format());
}

#[test]
fn named_formats_are_packed_and_converted_alike_by_any_number_of_threads() {
    let mut random = Rng::with_seed(41);
    let formats: Vec<Format> = NAMED.iter().map(|name| name.parse().unwrap()).collect();
    for from in &formats {
        for (dimensions, count) in
            [([0, 5], 0), ([5, 0], 0), ([1, 1], 3), ([1, 90], 200), ([70, 1], 40), ([83, 61], 900)]
        {
            let entries = entries(&dimensions, count, &mut random);
            let map = summed(&entries);
            let packed =
                |team: &dyn Team| pack_by(team, from, &dimensions, 0.0, entries.clone(), Duplicates::Sum).unwrap();
            let first = packed(&Serial);
            holds(&first.tensor, &map);
            for team in teams() {
                assert_eq!(packed(&*team), first, "{from} {dimensions:?} by {}", team.size());
            }
            for to in &formats {
                let converted = first.tensor.convert_by(to, &Serial).unwrap();
                holds(&converted, &map);
                for team in teams() {
                    let other = first.tensor.convert_by(to, &*team).unwrap();
                    assert_eq!(other, converted, "{from} to {to} {dimensions:?} by {}", team.size());
                }
            }
        }
    }
}

#[test]
fn many_entries_are_divided_and_put_in_order_alike() {
    let mut random = Rng::with_seed(42);
    // Of hypersparse ones, keys have more bits than are sorted at once; of the last, all columns but few are empty.
    let cases =
        [([40_000, 30_011], 1), ([1 << 30, 1 << 31], 1), ([300, 9], 1), ([5, 1 << 20], 1 << 19), ([1, 1 << 17], 1)];
    for (dimensions, step) in cases {
        let mut entries = EntryList::new(2);
        for _ in 0..150_000 {
            let at = dimensions.map(|extent| random.i64(0..extent));
            entries.push(&[at[0], at[1] / step * step], random.f64() - 0.5);
        }
        let map = summed(&entries);
        for text in ["coo", "dcsr", "csr", "{D,C}(1,0)", "{C<i64,i64>,H}(1,0)"] {
            let format: Format = text.parse().unwrap();
            // Dense rows are for matrices with few of them.
            if dimensions[0] > 1 << 20 && ["csr", "{D,C}(1,0)"].contains(&text) {
                continue;
            }
            let packed =
                |team: &dyn Team| pack_by(team, &format, &dimensions, 0.0, entries.clone(), Duplicates::Sum).unwrap();
            let first = packed(&Serial);
            holds(&first.tensor, &map);
            assert_eq!(first.duplicates, entries.len() - map.len());
            for team in teams() {
                assert_eq!(packed(&*team), first, "{text} by {}", team.size());
                for to in ["csr", "csc", "coo"] {
                    if dimensions[0] <= 1 << 20 {
                        holds(&first.tensor.convert_by(&to.parse().unwrap(), &*team).unwrap(), &map);
                    }
                }
            }
        }
    }
}

#[test]
fn the_first_and_the_last_of_many_are_those_of_the_list_and_the_refused_one_is_the_same() {
    let mut random = Rng::with_seed(43);
    let mut entries = EntryList::new(2);
    (0..100_000).for_each(|number| entries.push(&[random.i64(0..200), random.i64(0..300)], f64::from(number)));
    let mut expected: [BTreeMap<Vec<i64>, f64>; 2] = Default::default();
    for (at, value) in entries.iter() {
        expected[0].entry(at.clone()).or_insert(value);
        expected[1].insert(at, value);
    }
    for team in teams() {
        let packed =
            |duplicates| pack_by(&*team, &"csr".parse().unwrap(), &[200, 300], 0.0, entries.clone(), duplicates);
        holds(&packed(Duplicates::First).unwrap().tensor, &expected[0]);
        holds(&packed(Duplicates::Last).unwrap().tensor, &expected[1]);
        let mut seen: BTreeMap<Vec<i64>, u32> = BTreeMap::new();
        entries.iter().for_each(|(at, _)| *seen.entry(at).or_default() += 1);
        let twice = seen.into_iter().find(|(_, count)| *count > 1).unwrap().0;
        assert_eq!(packed(Duplicates::Refuse).unwrap_err(), StorageError::Duplicate { coordinates: twice });
        let mut wrong = entries.clone();
        wrong.push(&[3, 300], 1.0);
        wrong.push(&[200, 3], 1.0);
        let error = pack_by(&*team, &"csr".parse().unwrap(), &[200, 300], 0.0, wrong, Duplicates::Sum).unwrap_err();
        assert!(matches!(error, StorageError::Outside { .. }), "{error}");
    }
}
