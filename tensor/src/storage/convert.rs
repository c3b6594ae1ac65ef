//! Tensors in one format to another.

use std::ops::Range;

use super::entries::EntryList;
use super::error::StorageError;
use super::pack::{Duplicates, pack};
use super::tensor::SparseTensor;
use super::value::{distance, is_same};
use crate::element::Element;
use crate::format::{Format, Level};
use crate::level::{Array, Component, LevelData, filled};

impl<T: Element> SparseTensor<T> {
    /// The same tensor in another format. Coordinates that are there several times are added up.
    ///
    /// From compressed rows to compressed columns, or the reverse, by counting, with no memory but that of the result and a number for each row of it; otherwise by way of
    /// [`entries`](Self::entries), which are sorted by levels whose order differs.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn convert(&self, format: &Format) -> Result<Self, StorageError> {
        if format == self.format() {
            return Ok(self.clone());
        }
        if is_transposed(self.format(), format) {
            return self.transposed(format);
        }
        Ok(pack(format, self.dimensions(), self.fill(), self.entries(), Duplicates::Sum)?.tensor)
    }

    /// The same tensor without entries that differ from the fill value by `tolerance` or less.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn drop(&self, tolerance: f64) -> Result<Self, StorageError> {
        let mut entries = EntryList::new(self.dimensions().len());
        self.for_each(|coordinates, value| {
            // A NaN is not close to anything.
            if !(is_same(value, self.fill()) || distance(value, self.fill()) <= tolerance) {
                entries.push(coordinates, value);
            }
        });
        Ok(pack(self.format(), self.dimensions(), self.fill(), entries, Duplicates::Sum)?.tensor)
    }

    /// Compressed rows as compressed columns (Gustavson, *Two fast algorithms for sparse matrices: multiplication and permuted transposition*, 1978).
    fn transposed(&self, format: &Format) -> Result<Self, StorageError> {
        let failed = |error| StorageError::Level { format: format.to_string(), level: 1, error };
        let expressions = format.expressions();
        let data = |level: usize, parents: usize, positions: usize| LevelData {
            bounds: expressions[level].bounds(self.dimensions()),
            properties: format.properties()[level],
            line: None,
            parents,
            positions,
            components: Vec::new(),
        };
        let (rows, from) = (&self.levels()[0], &self.levels()[1]);
        let outer = data(0, 1, from.extent());
        let mut inner = data(1, outer.positions, self.values().len());
        let (pos, crd) = (from.component("pos"), from.component("crd"));
        let mut free = filled(0_usize, outer.positions + 1).map_err(failed)?;
        (0..crd.len()).for_each(|place| free[crd.get(place) as usize + 1] += 1);
        (0..outer.positions).for_each(|row| free[row + 1] += free[row]);
        let position_width = inner.position_width(crd.len()).map_err(failed)?;
        let coordinate_width = inner.coordinate_width(false).map_err(failed)?;
        let array = |width, length| Array::filled(width, 0, length).map_err(failed);
        let (mut starts, mut coordinates) = (array(position_width, free.len())?, array(coordinate_width, crd.len())?);
        free.iter().enumerate().for_each(|(row, &start)| starts.set(row, start as i64));
        let bytes = size_of_val(self.values()) as u128;
        let mut values = filled(self.fill(), crd.len()).map_err(|_| StorageError::Memory(bytes))?;
        let segment = |row: usize| pos.get(row) as usize..pos.get(row + 1) as usize;
        let from = (self.values(), segment);
        match (crd, &mut coordinates) {
            // Without a look at the widths for each entry.
            (Array::I32(crd), Array::I32(to)) => {
                let column = |place: usize| crd[place] as usize;
                scatter(rows.positions, from, column, &mut free, |place, row| to[place] = row as i32, &mut values);
            }
            (crd, to) => {
                let column = |place: usize| crd.get(place) as usize;
                scatter(rows.positions, from, column, &mut free, |place, row| to.set(place, row as i64), &mut values);
            }
        }
        inner.components =
            vec![Component { name: "pos", array: starts }, Component { name: "crd", array: coordinates }];
        Ok(Self::of(format, self.dimensions(), self.fill(), vec![outer, inner], values))
    }
}

/// Puts the entries of all rows where the next one of their column goes.
fn scatter<T: Copy>(
    rows: usize,
    (values, segment): (&[T], impl Fn(usize) -> Range<usize>),
    column: impl Fn(usize) -> usize,
    free: &mut [usize],
    mut set: impl FnMut(usize, usize),
    into: &mut [T],
) {
    for row in 0..rows {
        for place in segment(row) {
            let to = &mut free[column(place)];
            set(*to, row);
            into[*to] = values[place];
            *to += 1;
        }
    }
}

/// Whether both have compressed rows below dense ones, with offsets, of the two dimensions in different order.
fn is_transposed(from: &Format, to: &Format) -> bool {
    let is_plain = |format: &Format| {
        let inner = format.properties().get(1).copied().unwrap_or_default();
        format.levels() == [Level::Dense, Level::Compressed] && format.is_plain() && inner.unique && !inner.ranges
    };
    is_plain(from) && is_plain(to) && from.order() != to.order()
}
