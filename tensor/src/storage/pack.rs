//! Entries to levels.

use std::borrow::Cow;
use std::ops::Range;

use super::entries::EntryList;
use super::error::StorageError;
use super::sort::{Key, sort};
use super::tensor::{SparseTensor, check_extents};
use super::value::{is_same, sum};
use crate::element::Element;
use crate::format::{Format, LevelExpression};
use crate::level::{Entries, LevelData, filled};

/// What to do with several entries that have the same coordinates.
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

/// A tensor that was packed from entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed<T> {
    /// The tensor.
    pub tensor: SparseTensor<T>,
    /// How many entries had the coordinates of one before.
    pub duplicates: usize,
}

/// Stores `entries`, in any order, as a tensor of extents `dimensions` in a format. What is not among them has the value `fill`. Entries with this value are stored too, as far as the last
/// level can tell what is stored from what is not.
///
/// Takes time for sorting by counting, unless entries have the order of the format, and for what the levels store.
///
/// # Errors
///
/// [`StorageError`]; nothing is stored in part.
pub fn pack<T: Element>(
    format: &Format,
    dimensions: &[i64],
    fill: T,
    entries: EntryList<T>,
    duplicates: Duplicates,
) -> Result<Packed<T>, StorageError> {
    check_extents(format, dimensions, T::TYPE)?;
    let EntryList { coordinates, mut values } = entries;
    is_inside(&coordinates, dimensions)?;
    let mut levels = LevelCoordinates::new(format, &coordinates, dimensions);
    let mut order: Vec<usize> = (0..values.len()).collect();
    let (counts, direct): (Vec<usize>, Vec<usize>) =
        (0..format.levels().len()).partition(|&level| levels.is_count(level));
    levels.sort(&direct, &mut order);
    let before = order.len();
    combine(&coordinates, &mut values, &mut order, duplicates)?;
    let duplicates = before - order.len();
    if !counts.is_empty() {
        counts.into_iter().for_each(|level| levels.count(level, &coordinates, dimensions, &order));
        levels.sort(&(0..format.levels().len()).collect::<Vec<_>>(), &mut order);
    }
    let (stored, positions) = levels.assemble(dimensions, &order, &values)?;
    let count = stored.last().map_or(1, |last| last.positions);
    let mut all = filled(fill, count).map_err(|_| StorageError::Memory(count as u128 * size_of::<T>() as u128))?;
    positions.iter().zip(&order).for_each(|(&position, &entry)| all[position] = values[entry]);
    let tensor = SparseTensor::of(format, dimensions, fill, stored, all);
    Ok(Packed { tensor, duplicates })
}

/// The coordinates of entries in levels.
struct LevelCoordinates<'a> {
    format: &'a Format,
    /// For each level, the coordinate of each entry.
    coordinates: Vec<Cow<'a, [i64]>>,
    bounds: Vec<Range<i64>>,
}

impl<'a> LevelCoordinates<'a> {
    fn new(format: &'a Format, coordinates: &'a [Vec<i64>], dimensions: &[i64]) -> Self {
        let count = coordinates.first().map_or(0, Vec::len);
        let in_level = |expression: &LevelExpression| match expression {
            LevelExpression::Mode(mode) => Cow::Borrowed(&coordinates[*mode][..]),
            _ => {
                let mut one = vec![0; coordinates.len()];
                let value = |entry: usize| {
                    one.iter_mut().zip(coordinates).for_each(|(one, all)| *one = all[entry]);
                    expression.value(&one)
                };
                Cow::Owned((0..count).map(value).collect())
            }
        };
        let bounds = format.expressions().iter().map(|expression| expression.bounds(dimensions)).collect();
        Self { format, coordinates: format.expressions().iter().map(in_level).collect(), bounds }
    }

    fn is_count(&self, level: usize) -> bool {
        matches!(self.format.expressions()[level], LevelExpression::Count(_))
    }

    /// Sorts entries by the coordinates of some levels.
    fn sort(&self, by: &[usize], order: &mut Vec<usize>) {
        let key = |&level: &usize| Key { coordinates: &self.coordinates[level], bounds: self.bounds[level].clone() };
        sort(&by.iter().map(key).collect::<Vec<_>>(), order);
    }

    /// Numbers the entries that have the same coordinates in the modes that a level counts.
    fn count(&mut self, level: usize, coordinates: &[Vec<i64>], dimensions: &[i64], order: &[usize]) {
        let modes = self.format.expressions()[level].modes();
        let key = |&mode: &usize| Key { coordinates: &coordinates[mode], bounds: 0..dimensions[mode] };
        let mut grouped = order.to_vec();
        sort(&modes.iter().map(key).collect::<Vec<_>>(), &mut grouped);
        let (mut counts, mut most) = (vec![0; self.coordinates[level].len()], 0);
        for pair in grouped.windows(2) {
            let is_same = modes.iter().all(|&mode| coordinates[mode][pair[0]] == coordinates[mode][pair[1]]);
            counts[pair[1]] = if is_same { counts[pair[0]] + 1 } else { 0 };
            most = most.max(counts[pair[1]]);
        }
        self.bounds[level] = 0..if grouped.is_empty() { 0 } else { most + 1 };
        self.coordinates[level] = Cow::Owned(counts);
    }

    /// Stores all levels, and gives the position of each entry in the last one.
    fn assemble<T: Element>(
        &self,
        dimensions: &[i64],
        order: &[usize],
        values: &[T],
    ) -> Result<(Vec<LevelData>, Vec<usize>), StorageError> {
        let same = |one: usize, other: usize| is_same(values[order[one]], values[order[other]]);
        let mut positions = vec![0; order.len()];
        let mut stored: Vec<LevelData> = Vec::new();
        let mut coordinates = Vec::new();
        for (level, kind) in self.format.levels().iter().enumerate() {
            coordinates.clear();
            coordinates.extend(order.iter().map(|&entry| self.coordinates[level][entry]));
            let mut data = LevelData {
                bounds: self.bounds[level].clone(),
                properties: self.format.properties()[level],
                line: self.format.line(level, dimensions),
                parents: stored.last().map_or(1, |above| above.positions),
                positions: 0,
                components: Vec::new(),
            };
            let entries = Entries { coordinates: &coordinates, positions: &mut positions, same: &same };
            let failed = |error| StorageError::Level { format: self.format.to_string(), level, error };
            kind.kind().assemble(&mut data, entries).map_err(failed)?;
            stored.push(data);
        }
        Ok((stored, positions))
    }
}

/// Refuses entries outside of the tensor.
fn is_inside(coordinates: &[Vec<i64>], dimensions: &[i64]) -> Result<(), StorageError> {
    for (all, &extent) in coordinates.iter().zip(dimensions) {
        if let Some(entry) = all.iter().position(|coordinate| !(0..extent).contains(coordinate)) {
            let coordinates = coordinates.iter().map(|all| all[entry]).collect();
            return Err(StorageError::Outside { coordinates, dimensions: dimensions.to_vec() });
        }
    }
    Ok(())
}

/// Leaves one of several neighbours that have the same coordinates, with the element that they have together.
fn combine<T: Element>(
    coordinates: &[Vec<i64>],
    values: &mut [T],
    order: &mut Vec<usize>,
    duplicates: Duplicates,
) -> Result<(), StorageError> {
    let mut refused = None;
    order.dedup_by(|later, first| {
        if coordinates.iter().any(|all| all[*later] != all[*first]) {
            return false;
        }
        match duplicates {
            Duplicates::Sum => values[*first] = sum(values[*first], values[*later]),
            Duplicates::First => {}
            Duplicates::Last => values[*first] = values[*later],
            Duplicates::Refuse => refused = refused.or(Some(*first)),
        }
        true
    });
    match refused {
        None => Ok(()),
        Some(entry) => Err(StorageError::Duplicate { coordinates: coordinates.iter().map(|all| all[entry]).collect() }),
    }
}
