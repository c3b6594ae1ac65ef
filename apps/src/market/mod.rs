//! Matrix Market files (Boisvert, Pozo and Remington 1996, *The Matrix Market Exchange Formats*): what all readers of them need.
//!
//! `lines`: the text, of which nothing is taken for granted; `header`: the first line, the sizes and numbers. What is refused is refused with the name of the file, the line and the
//! reason.

mod header;
mod lines;

use std::io;
use std::path::PathBuf;

pub(crate) use self::header::{Header, Layout, Numbers, Symmetry, is_overflow, parse_number, sizes};
pub(crate) use self::lines::{Lines, shown};

/// Why a matrix can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// The file can't be read.
    #[error("{}: cannot be read: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line of the file is wrong, or is the reason why the matrix can't be used.
    #[error("{}:{line}: {reason}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The matrix as a whole can't be used.
    #[error("{name}: {reason}")]
    Unsuitable {
        /// The file, or another name of the matrix.
        name: String,
        /// What is wrong.
        reason: String,
    },
}
