//! Entries of tensors, one after the other.

use std::io::BufRead;

use crate::error::ReadError;
use crate::matrix_market::{self, MatrixEntry};
use crate::number::Number;
use crate::tns;

/// Entries that come one after the other.
pub trait EntryStream<T> {
    /// Takes the next entry: its coordinates, one for each dimension and counted from 0, take the place of those given,
    /// and its value is returned; none after the last one.
    ///
    /// # Errors
    /// As of the source.
    fn next_entry(&mut self, coordinates: &mut Vec<u64>) -> Result<Option<T>, ReadError>;

    /// The line of the entry that was taken last, from 1; of entries that are in no lines, their number.
    fn line(&self) -> u64;
}

impl<R: BufRead, T: Number> EntryStream<T> for tns::Reader<R, T> {
    fn next_entry(&mut self, coordinates: &mut Vec<u64>) -> Result<Option<T>, ReadError> {
        tns::Reader::next_entry(self, coordinates)
    }

    fn line(&self) -> u64 {
        tns::Reader::line(self)
    }
}

/// The entries of a matrix, each followed by the one that follows from it by symmetry.
#[derive(Debug)]
pub struct Matrix<R, T> {
    reader: matrix_market::Reader<R>,
    mirrored: Option<MatrixEntry<T>>,
}

impl<R: BufRead, T: Number> Matrix<R, T> {
    /// The entries that a reader has not given yet.
    pub fn new(reader: matrix_market::Reader<R>) -> Self {
        Self { reader, mirrored: None }
    }

    /// The reader.
    pub fn reader(&self) -> &matrix_market::Reader<R> {
        &self.reader
    }
}

impl<R: BufRead, T: Number> EntryStream<T> for Matrix<R, T> {
    fn next_entry(&mut self, coordinates: &mut Vec<u64>) -> Result<Option<T>, ReadError> {
        let entry = match self.mirrored.take() {
            Some(entry) => entry,
            None => {
                let Some(entry) = self.reader.next_entry::<T>()? else { return Ok(None) };
                self.mirrored = entry.mirrored(self.reader.header().symmetry);
                entry
            }
        };
        coordinates.clear();
        coordinates.extend([entry.row, entry.column]);
        Ok(Some(entry.value))
    }

    fn line(&self) -> u64 {
        self.reader.line()
    }
}

/// Entries in memory.
#[derive(Clone, Debug)]
pub struct Listed<'a, T> {
    entries: &'a [(Vec<u64>, T)],
    next: usize,
}

impl<'a, T> Listed<'a, T> {
    /// Entries in the order of a list.
    #[must_use]
    pub fn new(entries: &'a [(Vec<u64>, T)]) -> Self {
        Self { entries, next: 0 }
    }
}

impl<T: Copy> EntryStream<T> for Listed<'_, T> {
    fn next_entry(&mut self, coordinates: &mut Vec<u64>) -> Result<Option<T>, ReadError> {
        let Some((at, value)) = self.entries.get(self.next) else { return Ok(None) };
        self.next += 1;
        coordinates.clone_from(at);
        Ok(Some(*value))
    }

    fn line(&self) -> u64 {
        self.next as u64
    }
}
