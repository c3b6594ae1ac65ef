//! The first line of a Matrix Market file, its sizes, and numbers.

use std::io::Read;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use super::MatrixError;
use super::lines::{Lines, foreign, shown};

/// Which entries are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Those that are not zero, with their places.
    Coordinate,
    /// All, column by column.
    Array,
}

/// What entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    Real,
    Integer,
    Complex,
    /// All ones, which are not written.
    Pattern,
}

/// What is not written because it follows from what is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symmetry {
    General,
    Symmetric,
    Skew,
    Hermitian,
}

/// The first line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) layout: Layout,
    pub(crate) numbers: Numbers,
    pub(crate) symmetry: Symmetry,
}

impl Header {
    /// Reads the first line. `may` says what of it is no use to the reader.
    pub(crate) fn read(
        lines: &mut Lines<'_, impl Read>,
        may: impl FnOnce(&Self) -> Result<(), String>,
    ) -> Result<Self, MatrixError> {
        let Some(first) = lines.raw()? else { return Err(lines.wrong("the file is empty".to_owned())) };
        if let Some(reason) = foreign(first) {
            return Err(lines.wrong(reason));
        }
        let (found, text) = (shown(first), String::from_utf8_lossy(first).to_ascii_lowercase());
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["%%matrixmarket", object, layout, numbers, symmetry] = words[..] else {
            return Err(lines.wrong(format!(
                "the first line of a Matrix Market file is '%%MatrixMarket matrix FORMAT FIELD SYMMETRY', not '{found}'"
            )));
        };
        lines.text()?;
        let header = Self::of_words(object, layout, numbers, symmetry);
        header.and_then(|header| may(&header).map(|()| header)).map_err(|reason| lines.wrong(reason))
    }

    fn of_words(object: &str, layout: &str, numbers: &str, symmetry: &str) -> Result<Self, String> {
        if object != "matrix" {
            return Err(format!("the object is '{object}'; only a 'matrix' is of use here"));
        }
        let layout = match layout {
            "coordinate" => Layout::Coordinate,
            "array" => Layout::Array,
            other => return Err(format!("the format '{other}' is neither 'coordinate' nor 'array'")),
        };
        let numbers = match numbers {
            "real" | "double" => Numbers::Real,
            "integer" => Numbers::Integer,
            "complex" => Numbers::Complex,
            "pattern" => Numbers::Pattern,
            other => return Err(format!("the field '{other}' is none of 'real', 'integer', 'complex', 'pattern'")),
        };
        let symmetry = match symmetry {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" => Symmetry::Skew,
            "hermitian" => Symmetry::Hermitian,
            other => {
                return Err(format!(
                    "the symmetry '{other}' is none of 'general', 'symmetric', 'skew-symmetric', 'hermitian'"
                ));
            }
        };
        if layout == Layout::Array && numbers == Numbers::Pattern {
            return Err("an 'array' has all entries, so it can't be a 'pattern'".to_owned());
        }
        Ok(Self { layout, numbers, symmetry })
    }
}

/// Reads the line after the comments, which has as many whole numbers as there are words in `what`.
pub(crate) fn sizes<const N: usize>(lines: &mut Lines<'_, impl Read>, what: &str) -> Result<[i64; N], MatrixError> {
    let Some(line) = lines.next()? else {
        return Err(lines.wrong(format!("the file ends before the line '{what}'")));
    };
    let number = |word: &str| {
        word.parse::<i64>().map_err(|error| match is_overflow(&error) {
            true => format!("'{}' is too large a number for '{what}'", shown(word)),
            false => format!("expected '{what}', found '{}'", shown(line)),
        })
    };
    let numbers: Result<Vec<i64>, String> = line.split_whitespace().map(number).collect();
    let found = || format!("expected '{what}', found '{}'", shown(line));
    let numbers = numbers.and_then(|numbers| numbers.try_into().map_err(|_| found()));
    numbers.map_err(|reason| lines.wrong(reason))
}

/// Reads a finite number.
pub(crate) fn parse_number(word: &str, is_integer: bool) -> Result<f64, String> {
    if is_integer {
        match i64::from_str(word) {
            Ok(number) => return Ok(number as f64),
            // It is a whole number that is rounded, as most large ones are.
            Err(error) if is_overflow(&error) => {}
            Err(_) => return Err(format!("'{}' is not a whole number", shown(word))),
        }
    }
    // Fortran writes 1.5D+03.
    let value = f64::from_str(word).or_else(|_| f64::from_str(&word.replace(['d', 'D'], "e")));
    match value {
        Ok(value) if value.is_finite() => Ok(value),
        // No number that is written in digits is infinite.
        Ok(_) if word.contains(|c: char| c.is_ascii_digit()) => {
            Err(format!("the value '{}' is too large for 64 bits", shown(word)))
        }
        Ok(_) => Err(format!("the value '{}' is not finite", shown(word))),
        Err(_) => Err(format!("'{}' is not a number", shown(word))),
    }
}

/// Whether what is no number is one that is too large.
pub(crate) fn is_overflow(error: &ParseIntError) -> bool {
    matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow)
}
