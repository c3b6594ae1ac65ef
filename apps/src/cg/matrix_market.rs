//! Reads Matrix Market files (Boisvert, Pozo and Remington 1996, *The Matrix Market Exchange Formats*).
//!
//! Read are symmetric matrices of real numbers in all forms that the format has for them: `coordinate` and `array`; `real`, `integer` and
//! `pattern` (all ones); `symmetric`, and `general` if the numbers are symmetric. What is refused is refused with the name of the
//! file, the line and the reason.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::sparse::{Entry, Sparse};
pub use crate::market::MatrixError;
use crate::market::{Header, Layout, Lines, Numbers, Symmetry, is_overflow, parse_number, shown, sizes};
use crate::report::counted;

/// Reads a symmetric matrix.
///
/// # Errors
/// If the file can't be read or breaks off, a line of it does not make sense, or the matrix is not square, real and symmetric.
pub fn read(file: &Path) -> Result<Sparse, MatrixError> {
    let opened = File::open(file).map_err(|source| MatrixError::Unreadable { file: file.to_owned(), source })?;
    read_from(file, opened)
}

/// Reads a symmetric matrix from anything; `file` is what errors call it.
///
/// # Errors
/// As [`read`].
pub fn read_from(file: &Path, text: impl Read) -> Result<Sparse, MatrixError> {
    let mut lines = Lines::new(file, text);
    let header = Header::read(&mut lines, solvable)?;
    let size = Size::read(&mut lines, &header)?;
    let entries = match header.layout {
        Layout::Coordinate => read_coordinates(&mut lines, &header, size)?,
        Layout::Array => read_array(&mut lines, &header, size)?,
    };
    if let Some(extra) = lines.next()? {
        let extra = shown(extra);
        return Err(lines.wrong(format!("'{extra}' is too much: the file says that it has {}", size.promised())));
    }
    assemble(&lines, &header, size, entries)
}

/// Whether a matrix of this kind can be solved.
fn solvable(header: &Header) -> Result<(), String> {
    let reason = match (header.numbers, header.symmetry) {
        (Numbers::Complex, _) => "the entries are complex; this solver takes real ones",
        (_, Symmetry::Skew) => "the matrix is skew-symmetric, hence not positive definite",
        (_, Symmetry::Hermitian) => "the matrix is hermitian; this solver takes real symmetric ones",
        _ => return Ok(()),
    };
    Err(reason.to_owned())
}

fn is_symmetric(header: &Header) -> bool {
    header.symmetry == Symmetry::Symmetric
}

/// An entry and the line that it stands in.
type Placed = (Entry, usize);

#[derive(Clone, Copy)]
struct Size {
    /// Rows, and columns.
    rows: usize,
    /// Entries in the file.
    entries: usize,
}

impl Size {
    fn read(lines: &mut Lines<'_, impl Read>, header: &Header) -> Result<Self, MatrixError> {
        let (rows, columns, entries) = match header.layout {
            Layout::Coordinate => {
                let [rows, columns, entries] = sizes(lines, "ROWS COLUMNS ENTRIES")?;
                (rows, columns, Some(entries))
            }
            Layout::Array => {
                let [rows, columns] = sizes(lines, "ROWS COLUMNS")?;
                (rows, columns, None)
            }
        };
        Self::checked((rows, columns, entries), header).map_err(|reason| lines.wrong(reason))
    }

    /// The entries that the file says it has, in words.
    fn promised(&self) -> String {
        counted(self.entries, "entry", "entries")
    }

    fn checked((rows, columns, entries): (i64, i64, Option<i64>), header: &Header) -> Result<Self, String> {
        if rows < 1 || columns < 1 {
            return Err(format!("expected at least 1 row and 1 column, found {rows} and {columns}"));
        }
        if rows != columns {
            return Err(format!("the matrix is {rows} by {columns}; only a square one can be solved"));
        }
        if rows > i64::from(u32::MAX) {
            return Err(format!("the matrix has {rows} rows; at most {} can be numbered", u32::MAX));
        }
        let rows = rows as usize;
        let entries = match entries {
            None if is_symmetric(header) => rows * (rows + 1) / 2,
            None => rows.saturating_mul(rows),
            Some(entries) if entries < rows as i64 => {
                return Err(format!(
                    "expected at least {}, since a positive definite matrix has all of its diagonal, found {entries}",
                    counted(rows, "entry", "entries")
                ));
            }
            Some(entries) => entries as usize,
        };
        Ok(Self { rows, entries })
    }
}

fn read_coordinates(lines: &mut Lines<'_, impl Read>, header: &Header, size: Size) -> Result<Vec<Placed>, MatrixError> {
    // The file may promise more than it has: memory is taken for what is there.
    let mut entries = Vec::new();
    for count in 0..size.entries {
        let Some(line) = lines.next()? else { return Err(broken_off(lines, count, size)) };
        let entry = parse_entry(line, header, size.rows).map_err(|reason| lines.wrong(reason))?;
        entries.push((entry, lines.number()));
    }
    Ok(entries)
}

fn read_array(lines: &mut Lines<'_, impl Read>, header: &Header, size: Size) -> Result<Vec<Placed>, MatrixError> {
    let mut entries = Vec::new();
    for column in 0..size.rows {
        let first = if is_symmetric(header) { column } else { 0 };
        for row in first..size.rows {
            let count = entries.len();
            let Some(line) = lines.next()? else { return Err(broken_off(lines, count, size)) };
            let value = parse_value(line, header).map_err(|reason| lines.wrong(reason))?;
            entries.push((Entry { row: row as u32, column: column as u32, value }, lines.number()));
        }
    }
    Ok(entries)
}

fn broken_off(lines: &Lines<'_, impl Read>, count: usize, size: Size) -> MatrixError {
    lines.wrong(format!("the file ends after {count} of {}", size.promised()))
}

fn parse_entry(line: &str, header: &Header, rows: usize) -> Result<Entry, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (row, column, value) = match (header.numbers, &words[..]) {
        (Numbers::Pattern, &[row, column]) => (row, column, 1.0),
        (Numbers::Pattern, _) => return Err(format!("expected 'ROW COLUMN', found '{}'", shown(line))),
        (_, &[row, column, value]) => (row, column, parse_value(value, header)?),
        _ => return Err(format!("expected 'ROW COLUMN VALUE', found '{}'", shown(line))),
    };
    let place = |name: &str, word: &str| match word.parse::<i64>() {
        Ok(number) if number >= 1 && number <= rows as i64 => Ok((number - 1) as u32),
        Ok(number) => Err(format!("{name} {number} is not between 1 and {rows}")),
        Err(error) if is_overflow(&error) => Err(format!("{name} {} is not between 1 and {rows}", shown(word))),
        Err(_) => Err(format!("the {name} '{}' is not a whole number", shown(word))),
    };
    let entry = Entry { row: place("row", row)?, column: place("column", column)?, value };
    if is_symmetric(header) && entry.column > entry.row {
        return Err(format!(
            "entry ({row}, {column}) is above the diagonal; a symmetric file lists those below, and the diagonal"
        ));
    }
    Ok(entry)
}

fn parse_value(word: &str, header: &Header) -> Result<f64, String> {
    parse_number(word, header.numbers == Numbers::Integer)
}

/// How far apart, relative to the larger, two entries may be that should be equal: enough for files that print few digits.
const SYMMETRY_TOLERANCE: f64 = 1e-9;

/// Puts rows in order, mirrors what the file leaves out, and checks that a general matrix is symmetric.
fn assemble(
    lines: &Lines<'_, impl Read>,
    header: &Header,
    size: Size,
    placed: Vec<Placed>,
) -> Result<Sparse, MatrixError> {
    let mirrored = placed.iter().map(|(entry, _)| entry.mirrored()).filter(|entry| entry.row != entry.column);
    let all: Vec<Entry> = match is_symmetric(header) {
        true => placed.iter().map(|(entry, _)| *entry).chain(mirrored).collect(),
        false => placed.iter().map(|(entry, _)| *entry).collect(),
    };
    let matrix = Sparse::from_entries(size.rows, all);
    if !is_symmetric(header) {
        let scale = matrix.largest_value();
        for (entry, line) in &placed {
            let (value, other) = (matrix.get(entry.row, entry.column), matrix.get(entry.column, entry.row));
            let allowed = SYMMETRY_TOLERANCE * value.abs().max(other.abs()).max(scale * f64::EPSILON);
            if (value - other).abs() > allowed {
                let (row, column) = (entry.row + 1, entry.column + 1);
                let reason = format!(
                    "the matrix is not symmetric: entry ({row}, {column}) is {value}, but ({column}, {row}) is {other}"
                );
                return Err(lines.wrong_at(*line, reason));
            }
        }
    }
    matrix.check_diagonal().map_err(|reason| lines.unsuitable(reason))?;
    Ok(matrix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn parse(text: &str) -> Result<Sparse, String> {
        read_from(Path::new("a.mtx"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(text: &str, message: &str) {
        assert_eq!(parse(text).err().as_deref(), Some(message));
    }

    fn dense(matrix: &Sparse) -> Vec<Vec<f64>> {
        let size = matrix.rows() as u32;
        (0..size).map(|row| (0..size).map(|column| matrix.get(row, column)).collect()).collect()
    }

    #[test]
    fn all_forms_of_one_symmetric_matrix_are_the_same_matrix() {
        let expected = vec![vec![2.0, -1.0, 0.0], vec![-1.0, 2.0, 3.0], vec![0.0, 3.0, 9.0]];
        let forms = [
            "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n\n3 3 5\n1 1 2\n2 1 -1.0\n2 2 2e0\n3 2 3\n3 3 9\n",
            "%%matrixmarket MATRIX Coordinate Integer General\n3 3 7\n3 3 9\n1 1 2\n1 2 -1\n2 1 -1\n2 2 2\n2 3 3\n3 2 3\n",
            "%%MatrixMarket matrix array real symmetric\n3 3\n2\n-1\n0\n2\n3\n9D0\n",
            "%%MatrixMarket matrix array real general\r\n3 3\r\n2\r\n-1\r\n0\r\n-1\r\n2\r\n3\r\n0\r\n3\r\n9\r\n",
        ];
        for form in forms {
            assert_eq!(parse(form).map(|matrix| dense(&matrix)), Ok(expected.clone()), "{form}");
        }
    }

    #[test]
    fn a_pattern_is_all_ones_and_entries_given_twice_add_up() {
        let pattern = parse("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 3\n1 1\n2 2\n2 1").unwrap();
        assert_eq!(dense(&pattern), [[1.0, 1.0], [1.0, 1.0]]);
        let twice = parse("%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 2\n1 1 3").unwrap();
        assert_eq!(dense(&twice), [[5.0]]);
    }

    #[test]
    fn a_general_matrix_may_be_symmetric_to_within_its_digits() {
        let nearly = "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 1\n2 2 1\n1 2 0.333333333333\n2 1 0.333333333334\n";
        assert!(parse(nearly).is_ok());
    }

    #[test]
    fn what_is_no_matrix_market_file_is_refused() {
        let first = "the first line of a Matrix Market file is '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'";
        refused("", "a.mtx:1: the file is empty");
        refused("1 1 1\n", &format!("a.mtx:1: {first}, not '1 1 1'"));
        refused("\n", &format!("a.mtx:1: {first}, not ''"));
        let short = "%%MatrixMarket matrix coordinate real";
        refused(short, &format!("a.mtx:1: {first}, not '{short}'"));
        refused(&format!("\u{feff}{short}"), "a.mtx:1: the file starts with a byte order mark; save it without");
        let endless = read_from(Path::new("a.mtx"), io::repeat(0)).unwrap_err().to_string();
        assert_eq!(endless, format!("a.mtx:1: {first}, not '{}...'", r"\0".repeat(40)));
        let binary = read_from(Path::new("a.mtx"), &b"\x7fELF\x02\xff\n"[..]).unwrap_err().to_string();
        assert_eq!(binary, format!(r"a.mtx:1: {first}, not '\u{{7f}}ELF\u{{2}}\xff'"));
    }

    #[test]
    fn what_conjugate_gradients_cannot_solve_is_refused_with_the_reason() {
        let header = |rest: &str| format!("%%MatrixMarket matrix {rest}\n1 1 1\n1 1 1\n");
        let skew = "a.mtx:1: the matrix is skew-symmetric, hence not positive definite";
        refused(&header("coordinate real skew-symmetric"), skew);
        refused(
            &header("coordinate complex symmetric"),
            "a.mtx:1: the entries are complex; this solver takes real ones",
        );
        let hermitian = "a.mtx:1: the matrix is hermitian; this solver takes real symmetric ones";
        refused(&header("coordinate real hermitian"), hermitian);
        refused(&header("array pattern general"), "a.mtx:1: an 'array' has all entries, so it can't be a 'pattern'");
        let general = "%%MatrixMarket matrix coordinate real general\n";
        refused(&format!("{general}2 3 1\n"), "a.mtx:2: the matrix is 2 by 3; only a square one can be solved");
        refused(
            &format!("{general}2 2 3\n1 1 4\n2 2 4\n2 1 1\n"),
            "a.mtx:5: the matrix is not symmetric: entry (2, 1) is 1, but (1, 2) is 0",
        );
        refused(
            &format!("{general}2 2 2\n1 1 4\n1 1 1\n"),
            "a.mtx: row 2 has the diagonal entry 0, but those of a positive definite matrix are positive",
        );
    }

    #[test]
    fn sizes_and_entries_that_make_no_sense_are_refused_where_they_stand() {
        let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
        refused(symmetric, "a.mtx:1: the file ends before the line 'ROWS COLUMNS ENTRIES'");
        refused(&format!("{symmetric}2 2\n"), "a.mtx:2: expected 'ROWS COLUMNS ENTRIES', found '2 2'");
        refused(&format!("{symmetric}0 0 0\n"), "a.mtx:2: expected at least 1 row and 1 column, found 0 and 0");
        refused(&format!("{symmetric}-1 -1 1\n"), "a.mtx:2: expected at least 1 row and 1 column, found -1 and -1");
        refused(
            &format!("{symmetric}3000000000 3000000000 2\n"),
            "a.mtx:2: expected at least 3000000000 entries, since a positive definite matrix has all of its diagonal, found 2",
        );
        refused(&format!("{symmetric}1 1 2\n1 1 1\n"), "a.mtx:3: the file ends after 1 of 2 entries");
        refused(
            &format!("{symmetric}1 1 1\n1 1 1\n1 1 2\n"),
            "a.mtx:4: '1 1 2' is too much: the file says that it has 1 entry",
        );
        let huge = "99999999999999999999";
        refused(
            &format!("{symmetric}{huge} {huge} 1\n"),
            &format!("a.mtx:2: '{huge}' is too large a number for 'ROWS COLUMNS ENTRIES'"),
        );
        refused(
            &format!("{symmetric}5000000000 5000000000 5000000000\n"),
            "a.mtx:2: the matrix has 5000000000 rows; at most 4294967295 can be numbered",
        );
        refused(
            &format!("{symmetric}1 1 {}\n1 1 1\n", i64::MAX),
            "a.mtx:3: the file ends after 1 of 9223372036854775807 entries",
        );
        refused(&format!("{symmetric}1 1 1\n{huge} 1 1\n"), &format!("a.mtx:3: row {huge} is not between 1 and 1"));
        refused(&format!("{symmetric}1 1 1\n1 1 1\0\n"), r"a.mtx:3: '1\0' is not a number");
        refused(&format!("{symmetric}1 1 1\n1 2 1\n"), "a.mtx:3: column 2 is not between 1 and 1");
        refused(&format!("{symmetric}1 1 1\n0 1 1\n"), "a.mtx:3: row 0 is not between 1 and 1");
        refused(&format!("{symmetric}1 1 1\n1 1\n"), "a.mtx:3: expected 'ROW COLUMN VALUE', found '1 1'");
        refused(&format!("{symmetric}1 1 1\n1 1 one\n"), "a.mtx:3: 'one' is not a number");
        refused(&format!("{symmetric}1 1 1\n1 1 inf\n"), "a.mtx:3: the value 'inf' is not finite");
        refused(
            &format!("{symmetric}2 2 2\n1 2 1\n2 2 1\n"),
            "a.mtx:3: entry (1, 2) is above the diagonal; a symmetric file lists those below, and the diagonal",
        );
        let integer = "%%MatrixMarket matrix coordinate integer symmetric\n1 1 1\n1 1 1.5\n";
        refused(integer, "a.mtx:3: '1.5' is not a whole number");
    }
}
