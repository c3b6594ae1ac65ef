//! Files that can't be used.

use std::io;
use std::path::{Path, PathBuf};

use maniple_files::ReadError;

/// Why a file with a matrix or tensor can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file can't be read.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A line of the file is wrong, or is the reason why it can't be used.
    #[error("{}:{line}: {reason}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// The reason why the file can't be used.
        reason: String,
    },
    /// The whole can't be used.
    #[error("{name}: {reason}")]
    Unsuitable {
        /// The file, or another name of what is in it.
        name: String,
        /// The reason why the file can't be used.
        reason: String,
    },
}

impl InputError {
    /// The error of a file whose reader gives an error.
    #[must_use]
    pub fn read(file: &Path, error: ReadError) -> Self {
        match error {
            ReadError::Io(source) => Self::Unreadable { file: file.to_owned(), source },
            ReadError::Line { line, problem } => Self::line(file, line, problem.to_string()),
            ReadError::Byte { problem, .. } => Self::unsuitable(file, problem.to_string()),
        }
    }

    /// The error of a file with a line that is the reason.
    #[must_use]
    pub fn line(file: &Path, line: u64, reason: String) -> Self {
        Self::Line { file: file.to_owned(), line, reason }
    }

    /// The error of a file that can't be used as a whole.
    #[must_use]
    pub fn unsuitable(file: &Path, reason: impl Into<String>) -> Self {
        Self::Unsuitable { name: file.display().to_string(), reason: reason.into() }
    }
}

impl From<FileError> for maniple::Error {
    fn from(error: FileError) -> Self {
        Self::from_task(error)
    }
}

/// Why a tensor is not read from a file, or written to one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file can't be read, or not be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The tensor can't be in files of this kind, or what is asked for does not fit the file.
    #[error("{0}")]
    Unfit(String),
    /// Text that is to become a file of levels is not in their order.
    #[error("{}:{line}: {reason}", file.display())]
    Unsorted {
        /// The file.
        file: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// The entry that is not in order.
        reason: String,
        /// Whether it follows from another entry by symmetry.
        is_half: bool,
    },
    /// The file can't be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}
