//! `.tns` files (Smith et al. 2017, *FROSTT: The Formidable Repository of Open Sparse Tensors and Tools*): a sparse tensor as lines of coordinates, counted from 1, and a value. There is
//! no header: the first line tells how many dimensions there are, and extents are at least the largest coordinates.

use std::io::{self, BufRead, Write};
use std::marker::PhantomData;

use crate::error::{Problem, ReadError};
use crate::number::{Number, coordinate};
use crate::text::{Lines, foreign, shown};

/// A file of real numbers that is being read.
#[derive(Debug)]
pub struct Reader<R, T> {
    lines: Lines<R>,
    order: usize,
    /// Whether the line that was read last is still to be given: of the first one, only the words were counted.
    is_pending: bool,
    value: PhantomData<T>,
}

impl<R: BufRead, T: Number> Reader<R, T> {
    /// Reads a file to its first entry.
    ///
    /// # Errors
    /// [`ReadError`] if the file has no entries, or another format.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        if let Some(problem) = foreign(source.fill_buf()?) {
            return Err(ReadError::Line { line: 1, problem });
        }
        let mut lines = Lines::new(source, b'#');
        let Some(first) = lines.next()? else {
            let reason = "the file has no entries, of which the first tells the number of dimensions".to_owned();
            return Err(lines.wrong(Problem::Truncated(reason)));
        };
        let words = first.split_whitespace().count();
        if words < 2 {
            let reason = format!("expected coordinates and a value, found '{}'", shown(first));
            return Err(lines.wrong(Problem::Malformed(reason)));
        }
        Ok(Self { lines, order: words - 1, is_pending: true, value: PhantomData })
    }

    /// The number of dimensions; at least one.
    pub fn order(&self) -> usize {
        self.order
    }

    /// The number of the last line read, from 1.
    pub fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Reads the next entry: its coordinates, counted from 0, take the place of those given, and its value is returned; none after the last one.
    ///
    /// # Errors
    /// [`ReadError`] if a line makes no sense, or has not as many coordinates as the first one.
    pub fn next_entry(&mut self, coordinates: &mut Vec<u64>) -> Result<Option<T>, ReadError> {
        let line = if std::mem::take(&mut self.is_pending) { Some(self.lines.text()?) } else { self.lines.next()? };
        let Some(line) = line else { return Ok(None) };
        coordinates.clear();
        entry(line, self.order, coordinates).map(Some).map_err(|problem| self.lines.wrong(problem))
    }
}

fn entry<T: Number>(line: &str, order: usize, coordinates: &mut Vec<u64>) -> Result<T, Problem> {
    let other = || Problem::Malformed(format!("expected {order} coordinates and a value, found '{}'", shown(line)));
    let (before, value) = line.rsplit_once(char::is_whitespace).ok_or_else(other)?;
    for word in before.split_whitespace() {
        coordinates.push(coordinate("coordinate", word, None)?);
    }
    if coordinates.len() != order { Err(other()) } else { T::parse(value) }
}

/// Writes one entry, of which the coordinates are counted from 0.
///
/// # Errors
/// As of `into`.
pub fn write_entry<T: Number>(into: &mut impl Write, coordinates: &[u64], value: T) -> io::Result<()> {
    for coordinate in coordinates {
        write!(into, "{} ", coordinate + 1)?;
    }
    value.write(into)?;
    into.write_all(b"\n")
}
