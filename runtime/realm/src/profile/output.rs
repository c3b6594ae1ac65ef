//! The output of a profile: chunks, in order, to a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::locks::Mutex;

use super::format::{self, Chunk, MAGIC, VERSION};
use super::header::Header;
use super::names::NameTable;
use super::record::Record;

/// Why there is no profile.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file can't be made.
    #[error("cannot write a profile to `{}`: {source}; give a file in a directory that exists and may be written to", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// There is such a file, and it is something else.
    #[error("`{}` exists and is no profile: it would be overwritten; give another name, or remove it", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Something could not be written; what came before is there.
    #[error("the profile ends early: {source}")]
    Write {
        /// The error of the system.
        source: Arc<io::Error>,
    },
}

/// Makes the file of a profile, or empties that of an earlier one.
///
/// # Errors
/// [`ProfileError::Create`], [`ProfileError::Foreign`].
pub(super) fn create(path: &Path) -> Result<File, ProfileError> {
    let failed = |source| ProfileError::Create { path: path.to_owned(), source: Arc::new(source) };
    match path.metadata() {
        Ok(found) if found.is_file() && found.len() > 0 => {
            let mut magic = [0; MAGIC.len()];
            let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
            let is_profile = match read {
                Ok(()) => magic == *MAGIC,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
                Err(error) => return Err(failed(error)),
            };
            if !is_profile {
                return Err(ProfileError::Foreign { path: path.to_owned() });
            }
        }
        _ => {}
    }
    File::create(path).map_err(failed)
}

/// The output that threads hand their records to.
pub(super) struct Output(Mutex<OutputState>);

enum OutputState {
    /// Nothing has been written.
    Fresh(Box<dyn Write + Send>),
    Open(Box<dyn Write + Send>),
    Closed(Result<(), Arc<io::Error>>),
}

impl Output {
    pub(super) fn new(sink: Box<dyn Write + Send>) -> Self {
        Self(Mutex::new(OutputState::Fresh(sink)))
    }

    /// Writes what comes first. False if that was done before.
    pub(super) fn begin(&self, header: Header) -> bool {
        let mut state = self.0.lock();
        match std::mem::replace(&mut *state, OutputState::Closed(Ok(()))) {
            OutputState::Fresh(mut sink) => {
                let start = [&MAGIC[..], &VERSION.to_le_bytes(), &format::framed(&Chunk::Header(header))].concat();
                let written = sink.write_all(&start);
                *state = OutputState::after(written, sink);
                true
            }
            other => {
                *state = other;
                false
            }
        }
    }

    /// Writes a thread's records, after the names that they use. `scratch` is memory of the thread's.
    pub(super) fn write(&self, names: &NameTable, thread: u32, records: &[Record], scratch: &mut Vec<u8>) {
        let chunk = format::frame_records(thread, records, scratch);
        self.with_sink(|sink| {
            write_names(sink, names)?;
            sink.write_all(chunk)
        });
    }

    /// Writes what comes last, and closes the file. Whatever comes later is dropped.
    pub(super) fn end(&self, names: &NameTable) {
        self.with_sink(|sink| {
            write_names(sink, names)?;
            sink.write_all(&format::framed(&Chunk::End))?;
            sink.flush()
        });
        let mut state = self.0.lock();
        if let OutputState::Fresh(_) | OutputState::Open(_) = *state {
            *state = OutputState::Closed(Ok(()));
        }
    }

    /// How writing has gone so far.
    pub(super) fn outcome(&self) -> Result<(), ProfileError> {
        match &*self.0.lock() {
            OutputState::Closed(Err(source)) => Err(ProfileError::Write { source: Arc::clone(source) }),
            _ => Ok(()),
        }
    }

    fn with_sink(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        let mut state = self.0.lock();
        if let OutputState::Open(sink) = &mut *state
            && let Err(error) = write(sink)
        {
            *state = OutputState::Closed(Err(Arc::new(error)));
        }
    }
}

impl OutputState {
    fn after(written: io::Result<()>, sink: Box<dyn Write + Send>) -> Self {
        match written {
            Ok(()) => Self::Open(sink),
            Err(error) => Self::Closed(Err(Arc::new(error))),
        }
    }
}

/// Writes the names that have come up since the last time.
fn write_names(sink: &mut dyn Write, names: &NameTable) -> io::Result<()> {
    match names.take_news() {
        Some(news) => sink.write_all(&format::framed(&Chunk::Names(news))),
        None => Ok(()),
    }
}
