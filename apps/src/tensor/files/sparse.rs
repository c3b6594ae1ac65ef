//! Sparse tensors in files: Matrix Market, `.tns`, `.npz`, and the elements of `.npy` files that are not zero.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use maniple_files::matrix_market::{self, Field, Reader};
use maniple_files::npz::{Archive, Compression, Sparse, Structure, Values};
use maniple_files::{Entries, Number, NumberType, Parallel, npy, tns};
use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::format::Format;
use maniple_tensor::kernel::{Scoped, Team};
use maniple_tensor::notation::cast;
use maniple_tensor::storage::{EntryList, SparseTensor};

use super::{Stored, TensorFile};
use crate::error::{Error, Result};
use crate::input::InputError;

/// A file whose name says how a sparse tensor is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseFile {
    path: PathBuf,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    MatrixMarket,
    Coordinates,
    Archive,
    Numpy,
}

/// What is in a file.
#[derive(Clone, Debug)]
pub struct Contents<T> {
    /// The extent of each dimension.
    pub dimensions: Vec<i64>,
    /// The value of what is not stored.
    pub fill: T,
    /// What is stored.
    pub entries: EntryList<T>,
}

impl std::str::FromStr for SparseFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let form = match path.extension().and_then(|extension| extension.to_str()) {
            Some("mtx") => Form::MatrixMarket,
            Some("tns") => Form::Coordinates,
            Some("npz") => Form::Archive,
            Some("npy") => Form::Numpy,
            _ => {
                let known = ".mtx (Matrix Market), .tns (FROSTT), .npz (SciPy) or .npy (NumPy)";
                return Err(format!("the name must end with {known}"));
            }
        };
        Ok(Self { path, form })
    }
}

/// All processors, for what reads and writes text.
struct Processors(Scoped);

impl Parallel for Processors {
    fn parts(&self) -> usize {
        self.0.size()
    }

    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) {
        self.0.run(parts, body);
    }
}

fn processors() -> Processors {
    Processors(Scoped { threads: std::thread::available_parallelism().map_or(1, usize::from) })
}

impl SparseFile {
    /// The file at a path, whose name says what it is.
    ///
    /// # Errors
    /// [`Error::Usage`] if it does not.
    pub fn of(path: &Path) -> Result<Self> {
        let text = path.display().to_string();
        text.parse().map_err(|error| Error::Usage(format!("{text}: {error}")))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn unreadable(&self, source: io::Error) -> Error {
        InputError::Unreadable { file: self.path.clone(), source }.into()
    }

    /// Opens the file, if it is one: a pipe cannot be read twice.
    fn open(&self) -> Result<File> {
        let data = fs::metadata(&self.path).map_err(|error| self.unreadable(error))?;
        match data.is_file() {
            true => File::open(&self.path).map_err(|error| self.unreadable(error)),
            false if data.is_dir() => Err(self.unreadable(io::ErrorKind::IsADirectory.into())),
            false => {
                let reason = "expected a plain file, found a pipe or device: write it to a file first".to_owned();
                Err(InputError::Unsuitable { name: self.path.display().to_string(), reason }.into())
            }
        }
    }

    /// The type that holds all elements of the file.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn element(&self) -> Result<ElementType> {
        let read = |error| Error::from(InputError::read(&self.path, error));
        let source = BufReader::new(self.open()?);
        let number = match self.form {
            Form::Coordinates => NumberType::F64,
            Form::MatrixMarket => match Reader::new(source).map_err(read)?.header().field {
                Field::Integer => NumberType::I64,
                Field::Complex => NumberType::C64,
                Field::Real | Field::Pattern => NumberType::F64,
            },
            Form::Archive => self.archived(source)?.values().number().unwrap_or(NumberType::F64),
            Form::Numpy => npy::Header::read(&mut { source }).map_err(read)?.number,
        };
        Ok(match number {
            NumberType::Bool => ElementType::Bool,
            NumberType::U8 => ElementType::U8,
            NumberType::I8 => ElementType::I8,
            NumberType::I16 => ElementType::I16,
            NumberType::U32 => ElementType::U32,
            NumberType::I32 => ElementType::I32,
            NumberType::I64 => ElementType::I64,
            NumberType::F32 => ElementType::F32,
            NumberType::F64 => ElementType::F64,
            NumberType::C32 => ElementType::C32,
            NumberType::C64 => ElementType::C64,
        })
    }

    fn archived(&self, source: BufReader<File>) -> Result<Sparse> {
        let read = Archive::new(source).and_then(|mut archive| Sparse::read(&mut archive));
        read.map_err(|error| InputError::read(&self.path, error).into())
    }

    /// Reads the tensor, with elements of a type that [holds](Self::element) them.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn read<T: Stored>(&self) -> Result<Contents<T>> {
        let read = |error| Error::from(InputError::read(&self.path, error));
        let extents = |shape: &[u64]| shape.iter().map(|&extent| extent as i64).collect();
        let of = |value: Scalar| T::from_scalar(cast(value, <T as Element>::TYPE)).unwrap_or_else(zero);
        let source = self.open()?;
        let is_complex = |number: NumberType| number.is_complex() && !<T as Number>::TYPE.is_complex();
        let complex = || {
            let (name, reason) = (self.path.display().to_string(), "its elements are complex, and must be real here");
            Error::from(InputError::Unsuitable { name, reason: reason.to_owned() })
        };
        let (dimensions, entries) = match self.form {
            Form::MatrixMarket => {
                let text = fs::read(&self.path).map_err(|error| self.unreadable(error))?;
                let (header, entries) = matrix_market::read_entries::<T>(&text, &processors()).map_err(read)?;
                (extents(&[header.rows, header.columns]), entries)
            }
            Form::Coordinates => {
                let text = fs::read(&self.path).map_err(|error| self.unreadable(error))?;
                let (shape, entries) = tns::read_entries::<T>(&text, 1, None, &processors()).map_err(read)?;
                (extents(&shape), entries)
            }
            Form::Archive => {
                let sparse = self.archived(BufReader::new(source))?;
                if sparse.values().number().is_some_and(is_complex) {
                    return Err(complex());
                }
                let mut entries = EntryList::new(sparse.shape().len());
                let mut signed = vec![0; sparse.shape().len()];
                sparse.for_each(|at, place| {
                    signed.iter_mut().zip(at).for_each(|(signed, &at)| *signed = at as i64);
                    entries.push(&signed, of(scalar(sparse.values(), place)));
                });
                let fill = of(scalar(sparse.fill(), 0));
                return Ok(Contents { dimensions: extents(sparse.shape()), fill, entries });
            }
            Form::Numpy => {
                let array = TensorFile::input(&self.path.display().to_string()).map_err(Error::Usage)?.read()?;
                if matches!(array.element(), ElementType::C32 | ElementType::C64) && is_complex(NumberType::C64) {
                    return Err(complex());
                }
                let dimensions = array.dimensions().to_vec();
                let mut entries = EntryList::new(dimensions.len());
                let mut at = vec![0; dimensions.len()];
                let count: i64 = dimensions.iter().product();
                for number in 0..count {
                    let mut rest = number;
                    for (at, extent) in at.iter_mut().zip(&dimensions).rev() {
                        (*at, rest) = (rest % extent, rest / extent);
                    }
                    let value = array.get(number as usize).map_or_else(zero, of);
                    if value != zero() {
                        entries.push(&at, value);
                    }
                }
                return Ok(Contents { dimensions, fill: zero(), entries });
            }
        };
        let Entries { coordinates, values } = entries;
        Ok(Contents { dimensions, fill: zero(), entries: EntryList::of(coordinates, values) })
    }

    /// Writes a tensor, text sorted by coordinates, and a vector as a matrix of one column where there must be one. It is written whole or not at all: to a file beside this one, which then
    /// takes its place.
    ///
    /// # Errors
    /// [`Error::Write`]; [`Error::Usage`] if files of this kind hold no such tensors.
    pub fn write<T: Stored>(&self, tensor: &SparseTensor<T>) -> Result<()> {
        let order = tensor.dimensions().len();
        if self.form == Form::MatrixMarket && order > 2 || self.form == Form::Coordinates && order == 0 {
            let (file, holds) = (self.path.display(), if order > 2 { "at most 2" } else { "some" });
            return Err(Error::Usage(format!(
                "{file}: such files hold tensors of {holds} dimensions, and the tensor has {order}; take .tns or .npz"
            )));
        }
        if self.form != Form::Archive && self.form != Form::Numpy && tensor.fill() != zero() {
            let file = self.path.display();
            return Err(Error::Usage(format!(
                "{file}: what is not stored is zero in such files, and {:?} in the tensor; take .npz or .npy",
                tensor.fill()
            )));
        }
        let write = || {
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut builder = tempfile::Builder::new();
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
            let mut file = builder.tempfile_in(folder)?;
            let mut into = BufWriter::new(file.as_file_mut());
            self.write_into(tensor, &mut into)?;
            into.flush()?;
            drop(into);
            file.persist(&self.path).map_err(|error| error.error).map(drop)
        };
        write().map_err(|source| Error::Write { path: self.path.clone(), source })
    }

    fn write_into<T: Stored>(&self, tensor: &SparseTensor<T>, into: &mut (impl Write + Seek)) -> io::Result<()> {
        let shape: Vec<u64> = tensor.dimensions().iter().map(|&extent| extent as u64).collect();
        match self.form {
            Form::Archive => archive(tensor, shape).and_then(|sparse| sparse.write(into, Compression::None)),
            Form::Numpy => {
                let dense = tensor.convert(&Format::dense(shape.len())).map_err(io::Error::other)?;
                npy::write_array(into, &shape, dense.values())
            }
            Form::MatrixMarket | Form::Coordinates => {
                let sorted = tensor.convert(&Format::coordinates(shape.len())).map_err(io::Error::other)?;
                let (mut coordinates, values) = sorted.entries().into_parts();
                if self.form == Form::Coordinates {
                    return tns::write_lines(into, &Entries { coordinates, values }, &processors());
                }
                let extent = |mode: usize| shape.get(mode).copied().unwrap_or(1);
                coordinates.resize(2, vec![0; values.len()]);
                let entries = Entries { coordinates, values };
                matrix_market::write_entries(into, (extent(0), extent(1)), &entries, &processors())
            }
        }
    }
}

fn zero<T: Stored>() -> T {
    T::from_scalar(cast(Scalar::I32(0), <T as Element>::TYPE)).unwrap_or(T::ONE)
}

fn scalar(values: &Values, place: usize) -> Scalar {
    match values {
        Values::Bool(values) => Scalar::Bool(values[place]),
        Values::U8(values) => Scalar::U8(values[place]),
        Values::I8(values) => Scalar::I8(values[place]),
        Values::I16(values) => Scalar::I16(values[place]),
        Values::U32(values) => Scalar::U32(values[place]),
        Values::I32(values) => Scalar::I32(values[place]),
        Values::I64(values) => Scalar::I64(values[place]),
        Values::F32(values) => Scalar::F32(values[place]),
        Values::F64(values) => Scalar::F64(values[place]),
        Values::C32(values) => Scalar::C32(values[place]),
        Values::C64(values) => Scalar::C64(values[place]),
        Values::Text(_) => Scalar::I32(0),
    }
}

/// A tensor as SciPy stores it: as it is if it has compressed rows or columns, or blocks; otherwise by coordinates.
fn archive<T: Stored>(tensor: &SparseTensor<T>, shape: Vec<u64>) -> io::Result<Sparse> {
    let named = |name: &str| name.parse::<Format>().is_ok_and(|format| *tensor.format() == format);
    let numbers = |level: usize, name: &str| {
        let array = tensor.levels()[level].component(name);
        let mut numbers = vec![0; array.len()];
        array.read(0, &mut numbers);
        numbers
    };
    let fill = Some(T::values(vec![tensor.fill()]));
    let (starts, columns) = (|| numbers(1, "pos"), || numbers(1, "crd"));
    let structure = match blocks(tensor.format()) {
        _ if named("csr") => Structure::Compressed { rows: vec![0], starts: starts(), columns: columns() },
        _ if named("csc") => Structure::Compressed { rows: vec![1], starts: starts(), columns: columns() },
        // SciPy has no block that reaches beyond the matrix.
        Some(size) if shape.iter().zip(size).all(|(extent, size)| extent % size == 0) => {
            Structure::Blocks { size, starts: starts(), columns: columns() }
        }
        _ => {
            let (coordinates, elements) = tensor.entries().into_parts();
            let sparse = Sparse::new(shape, Structure::Coordinates(coordinates), T::values(elements), fill);
            return sparse.map_err(io::Error::other);
        }
    };
    Sparse::new(shape, structure, T::values(tensor.values().to_vec()), fill).map_err(io::Error::other)
}

/// The extents of the blocks of a format that has nothing but them.
fn blocks(format: &Format) -> Option<[u64; 2]> {
    use maniple_tensor::format::LevelExpression::Within;
    let [_, _, Within(0, rows), Within(1, columns)] = format.expressions() else { return None };
    let named: Format = format!("bcsr:{rows}x{columns}").parse().ok()?;
    (named == *format).then_some([*rows as u64, *columns as u64])
}
