//! `.tns` files (Smith et al. 2017, *FROSTT: The Formidable Repository of Open Sparse Tensors and Tools*): a sparse
//! tensor as lines of coordinates, counted from 1, and a value. There is no header: the first line tells how many
//! dimensions there are, and extents are at least the largest coordinates. Files that count from 0 can be read if the
//! caller says so.

use std::any::Any;
use std::io::{self, BufRead, Write};
use std::marker::PhantomData;

use maniple_element::{ElementType, with_element};

use crate::entry_lines;
use crate::error::{Problem, ReadError};
use crate::lines::{self, Entries, Form};
use crate::number::{Number, coordinate_from};
use crate::parallel::Parallel;
use crate::text::{Lines, foreign, shown};

/// Extents of tensors are no larger.
const LONGEST: u64 = i64::MAX as u64 / 4;

/// A file of real numbers that is being read.
#[derive(Debug)]
pub struct Reader<R, T> {
    lines: Lines<R>,
    order: usize,
    base: u64,
    extents: Option<Vec<u64>>,
    /// One more than the largest coordinates so far.
    largest: Vec<u64>,
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
        // What looks like a comment is none, but tells that the words before it are all that is meant.
        let words = first.split_whitespace().take_while(|word| !word.starts_with('#')).count();
        if words < 2 {
            let reason = format!("expected coordinates and a value, found '{}'", shown(first));
            return Err(lines.wrong(Problem::Malformed(reason)));
        }
        let order = words - 1;
        let largest = vec![0; order];
        Ok(Self { lines, order, base: 1, extents: None, largest, is_pending: true, value: PhantomData })
    }

    /// Reads some lines of a file of so many dimensions.
    pub(crate) fn of_part(source: R, order: usize) -> Self {
        let (lines, largest) = (Lines::new(source, b'#'), vec![0; order]);
        Self { lines, order, base: 1, extents: None, largest, is_pending: false, value: PhantomData }
    }

    /// Takes coordinates as counted from 0.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { base: 0, ..self }
    }

    /// Refuses coordinates that are not below these extents.
    ///
    /// # Errors
    /// [`ReadError`] if the file has another number of dimensions.
    pub fn within(self, extents: &[u64]) -> Result<Self, ReadError> {
        if extents.len() != self.order {
            let reason =
                format!("the file has {} coordinates an entry, and {} extents are given", self.order, extents.len());
            return Err(self.lines.wrong(Problem::Malformed(reason)));
        }
        Ok(Self { extents: Some(extents.to_vec()), ..self })
    }

    /// The number of dimensions; at least one.
    pub fn order(&self) -> usize {
        self.order
    }

    /// The extents that were given, or those of the smallest tensor that has all entries read so far.
    pub fn extents(&self) -> &[u64] {
        self.extents.as_deref().unwrap_or(&self.largest)
    }

    /// The number of the last line read, from 1.
    pub fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Reads the next entry: its coordinates, counted from 0, take the place of those given, and its value is returned;
    /// none after the last one.
    ///
    /// # Errors
    /// [`ReadError`] if a line makes no sense, or has not as many coordinates as the first one.
    pub fn next_entry(&mut self, coordinates: &mut Vec<u64>) -> Result<Option<T>, ReadError> {
        coordinates.clear();
        let is_pending = std::mem::take(&mut self.is_pending);
        let quick = match is_pending {
            true => None,
            false => {
                let (base, extents) = (self.base, self.extents.as_deref());
                let extent = |dimension| extents.map_or(LONGEST, |extents: &[u64]| extents[dimension]);
                let extents = (0..self.order).map(extent);
                self.lines.quick(|text| lines::entry(text, base, extents, |at| coordinates.push(at)))?
            }
        };
        let read = match quick {
            Some(value) => Ok(value),
            None => {
                let line = if is_pending { self.lines.this_or_next() } else { self.lines.next() };
                let Some(line) = line? else { return Ok(None) };
                coordinates.clear();
                entry(line, self.order, self.base, self.extents.as_deref(), coordinates)
            }
        };
        let value = read.map_err(|problem| self.lines.wrong(problem))?;
        self.largest
            .iter_mut()
            .zip(&*coordinates)
            .for_each(|(largest, at)| *largest = (*largest).max(at.saturating_add(1)));
        Ok(Some(value))
    }
}

/// Whether there are entries in a file. One without tells neither the number of dimensions nor extents.
///
/// # Errors
/// [`ReadError`] if it can't be read, or has another format.
pub fn has_entries(mut source: impl BufRead) -> Result<bool, ReadError> {
    if let Some(problem) = foreign(source.fill_buf()?) {
        return Err(ReadError::Line { line: 1, problem });
    }
    Ok(Lines::new(source, b'#').next()?.is_some())
}

fn entry<T: Number>(
    line: &str,
    order: usize,
    base: u64,
    extents: Option<&[u64]>,
    coordinates: &mut Vec<u64>,
) -> Result<T, Problem> {
    let other = || Problem::Malformed(format!("expected {order} coordinates and a value, found '{}'", shown(line)));
    let (before, value) = line.rsplit_once(char::is_whitespace).ok_or_else(other)?;
    if before.split_whitespace().count() > order {
        let comment = line.split_whitespace().nth(order + 1).filter(|word| word.starts_with('#'));
        return Err(comment.map_or_else(other, |_| {
            let reason = format!("'{}' has text after the value: comments have lines of their own", shown(line));
            Problem::Malformed(reason)
        }));
    }
    for word in before.split_whitespace() {
        let extent = extents.and_then(|extents| extents.get(coordinates.len()).copied());
        let at = coordinate_from(base, "coordinate", word, extent)?;
        if extent.is_none() && at >= LONGEST {
            return Err(Problem::Malformed(format!("coordinate {word} is too large")));
        }
        coordinates.push(at);
    }
    if coordinates.len() != order { Err(other()) } else { T::parse(value) }
}

/// Reads all entries of a file, given as its text, of which coordinates count from `base`, 0 or 1, and the extents:
/// those given, or those of the smallest tensor that has all entries.
///
/// Takes memory for as many entries as the text has lines.
///
/// # Errors
/// As of [`Reader`].
pub fn read_entries<T: Number>(
    text: &[u8],
    base: u64,
    extents: Option<&[u64]>,
    parallel: &dyn Parallel,
) -> Result<(Vec<u64>, Entries<T>), ReadError> {
    let (extents, entries) = read_any(T::TYPE, text, base, extents, parallel)?;
    Ok((extents, *entries.downcast().expect("entries have elements of the type that is asked for")))
}

/// Reads entries by code that is compiled here, and not in each crate that reads.
fn read_any(
    element: ElementType,
    text: &[u8],
    base: u64,
    extents: Option<&[u64]>,
    parallel: &dyn Parallel,
) -> Result<(Vec<u64>, Box<dyn Any>), ReadError> {
    with_element!(element, T => {
        let (extents, entries) = entries_of::<T>(text, base, extents, parallel)?;
        Ok((extents, Box::new(entries)))
    })
}

fn entries_of<T: Number>(
    text: &[u8],
    base: u64,
    extents: Option<&[u64]>,
    parallel: &dyn Parallel,
) -> Result<(Vec<u64>, Entries<T>), ReadError> {
    let begin = |text| {
        let reader = Reader::<_, T>::new(text)?;
        let reader = if base == 0 { reader.from_zero() } else { reader };
        match extents {
            Some(extents) => reader.within(extents),
            None => Ok(reader),
        }
    };
    let mut reader = begin(text)?;
    // The first entry is in the line that was read last.
    let lines_before = text.split_inclusive(|&byte| byte == b'\n').take(reader.line() as usize - 1);
    let rest = &text[lines_before.map(<[u8]>::len).sum()..];
    let most = extents.map_or_else(|| vec![LONGEST; reader.order()], <[u64]>::to_vec);
    if let Some(entries) = lines::read::<T>(rest, &Form { base, extents: most, words: 1, integers: None }, parallel) {
        let largest = |all: &Vec<i64>| all.iter().max().map_or(0, |&largest| largest as u64 + 1);
        let largest = || entries.coordinates.iter().map(largest).collect();
        return Ok((extents.map_or_else(largest, <[u64]>::to_vec), entries));
    }
    let mut entries = Entries::new(reader.order());
    let mut at = Vec::new();
    while let Some(value) = reader.next_entry(&mut at)? {
        entries.push(at.iter().copied(), value);
    }
    Ok((reader.extents().to_vec(), entries))
}

/// Writes all entries, whose coordinates are counted from 0, in their order.
///
/// # Errors
/// As of `into`.
pub fn write_lines<T: Number>(
    into: &mut (impl Write + Send),
    entries: &Entries<T>,
    parallel: &dyn Parallel,
) -> io::Result<()> {
    entry_lines::write(into, entries, parallel)
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

/// Writes the entries of a tensor, sorted by their coordinates, which are counted from 0. Entries at the same place
/// stay apart, in their order.
///
/// # Errors
/// As of `into`.
pub fn write_entries<T: Number>(into: &mut impl Write, entries: &[(Vec<u64>, T)]) -> io::Result<()> {
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_by_key(|(coordinates, _)| coordinates);
    sorted.into_iter().try_for_each(|(coordinates, value)| write_entry(into, coordinates, *value))
}
