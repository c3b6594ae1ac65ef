//! Files as users name them.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use maniple_files::tcs::Width;
use maniple_files::{ReadError, output, tns};

use super::error::{FileError, InputError};
use super::in_parts::FileInParts;
use super::kind::{FileKind, OF_NAMES};
use super::opened::Opened;
use super::processors::processors;
use super::spooled::Spooled;
use crate::distributed::{EntryFile, TcsFile};

/// A file whose name says what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorFile {
    path: PathBuf,
    /// The kind of the file; `None` if its first bytes tell it, as for a pipe, whose name tells nothing.
    pub(super) kind: Option<FileKind>,
    /// The temporary file with its bytes, if they came through a pipe.
    spooled: Option<Spooled>,
    /// The bytes of positions and coordinates in a `.tcs` file.
    width: Width,
}

impl FromStr for TensorFile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, path) = FileKind::said(text);
        Ok(Self::of_kind(path, Some(kind.ok_or(OF_NAMES)?)))
    }
}

impl TensorFile {
    fn of_kind(path: &Path, kind: Option<FileKind>) -> Self {
        Self { path: path.to_owned(), kind, spooled: None, width: Width::Eight }
    }

    /// The file at a path, whose name says what it is.
    ///
    /// # Errors
    ///
    /// [`FileError::Unfit`] if it does not.
    pub fn of(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let text = path.as_ref().display().to_string();
        text.parse().map_err(|error| FileError::Unfit(format!("{text}: {error}")))
    }

    /// A file that is read. Of a pipe or device, such as `/dev/stdin` or what a shell makes of `<(...)`, the content
    /// says what it is.
    ///
    /// # Errors
    ///
    /// If it is a plain file whose name does not tell what is in it.
    pub fn input(text: &str) -> Result<Self, String> {
        text.parse().or_else(|error| {
            let path = Path::new(text);
            if output::is_special(path) { Ok(Self::of_kind(path, None)) } else { Err(error) }
        })
    }

    /// The same file, whose bytes are in a temporary file if it is a pipe or device: it can then be read more than
    /// once.
    ///
    /// # Errors
    ///
    /// [`FileError::Input`] if it can't be read.
    pub fn spooled(self) -> Result<Self, FileError> {
        if !output::is_pipe(&self.path) || self.spooled.is_some() {
            return Ok(self);
        }
        let (spooled, start) = Spooled::of(&self.path).map_err(|error| self.unreadable(error))?;
        let kind = self.kind.unwrap_or_else(|| FileKind::of_content(&start));
        Ok(Self { kind: Some(kind), spooled: Some(spooled), ..self })
    }

    /// The same file, with positions and coordinates of so many bytes if it is a `.tcs` file that is written.
    #[must_use]
    pub fn with_width(self, width: Width) -> Self {
        Self { width, ..self }
    }

    /// The file, as it is called.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the file that has its bytes.
    pub(super) fn place(&self) -> &Path {
        self.spooled.as_ref().map_or(&*self.path, Spooled::path)
    }

    /// The bytes of positions and coordinates in a `.tcs` file.
    pub(super) fn width(&self) -> Width {
        self.width
    }

    /// Whether it is text, whose numbers may be read as any that hold them.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.kind, Some(FileKind::MatrixMarket | FileKind::Coordinates))
    }

    /// Whether it is a `.tns` file, which has entries alone, and does not tell the extents of its tensor.
    #[must_use]
    pub fn is_coordinates(&self) -> bool {
        self.kind == Some(FileKind::Coordinates)
    }

    /// Whether it is a `.mtx` file, which holds a matrix.
    #[must_use]
    pub fn is_matrix_market(&self) -> bool {
        self.kind == Some(FileKind::MatrixMarket)
    }

    /// Whether it is a `.npy` file.
    #[must_use]
    pub fn is_numpy(&self) -> bool {
        self.kind == Some(FileKind::Numpy)
    }

    /// Whether it is a `.tcs` file.
    #[must_use]
    pub fn has_levels(&self) -> bool {
        self.kind == Some(FileKind::Levels)
    }

    /// Whether it is a `.npz` file.
    #[must_use]
    pub fn is_archive(&self) -> bool {
        self.kind == Some(FileKind::Archive)
    }

    /// Opens the file, if it is one, and reads its header. Of what is to be read `in_parts`, by the tasks of several
    /// nodes, no more is read than tells what is in it: text that does not tell its extents, or has all elements, is
    /// gone through, and compressed arrays are unpacked. Otherwise `.tns` files and archives are read whole.
    ///
    /// # Errors
    ///
    /// [`FileError::Input`] if the file can't be read, or is no such file.
    pub fn open(&self, in_parts: bool) -> Result<Opened, FileError> {
        let path = &*self.path;
        let wrong = |error: ReadError| FileError::from(InputError::read(path, error));
        let source = self.source()?;
        let Some(kind) = self.kind else { return Err(self.is_no_file()) };
        let (name, processors) = (path.display().to_string(), processors());
        let file = match kind {
            FileKind::Levels => FileInParts::Levels(TcsFile::of(&name, source).map_err(wrong)?),
            FileKind::Coordinates if !tns::has_entries(BufReader::new(&source)).map_err(wrong)? => {
                return Ok(Opened::nothing(path));
            }
            FileKind::Coordinates if !in_parts => {
                return Opened::listed(path, source, self.place()).map_err(wrong);
            }
            FileKind::Coordinates => {
                FileInParts::Entries(EntryFile::tns_of(&name, source, &processors).map_err(wrong)?)
            }
            FileKind::MatrixMarket => {
                FileInParts::Entries(EntryFile::matrix_market_of(&name, source, &processors).map_err(wrong)?)
            }
            FileKind::Numpy => FileInParts::Entries(EntryFile::npy_of(&name, source).map_err(wrong)?),
            FileKind::Archive => {
                let parts = match in_parts {
                    true => {
                        let same = source.try_clone().map_err(|error| self.unreadable(error))?;
                        EntryFile::npz_of(&name, same).map_err(wrong)?
                    }
                    false => None,
                };
                match parts {
                    Some(file) => FileInParts::Entries(file),
                    None => return Opened::archive(path, source).map_err(wrong),
                }
            }
        };
        Ok(Opened::in_parts(path, file))
    }

    /// Whether it is a `.tns` file without entries, which alone would tell of its tensor.
    ///
    /// # Errors
    ///
    /// [`FileError::Input`].
    pub fn is_without_entries(&self) -> Result<bool, FileError> {
        if !self.is_coordinates() {
            return Ok(false);
        }
        let found = tns::has_entries(BufReader::new(self.source()?));
        Ok(!found.map_err(|error| InputError::read(&self.path, error))?)
    }

    pub(super) fn unreadable(&self, source: io::Error) -> FileError {
        InputError::Unreadable { file: self.path.clone(), source }.into()
    }

    fn is_no_file(&self) -> FileError {
        InputError::unsuitable(&self.path, "expected a plain file, found a pipe or device: write it to a file first")
            .into()
    }

    /// Opens the file, if it is one: a pipe cannot be read twice.
    pub(super) fn source(&self) -> Result<File, FileError> {
        let data = fs::metadata(self.place()).map_err(|error| self.unreadable(error))?;
        match data.is_file() {
            true => File::open(self.place()).map_err(|error| self.unreadable(error)),
            false if data.is_dir() => Err(self.unreadable(io::ErrorKind::IsADirectory.into())),
            false => Err(self.is_no_file()),
        }
    }
}
