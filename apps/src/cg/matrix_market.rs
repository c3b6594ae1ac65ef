//! Symmetric matrices from Matrix Market files.
//!
//! Read are real numbers in all forms that the format has for them: `coordinate` and `array`; `real`, `integer` and
//! `pattern` (all ones); `symmetric`, and `general` if the numbers are symmetric. What is refused is refused with the
//! name of the file, the line and the reason.
//!
//! Tasks read the entries, each a range of the file.

use std::cmp::Ordering;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maniple::Context;
use maniple_files::matrix_market::{Field, MatrixEntry, MatrixLayout, MatrixMarketHeader, Reader, Symmetry};
use maniple_tensor::distributed::{DistributedError, EntryFile, Tensor};
use maniple_tensor::element::{Complex, ElementType};
use maniple_tensor::files::{InputError, processors};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::storage::EntryList;

use super::matrix::{Matrix, from_entries};
use crate::options::place;
use crate::report::counted;

/// A matrix in a file, of which the header was read.
#[derive(Clone, Debug)]
pub struct MatrixFile {
    path: PathBuf,
    header: MatrixMarketHeader,
    entries: MatrixEntries,
}

#[derive(Clone, Debug)]
enum MatrixEntries {
    /// Tasks read them, no more than this many.
    ByTasks(EntryFile, u64),
    /// Read from a pipe, which can't be read twice.
    Whole(Arc<Matrix>),
}

/// The bytes of the shortest line that an entry can have: with a row and a column where not all elements are listed.
fn shortest_line(header: &MatrixMarketHeader) -> u64 {
    let place = if header.layout == MatrixLayout::Coordinate { 4 } else { 0 };
    place + if header.field == Field::Pattern { 0 } else { 2 }
}

impl MatrixFile {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file can't be read, or has no square matrix of real numbers of a kind that can be symmetric.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let unreadable = |source| InputError::Unreadable { file: path.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let data = file.metadata().map_err(unreadable)?;
        let mut reader = Reader::new(BufReader::new(file)).map_err(|error| InputError::read(path, error))?;
        let header = *reader.header();
        solvable(&header).map_err(|reason| InputError::line(path, 1, reason.to_owned()))?;
        fitting(&header).map_err(|reason| InputError::line(path, reader.line(), reason))?;
        let entries = match data.is_file() {
            true => {
                let file = EntryFile::matrix_market(path, &processors());
                let file = file.map_err(|error| InputError::read(path, error))?;
                // The file may promise more than it has.
                MatrixEntries::ByTasks(file, header.entries.min(data.len() / shortest_line(&header)))
            }
            false if place().nodes > 1 => {
                let reason = "each node of a job reads its inputs, and this is no plain file; write it to one first";
                let name = path.display().to_string();
                return Err(InputError::Unsuitable { name, reason: reason.to_owned() });
            }
            false => MatrixEntries::Whole(Arc::new(all(path, &mut reader)?)),
        };
        Ok(Self { path: path.to_owned(), header, entries })
    }

    /// The number of rows, and of columns.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.header.rows as usize
    }

    /// How many entries the matrix has, as far as the file tells before it is read: those that it gives twice count
    /// twice.
    #[must_use]
    pub fn entries(&self) -> usize {
        let MatrixMarketHeader { rows, symmetry, .. } = self.header;
        match &self.entries {
            MatrixEntries::Whole(matrix) => matrix.values().len(),
            // All but the diagonal are there twice.
            MatrixEntries::ByTasks(_, entries) if symmetry == Symmetry::Symmetric => {
                (2 * (*entries).max(rows) - rows) as usize
            }
            MatrixEntries::ByTasks(_, entries) => *entries as usize,
        }
    }

    /// Reads the matrix, as `variable`, and checks that its numbers are finite and symmetric.
    ///
    /// # Errors
    /// [`DistributedError::File`] if a line does not make sense, or the matrix can't be solved; and as
    /// [`Tensor::read_entries`].
    pub async fn read(&self, cx: &Context, variable: &TensorVariable) -> Result<Tensor, DistributedError> {
        let matrix = match &self.entries {
            MatrixEntries::ByTasks(file, _) => Tensor::read_entries(cx, variable, file).await?.0,
            MatrixEntries::Whole(matrix) => Tensor::from_sparse(cx, variable, Arc::clone(matrix))?,
        };
        let largest = self.check_finite(cx, &matrix).await?;
        // Of what each node has read, the headers have not been compared.
        if self.header.symmetry == Symmetry::General || matches!(self.entries, MatrixEntries::Whole(_)) {
            self.check_symmetric(cx, &matrix, largest).await?;
        }
        Ok(matrix)
    }

    /// Gives the largest absolute value.
    async fn check_finite(&self, cx: &Context, matrix: &Tensor) -> Result<f64, DistributedError> {
        type Found = (f64, Option<([i64; 2], f64)>);
        let found = matrix.fold_entries::<f64, Found>(
            cx,
            || (0.0, None),
            |(largest, infinite), at, value| match value.is_finite() {
                true => *largest = largest.max(value.abs()),
                false => *infinite = infinite.or(Some(([at[0], at[1]], value))),
            },
        );
        let found = found.await?;
        match found.iter().find_map(|(_, infinite)| *infinite) {
            None => Ok(found.iter().fold(0.0, |largest, (other, _)| largest.max(*other))),
            Some((at, value)) => {
                let reason = |entry: Option<MatrixEntry<f64>>| match entry {
                    Some(entry) => format!("the value '{}' is not finite", entry.value),
                    None => format!("entry {} adds up to {value}", counted_from_one(at)),
                };
                Err(self.wrong(|entry| !entry.value.is_finite(), reason))
            }
        }
    }

    async fn check_symmetric(&self, cx: &Context, matrix: &Tensor, largest: f64) -> Result<(), DistributedError> {
        // At places below the diagonal, the real part is the entry there, the imaginary part the one on the other side.
        let variable = TensorVariable::new("P", ElementType::C64, [self.header.rows as i64; 2])
            .stored(matrix.variable().format().clone());
        let pairs = matrix.mapped::<f64, Complex<f64>>(cx, &variable, |at, value, visit| match at[0].cmp(&at[1]) {
            Ordering::Greater => visit(&[at[0], at[1]], Complex::new(value, 0.0)),
            Ordering::Less => visit(&[at[1], at[0]], Complex::new(0.0, value)),
            Ordering::Equal => {}
        });
        let pairs = pairs.await?;
        let found = pairs.fold_entries::<Complex<f64>, Option<([i64; 2], [f64; 2])>>(
            cx,
            || None,
            move |found, at, pair| {
                let allowed = SYMMETRY_TOLERANCE * pair.re.abs().max(pair.im.abs()).max(largest * f64::EPSILON);
                if found.is_none() && (pair.re - pair.im).abs() > allowed {
                    *found = Some(([at[0], at[1]], [pair.re, pair.im]));
                }
            },
        );
        let found = found.await?.into_iter().flatten().next();
        pairs.destroy(cx)?;
        let Some((at, [value, other])) = found else { return Ok(()) };
        let across = [at[1], at[0]];
        let is_listed = |entry: &MatrixEntry<f64>| [at, across].contains(&[entry.row as i64, entry.column as i64]);
        Err(self.wrong(is_listed, |entry| {
            // The one that the file lists first.
            let is_across = entry.is_some_and(|entry| entry.row as i64 == across[0]);
            let ([here, there], [value, other]) =
                if is_across { ([across, at], [other, value]) } else { ([at, across], [value, other]) };
            let (here, there) = (counted_from_one(here), counted_from_one(there));
            format!("the matrix is not symmetric: entry {here} is {value}, but {there} is {other}")
        }))
    }

    /// An error about the first line of a certain entry, or about the file, if the entry can't be looked for.
    fn wrong(
        &self,
        is_wanted: impl Fn(&MatrixEntry<f64>) -> bool,
        reason: impl FnOnce(Option<MatrixEntry<f64>>) -> String,
    ) -> DistributedError {
        let found = self.line_of(is_wanted);
        let name = self.path.display().to_string();
        let name = found.as_ref().map_or_else(|| name.clone(), |(line, _)| format!("{name}:{line}"));
        DistributedError::File { name, reason: reason(found.map(|(_, entry)| entry)), is_input: true }
    }

    fn line_of(&self, is_wanted: impl Fn(&MatrixEntry<f64>) -> bool) -> Option<(u64, MatrixEntry<f64>)> {
        let file = File::open(&self.path).ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
        let mut reader = Reader::new(BufReader::new(file)).ok()?;
        while let Some(entry) = reader.next_entry::<f64>().ok()? {
            if is_wanted(&entry) {
                return Some((reader.line(), entry));
            }
        }
        None
    }
}

/// A place as files have it.
fn counted_from_one(at: [i64; 2]) -> String {
    format!("({}, {})", at[0] + 1, at[1] + 1)
}

/// All entries of a file, those too that follow by symmetry. The file may promise more than it has: memory is taken for
/// what is there.
fn all(path: &Path, reader: &mut Reader<impl BufRead>) -> Result<Matrix, InputError> {
    let (mut entries, symmetry) = (EntryList::new(2), reader.header().symmetry);
    while let Some(entry) = reader.next_entry::<f64>().map_err(|error| InputError::read(path, error))? {
        for MatrixEntry { row, column, value } in [Some(entry), entry.mirrored(symmetry)].into_iter().flatten() {
            entries.push(&[row as i64, column as i64], value);
        }
    }
    let unsuitable = |reason: String| InputError::Unsuitable { name: path.display().to_string(), reason };
    from_entries(reader.header().rows as usize, entries).map_err(|error| unsuitable(error.to_string()))
}

/// Whether a matrix of this kind can be solved.
fn solvable(header: &MatrixMarketHeader) -> Result<(), &'static str> {
    match (header.field, header.symmetry) {
        (Field::Complex, _) => Err("the entries are complex; this solver takes real ones"),
        (_, Symmetry::Skew) => Err("the matrix is skew-symmetric, hence not positive definite"),
        _ => Ok(()),
    }
}

/// Whether a matrix of this size can be solved.
fn fitting(header: &MatrixMarketHeader) -> Result<(), String> {
    let MatrixMarketHeader { rows, columns, entries, .. } = *header;
    if rows != columns {
        return Err(format!("the matrix is {rows} by {columns}; only a square one can be solved"));
    }
    if rows == 0 {
        return Err("the matrix has no rows".to_owned());
    }
    if rows > u64::from(u32::MAX) {
        return Err(format!("the matrix has {rows} rows; at most {} can be numbered", u32::MAX));
    }
    if header.layout == MatrixLayout::Coordinate && entries < rows {
        return Err(format!(
            "expected at least {}, since a positive definite matrix has all of its diagonal, found {entries}",
            counted(rows as usize, "entry", "entries")
        ));
    }
    Ok(())
}

/// How far apart, relative to the larger, two entries may be that should be equal: enough for files that print few
/// digits.
const SYMMETRY_TOLERANCE: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file as programs do, which is called `a.mtx` in messages.
    fn parse(text: &str) -> Result<Matrix, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.mtx");
        std::fs::write(&path, text).expect("the folder can be written");
        let runtime = maniple::Runtime::builder().workers(1).build().expect("a runtime");
        let read = || {
            let file = MatrixFile::open(&path).map_err(|error| error.to_string())?;
            let variable = TensorVariable::new("A", ElementType::F64, [file.rows() as i64; 2]);
            let variable = variable.stored("csr".parse().expect("a format"));
            let read = runtime.run(async |cx| {
                Ok(match file.read(cx, &variable).await {
                    Ok(matrix) => Ok(matrix.read_sparse(cx).await?),
                    Err(error) => Err(error.to_string()),
                })
            });
            read.map_err(|error| error.to_string())?
        };
        read().map_err(|error: String| error.replace(&format!("{}/", folder.path().display()), ""))
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
