//! Tensors in files. Dense ones: NumPy's `.npy`, and Matrix Market `array` files of matrices (`.mtx`); in `sparse`,
//! sparse ones.

mod archive;
mod array;
mod by_tasks;
mod contents;
mod early;
mod kind;
pub(super) mod left;
mod sparse;
mod spooled;
mod tcs;

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use maniple_files::matrix_market::{Field, Header, Layout, Reader, write_array};
use maniple_files::{Complex, Dense, Problem, ReadError, npy};
use maniple_tensor::distributed::{EntryFile, element_of};
use maniple_tensor::with_element;

pub use self::array::{Array, Stored, no_imaginary_parts, zero};
pub use self::by_tasks::FileByTasks;
pub use self::contents::Contents;
use self::kind::{Kind, OF_NAMES};
pub use self::sparse::{SparseFile, in_full, of_order, processors};
use self::spooled::Spooled;
pub use self::tcs::{described, format_of};
use crate::error::{Error, Result};
use crate::input::InputError;
use crate::options::place;
use crate::output;

/// A file whose name says what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorFile {
    path: PathBuf,
    /// The kind of the file; `None` if its first bytes tell it, as for a pipe, whose name tells nothing.
    kind: Option<Kind>,
    /// The temporary file with its bytes, if they came through a pipe.
    spooled: Option<Spooled>,
}

impl From<SparseFile> for TensorFile {
    fn from(file: SparseFile) -> Self {
        let (path, kind, spooled) = file.into_parts();
        Self { path, kind: Some(kind), spooled }
    }
}

impl TensorFile {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same file as one of a sparse tensor.
    ///
    /// # Errors
    /// [`Error::Input`] if it is a pipe that was not read.
    pub fn sparse(&self) -> Result<SparseFile> {
        match self.kind {
            Some(kind) => Ok(SparseFile::of_kind(&self.path, kind, self.spooled.clone())),
            None => {
                let reason = "expected a plain file, found a pipe or device: write it to a file first".to_owned();
                Err(InputError::Unsuitable { name: self.path.display().to_string(), reason }.into())
            }
        }
    }

    /// The same file, whose bytes are in a temporary file if it is a pipe or device: it can then be read more than
    /// once. On several nodes, which would each have a part, it is not read.
    ///
    /// # Errors
    /// [`Error::Input`] if it can't be read.
    pub fn spooled(self) -> Result<Self> {
        if !output::is_pipe(&self.path) || self.spooled.is_some() || place().nodes > 1 {
            return Ok(self);
        }
        let unreadable = |source| InputError::Unreadable { file: self.path.clone(), source };
        let (spooled, start) = Spooled::of(&self.path).map_err(unreadable)?;
        let kind = self.kind.unwrap_or_else(|| Kind::of_content(&start));
        Ok(Self { kind: Some(kind), spooled: Some(spooled), ..self })
    }

    /// Whether it is a `.tcs` file.
    #[must_use]
    pub fn has_levels(&self) -> bool {
        self.kind == Some(Kind::Levels)
    }

    /// Reads the tensor that a statement calls `name`.
    ///
    /// # Errors
    /// [`Error::Input`] if the file can't be read, or what is in it is no tensor of one of the six element types.
    pub fn read(&self, tensor: &str) -> Result<Array> {
        let unreadable = |source| InputError::Unreadable { file: self.path.clone(), source };
        let file = File::open(self.spooled.as_ref().map_or(&*self.path, Spooled::path)).map_err(unreadable)?;
        let data = file.metadata().map_err(unreadable)?;
        if data.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()).into());
        }
        if !data.is_file() && place().nodes > 1 {
            return Err(Error::Usage(format!(
                "{}: each node of a job reads its inputs, and this is no plain file; write it to one first",
                self.path.display()
            )));
        }
        let mut file = BufReader::new(file);
        let is_numpy = match self.kind {
            Some(Kind::Numpy) => true,
            Some(Kind::MatrixMarket) => false,
            Some(Kind::Coordinates | Kind::Archive | Kind::Levels) => {
                self.sparse()?.check_named(tensor)?;
                let reason = "the tensor is stored in levels: it is for statements on sparse tensors".to_owned();
                return Err(InputError::Unsuitable { name: self.path.display().to_string(), reason }.into());
            }
            None => file.fill_buf().map_err(unreadable)?.first() == npy::MAGIC.first(),
        };
        let array = match is_numpy {
            // The length of a pipe is known at its end.
            true => read_npy(file, data.is_file().then_some(data.len())),
            false => read_market(file, tensor),
        };
        Ok(array.map_err(|error| InputError::read(&self.path, error))?)
    }

    /// The file for tasks to read, each a part of it; none if it is no plain file of a dense tensor.
    ///
    /// # Errors
    /// [`Error::Input`] if the file can't be read, or what is in it is no tensor.
    pub fn by_tasks(&self) -> Result<Option<EntryFile>> {
        let is_dense = match self.kind {
            Some(Kind::Numpy) => true,
            Some(Kind::MatrixMarket) => File::open(&self.path)
                .ok()
                .and_then(|file| Reader::new(BufReader::new(file)).ok())
                .is_some_and(|reader| reader.header().layout == Layout::Array),
            _ => false,
        };
        if !is_dense || !std::fs::metadata(&self.path).is_ok_and(|data| data.is_file()) {
            return Ok(None);
        }
        self.sparse()?.entries()
    }

    /// A file that is read. Of a pipe or device, such as `/dev/stdin` or what a shell makes of `<(...)`, the content
    /// says what it is.
    ///
    /// # Errors
    /// If it is a plain file whose name does not tell what is in it.
    pub fn input(text: &str) -> Result<Self, String> {
        text.parse().or_else(|error| {
            let path = PathBuf::from(text);
            if output::is_special(&path) { Ok(Self { path, kind: None, spooled: None }) } else { Err(error) }
        })
    }

    /// Whether it is a `.npy` file.
    #[must_use]
    pub fn is_numpy(&self) -> bool {
        self.kind == Some(Kind::Numpy)
    }

    /// Whether a tensor of so many dimensions can be written here.
    ///
    /// # Errors
    /// [`Error::Usage`] if not.
    pub fn takes(&self, order: usize) -> Result<()> {
        if self.kind == Some(Kind::MatrixMarket) && order > 2 {
            return Err(Error::Usage(format!(
                "{}: Matrix Market files hold matrices; write a tensor of {order} dimensions to a .npy file",
                self.path.display()
            )));
        }
        if !matches!(self.kind, Some(Kind::MatrixMarket | Kind::Numpy)) {
            return Err(Error::Usage(format!(
                "{}: dense tensors are written to .npy and .mtx files",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Writes a tensor, whole or not at all: to a file beside this one, which then takes its place.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&self, array: &Array) -> Result<()> {
        output::write(&self.path, |file| {
            let mut file = BufWriter::new(file);
            match self.is_numpy() {
                true => write_npy(array, &mut file)?,
                false => write_market(array, &mut file)?,
            }
            file.flush()
        })
    }
}

impl FromStr for TensorFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, path) = Kind::said(text);
        Ok(Self { path: path.to_owned(), kind: Some(kind.ok_or(OF_NAMES)?), spooled: None })
    }
}

/// Reads a NumPy file, of so many bytes if that is known.
fn read_npy(mut source: impl BufRead, length: Option<u64>) -> Result<Array, ReadError> {
    let header = &npy::Header::read(&mut source)?;
    let source = &mut source;
    with_element!(element_of(header.number), T => Ok(array::<T>(npy::read_elements(header, source, length)?)))
}

/// Reads a dense matrix of `f64`, `i64` or complex numbers of `f64`, whatever its numbers are, for a tensor of this
/// name.
fn read_market(source: impl BufRead, tensor: &str) -> Result<Array, ReadError> {
    let reader = Reader::new(source)?;
    let Header { layout, field, rows, columns, .. } = *reader.header();
    let refused = |line, reason| Err(ReadError::Line { line, problem: Problem::Unsupported(reason) });
    if layout == Layout::Coordinate {
        return refused(
            1,
            format!("the matrix is sparse ('coordinate'): say how to store it, such as --format {tensor}=csr"),
        );
    }
    if rows.checked_mul(columns).is_none_or(|all| all > 1 << 48) {
        return refused(reader.line(), format!("{rows} x {columns} elements are too many"));
    }
    Ok(match field {
        Field::Integer | Field::UnsignedInteger => array::<i64>(reader.dense()?),
        Field::Complex => array::<Complex<f64>>(reader.dense()?),
        Field::Real | Field::Pattern => array::<f64>(reader.dense()?),
    })
}

fn array<T: Stored>(dense: Dense<T>) -> Array {
    let dense = dense.by_rows();
    Array::new(dense.shape.iter().map(|&extent| extent as i64).collect(), dense.elements)
}

fn write_npy(array: &Array, into: &mut impl Write) -> io::Result<()> {
    let shape: Vec<u64> = array.dimensions().iter().map(|&extent| extent as u64).collect();
    with_element!(array.element(), T => array.elements::<T>().map_or(Ok(()), |elements| npy::write_array(into, &shape, elements)))
}

/// Writes a matrix; a vector as one column, a scalar as one element.
fn write_market(array: &Array, into: &mut impl Write) -> io::Result<()> {
    let extent = |dimension: usize| array.dimensions().get(dimension).map_or(1, |&extent| extent as u64);
    let (rows, columns) = (extent(0), extent(1));
    let numbers = (0..columns).flat_map(|column| (0..rows).map(move |row| (row * columns + column) as usize));
    with_element!(array.element(), T => array.elements::<T>().map_or(Ok(()), |elements| {
        write_array(into, (rows, columns), numbers.map(|number| elements[number]))
    }))
}
