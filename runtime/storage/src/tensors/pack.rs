//! Entries to levels.

use std::borrow::Cow;
use std::ops::Range;

use super::entries::EntryList;
use super::error::StorageError;
use super::radix::Keys;
use super::sort::{Combination, Duplicates, Key, Sorted, outside, sort};
use super::tensor::{SparseTensor, check_extents};
use super::value::{is_same, sum};
use crate::element::Element;
use crate::format::{Format, Level, LevelExpression};
use crate::kernel::Team;
use crate::level::{Entries, LevelData, filled};
use crate::parallel::{chunks, each};

/// The tensor, or the block of one, to which entries are packed.
pub struct Packer<'a> {
    /// The threads that pack. The tensor is the same for any.
    pub team: &'a dyn Team,
    /// The format.
    pub format: &'a Format,
    /// The extents of the tensor.
    pub dimensions: &'a [i64],
    /// The coordinates of the outermost level of a block, which has positions for these alone.
    pub rows: Option<Range<i64>>,
    /// How many positions each position above a level has at least, if the level has as many for each.
    pub least: &'a [usize],
}

/// The sum of two elements that are carried.
fn sum_carried<T: Element>(one: T::Carrier, other: T::Carrier) -> T::Carrier {
    let element = bytemuck::checked::cast::<T::Carrier, T>;
    bytemuck::cast(sum(element(one), element(other)))
}

impl<'a> Packer<'a> {
    /// Of a whole tensor.
    pub fn new(team: &'a dyn Team, format: &'a Format, dimensions: &'a [i64]) -> Self {
        Self { team, format, dimensions, rows: None, least: &[] }
    }

    /// Packs entries, and counts those that had the coordinates of one before.
    pub(super) fn pack<T: Element>(
        &self,
        fill: T,
        entries: EntryList<T>,
        duplicates: Duplicates,
    ) -> Result<(SparseTensor<T>, usize), StorageError> {
        let (format, dimensions) = (self.format, self.dimensions);
        check_extents(format, dimensions, T::TYPE)?;
        let EntryList { coordinates, values } = entries;
        let entries = EntryList { coordinates, values: T::into_carriers(values) };
        let combination = Combination { duplicates, sum: sum_carried::<T> };
        let (levels, values, duplicates) = self.carriers(bytemuck::cast(fill), entries, combination)?;
        Ok((SparseTensor::of(format, dimensions, fill, levels, T::from_carriers(values)), duplicates))
    }

    /// The data of the levels, the elements, and the number of entries that had the coordinates of one before.
    fn carriers<T: Element>(
        &self,
        fill: T,
        entries: EntryList<T>,
        combination: Combination<T>,
    ) -> Result<(Vec<LevelData>, Vec<T>, usize), StorageError> {
        let (team, format, dimensions) = (self.team, self.format, self.dimensions);
        let mut bounds: Vec<_> = format.expressions().iter().map(|expression| expression.bounds(dimensions)).collect();
        if let (Some(outermost), Some(rows)) = (bounds.first_mut(), &self.rows) {
            outermost.clone_from(rows);
        }
        let sorted = match Keys::new(format, dimensions) {
            Some(keys) => keys.sort(team, entries, combination)?,
            None => {
                let EntryList { coordinates, values } = entries;
                if let Some(entry) = outside(&coordinates, dimensions, 0..values.len()) {
                    let coordinates = coordinates.iter().map(|all| all[entry]).collect();
                    return Err(StorageError::Outside { coordinates, dimensions: dimensions.to_vec() });
                }
                let levels = LevelCoordinates::new(format, &coordinates, &mut bounds);
                levels.sorted(&coordinates, dimensions, values, combination)?
            }
        };
        let Sorted { levels, values, duplicates } = sorted;
        let (stored, positions) = self.assemble(&bounds, levels, &values)?;
        let count = stored.last().map_or(1, |last| last.positions);
        let values = if count == values.len() && is_identity(team, &positions) {
            values
        } else {
            let bytes = count as u128 * size_of::<T>() as u128;
            let mut all = filled(fill, count).map_err(|_| StorageError::Memory(bytes))?;
            positions.iter().zip(&values).for_each(|(&position, &value)| all[position] = value);
            all
        };
        Ok((stored, values, duplicates))
    }

    /// Stores all levels, and gives the position of each entry in the last one.
    fn assemble<T: Element>(
        &self,
        bounds: &[Range<i64>],
        levels: Vec<Vec<i64>>,
        values: &[T],
    ) -> Result<(Vec<LevelData>, Vec<usize>), StorageError> {
        let format = self.format;
        let same = |one: usize, other: usize| is_same(values[one], values[other]);
        let failed = |level| move |error| StorageError::Level { format: format.to_string(), level, error };
        let mut positions = None;
        let mut stored: Vec<LevelData> = Vec::new();
        for ((level, kind), coordinates) in format.levels().iter().enumerate().zip(levels) {
            let mut data = LevelData {
                bounds: bounds[level].clone(),
                properties: format.properties()[level],
                line: format.line(level, self.dimensions),
                parents: stored.last().map_or(1, |above| above.positions),
                positions: self.least.get(level).copied().unwrap_or(0),
                components: Vec::new(),
            };
            if level == 0 && *kind == Level::Dense {
                data.positions = data.positions_of(data.extent()).map_err(failed(level))?;
                positions = Some(as_positions(coordinates, data.bounds.start));
            } else {
                let mut above = positions.take().map_or_else(|| filled(0, values.len()), Ok).map_err(failed(level))?;
                let entries =
                    Entries { coordinates: &coordinates, positions: &mut above, same: &same, team: self.team };
                kind.kind().assemble(&mut data, entries).map_err(failed(level))?;
                positions = Some(above);
            }
            stored.push(data);
        }
        Ok((stored, positions.unwrap_or_else(|| vec![0; values.len()])))
    }
}

/// Whether each entry has its own number as position.
fn is_identity(team: &dyn Team, positions: &[usize]) -> bool {
    let is_own = |_: &mut (), range: Range<usize>| range.clone().eq(positions[range].iter().copied());
    each(team, chunks(positions.len(), team), is_own).into_iter().all(|is_own| is_own)
}

/// The positions that coordinates have in a dense level without one above, in the same memory where that may be.
fn as_positions(coordinates: Vec<i64>, start: i64) -> Vec<usize> {
    match bytemuck::try_cast_vec(coordinates) {
        Ok(positions) if start == 0 => positions,
        Ok(positions) => positions.into_iter().map(|at: usize| at.wrapping_sub(start as usize)).collect(),
        Err((_, coordinates)) => coordinates.into_iter().map(|at| (at - start) as usize).collect(),
    }
}

/// The coordinates of entries in levels.
struct LevelCoordinates<'a> {
    format: &'a Format,
    /// For each level, the coordinate of each entry.
    coordinates: Vec<Cow<'a, [i64]>>,
    bounds: &'a mut [Range<i64>],
}

impl<'a> LevelCoordinates<'a> {
    fn new(format: &'a Format, coordinates: &'a [Vec<i64>], bounds: &'a mut [Range<i64>]) -> Self {
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
        Self { format, coordinates: format.expressions().iter().map(in_level).collect(), bounds }
    }

    /// Sorts entries by looking at one coordinate after the other, and makes one of those with equal coordinates.
    fn sorted<T: Element>(
        mut self,
        coordinates: &[Vec<i64>],
        dimensions: &[i64],
        mut values: Vec<T>,
        combination: Combination<T>,
    ) -> Result<Sorted<T>, StorageError> {
        let mut order: Vec<usize> = (0..values.len()).collect();
        let all = 0..self.format.levels().len();
        let (counts, direct): (Vec<usize>, Vec<usize>) = all.clone().partition(|&level| self.is_count(level));
        self.sort(&direct, &mut order);
        combine(coordinates, &mut values, &mut order, combination)?;
        let duplicates = values.len() - order.len();
        if !counts.is_empty() {
            counts.into_iter().for_each(|level| self.count(level, coordinates, dimensions, &order));
            self.sort(&all.collect::<Vec<_>>(), &mut order);
        }
        let level = |coordinates: &Cow<'_, [i64]>| order.iter().map(|&entry| coordinates[entry]).collect();
        let levels = self.coordinates.iter().map(level).collect();
        Ok(Sorted { levels, values: order.iter().map(|&entry| values[entry]).collect(), duplicates })
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
}

/// Leaves one of several neighbours that have the same coordinates, with the element that they have together.
fn combine<T: Element>(
    coordinates: &[Vec<i64>],
    values: &mut [T],
    order: &mut Vec<usize>,
    combination: Combination<T>,
) -> Result<(), StorageError> {
    let mut refused = None;
    order.dedup_by(|later, first| {
        if coordinates.iter().any(|all| all[*later] != all[*first]) {
            return false;
        }
        match combination.duplicates {
            Duplicates::Sum => values[*first] = (combination.sum)(values[*first], values[*later]),
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

#[cfg(test)]
mod tests {
    use maniple_kernel::arithmetic::cast;

    use super::*;
    use crate::element::{Complex, ElementType, Scalar};
    use crate::kernel::Serial;
    use crate::with_element;

    /// Numbers of a type, among them those with special sums.
    fn numbers<T: Element>() -> Vec<T> {
        let parts = [0.0, -0.0, 1.0, -1.0, 100.0, 3e9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let complex = parts.iter().flat_map(|&re| [Complex::new(re, -0.0), Complex::new(-re, re)]);
        let numbers = complex.map(|number| match T::TYPE.is_complex() {
            true => cast(Scalar::C64(number), T::TYPE),
            false => cast(Scalar::F64(number.re), T::TYPE),
        });
        numbers.filter_map(T::from_scalar).collect()
    }

    fn check_sums<T: Element>() {
        let numbers = numbers::<T>();
        assert!(!numbers.is_empty());
        for &one in &numbers {
            for &other in &numbers {
                let carried = sum_carried::<T>(bytemuck::cast(one), bytemuck::cast(other));
                let found = bytemuck::checked::cast::<T::Carrier, T>(carried);
                assert!(is_same(found, sum(one, other)), "{one:?} + {other:?} is {found:?}");
            }
        }
    }

    /// Entries in reverse order, with one place twice.
    fn check_packed<T: Element>() {
        let format = Format::new([Level::Dense, Level::Compressed], [0, 1]).expect("rows are a format");
        let numbers = numbers::<T>();
        let (count, mut entries) = (numbers.len() as i64, EntryList::new(2));
        (0..count).rev().for_each(|at| entries.push(&[at, at], numbers[at as usize]));
        entries.push(&[0, 0], numbers[1]);
        let (dimensions, sums) = ([count, count], Duplicates::Sum);
        let packed = Packer::new(&Serial, &format, &dimensions).pack(T::zeroed(), entries, sums);
        let (packed, duplicates) = packed.expect("it is packed");
        assert_eq!(duplicates, 1);
        let expected = [sum(numbers[0], numbers[1])].into_iter().chain(numbers[1..].iter().copied());
        assert!(packed.values().iter().zip(expected).all(|(found, expected)| is_same(*found, expected)));
    }

    #[test]
    fn sums_of_carried_elements_are_those_of_the_elements() {
        ElementType::ALL.into_iter().for_each(|element| with_element!(element, T => check_sums::<T>()));
    }

    #[test]
    fn packed_elements_of_all_types_keep_their_bits() {
        ElementType::ALL.into_iter().for_each(|element| with_element!(element, T => check_packed::<T>()));
    }
}
