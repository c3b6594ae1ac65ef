//! Tensors that are written to files, and text that becomes a file of levels.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_files::matrix_market;
use maniple_files::npz::Compression;
use maniple_files::output::{self, Way};
use maniple_files::tcs::{MOST_LEVELS, Survey, TextFile, TextPlan};
use maniple_files::{Parallel, npy, write_parts};

use super::archive::archive;
use super::contents::zero;
use super::early::Early;
use super::error::{FileError, InputError};
use super::kind::FileKind;
use super::named::TensorFile;
use super::processors::processors;
use super::tcs;
use crate::element::{Element, Scalar};
use crate::format::Format;
use crate::storage::DynamicTensor;
use crate::with_element;

/// So many positions of the last level are a part of the text that a thread makes at a time.
const PART: usize = 1 << 13;

/// Text that was written as a file of levels.
#[derive(Clone, Debug)]
pub struct Converted {
    /// How the file stores the tensor.
    pub format: Format,
    /// The extents of the tensor.
    pub extents: Vec<u64>,
    /// How many entries there are.
    pub entries: u64,
    /// How many more entries were added to others at the same place.
    pub added: u64,
}

impl TensorFile {
    /// Refuses a file that can't be written, as far as that can be known before.
    ///
    /// # Errors
    ///
    /// [`FileError::Write`].
    pub fn check_writable(&self) -> Result<(), FileError> {
        output::check(self.path(), Way::Beside).map_err(|error| self.unwritten(error))
    }

    /// The files beside this one that were left there by a program that was killed while it wrote this one, or are
    /// being written.
    #[must_use]
    pub fn left(&self) -> Vec<std::path::PathBuf> {
        output::beside(self.path())
    }

    /// Writes the entries of a text file as a `.tcs` file in a format, or the usual one if none is given, with these
    /// extents if some are given, in little memory; none if the files are not of these kinds. Unsorted text is sorted
    /// if that is asked for.
    ///
    /// # Errors
    ///
    /// [`FileError::Unsorted`] for text that is not in the order of the format, unless it is sorted; [`FileError`] of
    /// other kinds as of [`open`](Self::open), [`checked_format`](Self::checked_format) and [`write`](Self::write).
    pub fn convert_text(
        &self,
        to: &Self,
        format: Option<&Format>,
        extents: Option<&[u64]>,
        sorts: bool,
    ) -> Result<Option<Converted>, FileError> {
        if !to.has_levels() || !self.is_text() {
            return Ok(None);
        }
        drop(self.source()?);
        let read = |error| FileError::from(InputError::read(self.path(), error));
        let text = TextFile { path: self.place(), is_matrix: self.is_matrix_market(), extents };
        let (order, element) = (text.order().map_err(read)?, text.element().map_err(read)?);
        let format = to.checked_format(self.path(), order, format)?;
        let Some((kinds, order)) = tcs::levels(&format) else { return Ok(None) };
        let folder = output::folder(to.path());
        let scratch = sorts.then_some(&*folder);
        let mut error = None;
        let written = to.replace(|file| {
            let plan = TextPlan { kinds, order, width: to.width(), element };
            text.convert(plan, scratch, file, &tcs::reserve).map_err(|found| {
                error = Some(tcs::text_error(&text, self.path(), found, to.path()));
                io::ErrorKind::Other.into()
            })
        });
        match (written, error) {
            (_, Some(error)) => Err(error),
            (written, None) => {
                let Survey { header, entries, added } = written?;
                let mut extents = vec![0; header.levels.len()];
                header.levels.iter().for_each(|level| extents[level.mode] = level.range.end);
                Ok(Some(Converted { format, extents, entries, added }))
            }
        }
    }

    /// The format of a tensor that becomes this file: the one that is given, if it fits a tensor of so many dimensions
    /// from another file, or the usual one.
    ///
    /// # Errors
    ///
    /// [`FileError::Unfit`].
    pub fn checked_format(&self, from: &Path, order: usize, format: Option<&Format>) -> Result<Format, FileError> {
        let unfit = |text: String| Err(FileError::Unfit(text));
        let no_format = |error: &dyn std::fmt::Display| FileError::Unfit(error.to_string());
        match format {
            Some(format) if format.rank() != order => unfit(format!(
                "format {format} is for {} dimensions, and {} has {order}{}",
                format.rank(),
                from.display(),
                of_order(format, order)
            )),
            Some(format) if self.has_levels() && tcs::levels(format).is_none() => unfit(format!(
                "format {format}: .tcs files have dense and compressed levels alone, each of a dimension; take csr, dcsr or csf:{order}"
            )),
            Some(format) => Ok(format.clone()),
            None if self.has_levels() && order > 0 => tcs::usual(order).map_err(|error| no_format(&error)),
            None if order == 2 && self.is_archive() => "csr".parse().map_err(|error| no_format(&error)),
            None => Ok(Format::coordinates(order)),
        }
    }

    fn unwritten(&self, source: io::Error) -> FileError {
        FileError::Write { path: self.path().to_owned(), source }
    }

    /// Writes a file beside this one, which then takes its place; if that fails, all stays as it was.
    fn replace<R>(&self, write: impl FnOnce(&mut File) -> io::Result<R>) -> Result<R, FileError> {
        output::write(self.path(), write).map_err(|error| self.unwritten(error))
    }

    /// Writes a tensor, text sorted by coordinates, and a vector as a matrix of one column where there must be one. It
    /// is written whole or not at all: to a file beside this one, which then takes its place.
    ///
    /// # Errors
    ///
    /// [`FileError::Write`]; [`FileError::Unfit`] if files of this kind hold no such tensors.
    pub fn write(&self, tensor: &DynamicTensor) -> Result<(), FileError> {
        let order = tensor.dimensions().len();
        let (fits, holds, others) = match self.kind {
            Some(FileKind::MatrixMarket) => (order <= 2, "at most 2", ".tns or .npz"),
            Some(FileKind::Coordinates) => (order > 0, "some", ".npz"),
            Some(FileKind::Levels) => {
                ((1..=MOST_LEVELS).contains(&order), "1 to 8", if order == 0 { ".npz" } else { ".tns or .npz" })
            }
            Some(FileKind::Archive | FileKind::Numpy) => (true, "any", ""),
            None => (false, "no", "a name that tells the kind"),
        };
        if !fits {
            let file = self.path().display();
            return Err(FileError::Unfit(format!(
                "{file}: such files hold tensors of {holds} dimensions, and the tensor has {order}; take {others}"
            )));
        }
        if !self.is_archive() && !self.is_numpy() && tensor.fill() != zero(tensor.element()) {
            let (file, fill) = (self.path().display(), in_full(tensor.fill()));
            return Err(FileError::Unfit(format!(
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
            Some(FileKind::Levels) => tcs::store(tensor, self.width(), into),
            Some(FileKind::Archive) => archive(tensor, shape).and_then(|sparse| sparse.write(into, Compression::None)),
            Some(FileKind::Numpy) => {
                let dense = converted(Format::dense(shape.len()))?;
                with_element!(dense.element(), T => {
                    npy::write_array(into, &shape, dense.values::<T>().unwrap_or_default())
                })
            }
            Some(FileKind::MatrixMarket) if tensor.format().is_plain() && tensor.format().is_dense() => {
                write_array(&converted(Format::dense(shape.len()))?, &shape, into)
            }
            Some(FileKind::MatrixMarket | FileKind::Coordinates) => {
                let sorted = match tensor.format().is_in_order() {
                    true => tensor.clone(),
                    false => converted(Format::coordinates(shape.len()))?,
                };
                self.write_lines(&sorted, &shape, into)
            }
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes the entries of a tensor as text, in the order in which they are stored.
    fn write_lines(&self, tensor: &DynamicTensor, shape: &[u64], into: &mut BufWriter<Early<'_>>) -> io::Result<()> {
        let (threads, total) = (processors(), tensor.count());
        let part = |number: usize| number * PART..total.min((number + 1) * PART);
        let parts = total.div_ceil(PART);
        let mut columns = shape.len();
        if self.is_matrix_market() {
            let extent = |mode: usize| shape.get(mode).copied().unwrap_or(1);
            let count = AtomicUsize::new(0);
            threads.run(parts, &|number| _ = count.fetch_add(tensor.count_within(part(number)), Ordering::Relaxed));
            let count = count.into_inner() as u64;
            with_element!(tensor.element(), T => matrix_market::write_head::<T>(into, extent(0), extent(1), count))?;
            columns = 2;
        }
        write_parts(into, parts, &threads, |number, lines| {
            // A vector is a matrix of one column.
            let mut at = vec![0; columns];
            tensor.for_each_within(part(number), &mut |coordinates, value| {
                at[..coordinates.len()].copy_from_slice(coordinates);
                lines.add_scalar(&at, value);
            });
        })
    }
}

/// Writes a dense matrix, column by column; a vector as one column, a scalar as one element.
fn write_array(dense: &DynamicTensor, shape: &[u64], into: &mut impl Write) -> io::Result<()> {
    let extent = |dimension: usize| shape.get(dimension).copied().unwrap_or(1);
    let (rows, columns) = (extent(0), extent(1));
    let numbers = (0..columns).flat_map(|column| (0..rows).map(move |row| (row * columns + column) as usize));
    with_element!(dense.element(), T => {
        let elements = dense.values::<T>().unwrap_or_default();
        matrix_market::write_array(into, rows, columns, numbers.map(|number| elements[number]))
    })
}

/// The advice after an error on a format that is for another number of dimensions than a tensor has.
#[must_use]
pub fn of_order(format: &Format, order: usize) -> String {
    match () {
        () if order > 0 && *format == Format::coordinates(format.rank()) => format!(": take coo:{order}"),
        () if order > 2 && !format.is_dense() => format!(": take csf:{order} or coo:{order}"),
        () => String::new(),
    }
}

/// An element as its own type is shown, such as `1.0` and not `1`.
#[must_use]
pub fn in_full(value: Scalar) -> String {
    with_element!(value.element_type(), T => T::from_scalar(value).map_or_else(String::new, |value| format!("{value:?}")))
}
