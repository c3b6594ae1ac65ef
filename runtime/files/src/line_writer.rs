//! Entries as lines, one after the other.

use std::io::{self, Write};

use crate::lines::{self, Entries, write_coordinate};
use crate::number::Number;
use crate::parallel::Parallel;

/// Writes entries as lines of `.tns` files, and of Matrix Market files below their [head](crate::matrix_market::write_head): coordinates, counted from 1, and a value. Lines are made by several
/// threads, some 16,000 for each at a time: so much memory is taken, however many entries there are.
///
/// ```
/// use maniple_files::{InTurn, LineWriter};
///
/// let mut text = Vec::new();
/// let mut lines = LineWriter::new(&mut text, 2, &InTurn);
/// lines.push(&[0, 2], 1.5)?;
/// lines.finish()?;
/// assert_eq!(text, b"1 3 1.5\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct LineWriter<'a, W, T> {
    into: W,
    parallel: &'a dyn Parallel,
    /// Those that are not written yet.
    entries: Entries<T>,
    texts: Vec<Vec<u8>>,
    wave: usize,
}

impl<'a, W: Write, T: Number> LineWriter<'a, W, T> {
    /// Of entries of so many dimensions.
    pub fn new(into: W, rank: usize, parallel: &'a dyn Parallel) -> Self {
        let wave = lines::wave(parallel);
        Self { into, parallel, entries: Entries::new(rank), texts: Vec::new(), wave }
    }

    /// Adds an entry, whose coordinates are counted from 0, one for each dimension.
    ///
    /// # Errors
    /// As of what is written into.
    pub fn push(&mut self, coordinates: &[i64], value: T) -> io::Result<()> {
        debug_assert_eq!(coordinates.len(), self.entries.coordinates.len(), "one for each dimension");
        self.entries.coordinates.iter_mut().zip(coordinates).for_each(|(all, &at)| all.push(at));
        self.entries.values.push(value);
        if self.entries.values.len() < self.wave { Ok(()) } else { self.write() }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// As of what is written into.
    pub fn finish(mut self) -> io::Result<()> {
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let entries = &self.entries;
        let line = |entry: usize, text: &mut Vec<u8>| {
            entries.coordinates.iter().for_each(|all| write_coordinate(text, all[entry]));
            entries.values[entry].write(text)?;
            text.push(b'\n');
            Ok(())
        };
        lines::write_wave(&mut self.into, 0..entries.values.len(), (self.parallel, &mut self.texts), &line)?;
        self.entries.coordinates.iter_mut().for_each(Vec::clear);
        self.entries.values.clear();
        Ok(())
    }
}
