//! Matrix Market files (Boisvert, Pozo and Remington 1996, *The Matrix Market Exchange Formats*): a matrix as lines of text.
//!
//! A [`Reader`] gives the [`Header`] and then one [`Entry`] after the other, in both layouts and with all fields and symmetries; what follows by symmetry is left to the caller, or to
//! [`Reader::dense`]. [`write_array`] writes a dense matrix.

mod header;
mod reader;

use std::io::{self, Write};

pub use self::header::{Field, Header, Layout, Symmetry};
pub use self::reader::{Entry, Reader};
use crate::number::Number;

/// Writes a general matrix in the layout `array`, of which the elements are given column by column.
///
/// # Errors
/// As of `into`.
pub fn write_array<T: Number>(
    into: &mut impl Write,
    (rows, columns): (u64, u64),
    elements: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    writeln!(into, "%%MatrixMarket matrix array {} general\n{rows} {columns}", Field::of(T::TYPE))?;
    for element in elements {
        element.write(into)?;
        into.write_all(b"\n")?;
    }
    Ok(())
}
