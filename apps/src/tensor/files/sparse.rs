//! Sparse tensors in files: Matrix Market, `.tns`, `.tcs`, `.npz`, and the elements of `.npy` files that are not zero.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_files::matrix_market::{self, Field, Layout, Reader};
use maniple_files::npz::{Archive, Compression, Sparse};
use maniple_files::tcs::{Header, MOST_LEVELS, Width};
use maniple_files::{Complex, Entries, Number, NumberType, Parallel, ReadError, npy, tns, write_parts};
use maniple_tensor::distributed::{EntryFile, TcsFile, TextForm, element_of};
use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::format::Format;
use maniple_tensor::kernel::{Scoped, Team};
use maniple_tensor::storage::{DynamicTensor, EntryList, SparseTensor, StorageError};
use maniple_tensor::with_element;

use super::archive::{archive, contents};
use super::contents::Contents;
use super::early::Early;
use super::kind::{Kind, OF_NAMES};
use super::spooled::Spooled;
use super::tcs::{self, Written};
use super::{Stored, TensorFile, zero};
use crate::error::{Error, Result};
use crate::input::InputError;
use crate::output::{self, Way};

/// A file whose name says how a sparse tensor is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparseFile {
    path: PathBuf,
    kind: Kind,
    /// The temporary file with its bytes, if they came through a pipe.
    spooled: Option<Spooled>,
    /// The bytes of positions and coordinates in a `.tcs` file.
    width: Width,
}

impl std::str::FromStr for SparseFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, path) = Kind::said(text);
        let kind = kind.ok_or(OF_NAMES)?;
        Ok(Self { path: path.to_owned(), kind, spooled: None, width: Width::Eight })
    }
}

/// So many positions of the last level are a part of the text that a thread makes at a time.
const PART: usize = 1 << 13;

/// All processors, for what reads and writes text.
pub struct Processors(Scoped);

impl Parallel for Processors {
    fn parts(&self) -> usize {
        self.0.size()
    }

    fn run(&self, parts: usize, body: &(dyn Fn(usize) + Sync)) {
        self.0.run(parts, body);
    }
}

/// The processors of this machine.
pub fn processors() -> Processors {
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

    /// The file at a path that is read: of a pipe, the content says what it is, and all of it is read.
    ///
    /// # Errors
    /// [`Error::Usage`] if nothing does, [`Error::Input`] if the pipe can't be read.
    pub fn of_input(path: &Path) -> Result<Self> {
        let text = path.display().to_string();
        let file = TensorFile::input(&text).map_err(|error| Error::Usage(format!("{text}: {error}")))?;
        file.spooled()?.sparse()
    }

    /// A file of a kind, whose bytes came through a pipe if they are spooled.
    pub(super) fn of_kind(path: &Path, kind: Kind, spooled: Option<Spooled>) -> Self {
        Self { path: path.to_owned(), kind, spooled, width: Width::Eight }
    }

    /// The path, what is in the file, and where its bytes are.
    pub(super) fn into_parts(self) -> (PathBuf, Kind, Option<Spooled>) {
        (self.path, self.kind, self.spooled)
    }

    /// The file, as it is called.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the file that has its bytes.
    fn place(&self) -> &Path {
        self.spooled.as_ref().map_or(&*self.path, Spooled::path)
    }

    /// The same file, with positions and coordinates of so many bytes when it is written.
    ///
    /// # Errors
    /// [`Error::Usage`] unless it is a `.tcs` file.
    pub fn with_width(self, width: Width) -> Result<Self> {
        match self.kind {
            Kind::Levels => Ok(Self { width, ..self }),
            _ => Err(Error::Usage(format!("--width is for .tcs files, and {} is none", self.path.display()))),
        }
    }

    /// Checks that the file tells how it stores the operand of this name, or has all of its elements, where no format
    /// is given.
    ///
    /// # Errors
    /// [`Error::Input`] if it has the entries of a sparse tensor.
    pub fn check_named(&self, name: &str) -> Result<()> {
        let refused = |format: &str| -> Result<()> {
            let quoted = if format.contains('{') { "'" } else { "" };
            let option = format!("--format {quoted}{name}={format}{quoted}");
            let reason = format!("the tensor is sparse: say how to store it, such as {option}");
            Err(InputError::Unsuitable { name: self.path.display().to_string(), reason }.into())
        };
        let format = match self.kind {
            Kind::Levels | Kind::Numpy => return Ok(()),
            Kind::MatrixMarket => {
                let reader = Reader::new(BufReader::new(self.open()?));
                match reader.map_err(|error| InputError::read(&self.path, error))?.header().layout {
                    Layout::Array => return Ok(()),
                    Layout::Coordinate => "csr",
                }
            }
            Kind::Coordinates | Kind::Archive => match self.order()? {
                Some(1) => "{C}",
                Some(2) => "csr",
                Some(order) => return refused(&format!("csf:{order}")),
                None => "coo",
            },
        };
        refused(format)
    }

    /// The number of dimensions; none of a file without entries that tells nothing of them.
    fn order(&self) -> Result<Option<usize>> {
        let read = |error| Error::from(InputError::read(&self.path, error));
        let order = match self.kind {
            Kind::MatrixMarket => 2,
            Kind::Coordinates if self.is_without_entries()? => return Ok(None),
            Kind::Coordinates => tns::Reader::<_, f64>::new(BufReader::new(self.open()?)).map_err(read)?.order(),
            Kind::Levels => Header::read(&self.open()?).map_err(read)?.levels.len(),
            Kind::Archive => self.archived(BufReader::new(self.open()?))?.shape().len(),
            Kind::Numpy => npy::Header::read(&mut BufReader::new(self.open()?)).map_err(read)?.shape.len(),
        };
        Ok(Some(order))
    }

    /// Whether it tells the extents of its tensor: not if it has entries alone.
    #[must_use]
    pub fn tells_extents(&self) -> bool {
        self.kind != Kind::Coordinates
    }

    /// Whether it is a `.tns` file without entries, which tells nothing of its tensor.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn is_without_entries(&self) -> Result<bool> {
        match self.kind {
            Kind::Coordinates => {
                let found = tns::has_entries(BufReader::new(self.open()?));
                found.map(|found| !found).map_err(|error| InputError::read(&self.path, error).into())
            }
            _ => Ok(false),
        }
    }

    /// Refuses a file that can't be written.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn check_writable(&self) -> Result<()> {
        output::check(&self.path, Way::Beside)
    }

    /// Whether it is text, whose numbers may be read as any that hold them.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.kind, Kind::MatrixMarket | Kind::Coordinates)
    }

    /// Whether elements of a type are [read](Self::read) without others between: of text, those that the text has.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn is_kept_by(&self, element: ElementType) -> Result<bool> {
        let field = match self.kind {
            Kind::Coordinates => Field::Real,
            Kind::MatrixMarket => {
                let reader = Reader::new(BufReader::new(self.open()?));
                reader.map_err(|error| InputError::read(&self.path, error))?.header().field
            }
            Kind::Levels | Kind::Archive | Kind::Numpy => return Ok(self.element()? == element),
        };
        Ok(with_element!(element, T => field.is_kept_by(<T as Number>::TYPE)))
    }

    /// As which kind of text tasks write tensors to it, if it is text.
    #[must_use]
    pub fn text(&self) -> Option<TextForm> {
        match self.kind {
            Kind::MatrixMarket => Some(TextForm::MatrixMarket),
            Kind::Coordinates => Some(TextForm::Coordinates),
            Kind::Levels | Kind::Archive | Kind::Numpy => None,
        }
    }

    /// Whether it is a `.npy` file.
    #[must_use]
    pub fn is_numpy(&self) -> bool {
        self.kind == Kind::Numpy
    }

    /// Whether it is a `.tcs` file.
    #[must_use]
    pub fn has_levels(&self) -> bool {
        self.kind == Kind::Levels
    }

    /// The header of a `.tcs` file; none of others.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn header(&self) -> Result<Option<Header>> {
        match self.kind {
            Kind::Levels => {
                Header::read(&self.open()?).map(Some).map_err(|error| InputError::read(&self.path, error).into())
            }
            _ => Ok(None),
        }
    }

    /// A `.tcs` file, of which the header alone is read; none of others.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn levels(&self) -> Result<Option<TcsFile>> {
        if self.kind != Kind::Levels {
            return Ok(None);
        }
        let file = TcsFile::of(&self.path.display().to_string(), self.open()?);
        file.map(Some).map_err(|error| InputError::read(&self.path, error).into())
    }

    /// A file whose entries tasks read, each a range; none of others: of `.tcs` files, and of arrays that [have to be
    /// read whole](EntryFile::npz). Of all but text that does not tell its extents, or has all elements, and of arrays
    /// that are compressed, no more is read than tells what is in them.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn entries(&self) -> Result<Option<EntryFile>> {
        let opened = match self.kind {
            Kind::MatrixMarket => {
                self.open().map(|_| EntryFile::matrix_market(self.place(), &processors()).map(Some))?
            }
            Kind::Coordinates => self.open().map(|_| EntryFile::tns(self.place(), &processors()).map(Some))?,
            Kind::Archive => self.open().map(|_| EntryFile::npz(self.place()))?,
            Kind::Numpy => self.open().map(|_| EntryFile::npy(self.place()).map(Some))?,
            Kind::Levels => return Ok(None),
        };
        opened.map_err(|error| InputError::read(&self.path, error).into())
    }

    /// The bytes of positions and coordinates, if it is a `.tcs` file.
    #[must_use]
    pub fn width(&self) -> Option<Width> {
        self.has_levels().then_some(self.width)
    }

    /// Writes the entries of a text file as a `.tcs` file in a format, or the usual one if none is given, with these
    /// extents if some are given, in little memory; none if the files are not of these kinds. Unsorted text is sorted
    /// if that is asked for.
    ///
    /// # Errors
    /// [`Error::Input`], [`Error::Usage`], [`Error::Write`].
    pub fn convert_text(
        &self,
        to: &Self,
        (format, extents): (Option<&Format>, Option<&[u64]>),
        sorts: bool,
    ) -> Result<Option<(Format, Written)>> {
        if to.kind != Kind::Levels || !matches!(self.kind, Kind::MatrixMarket | Kind::Coordinates) {
            return Ok(None);
        }
        drop(self.open()?);
        let text =
            tcs::Text { path: self.place(), name: &self.path, is_matrix: self.kind == Kind::MatrixMarket, extents };
        let order = text.order().map_err(|error| Error::from(InputError::read(&self.path, error)))?;
        let format = to.checked_format(&self.path, order, format)?;
        let Some(levels) = tcs::levels(&format) else { return Ok(None) };
        let element = self.element()?;
        let folder = output::folder(&to.path);
        let scratch = sorts.then_some(&*folder);
        let mut error = None;
        let written = to.replace(|file| {
            let written = match element {
                ElementType::I64 => text.convert::<i64>(levels, to.width, scratch, file),
                ElementType::C64 => text.convert::<Complex<f64>>(levels, to.width, scratch, file),
                _ => text.convert::<f64>(levels, to.width, scratch, file),
            };
            written.map_err(|found| {
                error = Some(text.error(found, &to.path));
                io::ErrorKind::Other.into()
            })
        });
        match (written, error) {
            (_, Some(error)) => Err(error),
            (written, None) => Ok(Some((format, written?))),
        }
    }

    /// The format of a tensor that becomes this file: the one that is given, if it fits, or the usual one.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn checked_format(&self, from: &Path, order: usize, format: Option<&Format>) -> Result<Format> {
        let usage = |text: String| Err(Error::Usage(text));
        match format {
            Some(format) if format.rank() != order => usage(format!(
                "--format {format} is for {} dimensions, and {} has {order}{}",
                format.rank(),
                from.display(),
                of_order(format, order)
            )),
            Some(format) if self.has_levels() && tcs::levels(format).is_none() => usage(format!(
                "--format {format}: .tcs files have dense and compressed levels alone, each of a dimension; take csr, dcsr or csf:{order}"
            )),
            Some(format) => Ok(format.clone()),
            None if self.has_levels() && order > 0 => {
                tcs::usual(order).map_err(|error| Error::Usage(error.to_string()))
            }
            None if order == 2 && self.kind == Kind::Archive => {
                "csr".parse().map_err(|error| Error::Usage(format!("{error}")))
            }
            None => Ok(Format::coordinates(order)),
        }
    }

    /// Writes a file beside this one, which then takes its place; if that fails, all stays as it was.
    fn replace<R>(&self, write: impl FnOnce(&mut File) -> io::Result<R>) -> Result<R> {
        output::write(&self.path, write)
    }

    fn unreadable(&self, source: io::Error) -> Error {
        InputError::Unreadable { file: self.path.clone(), source }.into()
    }

    /// Opens the file, if it is one: a pipe cannot be read twice.
    fn open(&self) -> Result<File> {
        let data = fs::metadata(self.place()).map_err(|error| self.unreadable(error))?;
        match data.is_file() {
            true => File::open(self.place()).map_err(|error| self.unreadable(error)),
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
        let number = match self.kind {
            Kind::Coordinates => NumberType::F64,
            Kind::MatrixMarket => Reader::new(source).map_err(read)?.header().field.number(),
            Kind::Levels => Header::read(source.get_ref()).map_err(read)?.number,
            Kind::Archive => Archive::new(source).and_then(|mut archive| Sparse::number(&mut archive)).map_err(read)?,
            Kind::Numpy => npy::Header::read(&mut { source }).map_err(read)?.number,
        };
        Ok(element_of(number))
    }

    fn archived(&self, source: BufReader<File>) -> Result<Sparse> {
        let read = Archive::new(source).and_then(|mut archive| Sparse::read(&mut archive));
        read.map_err(|error| InputError::read(&self.path, error).into())
    }

    /// Reads the tensor, with elements of a type that [holds](Self::element) them.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn read(&self, element: ElementType) -> Result<Contents> {
        let read = |error| Error::from(InputError::read(&self.path, error));
        let source = self.open()?;
        let is_complex = |number: NumberType| number.is_complex() && !element.is_complex();
        let complex = || {
            let (name, reason) = (self.path.display().to_string(), "its elements are complex, and must be real here");
            Error::from(InputError::Unsuitable { name, reason: reason.to_owned() })
        };
        let contents = match self.kind {
            Kind::MatrixMarket | Kind::Coordinates => {
                let text = fs::read(self.place()).map_err(|error| self.unreadable(error))?;
                with_element!(element, T => self.read_text::<T>(&text)).map_err(read)?
            }
            Kind::Levels => {
                if is_complex(Header::read(&source).map_err(read)?.number) {
                    return Err(complex());
                }
                tcs::read(&source).map_err(read)?
            }
            Kind::Archive => {
                let sparse = self.archived(BufReader::new(source))?;
                if sparse.values().number().is_some_and(is_complex) {
                    return Err(complex());
                }
                contents(&sparse)
            }
            Kind::Numpy => {
                let array = TensorFile::from(self.clone()).read("NAME")?;
                if array.element().is_complex() && is_complex(NumberType::C64) {
                    return Err(complex());
                }
                let (dimensions, fill) = (array.dimensions().to_vec(), zero(array.element()));
                Contents { dimensions, fill, entries: array.entries() }
            }
        };
        Ok(contents.cast(element))
    }

    fn read_text<T: Stored>(&self, text: &[u8]) -> Result<Contents, ReadError> {
        let (extents, Entries { coordinates, values }) = match self.kind {
            Kind::MatrixMarket => {
                let (header, entries) = matrix_market::read_entries::<T>(text, &processors())?;
                (vec![header.rows, header.columns], entries)
            }
            _ => tns::read_entries::<T>(text, 1, None, &processors())?,
        };
        let dimensions = extents.into_iter().map(|extent| extent as i64).collect();
        let entries = EntryList::of(coordinates, values).into();
        Ok(Contents { dimensions, fill: zero(<T as Element>::TYPE), entries })
    }

    /// The tensor of a `.tcs` file, as it is stored there; none of other files, of elements of another type, and of
    /// blocks.
    ///
    /// # Errors
    /// [`Error::Input`].
    pub fn stored(&self, element: ElementType) -> Result<Option<DynamicTensor>> {
        if self.kind != Kind::Levels {
            return Ok(None);
        }
        let found =
            tcs::whole(&self.open()?, element).map_err(|error| Error::from(InputError::read(&self.path, error)))?;
        let unsuitable = |error: StorageError| {
            let (name, reason) = (self.path.display().to_string(), error.to_string());
            Error::from(InputError::Unsuitable { name, reason })
        };
        found.transpose().map_err(unsuitable)
    }

    /// Writes a tensor, text sorted by coordinates, and a vector as a matrix of one column where there must be one. It
    /// is written whole or not at all: to a file beside this one, which then takes its place.
    ///
    /// # Errors
    /// [`Error::Write`]; [`Error::Usage`] if files of this kind hold no such tensors.
    pub fn write(&self, tensor: &DynamicTensor) -> Result<()> {
        let order = tensor.dimensions().len();
        let (fits, holds, others) = match self.kind {
            Kind::MatrixMarket => (order <= 2, "at most 2", ".tns or .npz"),
            Kind::Coordinates => (order > 0, "some", ".npz"),
            Kind::Levels => {
                ((1..=MOST_LEVELS).contains(&order), "1 to 8", if order == 0 { ".npz" } else { ".tns or .npz" })
            }
            Kind::Archive | Kind::Numpy => (true, "any", ""),
        };
        if !fits {
            let file = self.path.display();
            return Err(Error::Usage(format!(
                "{file}: such files hold tensors of {holds} dimensions, and the tensor has {order}; take {others}"
            )));
        }
        if self.kind != Kind::Archive && self.kind != Kind::Numpy && tensor.fill() != zero(tensor.element()) {
            let (file, fill) = (self.path.display(), in_full(tensor.fill()));
            return Err(Error::Usage(format!(
                "{file}: what is not stored is zero in such files, and {fill} in the tensor; take .npz or .npy"
            )));
        }
        self.replace(|file| {
            let mut into = BufWriter::new(Early::new(file));
            self.write_into(tensor, &mut into)?;
            into.flush()
        })
    }

    fn write_into(&self, tensor: &DynamicTensor, into: &mut BufWriter<Early<'_>>) -> io::Result<()> {
        let shape: Vec<u64> = tensor.dimensions().iter().map(|&extent| extent as u64).collect();
        let converted = |format| tensor.convert(&format).map_err(io::Error::other);
        match self.kind {
            Kind::Levels => tcs::store(tensor, self.width, into),
            Kind::Archive => archive(tensor, shape).and_then(|sparse| sparse.write(into, Compression::None)),
            Kind::Numpy => {
                let dense = converted(Format::dense(shape.len()))?;
                with_element!(dense.element(), T => {
                    npy::write_array(into, &shape, dense.values::<T>().unwrap_or_default())
                })
            }
            Kind::MatrixMarket | Kind::Coordinates => {
                let sorted = match tensor.format().is_in_order() {
                    true => tensor.clone(),
                    false => converted(Format::coordinates(shape.len()))?,
                };
                with_element!(sorted.element(), T => {
                    sorted.downcast_ref::<T>().map_or(Ok(()), |sorted| self.write_lines(sorted, &shape, into))
                })
            }
        }
    }

    /// Writes the entries of a tensor as text, in the order in which they are stored.
    fn write_lines<T: Stored>(
        &self,
        tensor: &SparseTensor<T>,
        shape: &[u64],
        into: &mut BufWriter<Early<'_>>,
    ) -> io::Result<()> {
        let (threads, total) = (processors(), tensor.values().len());
        let part = |number: usize| number * PART..total.min((number + 1) * PART);
        let parts = total.div_ceil(PART);
        let mut columns = shape.len();
        if self.kind == Kind::MatrixMarket {
            let extent = |mode: usize| shape.get(mode).copied().unwrap_or(1);
            let count = AtomicUsize::new(0);
            threads.run(parts, &|number| _ = count.fetch_add(tensor.count_within(part(number)), Ordering::Relaxed));
            matrix_market::write_head::<T>(into, (extent(0), extent(1)), count.into_inner() as u64)?;
            columns = 2;
        }
        write_parts(into, parts, &threads, |number, lines| {
            // A vector is a matrix of one column.
            let mut at = vec![0; columns];
            tensor.for_each_within(part(number), |coordinates, value| {
                at[..coordinates.len()].copy_from_slice(coordinates);
                lines.add(&at, value);
            });
        })
    }
}

/// The advice after an error on a format that is for another number of dimensions than a tensor has.
pub fn of_order(format: &Format, order: usize) -> String {
    match () {
        () if order > 0 && *format == Format::coordinates(format.rank()) => format!(": take coo:{order}"),
        () if order > 2 && !format.is_dense() => format!(": take csf:{order} or coo:{order}"),
        () => String::new(),
    }
}

/// An element as its own type is shown, such as `1.0` and not `1`.
pub fn in_full(value: Scalar) -> String {
    with_element!(value.element_type(), T => T::from_scalar(value).map_or_else(String::new, |value| format!("{value:?}")))
}
