//! Generators that make a tensor row by row; a row is all that has one first coordinate.

use std::collections::BTreeSet;
use std::ops::Range;

use super::random::Random;

/// A function that takes entries.
pub(super) type Visit<'a> = &'a mut dyn FnMut(&[i64], f64);

/// Entries at all places independently, with a probability. Rows are made in blocks that have some tens of entries
/// each, so that empty ones take no time.
pub(super) fn uniform(density: f64, dimensions: &[i64], rows: Range<i64>, seed: u64, visit: Visit<'_>) {
    let Some(places) = dimensions[1..].iter().try_fold(1_i64, |places, &extent| places.checked_mul(extent)) else {
        return;
    };
    let block = (64.0 / (density * places as f64)) as i64;
    let block = block.clamp(1, (i64::MAX / places).min(dimensions[0]));
    // The number of places to the next entry is distributed geometrically.
    let gap = |random: &mut Random| match density {
        ..=0.0 => i64::MAX,
        1.0.. => 0,
        _ => ((1.0 - random.fraction()).ln() / (-density).ln_1p()) as i64,
    };
    let mut at = vec![0; dimensions.len()];
    for number in rows.start / block..=(rows.end - 1) / block {
        let mut random = Random::of(seed, &[number]);
        let first = number * block;
        let end = places * block.min(dimensions[0] - first);
        let mut place = gap(&mut random);
        while place < end {
            at[0] = first + place / places;
            apart(place % places, dimensions, &mut at);
            let value = random.value();
            if rows.contains(&at[0]) {
                visit(&at, value);
            }
            place = place.saturating_add(1).saturating_add(gap(&mut random));
        }
    }
}

/// The coordinates after the first of a place in a row.
fn apart(mut place: i64, dimensions: &[i64], at: &mut [i64]) {
    for (coordinate, extent) in at.iter_mut().zip(dimensions).skip(1).rev() {
        *coordinate = place % extent;
        place /= extent;
    }
}

/// How fast the rows of [`zipf`] get shorter: the row of rank `r` has a length proportional to `r` to the power of
/// minus this. So the share of rows that are longer than some length falls with its power of minus 1.8.
const STEEPNESS: f64 = 1.0 / 1.8;

/// Rows whose lengths differ as a power law has it, at places whose other coordinates do so too. Coordinates of any
/// length are all over the tensor.
pub(super) fn zipf(entries: i64, dimensions: &[i64], rows: Range<i64>, seed: u64, visit: Visit<'_>) {
    let places =
        dimensions[1..].iter().try_fold(1_i64, |places, &extent| places.checked_mul(extent)).unwrap_or(i64::MAX);
    let until =
        |rank: i64| (entries as f64 * (rank as f64 / dimensions[0] as f64).powf(1.0 - STEEPNESS)).round() as i64;
    let shuffles: Vec<Shuffle> =
        (0..).zip(dimensions).map(|(mode, &extent)| Shuffle::new(extent, seed, mode)).collect();
    // If most rows are empty, those of the entries are gone through instead.
    let rank_of = |entry: i64| {
        let (mut low, mut high) = (0, dimensions[0] - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if until(middle + 1) > entry { high = middle } else { low = middle + 1 }
        }
        low
    };
    let by_entries = dimensions[0] / 8 > entries;
    let ranks: BTreeSet<i64> = if by_entries { (0..entries).map(rank_of).collect() } else { BTreeSet::new() };
    let mut lengths: Vec<(i64, i64)> = ranks
        .into_iter()
        .map(|rank| (shuffles[0].at(rank), until(rank + 1) - until(rank)))
        .filter(|(row, _)| rows.contains(row))
        .collect();
    lengths.sort_unstable();
    let all = if by_entries { 0..0 } else { rows };
    let all = all.map(|row| (row, shuffles[0].back(row))).map(|(row, rank)| (row, until(rank + 1) - until(rank)));
    let mut found = BTreeSet::new();
    for (row, length) in lengths.into_iter().chain(all) {
        let length = length.min(places);
        let mut random = Random::of(seed, &[row]);
        found.clear();
        // Where nearly all places are taken, the last ones are filled in order.
        let mut tries = 8 * length;
        while (found.len() as i64) < length && tries > 0 {
            let coordinate = |(shuffle, &extent): (&Shuffle, &i64)| {
                let rank = (extent as f64 * random.fraction().powf(1.0 / (1.0 - STEEPNESS))) as i64;
                shuffle.at(rank.min(extent - 1))
            };
            found.insert(shuffles.iter().zip(dimensions).skip(1).map(coordinate).collect::<Vec<i64>>());
            tries -= 1;
        }
        let mut at = vec![0; dimensions.len()];
        for place in 0..places {
            if found.len() as i64 == length {
                break;
            }
            apart(place, dimensions, &mut at);
            found.insert(at[1..].to_vec());
        }
        found.iter().for_each(|rest| visit(&[&[row], rest.as_slice()].concat(), random.value()));
    }
}

/// Numbers in another order: `(factor * number + shift) % extent`.
struct Shuffle {
    factor: i64,
    /// `factor * inverse % extent` is 1, or 0 if the extent is 1.
    inverse: i64,
    shift: i64,
    extent: i64,
}

impl Shuffle {
    fn new(extent: i64, seed: u64, mode: i64) -> Self {
        let mut random = Random::of(seed, &[-1, mode]);
        let extent = extent.max(1);
        let mut factor = random.below(extent).max(1);
        let inverse = loop {
            match inverse(factor, extent) {
                Some(inverse) => break inverse,
                None => factor += 1,
            }
        };
        Self { factor, inverse, shift: random.below(extent), extent }
    }

    fn times(&self, factor: i64, number: i64, plus: i64) -> i64 {
        (i128::from(factor) * i128::from(number) + i128::from(plus)).rem_euclid(i128::from(self.extent)) as i64
    }

    fn at(&self, number: i64) -> i64 {
        self.times(self.factor, number, self.shift)
    }

    /// The number that is at a place.
    fn back(&self, place: i64) -> i64 {
        self.times(self.inverse, place - self.shift, 0)
    }
}

/// The inverse of `number` modulo `extent`; none if they have a common divisor (Euclid's extended algorithm).
fn inverse(number: i64, extent: i64) -> Option<i64> {
    let (mut one, mut other) = ((extent, 0), (number % extent, 1));
    while other.0 != 0 {
        let quotient = one.0 / other.0;
        (one, other) = (other, (one.0 - quotient * other.0, one.1 - quotient * other.1));
    }
    (one.0 == 1).then(|| one.1.rem_euclid(extent))
}

/// So many entries in each row, around the diagonal, as far as there are columns.
pub(super) fn band(width: i64, dimensions: &[i64], rows: Range<i64>, seed: u64, visit: Visit<'_>) {
    for row in rows {
        let mut random = Random::of(seed, &[row]);
        let first = row - width / 2;
        for column in first.max(0)..(first + width).min(dimensions[1]) {
            visit(&[row, column], random.value());
        }
    }
}

/// The discretisation of the Laplace equation on a square or cube with `side` unknowns a dimension: a star of five or
/// seven points.
pub(super) fn poisson(side: i64, dimensions: u32, rows: Range<i64>, visit: Visit<'_>) {
    let strides: Vec<i64> = (0..dimensions).rev().map(|dimension| side.pow(dimension)).collect();
    for row in rows {
        let place = |stride: &i64| row / stride % side;
        for stride in strides.iter().filter(|stride| place(stride) > 0) {
            visit(&[row, row - stride], -1.0);
        }
        visit(&[row, row], f64::from(2 * dimensions));
        for stride in strides.iter().rev().filter(|stride| place(stride) + 1 < side) {
            visit(&[row, row + stride], -1.0);
        }
    }
}

/// The first row, the first column and the diagonal.
pub(super) fn arrow(dimensions: &[i64], rows: Range<i64>, seed: u64, visit: Visit<'_>) {
    for row in rows {
        let mut random = Random::of(seed, &[row]);
        match row {
            0 => (0..dimensions[1]).for_each(|column| visit(&[0, column], random.value())),
            _ => {
                visit(&[row, 0], random.value());
                if row < dimensions[1] {
                    visit(&[row, row], random.value());
                }
            }
        }
    }
}

/// So many entries, each in another part of the rows, anywhere in them.
pub(super) fn hypersparse(entries: i64, dimensions: &[i64], rows: Range<i64>, seed: u64, visit: Visit<'_>) {
    let extent = dimensions[0];
    let entries = entries.min(extent);
    let start = |part: i64| (i128::from(extent) * i128::from(part) / i128::from(entries.max(1))) as i64;
    let part_of = |row: i64| (i128::from(entries) * i128::from(row) / i128::from(extent)) as i64;
    for part in part_of(rows.start)..(part_of(rows.end - 1) + 2).min(entries) {
        let mut random = Random::of(seed, &[part]);
        let row = start(part) + random.below(start(part + 1) - start(part));
        if rows.contains(&row) {
            let rest = dimensions[1..].iter().map(|&extent| random.below(extent));
            let at: Vec<i64> = std::iter::once(row).chain(rest).collect();
            visit(&at, random.value());
        }
    }
}
