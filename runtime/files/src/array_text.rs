//! Text files of dense matrices, read in parts.

use std::io::{self, BufReader};
use std::ops::Range;

use num_complex::Complex;

use crate::dense::Order;
use crate::error::{Problem, ReadError};
use crate::line_offsets::{AT_ONCE, head, in_source, line_from};
use crate::matrix_market::{Field, MatrixLayout, MatrixMarketHeader, Reader, Symmetry};
use crate::number::Number;
use crate::parallel::{Parallel, each_share};
use crate::section::{Section, share};
use crate::tcs::Source;

#[cfg(test)]
mod tests;

/// A dense matrix in a Matrix Market file in the layout `array`, whose lines have values alone. Any number of parts of
/// it can be read at the same time, each by itself: a part has its share of the values that the file lists.
///
/// The place of a value follows from the number of values that are listed before it. These are counted once, when the
/// file is opened, and kept for at most 4096 bytes of the file at equal distances.
///
/// ```
/// use maniple_files::{ArrayText, InTurn};
///
/// let text = b"%%MatrixMarket matrix array real symmetric\n2 2\n0.5\n1.5\n0.0\n".to_vec();
/// let text = ArrayText::matrix_market(text, &InTurn)?;
/// let mut found = Vec::new();
/// for part in 0..4 {
///     text.read_part::<f64>(part, 4, |at, value| found.push((at[0], at[1], value)))?;
/// }
/// assert_eq!(found, [(0, 0, 0.5), (1, 0, 1.5), (0, 1, 1.5)]);
/// # Ok::<(), maniple_files::ReadError>(())
/// ```
#[derive(Debug)]
pub struct ArrayText<S> {
    source: S,
    header: MatrixMarketHeader,
    /// The range of the lines of values in the file, in bytes.
    bytes: Range<u64>,
    /// The bytes from one checkpoint to the next; the first one is where the lines begin, and the last one at their end
    /// or after it.
    step: u64,
    /// For each checkpoint, how many values are in the lines that begin before it.
    before: Vec<u64>,
}

/// How many steps there are from the first checkpoint to the last one.
#[derive(Clone, Copy, Debug)]
struct Steps {
    most: u64,
    /// The fewest bytes of one.
    bytes: u64,
}

/// The index takes at most 32 KiB of memory. To read fewer bytes than these before a value that is looked for would
/// save no time.
const STEPS: Steps = Steps { most: 4096, bytes: 64 << 10 };

impl<S: Source> ArrayText<S> {
    /// A Matrix Market file, of which the header is read, and the lines of values are counted. What the values are is
    /// looked at only if there is an error to tell.
    ///
    /// # Errors
    /// [`ReadError`] if the file has another format, its header makes no sense, it has the layout
    /// [`MatrixLayout::Coordinate`], a line is too long or no text, or there are fewer or more values than the matrix
    /// has.
    pub fn matrix_market(source: S, parallel: &dyn Parallel) -> Result<Self, ReadError>
    where
        S: Sync,
    {
        Self::with_steps(source, parallel, STEPS)
    }

    fn with_steps(source: S, parallel: &dyn Parallel, steps: Steps) -> Result<Self, ReadError>
    where
        S: Sync,
    {
        let (header, bytes) = head(&source)?;
        if header.layout == MatrixLayout::Coordinate {
            let reason = "the matrix is sparse ('coordinate'); an 'array' has all elements".to_owned();
            return Err(ReadError::Line { line: 1, problem: Problem::Unsupported(reason) });
        }
        let length = bytes.end - bytes.start;
        let step = length.div_ceil(steps.most).max(steps.bytes);
        let mut text = Self { source, header, bytes, step, before: vec![0] };
        let count = length.div_ceil(step);
        let counts = match each_share(parallel, |part, parts| text.count(share(count, part, parts))) {
            Err(ReadError::Line { .. }) => return Err(text.first_wrong()),
            counts => counts?,
        };
        let mut total = 0;
        for count in counts.into_iter().flatten() {
            total += count;
            text.before.push(total);
        }
        if total == header.entries { Ok(text) } else { Err(text.first_wrong()) }
    }

    /// The header of the file, above its values.
    pub fn header(&self) -> &MatrixMarketHeader {
        &self.header
    }

    /// The bytes of the file.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The rows and the columns of the matrix.
    pub fn shape(&self) -> [u64; 2] {
        [self.header.rows, self.header.columns]
    }

    /// The order of the elements, if the file lists all of them; none if some follow by symmetry.
    pub fn order(&self) -> Option<Order> {
        (self.header.symmetry == Symmetry::General).then_some(Order::Columns)
    }

    /// Reads elements, those from the first one named on, in the order of the file.
    ///
    /// # Errors
    /// [`ReadError`] if there are not so many, the file does not list all elements, or a line makes no sense.
    pub fn read_elements<T: Number>(&self, elements: Range<u64>) -> Result<Vec<T>, ReadError> {
        let (count, symmetry) = (self.header.entries, self.header.symmetry);
        let refused = |problem| Err(ReadError::Line { line: 1, problem });
        if symmetry != Symmetry::General {
            let reason = format!("the matrix is {symmetry}: the file does not list all elements");
            return refused(Problem::Unsupported(reason));
        }
        if elements.start > elements.end || elements.end > count {
            let reason = format!("there are {count} elements, and those of {elements:?} are not among them");
            return refused(Problem::Malformed(reason));
        }
        let mut found = Vec::with_capacity((elements.end - elements.start) as usize);
        self.read_listed(elements, |_, value| found.push(value))?;
        Ok(found)
    }

    /// Visits the entries of one of so many parts, and those that follow from them by symmetry, each right after the
    /// one that it follows from: with their coordinates, counted from 0. Zeros are no entries.
    ///
    /// # Errors
    /// [`ReadError`] if a line makes no sense.
    pub fn read_part<T: Number>(
        &self,
        part: u64,
        parts: u64,
        mut visit: impl FnMut(&[u64], T),
    ) -> Result<(), ReadError> {
        self.read_listed(share(self.header.entries, part, parts), |at, value: T| {
            if value == T::zeroed() {
                return;
            }
            visit(&at, value);
            if let Some(mirrored) = self.header.symmetry.mirrored(value).filter(|_| at[0] != at[1]) {
                visit(&[at[1], at[0]], mirrored);
            }
        })
    }

    /// Visits some of the values that the file lists.
    fn read_listed<T: Number>(&self, listed: Range<u64>, mut visit: impl FnMut([u64; 2], T)) -> Result<(), ReadError> {
        if listed.is_empty() {
            return Ok(());
        }
        let first = self.before.partition_point(|before| *before <= listed.start) - 1;
        let last = self.before.partition_point(|before| *before < listed.end);
        let start = self.line_from(first as u64)?;
        let lines = self.lines(start..self.line_from(last as u64)?);
        let before = self.before[first];
        let mut reader = Reader::from_entry(lines, &self.header, before);
        let mut read = || {
            for _ in before..listed.start {
                reader.pass_entry()?;
            }
            for _ in listed.clone() {
                match reader.next_entry::<T>()? {
                    Some(entry) => visit([entry.row, entry.column], entry.value),
                    None => return Err(changed()),
                }
            }
            Ok(())
        };
        read().map_err(|error| in_source(&self.source, start, error))
    }

    /// For some of the steps between checkpoints, how many values are in the lines that begin there. Errors do not tell
    /// the line.
    fn count(&self, steps: Range<u64>) -> Result<Vec<u64>, ReadError> {
        let mut counts = Vec::with_capacity((steps.end - steps.start) as usize);
        let mut start = self.line_from(steps.start)?;
        for step in steps {
            // A line may have several checkpoints; its end is looked for once.
            let end = if start < self.checkpoint(step + 1) { self.line_from(step + 1)? } else { start };
            let mut reader = Reader::from_entry(self.lines(start..end), &self.header, 0);
            let mut count = 0;
            while reader.pass_entry()? {
                count += 1;
            }
            counts.push(count);
            start = end;
        }
        Ok(counts)
    }

    fn lines(&self, bytes: Range<u64>) -> BufReader<Section<'_, S>> {
        let room = (bytes.end - bytes.start).min(AT_ONCE as u64) as usize;
        BufReader::with_capacity(room, Section::new(&self.source, bytes))
    }

    fn checkpoint(&self, number: u64) -> u64 {
        self.bytes.end.min(self.bytes.start.saturating_add(number.saturating_mul(self.step)))
    }

    /// The offset of the first line that begins at a checkpoint or after it.
    fn line_from(&self, checkpoint: u64) -> io::Result<u64> {
        line_from(&self.source, &self.bytes, self.checkpoint(checkpoint))
    }

    /// The first error in a file that has a line that is no text, or fewer or more values than the matrix has; these
    /// may follow from a line that makes no sense. Reads all lines: for messages.
    fn first_wrong(&self) -> ReadError {
        let reader = Reader::new(self.lines(0..self.bytes.end));
        let read = match self.header.field {
            Field::Complex => reader.and_then(|reader| reader.for_each::<Complex<f64>>(|_| Ok(()))),
            _ => reader.and_then(|reader| reader.for_each::<f64>(|_| Ok(()))),
        };
        read.err().unwrap_or_else(changed)
    }
}

fn changed() -> ReadError {
    io::Error::other("the file has changed since it was opened").into()
}
