//! The first line of a Matrix Market file, and its sizes.

use std::fmt;
use std::io::BufRead;

use maniple_element::ElementType;

use crate::error::{Problem, ReadError};
use crate::number::{Number, is_overflow};
use crate::text::{Lines, foreign, shown};

/// Which entries are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixLayout {
    /// Entries that are not zero, with their coordinates, in any order. Entries at the same place add up.
    Coordinate,
    /// All, column by column.
    Array,
}

/// The type of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Floats.
    Real,
    /// Integers.
    Integer,
    /// Integers without a sign, as SciPy writes them: read as those that they are, if these fit the type.
    UnsignedInteger,
    /// Pairs of floats.
    Complex,
    /// All ones, which are not written.
    Pattern,
}

impl Field {
    /// The field in which numbers of a type are written.
    #[must_use]
    pub fn of(number: ElementType) -> Self {
        match number {
            ElementType::F32 | ElementType::F64 => Self::Real,
            ElementType::C32 | ElementType::C64 => Self::Complex,
            // Others fit those that have a sign, which more programs read.
            ElementType::U64 => Self::UnsignedInteger,
            _ => Self::Integer,
        }
    }

    /// The smallest type that has all entries.
    #[must_use]
    pub fn number(self) -> ElementType {
        match self {
            Self::Integer => ElementType::I64,
            Self::UnsignedInteger => ElementType::U64,
            Self::Complex => ElementType::C64,
            Self::Real | Self::Pattern => ElementType::F64,
        }
    }

    /// Whether entries can be read as numbers of a type: complex ones as those, real ones and integers as all others,
    /// and a pattern as any. Floats are rounded, and real entries that are read as integers must be some.
    #[must_use]
    pub fn fits(self, number: ElementType) -> bool {
        match self {
            Self::Pattern => true,
            Self::Integer | Self::UnsignedInteger | Self::Real => !number.is_complex(),
            Self::Complex => number.is_complex(),
        }
    }

    /// Whether entries can be read as numbers of a type with no more rounding than the [type of the
    /// field](Self::number) has: integers as integers, real ones as all that are not complex.
    #[must_use]
    pub fn is_kept_by(self, number: ElementType) -> bool {
        self.fits(number) && (!self.number().is_integer() || number.is_integer())
    }

    /// Whether entries are written as integers.
    pub(crate) fn is_integer(self) -> bool {
        self.number().is_integer()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Integer => "integer",
            Self::UnsignedInteger => "unsigned-integer",
            Self::Complex => "complex",
            Self::Pattern => "pattern",
        })
    }
}

/// Which entries are not listed because they follow from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symmetry {
    /// None.
    General,
    /// Entries above the diagonal: they equal the entries below.
    Symmetric,
    /// Entries above the diagonal, which are the entries below with the opposite sign; the diagonal is zero.
    Skew,
    /// Entries above the diagonal: they are the complex conjugates of the entries below.
    Hermitian,
}

impl Symmetry {
    /// The entry on the other side of the diagonal, if it follows from this one.
    #[must_use]
    pub fn mirrored<T: Number>(self, value: T) -> Option<T> {
        match self {
            Self::General => None,
            Self::Symmetric => Some(value),
            Self::Skew => Some(value.negated()),
            Self::Hermitian => Some(value.conjugated()),
        }
    }

    /// The first row of a column that is listed in the layout [`MatrixLayout::Array`].
    pub(super) fn first_row(self, column: u64) -> u64 {
        match self {
            Self::General => 0,
            Self::Symmetric | Self::Hermitian => column,
            Self::Skew => column + 1,
        }
    }
}

impl fmt::Display for Symmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::General => "general",
            Self::Symmetric => "symmetric",
            Self::Skew => "skew-symmetric",
            Self::Hermitian => "hermitian",
        })
    }
}

/// The contents of the first line and of the line of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixMarketHeader {
    /// Which entries are listed.
    pub layout: MatrixLayout,
    /// The type of the entries.
    pub field: Field,
    /// Which entries follow from others.
    pub symmetry: Symmetry,
    /// The rows of the matrix.
    pub rows: u64,
    /// The columns of the matrix.
    pub columns: u64,
    /// How many entries the file should list; the largest number if there are more.
    pub entries: u64,
}

impl MatrixMarketHeader {
    pub(super) fn read(lines: &mut Lines<impl BufRead>) -> Result<Self, ReadError> {
        let Some(first) = lines.raw()? else {
            return Err(lines.wrong(Problem::Truncated("the file is empty".to_owned())));
        };
        if let Some(problem) = foreign(first) {
            return Err(lines.wrong(problem));
        }
        let (found, text) = (shown(first), String::from_utf8_lossy(first).to_ascii_lowercase());
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["%%matrixmarket", object, layout, field, symmetry] = words[..] else {
            return Err(lines.wrong(Problem::Foreign(format!(
                "the first line of a Matrix Market file is '%%MatrixMarket matrix FORMAT FIELD SYMMETRY', not '{found}'"
            ))));
        };
        lines.text()?;
        let (layout, field, symmetry) =
            kinds(object, layout, field, symmetry).map_err(|problem| lines.wrong(problem))?;
        let sizes = match layout {
            MatrixLayout::Coordinate => sizes::<3>(lines, "ROWS COLUMNS ENTRIES")?.to_vec(),
            MatrixLayout::Array => sizes::<2>(lines, "ROWS COLUMNS")?.to_vec(),
        };
        Self::new(layout, field, symmetry, &sizes).map_err(|problem| lines.wrong(problem))
    }

    fn new(layout: MatrixLayout, field: Field, symmetry: Symmetry, sizes: &[i64]) -> Result<Self, Problem> {
        let (rows, columns) = (sizes[0], sizes[1]);
        if rows < 0 || columns < 0 {
            let reason = format!("expected rows and columns from 0 on, found {rows} and {columns}");
            return Err(Problem::Malformed(reason));
        }
        if symmetry != Symmetry::General && rows != columns {
            let reason = format!("the matrix is {rows} by {columns}; a symmetric one is square");
            return Err(Problem::Malformed(reason));
        }
        let (rows, columns) = (rows as u64, columns as u64);
        let all = match symmetry {
            Symmetry::General => u128::from(rows) * u128::from(columns),
            Symmetry::Symmetric | Symmetry::Hermitian => u128::from(rows) * (u128::from(rows) + 1) / 2,
            Symmetry::Skew => u128::from(rows) * u128::from(rows.saturating_sub(1)) / 2,
        };
        let entries = match sizes.get(2) {
            None => u64::try_from(all).unwrap_or(u64::MAX),
            Some(&listed) => u64::try_from(listed)
                .map_err(|_| Problem::Malformed(format!("expected a number of entries from 0 on, found {listed}")))?,
        };
        Ok(Self { layout, field, symmetry, rows, columns, entries })
    }

    /// The row and the column of one of the entries that are listed in the layout [`MatrixLayout::Array`].
    pub(super) fn place_of(&self, entry: u64) -> (u64, u64) {
        // How many entries are listed in the columns before this one.
        let before = |column: u64| {
            let (rows, column) = (u128::from(self.rows), u128::from(column));
            match self.symmetry {
                Symmetry::General => rows * column,
                Symmetry::Symmetric | Symmetry::Hermitian => rows * column - column * column.saturating_sub(1) / 2,
                Symmetry::Skew => rows * column - column * (column + 1) / 2,
            }
        };
        let (mut least, mut most) = (0, self.columns);
        while most - least > 1 {
            let middle = least + (most - least) / 2;
            if before(middle) <= u128::from(entry) { least = middle } else { most = middle }
        }
        (self.symmetry.first_row(least) + (u128::from(entry) - before(least)) as u64, least)
    }
}

fn kinds(object: &str, layout: &str, field: &str, symmetry: &str) -> Result<(MatrixLayout, Field, Symmetry), Problem> {
    let unknown = |what: &str, found: &str, known: &str| {
        Err(Problem::Unsupported(format!("the {what} '{}' is none of {known}", shown(found))))
    };
    if object != "matrix" {
        let reason = format!("the object is '{}'; only a 'matrix' is of use here", shown(object));
        return Err(Problem::Unsupported(reason));
    }
    let layout = match layout {
        "coordinate" => MatrixLayout::Coordinate,
        "array" => MatrixLayout::Array,
        other => return unknown("format", other, "'coordinate', 'array'"),
    };
    let field = match field {
        "real" | "double" => Field::Real,
        "integer" => Field::Integer,
        "unsigned-integer" => Field::UnsignedInteger,
        "complex" => Field::Complex,
        "pattern" => Field::Pattern,
        other => return unknown("field", other, "'real', 'integer', 'unsigned-integer', 'complex', 'pattern'"),
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        "hermitian" => Symmetry::Hermitian,
        other => return unknown("symmetry", other, "'general', 'symmetric', 'skew-symmetric', 'hermitian'"),
    };
    let malformed = |reason: &str| Err(Problem::Malformed(reason.to_owned()));
    match (layout, field, symmetry) {
        (MatrixLayout::Array, Field::Pattern, _) => malformed("an 'array' has all entries, so it can't be a 'pattern'"),
        (_, Field::Pattern, Symmetry::Skew) => {
            malformed("a 'pattern' has ones alone, and a skew-symmetric matrix has those of both signs")
        }
        (_, Field::UnsignedInteger, Symmetry::Skew) => {
            malformed("an unsigned matrix has no entries below zero, as a skew-symmetric one has")
        }
        (_, field, Symmetry::Hermitian) if field != Field::Complex => {
            malformed("a hermitian matrix has complex entries; this one is 'symmetric'")
        }
        kinds => Ok(kinds),
    }
}

/// Reads the line after the comments, which has as many whole numbers as there are words in `what`.
fn sizes<const N: usize>(lines: &mut Lines<impl BufRead>, what: &str) -> Result<[i64; N], ReadError> {
    let Some(line) = lines.next()? else {
        return Err(lines.wrong(Problem::Truncated(format!("the file ends before the line '{what}'"))));
    };
    let other = || Problem::Malformed(format!("expected '{what}', found '{}'", shown(line)));
    let number = |word: &str| {
        word.parse::<i64>().map_err(|error| match is_overflow(&error) {
            true => Problem::TooLarge(format!("'{}' is too large a number for '{what}'", shown(word))),
            false => other(),
        })
    };
    let numbers: Result<Vec<i64>, Problem> = line.split_whitespace().map(number).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().map_err(|_| other()));
    numbers.map_err(|problem| lines.wrong(problem))
}
