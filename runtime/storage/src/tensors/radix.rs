//! Entries sorted by counting, in parallel: they are divided by the first bits of a key, and each part is sorted in the
//! cache.

use std::collections::TryReserveError;
use std::mem::{MaybeUninit, take};
use std::ops::Range;
use std::slice::IterMut;

use super::entries::EntryList;
use super::error::StorageError;
use super::sort::{Combination, Duplicates, Sorted, outside};
use crate::element::Element;
use crate::format::{Format, LevelExpression};
use crate::kernel::Team;
use crate::level::{filled, room};
use crate::parallel::{chunks, each, split};

/// About how many entries are sorted at once: those that fit in a core's cache.
const PART: usize = 1 << 15;

/// The most bits that entries are divided by: so many streams are written at once.
const MOST_BITS: u32 = 9;

/// The most bits that entries in the cache are divided by.
const MOST_DIGITS: u32 = 12;

/// So many keys are computed at once.
const BLOCK: usize = 1 << 10;

/// The coordinates of all levels in one number, whose order is theirs.
pub(super) struct Keys<'a> {
    format: &'a Format,
    dimensions: &'a [i64],
    fields: Vec<Field>,
    bits: u32,
}

/// The place of the coordinate of a level in a key.
struct Field {
    /// The least coordinate.
    start: i64,
    shift: u32,
    mask: u64,
}

/// An entry in the order of its key.
type Record<T> = (u64, T);

/// The memory to which a thread copies records.
type Scratch<T> = Vec<Record<T>>;

/// The results of a count over a range of entries: an entry outside of the tensor, how many keys begin with which bits,
/// whether keys ascend, and the first and last one.
struct Counted {
    outside: Option<usize>,
    counts: Vec<usize>,
    ascends: bool,
    ends: (u64, u64),
}

impl<'a> Keys<'a> {
    /// How the levels of a format are in a key; none if they need more than 63 bits, or depend on other entries.
    pub(super) fn new(format: &'a Format, dimensions: &'a [i64]) -> Option<Self> {
        let mut bits = 0;
        let mut fields = Vec::new();
        for expression in format.expressions().iter().rev() {
            let bounds = expression.bounds(dimensions);
            let width = u64::BITS - ((bounds.end - bounds.start - 1).max(0) as u64).leading_zeros();
            fields.push(Field { start: bounds.start, shift: bits, mask: (1 << width) - 1 });
            bits += width;
            if bits >= u64::BITS || matches!(expression, LevelExpression::Count(_)) {
                return None;
            }
        }
        fields.reverse();
        Some(Self { format, dimensions, fields, bits })
    }

    /// Computes the keys of some entries; of those outside of the tensor, any numbers.
    fn of(&self, coordinates: &[Vec<i64>], entries: Range<usize>, keys: &mut [u64]) {
        keys.fill(0);
        for (field, expression) in self.fields.iter().zip(self.format.expressions()) {
            let all = |mode: usize| coordinates[mode][entries.clone()].iter();
            let put = |(key, at): (&mut u64, i64)| *key |= (at.wrapping_sub(field.start) as u64) << field.shift;
            let keys = keys.iter_mut();
            match *expression {
                LevelExpression::Mode(mode) => keys.zip(all(mode).copied()).for_each(put),
                LevelExpression::Block(mode, size) => keys.zip(all(mode).map(|at| at / size)).for_each(put),
                LevelExpression::Within(mode, size) => keys.zip(all(mode).map(|at| at % size)).for_each(put),
                LevelExpression::Difference(first, second) => {
                    keys.zip(all(first).zip(all(second)).map(|(one, other)| one.wrapping_sub(*other))).for_each(put);
                }
                LevelExpression::Sum(first, second) => {
                    keys.zip(all(first).zip(all(second)).map(|(one, other)| one.wrapping_add(*other))).for_each(put);
                }
                LevelExpression::Count(_) => {}
            }
        }
    }

    /// Visits blocks of entries with their keys.
    fn for_each(&self, coordinates: &[Vec<i64>], entries: Range<usize>, mut visit: impl FnMut(Range<usize>, &[u64])) {
        let mut keys = [0; BLOCK];
        for first in entries.clone().step_by(BLOCK) {
            let block = first..(first + BLOCK).min(entries.end);
            let keys = &mut keys[..block.len()];
            self.of(coordinates, block.clone(), keys);
            visit(block, keys);
        }
    }

    /// The coordinates of a dimension each that a key stands for.
    fn coordinates(&self, key: u64) -> Vec<i64> {
        let levels: Vec<i64> = self.fields.iter().map(|field| field.get(key)).collect();
        let mut coordinates = vec![0; self.format.rank()];
        self.format.recovery().iter().for_each(|step| step.apply(&levels, &mut coordinates));
        coordinates
    }

    fn count(&self, coordinates: &[Vec<i64>], entries: Range<usize>, bits: u32) -> Counted {
        let mut counted = Counted { outside: None, counts: vec![0; 1 << bits], ascends: true, ends: (0, 0) };
        let mut before = None;
        self.for_each(coordinates, entries, |block, keys| {
            counted.outside = counted.outside.or_else(|| outside(coordinates, self.dimensions, block));
            if counted.outside.is_some() {
                return;
            }
            counted.ends.0 = before.map_or(keys[0], |_| counted.ends.0);
            counted.ascends &=
                before.is_none_or(|before| before < keys[0]) && keys.is_sorted_by(|one, other| one < other);
            before = keys.last().copied();
            keys.iter().for_each(|key| counted.counts[(key >> (self.bits - bits)) as usize] += 1);
        });
        counted.ends.1 = before.unwrap_or(0);
        counted
    }

    /// Sorts entries, those with equal coordinates in their order, and makes one of these.
    pub(super) fn sort<T: Element>(
        &self,
        team: &dyn Team,
        entries: EntryList<T>,
        combination: Combination<T>,
    ) -> Result<Sorted<T>, StorageError> {
        let EntryList { mut coordinates, mut values } = entries;
        let Some(&any) = values.first() else {
            return Ok(Sorted { levels: vec![Vec::new(); self.fields.len()], values, duplicates: 0 });
        };
        let count = values.len();
        let bits = (count / PART).checked_ilog2().map_or(0, |bits| bits + 1).min(MOST_BITS).min(self.bits);
        let chunks = chunks(count, team);
        let counted = each(team, chunks.clone(), |_: &mut (), chunk| self.count(&coordinates, chunk, bits));
        if let Some(entry) = counted.iter().find_map(|chunk| chunk.outside) {
            let coordinates = coordinates.iter().map(|all| all[entry]).collect();
            return Err(StorageError::Outside { coordinates, dimensions: self.dimensions.to_vec() });
        }
        let follows = |pair: &[Counted]| pair[0].ends.1 < pair[1].ends.0;
        if counted.iter().all(|chunk| chunk.ascends) && counted.windows(2).all(follows) {
            let levels = self.levels(team, coordinates)?;
            return Ok(Sorted { levels, values, duplicates: 0 });
        }
        let mut records = self.divided(team, &coordinates, &values, chunks, &counted)?;
        let sizes = (0..counted[0].counts.len()).map(|part| counted.iter().map(|chunk| chunk.counts[part]).sum());
        let combined = each(team, split(&mut records, sizes), |scratch, part| {
            let bytes = StorageError::Memory(size_of_val(part) as u128);
            sort_records(part, scratch, self.bits - bits).map_err(|_| bytes)?;
            let unique = combine(part, combination);
            let unique = unique.map_err(|key| StorageError::Duplicate { coordinates: self.coordinates(key) })?;
            Ok(&part[..unique])
        });
        let parts: Vec<&[Record<T>]> = combined.into_iter().collect::<Result<_, StorageError>>()?;
        let total = parts.iter().map(|part| part.len()).sum();
        // What the entries were in has room for the sorted ones.
        coordinates.iter_mut().for_each(|all| all.truncate(total));
        coordinates.truncate(self.fields.len());
        while coordinates.len() < self.fields.len() {
            let failed = |_| StorageError::Memory(total as u128 * size_of::<i64>() as u128);
            coordinates.push(filled(0, total).map_err(failed)?);
        }
        values.resize(total, any);
        self.gather(team, &parts, &mut coordinates, &mut values);
        Ok(Sorted { levels: coordinates, values, duplicates: count - total })
    }

    /// All entries with their keys, divided by the first bits of these, as they were counted in chunks; in each part in
    /// their order.
    fn divided<T: Element>(
        &self,
        team: &dyn Team,
        coordinates: &[Vec<i64>],
        values: &[T],
        chunks: Vec<Range<usize>>,
        counted: &[Counted],
    ) -> Result<Vec<Record<T>>, StorageError> {
        let (count, parts) = (values.len(), counted[0].counts.len());
        let shift = self.bits - parts.ilog2();
        let bytes = StorageError::Memory(count as u128 * size_of::<Record<T>>() as u128);
        let mut records: Vec<Record<T>> = room(count).map_err(|_| bytes)?;
        // Where each chunk writes the entries of each part.
        let lengths = (0..parts).flat_map(|part| counted.iter().map(move |chunk| chunk.counts[part]));
        let mut places: Vec<Vec<IterMut<'_, MaybeUninit<Record<T>>>>> = chunks.iter().map(|_| Vec::new()).collect();
        let slices = split(&mut records.spare_capacity_mut()[..count], lengths);
        slices.into_iter().enumerate().for_each(|(number, slice)| places[number % chunks.len()].push(slice.iter_mut()));
        each(team, chunks.into_iter().zip(places).collect(), |_: &mut (), (chunk, mut places)| {
            self.for_each(coordinates, chunk, |block, keys| {
                for (&key, &value) in keys.iter().zip(&values[block]) {
                    let place = places[(key >> shift) as usize].next();
                    place.expect("entries were counted").write((key, value));
                }
            });
            assert!(places.iter().all(|places| places.len() == 0), "entries were counted");
        });
        // SAFETY: the slices make up the first `count` records, and each chunk has asserted that it has written all of
        // its own.
        unsafe { records.set_len(count) };
        Ok(records)
    }

    /// Takes records apart into the coordinates of levels and elements.
    fn gather<T: Element>(&self, team: &dyn Team, parts: &[&[Record<T>]], levels: &mut [Vec<i64>], values: &mut [T]) {
        let lengths = || parts.iter().map(|part| part.len());
        let values = split(values, lengths());
        let mut coordinates: Vec<Vec<&mut [i64]>> = parts.iter().map(|_| Vec::new()).collect();
        for level in levels {
            coordinates.iter_mut().zip(split(level, lengths())).for_each(|(all, slice)| all.push(slice));
        }
        let places = parts.iter().zip(coordinates).zip(values).collect();
        each(team, places, |_: &mut (), ((part, levels), values)| {
            for (field, level) in self.fields.iter().zip(levels) {
                level.iter_mut().zip(*part).for_each(|(at, record)| *at = field.get(record.0));
            }
            values.iter_mut().zip(*part).for_each(|(value, record)| *value = record.1);
        });
    }

    /// The coordinates in levels of entries that have the order of the format.
    fn levels(&self, team: &dyn Team, mut coordinates: Vec<Vec<i64>>) -> Result<Vec<Vec<i64>>, StorageError> {
        let count = coordinates.first().map_or(0, Vec::len);
        let failed = |_| StorageError::Memory(count as u128 * size_of::<i64>() as u128);
        let mut levels = Vec::new();
        for (field, expression) in self.fields.iter().zip(self.format.expressions()) {
            let mut level = Vec::new();
            if !matches!(expression, LevelExpression::Mode(_)) {
                level = filled(0, count).map_err(failed)?;
                let chunks = chunks(count, team);
                let parts = split(&mut level, chunks.iter().map(Range::len));
                each(team, chunks.into_iter().zip(parts).collect(), |_: &mut (), (chunk, part)| {
                    let first = chunk.start;
                    self.for_each(&coordinates, chunk, |block, keys| {
                        let part = &mut part[block.start - first..block.end - first];
                        part.iter_mut().zip(keys).for_each(|(at, &key)| *at = field.get(key));
                    });
                });
            }
            levels.push(level);
        }
        for (level, expression) in levels.iter_mut().zip(self.format.expressions()) {
            if let LevelExpression::Mode(mode) = *expression {
                *level = take(&mut coordinates[mode]);
            }
        }
        Ok(levels)
    }
}

impl Field {
    fn get(&self, key: u64) -> i64 {
        self.start + (key >> self.shift & self.mask) as i64
    }
}

/// Sorts by the last `bits` of keys; those with equal keys keep their order. They are divided by as many bits as make
/// groups of a few, which are sorted in turn.
fn sort_records<T: Copy>(
    records: &mut [Record<T>],
    scratch: &mut Scratch<T>,
    bits: u32,
) -> Result<(), TryReserveError> {
    if records.len() < 32 || records.len() > u32::MAX as usize {
        records.sort_by_key(|record| record.0);
        return Ok(());
    }
    if records.is_sorted_by_key(|record| record.0) {
        return Ok(());
    }
    let digits = (records.len().ilog2() - 2).min(MOST_DIGITS).min(bits);
    let shift = bits - digits;
    let digit = |record: &Record<T>| (record.0 >> shift) as usize & ((1 << digits) - 1);
    let mut ends = vec![0_u32; 1 << digits];
    records.iter().for_each(|record| ends[digit(record)] += 1);
    let mut sum = 0;
    ends.iter_mut().for_each(|end| sum += std::mem::replace(end, sum));
    scratch.clear();
    scratch.try_reserve(records.len())?;
    scratch.extend_from_slice(records);
    for record in &*scratch {
        let place = &mut ends[digit(record)];
        records[*place as usize] = *record;
        *place += 1;
    }
    let mut first = 0;
    for end in ends.into_iter().map(|end| end as usize).filter(|_| shift > 0) {
        sort_records(&mut records[first..end], scratch, shift)?;
        first = end;
    }
    Ok(())
}

/// Moves one of each several records with the same key to the front, with the element that they have together; gives
/// how many there are, or a key that is there twice where it may not be.
fn combine<T: Element>(records: &mut [Record<T>], combination: Combination<T>) -> Result<usize, u64> {
    let is_twice = |pair: &[Record<T>]| pair[0].0 == pair[1].0;
    let Some(first) = records.windows(2).position(is_twice) else { return Ok(records.len()) };
    if combination.duplicates == Duplicates::Refuse {
        return Err(records[first].0);
    }
    let mut last = first;
    for place in first + 1..records.len() {
        let (key, value) = records[place];
        if key != records[last].0 {
            last += 1;
            records[last] = (key, value);
            continue;
        }
        match combination.duplicates {
            Duplicates::Sum => records[last].1 = (combination.sum)(records[last].1, value),
            Duplicates::Last => records[last].1 = value,
            Duplicates::First | Duplicates::Refuse => {}
        }
    }
    Ok(last + 1)
}
