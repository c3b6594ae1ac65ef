//! The entries of a Matrix Market file, as a stream.

use std::io::BufRead;

use super::header::{Field, MatrixLayout, MatrixMarketHeader, Symmetry};
use crate::dense::{Dense, Order};
use crate::error::{Problem, ReadError, entries};
use crate::lines;
use crate::number::{Number, coordinate, is_integer, no_integer};
use crate::text::{Lines, shown};

/// An entry that a file lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatrixEntry<T> {
    /// The row, counted from 0.
    pub row: u64,
    /// The column, counted from 0.
    pub column: u64,
    /// The value.
    pub value: T,
}

impl<T: Number> MatrixEntry<T> {
    /// The entry on the other side of the diagonal, if it follows from this one.
    #[must_use]
    pub fn mirrored(self, symmetry: Symmetry) -> Option<Self> {
        let value = symmetry.mirrored(self.value).filter(|_| self.row != self.column)?;
        Some(Self { row: self.column, column: self.row, value })
    }
}

/// A Matrix Market file that is being read.
#[derive(Debug)]
pub struct Reader<R> {
    lines: Lines<R>,
    header: MatrixMarketHeader,
    /// How many entries were read.
    count: u64,
    /// Row and column of the next entry in the layout [`MatrixLayout::Array`].
    next: (u64, u64),
    /// It has some of the entries alone.
    is_part: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads a file to the end of its sizes.
    ///
    /// # Errors
    /// [`ReadError`] if the file has another format, or its header makes no sense.
    pub fn new(source: R) -> Result<Self, ReadError> {
        let mut lines = Lines::new(source, b'%');
        let header = MatrixMarketHeader::read(&mut lines)?;
        Ok(Self { lines, header, count: 0, next: (header.symmetry.first_row(0), 0), is_part: false })
    }

    /// Reads some lines of a file that has this header and the layout [`MatrixLayout::Coordinate`].
    pub(crate) fn of_part(source: R, header: &MatrixMarketHeader) -> Self {
        Self { lines: Lines::new(source, b'%'), header: *header, count: 0, next: (0, 0), is_part: true }
    }

    /// Reads the lines, from one of the entries on, of a file that has this header and the layout
    /// [`MatrixLayout::Array`].
    pub(crate) fn from_entry(source: R, header: &MatrixMarketHeader, entry: u64) -> Self {
        let next = header.place_of(entry);
        Self { lines: Lines::new(source, b'%'), header: *header, count: entry, next, is_part: false }
    }

    /// The source of the lines.
    pub(crate) fn source(&self) -> &R {
        self.lines.source()
    }

    /// The contents of the first line and of the line of sizes.
    pub fn header(&self) -> &MatrixMarketHeader {
        &self.header
    }

    /// The number of the last line read, from 1: of the sizes, and then of each entry.
    pub fn line(&self) -> u64 {
        self.lines.number()
    }

    /// Reads the next entry; none after the last one, when nothing else may follow.
    ///
    /// # Errors
    /// [`ReadError`] if a line makes no sense, the file has fewer or more entries than it says, or its
    /// [field](Field::fits) does not fit the type.
    pub fn next_entry<T: Number>(&mut self) -> Result<Option<MatrixEntry<T>>, ReadError> {
        let Self { lines, header, count, next, is_part } = self;
        if (*is_part || *count < header.entries)
            && let Some(entry) = lines.quick(|text| usual(text, header, *next))?
        {
            self.advance();
            return Ok(Some(entry));
        }
        let Some(line) = lines.next()? else {
            if *is_part || *count == header.entries {
                return Ok(None);
            }
            let reason = format!("the file ends after {count} of {}", entries(header.entries));
            return Err(lines.wrong(Problem::Truncated(reason)));
        };
        if !*is_part && *count == header.entries {
            let (line, promised) = (shown(line), entries(header.entries));
            let reason = format!("'{line}' is too much: the file says that it has {promised}");
            return Err(lines.wrong(Problem::Malformed(reason)));
        }
        let entry = match header.layout {
            MatrixLayout::Coordinate => listed(line, header),
            MatrixLayout::Array => value(line, header.field).and_then(|value| {
                let (row, column) = *next;
                let problem = not_mirrored(header.symmetry, row, column, value);
                problem.map_or(Ok(MatrixEntry { row, column, value }), Err)
            }),
        };
        let entry = entry.map_err(|problem| lines.wrong(problem))?;
        self.advance();
        Ok(Some(entry))
    }

    /// Passes the line of an entry, whatever it has; false if there is none.
    ///
    /// # Errors
    /// [`ReadError`] if the line is too long, or no text.
    pub(crate) fn pass_entry(&mut self) -> Result<bool, ReadError> {
        let is_there = self.lines.pass()?;
        if is_there {
            self.advance();
        }
        Ok(is_there)
    }

    fn advance(&mut self) {
        self.count += 1;
        self.next.0 += 1;
        if self.next.0 == self.header.rows {
            self.next = (self.header.symmetry.first_row(self.next.1 + 1), self.next.1 + 1);
        }
    }

    /// Reads all entries that are left, in both layouts, and those that follow from them by symmetry, each right after
    /// the one that it follows from.
    ///
    /// # Errors
    /// As of [`next_entry`](Self::next_entry), or what `visit` says of the line that was read last.
    pub fn for_each<T: Number>(
        mut self,
        mut visit: impl FnMut(MatrixEntry<T>) -> Result<(), Problem>,
    ) -> Result<(), ReadError> {
        while let Some(entry) = self.next_entry::<T>()? {
            let mirrored = entry.mirrored(self.header.symmetry);
            let visited = std::iter::once(entry).chain(mirrored).try_for_each(&mut visit);
            visited.map_err(|problem| self.lines.wrong(problem))?;
        }
        Ok(())
    }

    /// Reads all entries of a file in the layout [`MatrixLayout::Array`], and adds those that follow by symmetry.
    /// Memory is taken for what the file has, not for what it says.
    ///
    /// # Errors
    /// As of [`next_entry`](Self::next_entry), and [`Problem::Unsupported`] if the file has the other layout.
    pub fn dense<T: Number>(mut self) -> Result<Dense<T>, ReadError> {
        let MatrixMarketHeader { layout, symmetry, rows, columns, .. } = self.header;
        if layout == MatrixLayout::Coordinate {
            let reason = "the matrix is sparse ('coordinate'); an 'array' has all elements".to_owned();
            return Err(ReadError::Line { line: 1, problem: Problem::Unsupported(reason) });
        }
        let mut values = Vec::new();
        while let Some(entry) = self.next_entry::<T>()? {
            values.push(entry.value);
        }
        let mut elements = vec![T::zeroed(); (rows * columns) as usize];
        let mut values = values.into_iter();
        for column in 0..columns {
            for (row, value) in (symmetry.first_row(column)..rows).zip(&mut values) {
                elements[(row * columns + column) as usize] = value;
                if let Some(mirrored) = symmetry.mirrored(value).filter(|_| row != column) {
                    elements[(column * columns + row) as usize] = mirrored;
                }
            }
        }
        Ok(Dense { shape: vec![rows, columns], order: Order::Rows, elements })
    }
}

/// The entry of the line that a text begins with, if it is of the usual form, with real numbers, and not above the
/// diagonal of a symmetric matrix; and how many bytes the line is. `next` is where it is in the layout
/// [`MatrixLayout::Array`].
fn usual<T: Number>(text: &[u8], header: &MatrixMarketHeader, next: (u64, u64)) -> Option<(MatrixEntry<T>, usize)> {
    let MatrixMarketHeader { layout, field, symmetry, rows, columns, .. } = *header;
    if field != Field::Real || !field.fits(T::TYPE) {
        return None;
    }
    if layout == MatrixLayout::Array {
        let (value, length) = lines::entry(text, 1, [], |_| ())?;
        return Some((MatrixEntry { row: next.0, column: next.1, value }, length));
    }
    let (mut row, mut column) = (0, 0);
    let (value, length) = lines::entry(text, 1, [rows, columns], |at| row = std::mem::replace(&mut column, at))?;
    (symmetry == Symmetry::General || row > column).then_some((MatrixEntry { row, column, value }, length))
}

/// An entry with its coordinates.
fn listed<T: Number>(line: &str, header: &MatrixMarketHeader) -> Result<MatrixEntry<T>, Problem> {
    let first_word = |text: &'_ str| text.find(char::is_whitespace).unwrap_or(text.len());
    let (row, rest) = line.split_at(first_word(line));
    let rest = rest.trim_start();
    let (column, rest) = rest.split_at(first_word(rest));
    let rest = rest.trim_start();
    let (words, form) = match header.field {
        Field::Pattern => (0, "ROW COLUMN"),
        Field::Complex => (2, "ROW COLUMN REAL IMAGINARY"),
        Field::Real | Field::Integer | Field::UnsignedInteger => (1, "ROW COLUMN VALUE"),
    };
    if column.is_empty() || rest.split_whitespace().count() != words {
        return Err(Problem::Malformed(format!("expected '{form}', found '{}'", shown(line))));
    }
    let value = value(rest, header.field)?;
    let words = (row, column);
    let row = coordinate("row", row, Some(header.rows))?;
    let column = coordinate("column", column, Some(header.columns))?;
    if let Some(problem) = not_mirrored(header.symmetry, row, column, value) {
        return Err(problem);
    }
    if header.symmetry != Symmetry::General && column > row {
        let reason = format!(
            "entry ({}, {}) is above the diagonal; a symmetric file lists those below, and the diagonal",
            words.0, words.1
        );
        return Err(Problem::Malformed(reason));
    }
    Ok(MatrixEntry { row, column, value })
}

/// The problem of an entry of a matrix that has this symmetry, if there is one: on the diagonal, the entry is not its
/// own mirror image; elsewhere, its mirror image is no number of the type.
fn not_mirrored<T: Number>(symmetry: Symmetry, row: u64, column: u64, value: T) -> Option<Problem> {
    if can_be_mirrored(symmetry, row == column, value) {
        return None;
    }
    let entry = format!("entry ({}, {})", row + 1, column + 1);
    Some(match (symmetry, row == column) {
        (Symmetry::Skew, true) => {
            Problem::Malformed(format!("{entry} is on the diagonal, which is zero in a skew-symmetric file"))
        }
        (Symmetry::Skew, false) => Problem::TooLarge(format!(
            "{entry} of a skew-symmetric file has an opposite that does not fit {}",
            T::TYPE.numpy_name()
        )),
        _ => Problem::Malformed(format!("{entry} is on the diagonal, which is real in a hermitian file")),
    })
}

/// Whether a symmetry allows a value on the diagonal, or elsewhere where it has a mirror image.
pub(super) fn can_be_mirrored<T: Number>(symmetry: Symmetry, is_on_diagonal: bool, value: T) -> bool {
    match (symmetry, is_on_diagonal) {
        (Symmetry::General | Symmetry::Symmetric, _) | (Symmetry::Hermitian, false) => true,
        (Symmetry::Hermitian, true) => value.is_real(),
        (Symmetry::Skew, true) => value == T::zeroed(),
        // The least integer has no opposite, and of those without sign none but 0 has.
        (Symmetry::Skew, false) => {
            value == T::zeroed() || !T::TYPE.is_integer() || !T::TYPE.is_unsigned() && value.negated() != value
        }
    }
}

fn value<T: Number>(text: &str, field: Field) -> Result<T, Problem> {
    if !field.fits(T::TYPE) {
        return Err(Problem::Unsupported(format!(
            "the entries are {field}, which do not fit {}",
            T::TYPE.numpy_name()
        )));
    }
    match field {
        Field::Pattern => Ok(T::ONE),
        Field::Integer | Field::UnsignedInteger if !is_integer(text) => Err(no_integer(text)),
        Field::UnsignedInteger if text.starts_with('-') => {
            Err(Problem::Malformed(format!("'{}' has a sign, and the file says that none has", shown(text))))
        }
        // What has 64 bits need not fit 63.
        Field::UnsignedInteger => T::parse(text).map_err(|problem| match problem {
            Problem::TooLarge(_) => {
                Problem::TooLarge(format!("the value '{}' does not fit {}", shown(text), T::TYPE.numpy_name()))
            }
            other => other,
        }),
        Field::Integer | Field::Real | Field::Complex => T::parse(text),
    }
}
