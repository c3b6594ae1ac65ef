//! Matrix Market files (Boisvert, Pozo and Remington 1996, *The Matrix Market Exchange Formats*): a matrix as lines of
//! text.
//!
//! A [`Reader`] gives the [`MatrixMarketHeader`] and then one [`MatrixEntry`] after the other, in both layouts and with
//! all fields and symmetries; what follows by symmetry is added by [`Reader::for_each`] and [`Reader::dense`],
//! otherwise left to the caller. [`read_entries`] and [`write_entries`] take the file as a whole, and several threads.
//! [`write_array`] writes a dense matrix, [`write_coordinates`] a sparse one.

mod header;
mod reader;
mod whole;

use std::io::{self, Write};

pub use self::header::{Field, MatrixLayout, MatrixMarketHeader, Symmetry};
pub use self::reader::{MatrixEntry, Reader};
pub use self::whole::{read_entries, write_entries, write_head};
use crate::number::Number;

/// Writes a general matrix in the layout `array`, of which the elements are given column by column.
///
/// # Errors
/// As of `into`.
pub fn write_array<T: Number>(
    into: &mut impl Write,
    rows: u64,
    columns: u64,
    elements: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    writeln!(into, "%%MatrixMarket matrix array {} general\n{rows} {columns}", Field::of(T::TYPE))?;
    for element in elements {
        element.write(into)?;
        into.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes a matrix in the layout `coordinate`, sorted by rows and then by columns. Entries at the same place stay
/// apart, in their order. Of a symmetric matrix only the entries on and below the diagonal are given; with
/// [`Field::Pattern`], values are not written.
///
/// # Errors
/// As of `into`; [`io::ErrorKind::InvalidInput`] if an entry is outside of the matrix or above the diagonal of a
/// symmetric one, a symmetric matrix is not square, or the field does not fit the type.
pub fn write_coordinates<T: Number>(
    into: &mut impl Write,
    rows: u64,
    columns: u64,
    field: Field,
    symmetry: Symmetry,
    entries: &[MatrixEntry<T>],
) -> io::Result<()> {
    let wrong = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    if field != Field::Pattern && field != Field::of(T::TYPE) {
        return wrong(format!("entries of type {} are not {field}", T::TYPE.numpy_name()));
    }
    if symmetry == Symmetry::Hermitian && field != Field::Complex || symmetry != Symmetry::General && rows != columns {
        return wrong(format!("a matrix of {rows} x {columns} {field} entries is not {symmetry}"));
    }
    let is_listed = |entry: &MatrixEntry<T>| {
        symmetry == Symmetry::General || entry.row >= entry.column + u64::from(symmetry == Symmetry::Skew)
    };
    if let Some(entry) = entries.iter().find(|entry| entry.row >= rows || entry.column >= columns || !is_listed(entry))
    {
        let (row, column) = (entry.row + 1, entry.column + 1);
        return wrong(format!("entry ({row}, {column}) is not listed for a {symmetry} matrix of {rows} x {columns}"));
    }
    writeln!(into, "%%MatrixMarket matrix coordinate {field} {symmetry}\n{rows} {columns} {}", entries.len())?;
    let key = |entry: &&MatrixEntry<T>| (entry.row, entry.column);
    let mut sorted: Vec<&MatrixEntry<T>> = entries.iter().collect();
    sorted.sort_by_key(key);
    for entry in sorted {
        write!(into, "{} {}", entry.row + 1, entry.column + 1)?;
        if field != Field::Pattern {
            into.write_all(b" ")?;
            entry.value.write(into)?;
        }
        into.write_all(b"\n")?;
    }
    Ok(())
}
