//! Matrices of compressed rows, or columns, as all conversions from them see them.

use std::ops::Range;

use super::entries::EntryList;
use super::error::StorageError;
use super::tensor::SparseTensor;
use crate::element::Element;
use crate::format::{Format, Level};
use crate::kernel::Team;
use crate::level::{Array, LevelData, LevelError, filled};
use crate::parallel::{each, ranges, split};

/// A matrix of compressed rows. Of compressed columns, these are the rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    pub(super) pos: &'a Array,
    pub(super) crd: &'a Array,
    pub(super) values: &'a [T],
    /// The dimensions of rows and columns.
    pub(super) modes: [usize; 2],
}

/// So many coordinates are widened at once.
const BLOCK: usize = 1 << 10;

/// Whether a format has compressed rows or columns, with offsets.
pub(super) fn is_rows(format: &Format) -> bool {
    format.levels() == [Level::Dense, Level::Compressed] && format.is_plain() && !format.properties()[1].ranges
}

impl<'a, T: Element> Rows<'a, T> {
    /// The rows of a matrix that is stored by them.
    pub(super) fn of(tensor: &'a SparseTensor<T>) -> Option<Self> {
        let format = tensor.format();
        let inner = tensor.levels().get(1).filter(|_| is_rows(format))?;
        let modes = [format.order()[0], format.order()[1]];
        Some(Self { pos: inner.component("pos"), crd: inner.component("crd"), values: tensor.values(), modes })
    }

    /// The same rows with what carries their elements.
    pub(super) fn carried(self) -> Rows<'a, T::Carrier> {
        Rows { pos: self.pos, crd: self.crd, values: bytemuck::cast_slice(self.values), modes: self.modes }
    }

    /// The place among the entries at which a row starts.
    pub(super) fn start(&self, row: usize) -> usize {
        self.pos.get(row) as usize
    }

    /// The row of an entry.
    pub(super) fn row_of(&self, entry: usize) -> usize {
        let (mut low, mut high) = (0, self.pos.len() - 1);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.start(middle) <= entry { low = middle } else { high = middle }
        }
        low
    }

    /// Visits the columns of some entries, in blocks; each with the number of its first entry.
    pub(super) fn for_each_block(&self, entries: Range<usize>, mut visit: impl FnMut(usize, &[i64])) {
        let mut columns = [0; BLOCK];
        for first in entries.clone().step_by(BLOCK) {
            let columns = &mut columns[..BLOCK.min(entries.end - first)];
            self.crd.read(first, columns);
            visit(first, columns);
        }
    }

    /// All entries.
    pub(super) fn entries(&self, team: &dyn Team) -> Result<EntryList<T>, StorageError> {
        let count = self.values.len();
        let memory = |_| StorageError::Memory(count as u128 * size_of::<i64>() as u128);
        let (mut outer, mut inner) = (filled(0, count).map_err(memory)?, filled(0, count).map_err(memory)?);
        let rows = ranges(self.pos.len() - 1, 4 * team.size());
        let lengths = || rows.iter().map(|rows| self.start(rows.end) - self.start(rows.start));
        let parts =
            split(&mut outer, lengths()).into_iter().zip(split(&mut inner, lengths())).zip(rows.iter().cloned());
        each(team, parts.collect(), |_: &mut (), ((outer, inner), rows)| {
            let first = self.start(rows.start);
            self.crd.read(first, inner);
            let mut from = 0;
            for row in rows {
                let end = self.start(row + 1) - first;
                outer[from..end].fill(row as i64);
                from = end;
            }
        });
        let mut coordinates = vec![outer, inner];
        if self.modes == [1, 0] {
            coordinates.swap(0, 1);
        }
        Ok(EntryList::of(coordinates, self.values.to_vec()))
    }

    /// The columns of the entries of some rows.
    pub(super) fn columns<'b>(&self, rows: &Range<usize>, into: &'b mut Vec<i64>) -> Result<&'b [i64], LevelError> {
        let (first, end) = (self.start(rows.start), self.start(rows.end));
        into.clear();
        into.try_reserve(end - first).map_err(|_| LevelError::Memory { bytes: (end - first) as u128 * 8 })?;
        into.resize(end - first, 0);
        self.crd.read(first, into);
        Ok(into)
    }
}

/// A level of a tensor with nothing in it.
pub(super) fn empty_level(format: &Format, dimensions: &[i64], level: usize, parents: usize) -> LevelData {
    LevelData {
        bounds: format.expressions()[level].bounds(dimensions),
        properties: format.properties()[level],
        line: format.line(level, dimensions),
        parents,
        positions: 0,
        components: Vec::new(),
    }
}
