//! Errors of readers.

use std::io;

/// The reason why a file cannot be read, and its place in the file. The file's name is known to the caller alone.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source of the bytes fails.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A line of text is wrong.
    #[error("line {line}: {problem}")]
    Line {
        /// The number of the line, from 1.
        line: u64,
        /// The problem of the line.
        problem: Problem,
    },
    /// A part of a binary file is wrong.
    #[error("byte {byte}: {problem}")]
    Byte {
        /// The offset of the part's first byte; of a file that ends too early, its length.
        byte: u64,
        /// The problem at this place.
        problem: Problem,
    },
}

/// A problem of a file. The text says what is expected, what is found and, where that is not obvious, what to do; it
/// does not say where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file has another format, encoding or compression.
    #[error("{0}")]
    Foreign(String),
    /// The file ends before all that its header announces.
    #[error("{0}")]
    Truncated(String),
    /// The file breaks a rule of its format.
    #[error("{0}")]
    Malformed(String),
    /// A number or an extent is out of range.
    #[error("{0}")]
    TooLarge(String),
    /// The file follows its format, but holds something that has no representation here.
    #[error("{0}")]
    Unsupported(String),
}

/// A count with its noun.
pub(crate) fn entries(count: u64) -> String {
    format!("{count} {}", if count == 1 { "entry" } else { "entries" })
}
