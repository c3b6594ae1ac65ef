//! Orders of entries by the coordinates of levels, and what is left of entries with equal ones.

use std::cmp::Ordering;
use std::ops::Range;

/// The treatment of several entries that have the same coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// Add them up.
    Sum,
    /// Take the first.
    First,
    /// Take the last.
    Last,
    /// Refuse them.
    Refuse,
}

/// The treatment of entries that have the same coordinates, and the sum of two elements, by their carriers.
#[derive(Clone, Copy)]
pub(super) struct Combination<C> {
    pub(super) duplicates: Duplicates,
    pub(super) sum: fn(C, C) -> C,
}

/// Entries in the order of a format, each once.
pub(super) struct Sorted<T> {
    /// For each level, the coordinate of each entry.
    pub(super) levels: Vec<Vec<i64>>,
    pub(super) values: Vec<T>,
    /// How many others had the coordinates of one of these.
    pub(super) duplicates: usize,
}

/// The first of some entries, by one dimension after the other, that is outside of the tensor.
pub(super) fn outside(coordinates: &[Vec<i64>], dimensions: &[i64], entries: Range<usize>) -> Option<usize> {
    coordinates.iter().zip(dimensions).find_map(|(all, &extent)| {
        let is_outside = |coordinate: &i64| *coordinate as u64 >= extent as u64;
        // All are looked at first, which takes no branches.
        let some = all[entries.clone()].iter().fold(false, |some, coordinate| some | is_outside(coordinate));
        let first = || all[entries.clone()].iter().position(is_outside).map(|entry| entries.start + entry);
        some.then(first).flatten()
    })
}

/// Coordinates of all entries in one level, and the bounds of the level.
pub(super) struct Key<'a> {
    pub(super) coordinates: &'a [i64],
    pub(super) bounds: Range<i64>,
}

/// Below so many entries, comparing them is faster than counting.
const FEW: usize = 1 << 11;

/// The bits of coordinates that one pass sorts by.
const DIGIT: u32 = 11;

/// Sorts the entries `order` lexicographically by `keys`; those with equal keys keep their order. Entries that are in
/// order already are only compared with their neighbours.
pub(super) fn sort(keys: &[Key<'_>], order: &mut Vec<usize>) {
    let compare = |one: usize, other: usize| {
        let unequal =
            |key: &Key<'_>| Some(key.coordinates[one].cmp(&key.coordinates[other])).filter(|order| order.is_ne());
        keys.iter().find_map(unequal).unwrap_or(Ordering::Equal)
    };
    if order.is_sorted_by(|&one, &other| compare(one, other).is_le()) {
        return;
    }
    if order.len() < FEW {
        order.sort_by(|&one, &other| compare(one, other));
        return;
    }
    // From the last key to the first, and from the lowest digit to the highest (Knuth, *The Art of Computer
    // Programming* 3, section 5.2.5). Coordinates go along with entries, so that only the first pass of a key looks for
    // them.
    let mut pairs: Vec<(u64, usize)> = vec![(0, 0); order.len()];
    let mut next = pairs.clone();
    for key in keys.iter().rev() {
        let coordinate = |entry: usize| (key.coordinates[entry] - key.bounds.start) as u64;
        pairs.iter_mut().zip(&*order).for_each(|(pair, &entry)| *pair = (coordinate(entry), entry));
        if pairs.is_sorted_by_key(|pair| pair.0) {
            continue;
        }
        let bits = u64::BITS - ((key.bounds.end - key.bounds.start - 1) as u64).leading_zeros();
        for shift in (0..bits).step_by(DIGIT as usize) {
            let digit = |pair: &(u64, usize)| (pair.0 >> shift) as usize & ((1 << DIGIT) - 1);
            let mut starts = [0_usize; (1 << DIGIT) + 1];
            pairs.iter().for_each(|pair| starts[digit(pair) + 1] += 1);
            for place in 0..1 << DIGIT {
                starts[place + 1] += starts[place];
            }
            for pair in &pairs {
                let start = &mut starts[digit(pair)];
                next[*start] = *pair;
                *start += 1;
            }
            std::mem::swap(&mut pairs, &mut next);
        }
        order.iter_mut().zip(&pairs).for_each(|(entry, pair)| *entry = pair.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_entries_are_sorted_as_few_are() {
        let mut random = fastrand::Rng::with_seed(7);
        for bounds in [0..3, -5..2000, 0..1 << 40, -(1 << 50)..1 << 50] {
            let count = 3 * FEW;
            let coordinates: Vec<Vec<i64>> =
                (0..3).map(|_| (0..count).map(|_| random.i64(bounds.clone())).collect()).collect();
            let keys: Vec<_> =
                coordinates.iter().map(|coordinates| Key { coordinates, bounds: bounds.clone() }).collect();
            let mut order: Vec<usize> = (0..count).collect();
            let mut expected = order.clone();
            sort(&keys, &mut order);
            expected.sort_by_key(|&entry| coordinates.iter().map(|all| all[entry]).collect::<Vec<_>>());
            assert_eq!(order, expected);
        }
    }
}
