//! Errors of programs that are laid side by side.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A compiler or a rival's program.
    #[error("{program}: {found}")]
    Program {
        /// The command.
        program: String,
        /// The failure, in words.
        found: String,
    },
    /// A program that could not be built.
    #[error("it could not be built: {0}")]
    NotBuilt(String),
    /// A file.
    #[error("{}: {error}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A program that computes something else than it should.
    #[error("the answer should be {expected}, but is {found}")]
    Answer {
        /// The right answer.
        expected: u64,
        /// The program's.
        found: u64,
    },
    /// One of this project's programs.
    #[error(transparent)]
    Ours(#[from] maniple_apps::error::Error),
    /// The runtime.
    #[error(transparent)]
    Runtime(#[from] maniple::Error),
    /// The machine layer.
    #[error(transparent)]
    Realm(#[from] maniple_realm::RealmError),
    /// Work of the machine layer that failed.
    #[error(transparent)]
    Fault(#[from] Arc<maniple_realm::Fault>),
    /// A statement, a schedule or a kernel.
    #[error(transparent)]
    Tensor(Box<dyn std::error::Error + Send + Sync>),
    /// Threads that could not be started.
    #[error(transparent)]
    Rayon(#[from] rayon::ThreadPoolBuildError),
}

impl Error {
    pub(crate) fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    pub(crate) fn tensor(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Tensor(Box::new(error))
    }
}

/// A result, or why there is none.
pub type Result<T, E = Error> = std::result::Result<T, E>;
