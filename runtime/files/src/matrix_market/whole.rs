//! All entries of a file at once, read and written by several threads.

use std::any::Any;
use std::io::{self, Write};

use maniple_element::{ElementType, with_element};

use super::header::{Field, MatrixLayout, MatrixMarketHeader, Symmetry};
use super::reader::{Reader, can_be_mirrored};
use crate::entry_lines;
use crate::error::ReadError;
use crate::lines::{self, Entries, Form, Sign};
use crate::number::Number;
use crate::parallel::Parallel;

/// Reads all entries of a file, given as its text, in both layouts: those that it lists, in their order, and then those
/// that follow from them by symmetry.
///
/// Takes memory for as many entries as the text has lines.
///
/// # Errors
/// As of [`Reader`].
pub fn read_entries<T: Number>(
    text: &[u8],
    parallel: &dyn Parallel,
) -> Result<(MatrixMarketHeader, Entries<T>), ReadError> {
    let (header, entries) = read_any(T::TYPE, text, parallel)?;
    Ok((header, *entries.downcast().expect("entries have elements of the type that is asked for")))
}

/// Reads entries by code that is compiled here, and not in each crate that reads.
fn read_any(
    element: ElementType,
    text: &[u8],
    parallel: &dyn Parallel,
) -> Result<(MatrixMarketHeader, Box<dyn Any>), ReadError> {
    with_element!(element, T => {
        let (header, entries) = entries_of::<T>(text, parallel)?;
        Ok((header, Box::new(entries)))
    })
}

fn entries_of<T: Number>(text: &[u8], parallel: &dyn Parallel) -> Result<(MatrixMarketHeader, Entries<T>), ReadError> {
    let mut rest = text;
    let header = *Reader::new(&mut rest)?.header();
    let mut entries = match usual(rest, &header, parallel) {
        Some(entries) => entries,
        None => {
            let mut entries = Entries::new(2);
            let mut reader = Reader::new(text)?;
            while let Some(entry) = reader.next_entry::<T>()? {
                entries.push([entry.row, entry.column], entry.value);
            }
            entries
        }
    };
    if header.symmetry != Symmetry::General {
        for entry in 0..entries.values.len() {
            let (row, column) = (entries.coordinates[0][entry], entries.coordinates[1][entry]);
            if let Some(value) = header.symmetry.mirrored(entries.values[entry]).filter(|_| row != column) {
                entries.push([column as u64, row as u64], value);
            }
        }
    }
    Ok((header, entries))
}

/// The entries of a file that has nothing but a line for each, and nothing wrong.
fn usual<T: Number>(text: &[u8], header: &MatrixMarketHeader, parallel: &dyn Parallel) -> Option<Entries<T>> {
    let MatrixMarketHeader { layout, field, symmetry, rows, columns, entries } = *header;
    if layout != MatrixLayout::Coordinate || !field.fits(T::TYPE) {
        return None;
    }
    let words = if field == Field::Pattern { 0 } else { 1 };
    let sign = if field == Field::UnsignedInteger { Sign::None } else { Sign::Any };
    let form = Form { base: 1, extents: vec![rows, columns], words, integers: field.is_integer().then_some(sign) };
    let read = lines::read::<T>(text, &form, parallel).filter(|read| read.values.len() as u64 == entries)?;
    let is_listed =
        |((row, column), value): ((&i64, &i64), &T)| row >= column && can_be_mirrored(symmetry, row == column, *value);
    let places = read.coordinates[0].iter().zip(&read.coordinates[1]);
    (symmetry == Symmetry::General || places.zip(&read.values).all(is_listed)).then_some(read)
}

/// Writes a general matrix in the layout `coordinate`, its entries in the order given.
///
/// # Errors
/// As of `into`; [`io::ErrorKind::InvalidInput`] if the entries are not those of a matrix of these extents.
pub fn write_entries<T: Number>(
    into: &mut (impl Write + Send),
    rows: u64,
    columns: u64,
    entries: &Entries<T>,
    parallel: &dyn Parallel,
) -> io::Result<()> {
    let [row, column] = &entries.coordinates[..] else {
        let reason = format!("a matrix has 2 dimensions, and the entries have {}", entries.coordinates.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    };
    let is_within = |all: &[i64], extent: u64| all.iter().all(|&at| (at as u64) < extent);
    if !is_within(row, rows) || !is_within(column, columns) {
        let reason = format!("an entry is outside of a matrix of {rows} x {columns}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    write_head::<T>(into, rows, columns, entries.values.len() as u64)?;
    entry_lines::write(into, entries, parallel)
}

/// Writes what is above the entries, so many, of a general matrix in the layout `coordinate`;
/// [`write_parts`](crate::write_parts) writes these.
///
/// # Errors
/// As of `into`.
pub fn write_head<T: Number>(into: &mut impl Write, rows: u64, columns: u64, entries: u64) -> io::Result<()> {
    let field = Field::of(T::TYPE);
    writeln!(into, "%%MatrixMarket matrix coordinate {field} general\n{rows} {columns} {entries}")
}
