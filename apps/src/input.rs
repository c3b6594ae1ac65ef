//! Input files that can't be used.

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
    /// Makes the error of a file from the error of its reader.
    pub(crate) fn read(file: &Path, error: ReadError) -> Self {
        let unsuitable = |reason: String| Self::Unsuitable { name: file.display().to_string(), reason };
        match error {
            ReadError::Io(source) => Self::Unreadable { file: file.to_owned(), source },
            ReadError::Line { line, problem } => Self::line(file, line, problem.to_string()),
            ReadError::Byte { problem, .. } => unsuitable(problem.to_string()),
        }
    }

    pub(crate) fn line(file: &Path, line: u64, reason: String) -> Self {
        Self::Line { file: file.to_owned(), line, reason }
    }
}
