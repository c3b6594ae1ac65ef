//! Matrices of compressed rows to formats in which the place of an entry follows from its row and what is counted
//! before: blocks, diagonals, and as many entries for each row (Chou, Kjolstad, Amarasinghe, *Automatic generation of
//! efficient sparse tensor format conversion routines*, PLDI 2020). Nothing is sorted.

use std::ops::Range;

use super::error::StorageError;
use super::rows::{Rows, empty_level};
use super::tensor::SparseTensor;
use crate::element::Element;
use crate::format::{Format, Level, LevelExpression};
use crate::kernel::Team;
use crate::level::{Array, Component, LevelData, LevelError, Width, filled, positions, with_numbers};
use crate::parallel::{each, ranges, split};

/// About how many rows a thread takes at once.
const ROWS: usize = 1 << 12;

/// The levels of a result and its elements, or the level that cannot be made.
type Made<T> = Result<(Vec<LevelData>, Vec<T>), (usize, LevelError)>;

/// The matrix in `format`; none if that has no such levels, or the matrix no sorted rows.
pub(super) fn directly<T: Element>(
    from: &SparseTensor<T>,
    format: &Format,
    team: &dyn Team,
) -> Option<Result<SparseTensor<T>, StorageError>> {
    use LevelExpression::{Block, Difference, Mode, Within};
    let rows = Rows::of(from).filter(|rows| !rows.values.is_empty())?;
    let is_sorted = from.format().properties().iter().chain(format.properties());
    if !is_sorted.into_iter().all(|level| level.ordered && level.unique && !level.ranges) {
        return None;
    }
    let [i, j] = rows.modes;
    let (rows, fill) = (rows.carried(), bytemuck::cast(from.fill()));
    let target = Target { rows, format, dimensions: from.dimensions(), fill, team };
    let made = match (format.levels(), format.expressions()) {
        ([Level::Dense, Level::Counter], [Mode(row), Mode(_)]) if *row == i => target.slots(),
        ([Level::Compressed, Level::Range], [Difference(column, row), Mode(along)])
            if [*row, *column, *along] == [i, j, i] =>
        {
            target.diagonals()
        }
        (
            [Level::Dense, Level::Compressed, Level::Dense, Level::Dense],
            [
                Block(row, height),
                Block(column, width),
                Within(inner_row, inner_height),
                Within(inner_column, inner_width),
            ],
        ) if [*row, *column, *inner_row, *inner_column] == [i, j, i, j]
            && (height, width) == (inner_height, inner_width) =>
        {
            target.blocks(*height as usize, *width)
        }
        _ => return None,
    };
    let failed = |(level, error)| StorageError::Level { format: format.to_string(), level, error };
    let made = made.map(|(levels, values)| {
        SparseTensor::of(format, from.dimensions(), from.fill(), levels, T::from_carriers(values))
    });
    Some(made.map_err(failed))
}

/// A conversion: the rows, and the format, extents and fill value of the tensor that is made of them.
struct Target<'a, T> {
    rows: Rows<'a, T>,
    format: &'a Format,
    dimensions: &'a [i64],
    fill: T,
    team: &'a dyn Team,
}

impl<T: Element> Target<'_, T> {
    fn height(&self) -> usize {
        self.rows.pos.len() - 1
    }

    /// An empty level.
    fn level(&self, level: usize, parents: usize) -> LevelData {
        empty_level(self.format, self.dimensions, level, parents)
    }

    /// Ranges of `count` rows, or rows of blocks.
    fn parts(&self, count: usize) -> Vec<Range<usize>> {
        ranges(count, count.div_ceil(ROWS).max(4 * self.team.size()))
    }

    /// The rows of each part, in an array that has `width` elements for each row.
    fn split<'b, X>(parts: &[Range<usize>], width: usize, array: &'b mut [X]) -> Vec<&'b mut [X]> {
        split(array, parts.iter().map(|rows| rows.len() * width))
    }

    /// As many entries for each row as the longest one has.
    fn slots(&self) -> Made<T> {
        let parts = self.parts(self.height());
        let length = |row: usize| self.rows.start(row + 1) - self.rows.start(row);
        let longest = each(self.team, parts.clone(), |_: &mut (), rows| rows.map(length).max().unwrap_or(0));
        let slots = longest.into_iter().max().unwrap_or(0);
        let failed = |error| (1, error);
        let outer = LevelData { positions: self.height(), ..self.level(0, 1) };
        let mut inner = self.level(1, self.height());
        inner.positions = inner.positions_of(slots).map_err(failed)?;
        let width = inner.coordinate_width(false).map_err(failed)?;
        let mut crd = Array::filled(width, inner.bounds.start, inner.positions).map_err(failed)?;
        let used = Width::narrowest(&Width::ALL, 0, slots as i64);
        let mut used = Array::filled(used, 0, self.height()).map_err(failed)?;
        let mut values = filled(self.fill, inner.positions).map_err(failed)?;
        with_numbers!(&mut used, used => used.iter_mut().enumerate().for_each(|(row, used)| *used = length(row) as _));
        with_numbers!(&mut crd, crd => {
            let places = Self::split(&parts, slots, crd).into_iter().zip(Self::split(&parts, slots, &mut values));
            each(self.team, parts.clone().into_iter().zip(places).collect(), |scratch, (rows, (crd, values))| {
                let columns = self.rows.columns(&rows, scratch)?;
                let first = self.rows.start(rows.start);
                for (row, number) in rows.zip(0..) {
                    let entries = self.rows.start(row)..self.rows.start(row + 1);
                    let place = number * slots;
                    values[place..place + entries.len()].copy_from_slice(&self.rows.values[entries.clone()]);
                    let columns = &columns[entries.start - first..entries.end - first];
                    let Some(last) = columns.last() else { continue };
                    let padded = columns.iter().chain(std::iter::repeat(last));
                    crd[place..place + slots].iter_mut().zip(padded).for_each(|(to, &column)| *to = column as _);
                }
                Ok(())
            }).into_iter().collect::<Result<(), LevelError>>()
        })
        .map_err(failed)?;
        inner.components = vec![Component { name: "used", array: used }, Component { name: "crd", array: crd }];
        Ok((vec![outer, inner], values))
    }

    /// Diagonals, an element of each for every row.
    fn diagonals(&self) -> Made<T> {
        let (height, failed) = (self.height(), |level| move |error| (level, error));
        let mut outer = self.level(0, 1);
        // Diagonals are counted from that of the last row's first column.
        let number = |row: usize, column: i64| column as usize + height - 1 - row;
        let chunks = ranges(height, self.team.size());
        let found = each(self.team, chunks, |scratch, rows| {
            let mut found = filled(false, outer.extent())?;
            for rows in ranges(rows.len(), rows.len().div_ceil(ROWS))
                .into_iter()
                .map(|part| part.start + rows.start..part.end + rows.start)
            {
                let columns = self.rows.columns(&rows, scratch)?;
                let first = self.rows.start(rows.start);
                for row in rows {
                    let columns = &columns[self.rows.start(row) - first..self.rows.start(row + 1) - first];
                    columns.iter().for_each(|&column| found[number(row, column)] = true);
                }
            }
            Ok(found)
        });
        let found = found.into_iter().collect::<Result<Vec<Vec<bool>>, LevelError>>().map_err(failed(0))?;
        let stored: Vec<usize> =
            (0..outer.extent()).filter(|&diagonal| found.iter().any(|found| found[diagonal])).collect();
        drop(found);
        let mut places = filled(0_u32, outer.extent()).map_err(failed(0))?;
        stored.iter().zip(0..).for_each(|(&diagonal, place)| places[diagonal] = place);
        let width = outer.coordinate_width(false).map_err(failed(0))?;
        let mut crd = Array::filled(width, 0, stored.len()).map_err(failed(0))?;
        stored.iter().enumerate().for_each(|(place, &diagonal)| crd.set(place, outer.bounds.start + diagonal as i64));
        let pos = positions(&outer, &[0, stored.len()]).map_err(failed(0))?;
        outer.positions = stored.len();
        outer.components = vec![Component { name: "pos", array: pos }, Component { name: "crd", array: crd }];
        let mut inner = self.level(1, stored.len());
        inner.positions = inner.positions_of(height).map_err(failed(1))?;
        let mut values = filled(self.fill, inner.positions).map_err(failed(1))?;
        let parts = self.parts(height);
        let mut slices: Vec<Vec<&mut [T]>> = parts.iter().map(|_| Vec::new()).collect();
        for diagonal in values.chunks_mut(height) {
            slices.iter_mut().zip(Self::split(&parts, 1, diagonal)).for_each(|(slices, slice)| slices.push(slice));
        }
        let filled = each(self.team, parts.into_iter().zip(slices).collect(), |scratch, (rows, mut slices)| {
            let columns = self.rows.columns(&rows, scratch)?;
            let first = self.rows.start(rows.start);
            for (row, place) in rows.zip(0..) {
                for entry in self.rows.start(row)..self.rows.start(row + 1) {
                    slices[places[number(row, columns[entry - first])] as usize][place] = self.rows.values[entry];
                }
            }
            Ok(())
        });
        filled.into_iter().collect::<Result<(), LevelError>>().map_err(failed(1))?;
        Ok((vec![outer, inner], values))
    }

    /// Dense blocks of so many rows and columns.
    fn blocks(&self, height: usize, width: i64) -> Made<T> {
        let failed = |level| move |error| (level, error);
        let mut outer = self.level(0, 1);
        outer.positions = outer.extent();
        let parts = self.parts(outer.positions);
        let counted = each(self.team, parts.clone(), |scratch, rows| {
            let mut counts = vec![0; rows.len()];
            self.for_each_block(rows.clone(), height, width, scratch, |met| {
                if let Met::Block { row, .. } = met {
                    counts[row - rows.start] += 1;
                }
            })?;
            Ok(counts)
        });
        let counted = counted.into_iter().collect::<Result<Vec<Vec<usize>>, LevelError>>().map_err(failed(1))?;
        let totals: Vec<usize> = counted.iter().map(|counts| counts.iter().sum()).collect();
        let mut starts = filled(0, outer.positions + 1).map_err(failed(1))?;
        let mut total = 0;
        for (start, count) in starts.iter_mut().zip(counted.iter().flatten().chain([&0])) {
            *start = total;
            total += count;
        }
        let mut inner = self.level(1, outer.positions);
        let mut crd = Array::filled(inner.coordinate_width(false).map_err(failed(1))?, 0, total).map_err(failed(1))?;
        let mut rows = self.level(2, total);
        rows.positions = rows.positions_of(height).map_err(failed(2))?;
        let mut columns = self.level(3, rows.positions);
        columns.positions = columns.positions_of(width as usize).map_err(failed(3))?;
        let mut values = filled(self.fill, columns.positions).map_err(failed(3))?;
        let area = height * width as usize;
        with_numbers!(&mut crd, crd => {
            let places = split(crd, totals.iter().copied()).into_iter().zip(split(&mut values, totals.iter().map(|total| total * area)));
            each(self.team, parts.into_iter().zip(places).collect(), |scratch, (rows, (crd, values))| {
                let (mut crd, mut blocks, mut block) = (crd.iter_mut(), values.chunks_exact_mut(area), None);
                self.for_each_block(rows, height, width, scratch, |met| match met {
                    Met::Block { column, .. } => {
                        crd.by_ref().take(1).for_each(|crd| *crd = column as _);
                        block = blocks.next();
                    }
                    Met::Entry { place, entry } => {
                        if let Some(block) = &mut block {
                            block[place] = self.rows.values[entry];
                        }
                    }
                })
            }).into_iter().collect::<Result<(), LevelError>>()
        }).map_err(failed(1))?;
        let pos = positions(&inner, &starts).map_err(failed(1))?;
        inner.components = vec![Component { name: "pos", array: pos }, Component { name: "crd", array: crd }];
        inner.positions = total;
        Ok((vec![outer, inner, rows, columns], values))
    }

    /// Visits all blocks of some rows of blocks, and of each its entries.
    fn for_each_block(
        &self,
        blocks: Range<usize>,
        height: usize,
        width: i64,
        scratch: &mut Vec<i64>,
        mut visit: impl FnMut(Met),
    ) -> Result<(), LevelError> {
        let all = blocks.start * height..self.height().min(blocks.end * height);
        let first = self.rows.start(all.start);
        let columns = self.rows.columns(&all, scratch)?;
        // For each row, its next entry, its end, and the column of the next entry.
        let mut heads: Vec<(usize, usize, i64)> = Vec::new();
        for row in blocks {
            heads.clear();
            heads.extend((row * height..all.end.min((row + 1) * height)).map(|row| {
                let (next, end) = (self.rows.start(row) - first, self.rows.start(row + 1) - first);
                (next, end, if next < end { columns[next] } else { i64::MAX })
            }));
            loop {
                let least = heads.iter().map(|head| head.2).min().unwrap_or(i64::MAX);
                if least == i64::MAX {
                    break;
                }
                let column = least / width;
                let (start, end) = (column * width, (column + 1) * width);
                visit(Met::Block { row, column });
                for (within, (next, last, head)) in heads.iter_mut().enumerate() {
                    while *head < end {
                        visit(Met::Entry {
                            place: within * width as usize + (*head - start) as usize,
                            entry: first + *next,
                        });
                        *next += 1;
                        *head = if next < last { columns[*next] } else { i64::MAX };
                    }
                }
            }
        }
        Ok(())
    }
}

/// An object that a walk through blocks meets: a block, or an entry of the last block, with its place there.
enum Met {
    Block { row: usize, column: i64 },
    Entry { place: usize, entry: usize },
}
