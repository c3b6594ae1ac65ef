//! The entries of a piece of a tensor, one after the other.

use std::ops::Range;

use super::splits::Splits;
use crate::error::{Problem, ReadError};
use crate::number::Number;
use crate::tcs::header::TcsHeader;
use crate::tcs::layout::{Level, TcsLevelKind, TcsPart};
use crate::tcs::source::Source;
use crate::tcs::window::Window;

/// The entries between two places of a tensor, in the order in which they are stored (Shinde 2019, section 4.4.2):
/// arrays are read from their start in the piece to its end. What is read is checked, but not the checksums, which are
/// those of whole arrays. What is stored below dense levels is an entry, zero or not.
#[derive(Debug)]
pub struct Piece<'a, S: ?Sized> {
    header: &'a TcsHeader,
    splits: &'a Splits,
    /// `pos` and `idx` of each sparse level.
    arrays: Vec<Option<[Window<'a, S>; 2]>>,
    values: Window<'a, S>,
    /// The node of each level.
    positions: Vec<u64>,
    /// The number of the element where the piece ends.
    end: u64,
    /// The coordinate of each level, and the range that it is in.
    at: Vec<u64>,
    ranges: Vec<u64>,
    /// The position at which the current segment of each sparse level ends.
    segment_ends: Vec<u64>,
    /// The level that is next, counted from 1; 0 at the end.
    depth: usize,
    is_down: bool,
}

/// An entry, with coordinates in the order of levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found<'a, T> {
    /// The coordinates.
    pub at: &'a [u64],
    /// Of each coordinate, the number of the range that it is in.
    pub ranges: &'a [u64],
    /// The element.
    pub value: T,
}

/// Entries in the order of levels.
pub trait SortedEntries<T> {
    /// The next entry; none after the last one.
    ///
    /// # Errors
    /// As of the source.
    fn next_sorted(&mut self) -> Result<Option<Found<'_, T>>, ReadError>;
}

impl<T: Number, S: Source + ?Sized> SortedEntries<T> for Piece<'_, S> {
    fn next_sorted(&mut self) -> Result<Option<Found<'_, T>>, ReadError> {
        let last = self.positions.len() - 1;
        while self.depth > 0 && self.positions[last] < self.end {
            if self.depth > last + 1 {
                let value = self.values.value(self.positions[last])?;
                (self.depth, self.is_down) = (last + 1, false);
                return Ok(Some(Found { at: &self.at, ranges: &self.ranges, value }));
            }
            let level = self.depth - 1;
            self.is_down = match self.header.levels[level].kind {
                TcsLevelKind::Dense => self.step_dense(level),
                TcsLevelKind::Sparse => self.step_sparse(level)?,
            };
            self.depth = if self.is_down { self.depth + 1 } else { self.depth - 1 };
        }
        Ok(None)
    }
}

impl<'a, S: Source + ?Sized> Piece<'a, S> {
    /// The entries from the first place to the second one, excluded; places are those of
    /// [`Finder::positions`](super::Finder::positions). Coordinates are in the ranges of `splits`.
    ///
    /// # Panics
    /// If the places or splits are those of another number of levels.
    pub fn new(source: &'a S, header: &'a TcsHeader, places: Range<&[u64]>, splits: &'a Splits) -> Self {
        let window = |part: TcsPart| Window::new(source, header, part);
        let arrays = |level: usize| {
            header.levels[level].is_sparse().then(|| [window(TcsPart::Pos(level)), window(TcsPart::Idx(level))])
        };
        let rank = header.levels.len();
        let coordinate = |(level, position): (&Level, &u64)| match level.kind {
            TcsLevelKind::Dense if level.extent() > 0 => level.range.start + position % level.extent(),
            _ => level.range.start,
        };
        Self {
            header,
            splits,
            arrays: (0..rank).map(arrays).collect(),
            values: window(TcsPart::Values),
            positions: places.start.to_vec(),
            end: places.end.last().copied().unwrap_or(0),
            at: header.levels.iter().zip(places.start).map(coordinate).collect(),
            ranges: vec![0; rank],
            segment_ends: vec![0; rank],
            depth: 1,
            is_down: true,
        }
    }

    /// Goes to the first or next child; false if there is none.
    fn step_dense(&mut self, level: usize) -> bool {
        let range = &self.header.levels[level].range;
        if self.is_down {
            self.ranges[level] = 0;
        } else {
            self.positions[level] += 1;
            self.at[level] += 1;
        }
        if self.at[level] >= range.end {
            self.at[level] = range.start;
            return false;
        }
        self.ranges[level] = self.splits.advance(level, self.ranges[level], self.at[level]);
        true
    }

    /// Goes to the first or next child; false if there is none.
    fn step_sparse(&mut self, level: usize) -> Result<bool, ReadError> {
        let above = level.checked_sub(1).map_or(0, |above| self.positions[above]);
        let Some([pos, idx]) = &mut self.arrays[level] else { return Ok(false) };
        let range = &self.header.levels[level].range;
        let mut least = range.start;
        if self.is_down {
            self.segment_ends[level] = pos.bound(above + 1, idx.length())?;
            self.ranges[level] = 0;
        } else {
            self.positions[level] += 1;
            least = self.at[level] + 1;
        }
        if self.positions[level] >= self.segment_ends[level] {
            return Ok(false);
        }
        let coordinate = idx.number(self.positions[level])?;
        if coordinate < least || coordinate >= range.end {
            let section = self.header.section(TcsPart::Idx(level));
            let reason = format!(
                "idx of level {level} at {}: expected a coordinate from {least} and below {}, found {coordinate}",
                self.positions[level], range.end
            );
            let byte = section.offset + self.positions[level] * self.header.width.bytes();
            return Err(ReadError::Byte { byte, problem: Problem::Malformed(reason) });
        }
        self.at[level] = coordinate;
        self.ranges[level] = self.splits.advance(level, self.ranges[level], self.at[level]);
        Ok(true)
    }
}
