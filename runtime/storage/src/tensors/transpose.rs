//! Compressed rows to compressed columns, and the reverse (Gustavson, *Two fast algorithms for sparse matrices:
//! multiplication and permuted transposition*, 1978), in parallel: entries are first divided by ranges of columns, into
//! the arrays of the result, and then put in order within each range, in the cache.

use super::error::StorageError;
use super::rows::{Rows, empty_level, is_rows};
use super::tensor::SparseTensor;
use crate::element::Element;
use crate::format::Format;
use crate::kernel::Team;
use crate::level::{Array, Component, LevelData, LevelError, Width, filled, positions, with_numbers};
use crate::parallel::{chunks, each, split};

/// About how many entries are put in order at once: those that fit in a core's cache.
const PART: usize = 1 << 16;

/// The most bits that columns are divided by: so many streams are written at once.
const MOST_BITS: u32 = 8;

/// The matrix with compressed columns where it had compressed rows; none if it had none, or `format` has no such
/// columns, or there is more than is counted in 32 bits.
pub(super) fn transposed<T: Element>(
    from: &SparseTensor<T>,
    format: &Format,
    team: &dyn Team,
) -> Option<Result<SparseTensor<T>, StorageError>> {
    let rows = Rows::of(from)?;
    let is_unique = |format: &Format| format.properties()[1].unique;
    let is_counted = |count: u64| count <= u32::MAX.into();
    let counts = from.dimensions().iter().map(|&extent| extent as u64).chain([rows.values.len() as u64]);
    let is_transposed = is_rows(format) && from.format().order() != format.order();
    let stored =
        |(levels, values)| SparseTensor::of(format, from.dimensions(), from.fill(), levels, T::from_carriers(values));
    (is_transposed && is_unique(from.format()) && is_unique(format) && counts.into_iter().all(is_counted))
        .then(|| columns_of(&rows.carried(), format, from.dimensions(), from.levels()[1].extent(), team).map(stored))
}

/// The levels with compressed columns, and the elements.
fn columns_of<T: Element>(
    rows: &Rows<'_, T>,
    format: &Format,
    dimensions: &[i64],
    columns: usize,
    team: &dyn Team,
) -> Result<(Vec<LevelData>, Vec<T>), StorageError> {
    let failed = |error| StorageError::Level { format: format.to_string(), level: 1, error };
    let mut outer = empty_level(format, dimensions, 0, 1);
    let mut inner = empty_level(format, dimensions, 1, columns);
    (outer.positions, inner.positions) = (columns, rows.values.len());
    let width = inner.coordinate_width(false).map_err(failed)?;
    let bytes = size_of_val(rows.values) as u128;
    let mut values = filled(T::zeroed(), rows.values.len()).map_err(|_| StorageError::Memory(bytes))?;
    let mut starts = filled(0, columns + 1).map_err(failed)?;
    let coordinates = coordinates(rows, width, &mut starts, &mut values, team).map_err(failed)?;
    inner.components = vec![
        Component { name: "pos", array: positions(&inner, &starts).map_err(failed)? },
        Component { name: "crd", array: coordinates },
    ];
    Ok((vec![outer, inner], values))
}

/// The coordinates of the result, which are moved as numbers of 16 or 32 bits.
fn coordinates<T: Element>(
    rows: &Rows<'_, T>,
    width: Width,
    starts: &mut [usize],
    values: &mut [T],
    team: &dyn Team,
) -> Result<Array, LevelError> {
    let count = rows.values.len();
    let widened = |numbers: &mut dyn Iterator<Item = i64>| {
        let mut array = Array::filled(width, 0, count)?;
        with_numbers!(&mut array, array => array.iter_mut().zip(numbers).for_each(|(to, from)| *to = from as _));
        Ok(array)
    };
    match width {
        Width::U8 | Width::I16 => {
            let mut moved = filled(0_i16, count)?;
            rows.transpose(starts, values, &mut moved, |row| row as i16, team)?;
            if width == Width::I16 { Ok(Array::I16(moved)) } else { widened(&mut moved.iter().map(|&row| row.into())) }
        }
        Width::I32 | Width::I64 => {
            let mut moved = filled(0_i32, count)?;
            rows.transpose(starts, values, &mut moved, |row| row as i32, team)?;
            // Rows are counted in 32 bits without a sign.
            let wide = |&row: &i32| i64::from(row as u32);
            if width == Width::I32 { Ok(Array::I32(moved)) } else { widened(&mut moved.iter().map(wide)) }
        }
    }
}

/// The entries of a matrix, as arrays of their rows, columns and values.
struct Triplets<'a, C, T> {
    rows: &'a mut [C],
    columns: &'a mut [u32],
    values: &'a mut [T],
}

/// The places at which a thread writes the next entries of a range of columns: their rows, columns and values.
type Place<'a, C, T> = (std::slice::IterMut<'a, C>, std::slice::IterMut<'a, u32>, std::slice::IterMut<'a, T>);

impl<T: Element> Rows<'_, T> {
    /// Finds where columns start, and the values and the rows of their entries.
    fn transpose<C: Copy + Send + Sync>(
        &self,
        starts: &mut [usize],
        values: &mut [T],
        rows: &mut [C],
        narrow: impl Fn(usize) -> C + Sync,
        team: &dyn Team,
    ) -> Result<(), LevelError> {
        let (count, columns) = (self.values.len(), starts.len() - 1);
        let bits = usize::BITS - columns.saturating_sub(1).leading_zeros();
        let shift = bits - (count / PART).checked_ilog2().map_or(0, |bits| bits + 1).min(MOST_BITS).min(bits);
        let parts = (columns.saturating_sub(1) >> shift) + 1;
        let counts = each(team, chunks(count, team), |_: &mut (), chunk| {
            let mut counts = vec![0; parts];
            self.for_each_block(chunk, |_, columns| {
                columns.iter().for_each(|&column| counts[column as usize >> shift] += 1)
            });
            counts
        });
        let mut moved = filled(0_u32, count)?;
        self.divide(Triplets { rows, columns: &mut moved, values }, shift, &counts, narrow, team);
        let sizes: Vec<usize> = (0..parts).map(|part| counts.iter().map(|counts| counts[part]).sum()).collect();
        let firsts = sizes.iter().scan(0, |sum, size| Some(std::mem::replace(sum, *sum + size)));
        let (starts, end) = starts.split_at_mut(columns);
        end.fill(count);
        let widths = (0..parts).map(|part| columns.min((part + 1) << shift) - columns.min(part << shift));
        let arrays = split(rows, sizes.iter().copied()).into_iter().zip(split(values, sizes.iter().copied()));
        let parts =
            firsts.zip(split(starts, widths)).zip(split(&mut moved, sizes.iter().copied())).zip(arrays).enumerate();
        each(team, parts.collect(), |scratch, (part, (((first, starts), moved), (rows, values)))| {
            order((part << shift) as u32, first, starts, moved);
            let Scratch(old_rows, old_values) = scratch;
            permute(moved, rows, old_rows)?;
            permute(moved, values, old_values)
        })
        .into_iter()
        .collect()
    }

    /// Writes rows, columns and values of all entries divided by ranges of columns, counted in chunks; in each range in
    /// their order.
    fn divide<C: Send>(
        &self,
        Triplets { rows, columns, values }: Triplets<'_, C, T>,
        shift: u32,
        counts: &[Vec<usize>],
        narrow: impl Fn(usize) -> C + Sync,
        team: &dyn Team,
    ) {
        let chunks = chunks(values.len(), team);
        let parts = counts.first().map_or(0, Vec::len);
        let lengths = || (0..parts).flat_map(|part| counts.iter().map(move |counts| counts[part]));
        let arrays = split(rows, lengths()).into_iter().zip(split(columns, lengths())).zip(split(values, lengths()));
        let mut places: Vec<Vec<Place<'_, C, T>>> = chunks.iter().map(|_| Vec::with_capacity(parts)).collect();
        for (number, ((rows, columns), values)) in arrays.enumerate() {
            places[number % chunks.len()].push((rows.iter_mut(), columns.iter_mut(), values.iter_mut()));
        }
        each(team, chunks.into_iter().zip(places).collect(), |_: &mut (), (chunk, mut places)| {
            let mut row = self.row_of(chunk.start);
            let mut end = self.start(row + 1);
            self.for_each_block(chunk, |first, columns| {
                for ((entry, &column), &value) in (first..).zip(columns).zip(&self.values[first..]) {
                    while entry == end {
                        row += 1;
                        end = self.start(row + 1);
                    }
                    let (to_row, to_column, to_value) = &mut places[column as usize >> shift];
                    if let (Some(to_row), Some(to_column), Some(to_value)) =
                        (to_row.next(), to_column.next(), to_value.next())
                    {
                        (*to_row, *to_column, *to_value) = (narrow(row), column as u32, value);
                    }
                }
            });
        });
    }
}

/// The memory to which a thread copies rows and values.
struct Scratch<C, T>(Vec<C>, Vec<T>);

impl<C, T> Default for Scratch<C, T> {
    fn default() -> Self {
        Self(Vec::new(), Vec::new())
    }
}

/// From the columns of entries, of which the least is `base`, where each column starts, counted from `first`; in place
/// of the columns, where each entry goes among these.
fn order(base: u32, first: usize, starts: &mut [usize], columns: &mut [u32]) {
    columns.iter().for_each(|&column| starts[(column - base) as usize] += 1);
    let mut sum = 0;
    starts.iter_mut().for_each(|start| sum += std::mem::replace(start, sum));
    for column in columns.iter_mut() {
        let start = &mut starts[(*column - base) as usize];
        *column = *start as u32;
        *start += 1;
    }
    // Each has become the start of the next column.
    if let Some(last) = starts.len().checked_sub(1) {
        starts.copy_within(..last, 1);
        starts[0] = 0;
    }
    starts.iter_mut().for_each(|start| *start += first);
}

/// Moves each element to its place; `old` is where they are copied to before.
fn permute<X: Copy>(places: &[u32], elements: &mut [X], old: &mut Vec<X>) -> Result<(), LevelError> {
    old.clear();
    let bytes = size_of_val(elements) as u128;
    old.try_reserve(elements.len()).map_err(|_| LevelError::Memory { bytes })?;
    old.extend_from_slice(elements);
    places.iter().zip(&*old).for_each(|(&place, &element)| elements[place as usize] = element);
    Ok(())
}
