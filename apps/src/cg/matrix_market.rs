//! Symmetric matrices from Matrix Market files.
//!
//! Read are real numbers in all forms that the format has for them: `coordinate` and `array`; `real`, `integer` and `pattern` (all ones); `symmetric`, and `general` if the numbers are
//! symmetric. What is refused is refused with the name of the file, the line and the reason.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use maniple_files::matrix_market::{Field, Header, Layout, Reader, Symmetry};

use maniple_tensor::storage::EntryList;

use super::matrix::{Matrix, check_diagonal, from_entries};
use crate::input::InputError;
use crate::report::counted;

/// Reads a symmetric matrix.
///
/// # Errors
/// If the file can't be read or breaks off, a line of it does not make sense, or the matrix is not square, real and symmetric.
pub fn read(file: &Path) -> Result<Matrix, InputError> {
    let opened = File::open(file).map_err(|source| InputError::Unreadable { file: file.to_owned(), source })?;
    read_from(file, BufReader::new(opened))
}

/// Reads a symmetric matrix from anything; `file` is what errors call it.
///
/// # Errors
/// As [`read`].
pub fn read_from(file: &Path, text: impl BufRead) -> Result<Matrix, InputError> {
    let refused = |error| InputError::read(file, error);
    let mut reader = Reader::new(text).map_err(refused)?;
    let header = *reader.header();
    solvable(&header).map_err(|reason| InputError::line(file, 1, reason.to_owned()))?;
    fitting(&header).map_err(|reason| InputError::line(file, reader.line(), reason))?;
    // The file may promise more than it has: memory is taken for what is there.
    let (mut entries, mut lines) = (EntryList::new(2), Vec::new());
    while let Some(entry) = reader.next_entry::<f64>().map_err(refused)? {
        if !entry.value.is_finite() {
            let reason = format!("the value '{}' is not finite", entry.value);
            return Err(InputError::line(file, reader.line(), reason));
        }
        entries.push(&[entry.row as i64, entry.column as i64], entry.value);
        lines.push(reader.line());
    }
    assemble(file, &header, entries, &lines)
}

/// Whether a matrix of this kind can be solved.
fn solvable(header: &Header) -> Result<(), &'static str> {
    match (header.field, header.symmetry) {
        (Field::Complex, _) => Err("the entries are complex; this solver takes real ones"),
        (_, Symmetry::Skew) => Err("the matrix is skew-symmetric, hence not positive definite"),
        _ => Ok(()),
    }
}

/// Whether a matrix of this size can be solved.
fn fitting(header: &Header) -> Result<(), String> {
    let Header { rows, columns, entries, .. } = *header;
    if rows != columns {
        return Err(format!("the matrix is {rows} by {columns}; only a square one can be solved"));
    }
    if rows > u64::from(u32::MAX) {
        return Err(format!("the matrix has {rows} rows; at most {} can be numbered", u32::MAX));
    }
    if header.layout == Layout::Coordinate && entries < rows {
        return Err(format!(
            "expected at least {}, since a positive definite matrix has all of its diagonal, found {entries}",
            counted(rows as usize, "entry", "entries")
        ));
    }
    Ok(())
}

/// How far apart, relative to the larger, two entries may be that should be equal: enough for files that print few digits.
const SYMMETRY_TOLERANCE: f64 = 1e-9;

/// Puts rows in order, mirrors what the file leaves out, and checks that a general matrix is symmetric; `lines` are those of the entries.
fn assemble(file: &Path, header: &Header, mut entries: EntryList<f64>, lines: &[u64]) -> Result<Matrix, InputError> {
    let unsuitable = |reason: String| InputError::Unsuitable { name: file.display().to_string(), reason };
    let placed = match header.symmetry == Symmetry::Symmetric {
        true => {
            let mut mirrored = EntryList::new(2);
            for (at, value) in entries.iter().filter(|(at, _)| at[0] != at[1]) {
                mirrored.push(&[at[1], at[0]], value);
            }
            mirrored.iter().for_each(|(at, value)| entries.push(&at, value));
            None
        }
        false => Some(entries.clone()),
    };
    let matrix = from_entries(header.rows as usize, entries).map_err(|error| unsuitable(error.to_string()))?;
    if let Some(placed) = placed {
        let scale = matrix.values().iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        for ((at, _), line) in placed.iter().zip(lines) {
            let (value, other) = (matrix.get(&[at[0], at[1]]), matrix.get(&[at[1], at[0]]));
            let allowed = SYMMETRY_TOLERANCE * value.abs().max(other.abs()).max(scale * f64::EPSILON);
            if (value - other).abs() > allowed {
                let (row, column) = (at[0] + 1, at[1] + 1);
                let reason = format!(
                    "the matrix is not symmetric: entry ({row}, {column}) is {value}, but ({column}, {row}) is {other}"
                );
                return Err(InputError::line(file, *line, reason));
            }
        }
    }
    check_diagonal(&matrix).map_err(unsuitable)?;
    Ok(matrix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Matrix, String> {
        read_from(Path::new("a.mtx"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn refused(text: &str, message: &str) {
        assert_eq!(parse(text).err().as_deref(), Some(message));
    }

    fn dense(matrix: &Matrix) -> Vec<Vec<f64>> {
        let size = matrix.dimensions()[0];
        (0..size).map(|row| (0..size).map(|column| matrix.get(&[row, column])).collect()).collect()
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
    fn what_conjugate_gradients_cannot_solve_is_refused_with_the_reason() {
        let header = |rest: &str| format!("%%MatrixMarket matrix {rest}\n1 1 1\n1 1 1\n");
        let skew = "a.mtx:1: the matrix is skew-symmetric, hence not positive definite";
        refused(&header("coordinate real skew-symmetric"), skew);
        for symmetry in ["symmetric", "hermitian"] {
            let complex = header(&format!("coordinate complex {symmetry}"));
            refused(&complex, "a.mtx:1: the entries are complex; this solver takes real ones");
        }
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
    fn what_the_reader_and_the_solver_refuse_has_a_line() {
        let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
        refused(
            &format!("{symmetric}3000000000 3000000000 2\n"),
            "a.mtx:2: expected at least 3000000000 entries, since a positive definite matrix has all of its diagonal, found 2",
        );
        refused(
            &format!("{symmetric}5000000000 5000000000 5000000000\n"),
            "a.mtx:2: the matrix has 5000000000 rows; at most 4294967295 can be numbered",
        );
        refused(&format!("{symmetric}1 1 1\n1 1 one\n"), "a.mtx:3: 'one' is not a number");
        refused(&format!("{symmetric}1 1 1\n1 1 inf\n"), "a.mtx:3: the value 'inf' is not finite");
    }
}
