//! Errors of the program, and its exit codes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use maniple::profile::{ProfileError, RecordingError};
use maniple::record::Violation;
use maniple_tensor::distributed::DistributedError;
use maniple_tensor::files::{FileError, InputError};
use maniple_tensor::sparse::SparseError;

use crate::report::{bytes, bytes_apart};

/// The result of a simulation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a simulation gave no good answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Options that make no sense together.
    #[error("{0}")]
    Usage(String),
    /// More data than there is memory for.
    #[error("{what} takes {}", compared(*.wanted, *.available))]
    TooLarge {
        /// The data, in words.
        what: String,
        /// Bytes that it takes.
        wanted: u64,
        /// Bytes that data may take; `None` if the system gives no more.
        available: Option<u64>,
    },
    /// A file with a matrix or tensor that can't be read or used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The answer is not what it should be.
    #[error("verification failed: {0}")]
    Verification(String),
    /// A solver that did not reach its tolerance.
    #[error("no convergence: {0}")]
    NoConvergence(String),
    /// The runtime could not run the program.
    #[error("{}", without_lines(.0))]
    Runtime(Box<maniple::Error>),
    /// The record of the run does not prove that it was right.
    #[error("the run is not proven right: {0}")]
    Check(#[from] Box<Violation>),
    /// A graph that can't be written.
    #[error("cannot draw {}: {problem}", .file.display())]
    Graph {
        /// The file that the graph was to be written to.
        file: PathBuf,
        /// The reason why it can't be written.
        problem: String,
    },
    /// The program has run, but not all that was to be done afterwards could be.
    #[error("{error}")]
    AfterRun {
        /// The report of the program.
        report: String,
        /// The error of what was to be done afterwards.
        error: Box<Error>,
    },
    /// A profile that can't be read.
    #[error(transparent)]
    Profile(#[from] RecordingError),
    /// A profile that was recorded, but not to its end.
    #[error(transparent)]
    ProfileLost(#[from] ProfileError),
    /// A file that can't be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A page that can't be served.
    #[error("cannot serve at {}: {source}; give another port with --port, or none for any that is free", place(*.port))]
    Serve {
        /// The port asked for.
        port: Option<u16>,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Nodes that can't be started.
    #[error("{what}: {source}")]
    Launch {
        /// The step that failed, such as starting a thread.
        what: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The answer can't be printed.
    #[error("cannot write the report: {0}")]
    Output(#[from] std::io::Error),
}

impl From<SparseError> for Error {
    fn from(error: SparseError) -> Self {
        usage(error)
    }
}

/// The error of a user whose options or statements are refused.
pub(crate) fn usage(error: impl fmt::Display) -> Error {
    Error::Usage(error.to_string())
}

/// The message of an error of the runtime, without the line of this program that launched the failed operation: users
/// know their command line, and the statements that errors name, not the source of this program.
fn without_lines(error: &maniple::Error) -> String {
    let text = error.to_string();
    match error.provenance().filter(|place| place.said().is_none()) {
        Some(place) => text.replace(&format!(" (launched at {place})"), ""),
        None => text,
    }
}

/// Why there is no folder for a file.
fn obstacle(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    match folder.ancestors().find(|above| above.exists()) {
        Some(above) if !above.is_dir() => Some(format!("`{}` is a file, and no folder", above.display())),
        Some(above) if above == folder => None,
        _ => Some(format!("there is no folder `{}`", folder.display())),
    }
}

fn place(port: Option<u16>) -> String {
    port.map_or_else(|| "any port".to_owned(), |port| format!("port {port}"))
}

fn compared(wanted: u64, available: Option<u64>) -> String {
    match available {
        Some(available) => {
            let (wanted, available) = bytes_apart(wanted, available);
            format!("{wanted}, more than the {available} that data may take")
        }
        None => format!("{}, more than the system gives", bytes(wanted)),
    }
}

/// Separates files that a program on tensors can't use, which are errors of this program, from failures of the runtime.
pub(crate) fn refused_file<T>(found: Result<T, DistributedError>) -> maniple::Result<Result<T>> {
    match found {
        Ok(found) => Ok(Ok(found)),
        Err(DistributedError::File { name, reason, is_input: true }) => {
            Ok(Err(InputError::Unsuitable { name, reason }.into()))
        }
        Err(DistributedError::File { name, reason, is_input: false }) => {
            Ok(Err(Error::write(name.as_ref(), std::io::Error::other(reason))))
        }
        Err(other) => Err(other.into()),
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Input(error) => Self::Input(error),
            FileError::Write { path, source } => Self::write(&path, source),
            FileError::Unsorted { file, line, reason, .. } => InputError::Line { file, line, reason }.into(),
            other => Self::Usage(other.to_string()),
        }
    }
}

impl From<maniple::Error> for Error {
    fn from(error: maniple::Error) -> Self {
        Self::Runtime(Box::new(error))
    }
}

impl Error {
    /// A file that cannot be written: with what is in its way, where the system does not name it.
    pub(crate) fn write(path: &Path, source: std::io::Error) -> Self {
        // Without the name of a file beside it that was tried.
        let inner = source.get_ref().and_then(|error| error.source()?.downcast_ref::<std::io::Error>());
        let code = inner.and_then(std::io::Error::raw_os_error);
        let source = match (obstacle(path), code) {
            (Some(found), _) => std::io::Error::new(source.kind(), found),
            (None, Some(code)) => std::io::Error::from_raw_os_error(code),
            (None, None) => source,
        };
        Self::Write { path: path.to_owned(), source }
    }

    pub(crate) fn launch(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Launch { what, source }
    }

    /// The backtrace of a panic in a task, or in another function of the program, if `RUST_BACKTRACE` asked for it.
    #[must_use]
    pub fn backtrace(&self) -> Option<&str> {
        match self {
            Self::Runtime(error) => error.backtrace(),
            Self::AfterRun { error, .. } => error.backtrace(),
            _ => None,
        }
    }

    /// The report of the program, if it has run in spite of the error.
    #[must_use]
    pub fn report(&self) -> Option<&str> {
        if let Self::AfterRun { report, .. } = self { Some(report) } else { None }
    }

    /// Whether more memory would have helped.
    #[must_use]
    pub fn is_want_of_memory(&self) -> bool {
        match self {
            Self::TooLarge { .. } => true,
            Self::Runtime(error) => matches!(**error, maniple::Error::OutOfMemory { .. }),
            Self::AfterRun { error, .. } => error.is_want_of_memory(),
            _ => false,
        }
    }

    /// 2 for a command line that makes no sense, or a mapping file that does not, 1 for everything else.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Runtime(error) if matches!(**error, maniple::Error::MappingFile(_)) => ExitCode::from(2),
            Self::AfterRun { error, .. } => error.exit_code(),
            _ => ExitCode::FAILURE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_statements_and_no_lines_of_this_program() {
        #[maniple::task]
        fn fail() -> maniple::Result<()> {
            Err(maniple::Error::from_task(std::io::Error::other("no")))
        }
        let runtime = maniple::Runtime::builder().workers(1).alone().build().unwrap();
        let told = |error: maniple::Error| Error::from(error).to_string();
        let here = runtime.run(async |cx: &maniple::Context| cx.launch(fail()).await);
        assert_eq!(told(here.unwrap_err()), "task `fail` failed: no");
        let said = runtime.run(async |cx: &maniple::Context| cx.at("a(i) = b(i)").launch(fail()).await);
        assert_eq!(told(said.unwrap_err()), "task `fail` failed: no (launched at a(i) = b(i))");
    }

    #[test]
    fn what_is_in_the_way_of_a_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (file, missing) = (folder.path().join("file"), folder.path().join("missing"));
        std::fs::write(&file, "").unwrap();
        let said = |path: PathBuf| {
            let beside = tempfile::tempfile_in(path.parent().unwrap()).unwrap_err();
            Error::write(&path, beside).to_string()
        };
        assert!(said(file.join("a.tcs")).ends_with(&format!("`{}` is a file, and no folder", file.display())));
        assert!(
            said(file.join("b").join("a.tcs")).ends_with(&format!("`{}` is a file, and no folder", file.display()))
        );
        assert!(said(missing.join("a.tcs")).ends_with(&format!("there is no folder `{}`", missing.display())));
        let denied = std::io::Error::from_raw_os_error(13);
        let denied = Error::write(&folder.path().join("a.tcs"), denied).to_string();
        assert!(denied.contains("os error 13"), "{denied}");
    }
}
