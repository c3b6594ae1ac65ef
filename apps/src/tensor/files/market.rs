//! Matrix Market `array` files: all elements of a matrix, column by column.

use std::io::{self, Read, Write};
use std::path::Path;
use std::str::FromStr;

use maniple_tensor::element::{Complex, ElementType, Scalar};

use super::Array;
use crate::market::{Header, Layout, Lines, MatrixError, Numbers, Symmetry, is_overflow, parse_number, shown, sizes};
use crate::report::counted;
use crate::tensor::check::complex;

/// Reads a matrix of `f64`, `i64` or complex numbers of `f64`, whatever its numbers are.
pub(super) fn read(path: &Path, text: impl Read) -> Result<Array, MatrixError> {
    let mut lines = Lines::new(path, text);
    let header = Header::read(&mut lines, dense)?;
    let [rows, columns] = sizes(&mut lines, "ROWS COLUMNS")?;
    let reason = match header.symmetry {
        _ if rows < 1 || columns < 1 => {
            Some(format!("expected at least 1 row and 1 column, found {rows} and {columns}"))
        }
        _ if rows.checked_mul(columns).is_none_or(|all| all > 1 << 48) => {
            Some(format!("{rows} x {columns} elements are too many"))
        }
        Symmetry::General => None,
        _ if rows != columns => Some(format!("the matrix is {rows} by {columns}; a symmetric one is square")),
        _ => None,
    };
    if let Some(reason) = reason {
        return Err(lines.wrong(reason));
    }
    let size = Size { rows: rows as usize, columns: columns as usize, symmetry: header.symmetry };
    let array = match header.numbers {
        Numbers::Integer => matrix(&mut lines, size, integer, |value| value.wrapping_neg(), |value| value)?,
        Numbers::Complex => matrix(&mut lines, size, pair, |value: Complex<f64>| -value, |value| value.conj())?,
        Numbers::Real | Numbers::Pattern => matrix(&mut lines, size, real, |value: f64| -value, |value| value)?,
    };
    if let Some(extra) = lines.next()? {
        let extra = shown(extra);
        let promised = counted(size.entries(), "entry", "entries");
        return Err(lines.wrong(format!("'{extra}' is too much: the file says that it has {promised}")));
    }
    Ok(array)
}

/// Whether all elements are in the file.
fn dense(header: &Header) -> Result<(), String> {
    match (header.layout, header.numbers, header.symmetry) {
        (Layout::Coordinate, ..) => {
            Err("the matrix is sparse ('coordinate'); tensors are read from 'array' files".to_owned())
        }
        (_, Numbers::Real | Numbers::Integer, Symmetry::Hermitian) => {
            Err("a hermitian matrix has complex entries; this one is 'symmetric'".to_owned())
        }
        _ => Ok(()),
    }
}

#[derive(Clone, Copy)]
struct Size {
    rows: usize,
    columns: usize,
    symmetry: Symmetry,
}

impl Size {
    /// The first row of a column that is in the file.
    fn first(self, column: usize) -> usize {
        match self.symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric | Symmetry::Hermitian => column,
            Symmetry::Skew => column + 1,
        }
    }

    fn entries(self) -> usize {
        match self.symmetry {
            Symmetry::General => self.rows * self.columns,
            Symmetry::Symmetric | Symmetry::Hermitian => self.rows * (self.rows + 1) / 2,
            Symmetry::Skew => self.rows * (self.rows - 1) / 2,
        }
    }
}

fn matrix<T: super::Stored + Default>(
    lines: &mut Lines<'_, impl Read>,
    size: Size,
    parse: impl Fn(&str) -> Result<T, String>,
    negated: impl Fn(T) -> T,
    conjugated: impl Fn(T) -> T,
) -> Result<Array, MatrixError> {
    // The file may promise more than it has: memory is taken for what is there.
    let mut entries = Vec::new();
    for column in 0..size.columns {
        for _ in size.first(column)..size.rows {
            let Some(line) = lines.next()? else {
                let promised = counted(size.entries(), "entry", "entries");
                return Err(lines.wrong(format!("the file ends after {} of {promised}", entries.len())));
            };
            entries.push(parse(line).map_err(|reason| lines.wrong(reason))?);
        }
    }
    let mut elements = vec![T::default(); size.rows * size.columns];
    let mut next = entries.into_iter();
    for column in 0..size.columns {
        for (row, value) in (size.first(column)..size.rows).zip(&mut next) {
            elements[row * size.columns + column] = value;
            if size.symmetry != Symmetry::General && row != column {
                elements[column * size.columns + row] = match size.symmetry {
                    Symmetry::Skew => negated(value),
                    Symmetry::Hermitian => conjugated(value),
                    Symmetry::General | Symmetry::Symmetric => value,
                };
            }
        }
    }
    Ok(Array::new(vec![size.rows as i64, size.columns as i64], elements))
}

fn integer(line: &str) -> Result<i64, String> {
    i64::from_str(line).map_err(|error| match is_overflow(&error) {
        true => format!("'{}' does not fit 64 bits", shown(line)),
        false => format!("'{}' is not a whole number", shown(line)),
    })
}

/// A number, or an infinity or NaN that is written as one: what is too large for 64 bits is no infinity.
fn real(word: &str) -> Result<f64, String> {
    match word.trim_start_matches(['+', '-']).to_ascii_lowercase().as_str() {
        "inf" | "infinity" | "nan" => word.parse().map_err(|_| format!("'{}' is not a number", shown(word))),
        _ => parse_number(word, false),
    }
}

fn pair(line: &str) -> Result<Complex<f64>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let &[real, imaginary] = &words[..] else {
        return Err(format!("expected 'REAL IMAGINARY', found '{}'", shown(line)));
    };
    Ok(Complex::new(self::real(real)?, self::real(imaginary)?))
}

/// Writes a matrix; a vector as one column, a scalar as one element.
pub(super) fn write(array: &Array, into: &mut impl Write) -> io::Result<()> {
    let dimensions = array.dimensions();
    let (rows, columns) = (dimensions.first().copied().unwrap_or(1), dimensions.get(1).copied().unwrap_or(1));
    let field = match array.element() {
        ElementType::I32 | ElementType::I64 => "integer",
        ElementType::F32 | ElementType::F64 => "real",
        ElementType::C32 | ElementType::C64 => "complex",
    };
    writeln!(into, "%%MatrixMarket matrix array {field} general\n{rows} {columns}")?;
    for number in (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column)) {
        match array.get(number as usize) {
            Some(Scalar::I32(value)) => writeln!(into, "{value}")?,
            Some(Scalar::I64(value)) => writeln!(into, "{value}")?,
            // As many digits as tell it from its neighbours.
            Some(Scalar::F32(value)) => writeln!(into, "{value:e}")?,
            Some(Scalar::F64(value)) => writeln!(into, "{value:e}")?,
            Some(Scalar::C32(value)) => writeln!(into, "{:e} {:e}", value.re, value.im)?,
            Some(value @ Scalar::C64(_)) => writeln!(into, "{:e} {:e}", complex(value).re, complex(value).im)?,
            None => {}
        }
    }
    Ok(())
}
