//! Reading a profile.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::format::{self, Chunk, LARGEST_CHUNK, MAGIC, RecordNames, VERSION};
use super::header::{Header, Processor, Thread};
use super::label::{Label, LabelId};
use super::record::{Graph, GraphId, Record};

/// Why a file can't be read as a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The system does not give the file's bytes.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is something else.
    #[error("`{}` is no profile: it does not begin as profiles do; record one with `--profile FILE` or MANIPLE_PROFILE=FILE", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Another version of the format.
    #[error("`{}` is a profile of version {found}, and this program reads version {VERSION}: record it again, or use the program that did", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// One behind the other.
    #[error(
        "`{}` has several profiles, one behind the other: the second begins after {at} bytes; name the files that they were in, or cut it there \
         (`head -c {at}` and `tail -c +{}`)", path.display(), at + 1
    )]
    Several {
        /// The file.
        path: PathBuf,
        /// How many bytes the first one has.
        at: u64,
    },
    /// Not even the beginning is there.
    #[error("`{}` is a profile of which nothing can be read: it is damaged at its very beginning; record it again", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
    },
}

/// How much of a profile is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// All of it.
    Whole,
    /// The file stops before the profile's end: the program was ended from outside or still runs, or the file was cut.
    /// Up to a second's records of each thread are missing.
    Unended,
    /// The part after so many bytes is damaged and was not read.
    Damaged {
        /// How many.
        at: u64,
    },
}

/// A profile as it was recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The process.
    pub header: Header,
    /// The labels that each [`LabelId`] stands for, by number.
    pub labels: Vec<Label>,
    /// The graphs that each [`GraphId`] stands for, by number.
    pub graphs: Vec<Graph>,
    /// The threads.
    pub threads: Vec<ThreadRecording>,
    /// How much of it is there.
    pub completeness: Completeness,
}

/// The records of one thread.
#[derive(Clone, Debug)]
pub struct ThreadRecording {
    /// The thread.
    pub thread: Thread,
    /// The node that it is in.
    pub node: u16,
    /// Its records, in the order in which it made them.
    pub records: Vec<Record>,
}

impl Recording {
    /// Reads a file. What is damaged or missing at its end is left out, and [`completeness`](Self::completeness) tells.
    ///
    /// # Errors
    /// [`RecordingError`] if there is nothing to be read, or it is no profile of this version.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let failed = |source| RecordingError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        Self::read_from(BufReader::new(file), path)
    }

    /// Reads what [`Profiler::writing_to`](super::Profiler::writing_to) has written; messages call it `name`.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_from(bytes: impl Read, name: &Path) -> Result<Self, RecordingError> {
        let mut reader = Reader { bytes, position: 0 };
        reader.expect_magic(name)?;
        let failed = |source| RecordingError::Read { path: name.to_owned(), source };
        let mut recording = match reader.next_chunk().map_err(failed)? {
            Next::Chunk(Chunk::Header(header)) => Self::new(header),
            _ => return Err(RecordingError::Nothing { path: name.to_owned() }),
        };
        match recording.add_all(&mut reader).map_err(failed)? {
            Ok(completeness) => recording.completeness = completeness,
            Err(Another { at }) => return Err(RecordingError::Several { path: name.to_owned(), at }),
        }
        Ok(recording)
    }

    /// Adds chunks up to the last that makes sense.
    fn add_all(&mut self, reader: &mut Reader<impl Read>) -> io::Result<Result<Completeness, Another>> {
        loop {
            let at = reader.position;
            let completeness = match reader.next_chunk()? {
                Next::Chunk(Chunk::End) => {
                    let at = reader.position;
                    match reader.next_chunk()? {
                        Next::Another => return Ok(Err(Another { at })),
                        Next::Nothing if reader.position == at => Completeness::Whole,
                        _ => Completeness::Damaged { at },
                    }
                }
                Next::Chunk(chunk) => {
                    if self.add(chunk) {
                        continue;
                    }
                    Completeness::Damaged { at }
                }
                Next::Damage => Completeness::Damaged { at },
                Next::Nothing => Completeness::Unended,
                Next::Another => return Ok(Err(Another { at })),
            };
            return Ok(Ok(completeness));
        }
    }

    fn new(header: Header) -> Self {
        let (labels, graphs, threads) = (Vec::new(), Vec::new(), Vec::new());
        Self { header, labels, graphs, threads, completeness: Completeness::Unended }
    }

    /// Whether the chunk makes sense here.
    fn add(&mut self, chunk: Chunk<'_>) -> bool {
        match chunk {
            Chunk::Names(RecordNames { labels, threads, graphs }) => {
                self.labels.extend(labels);
                self.graphs.extend(graphs);
                let own = self.header.processors.first().map_or(0, |processor| processor.node);
                self.threads.extend(threads.into_iter().map(|thread| {
                    let of_thread = |processor: &&Processor| Some(processor.id) == thread.processor;
                    let processor = self.header.processors.iter().find(of_thread);
                    let node = processor.map_or(own, |processor| processor.node);
                    ThreadRecording { thread, node, records: Vec::new() }
                }));
                true
            }
            Chunk::Records { thread, records } => match self.threads.get_mut(thread as usize) {
                Some(thread) => {
                    thread.records.extend_from_slice(&records);
                    true
                }
                None => false,
            },
            Chunk::Header(_) | Chunk::End => false,
        }
    }

    /// The label that a number stands for, if there is one.
    #[must_use]
    pub fn label(&self, id: LabelId) -> Option<&Label> {
        self.labels.get(id.0 as usize)
    }

    /// The graph that a number stands for, if there is one.
    #[must_use]
    pub fn graph(&self, id: GraphId) -> Option<&Graph> {
        self.graphs.get(id.0 as usize)
    }
}

struct Reader<R> {
    bytes: R,
    position: u64,
}

enum Next {
    Chunk(Chunk<'static>),
    /// The bytes stop, at the end of a chunk or within one.
    Nothing,
    Damage,
    /// Here begins another profile.
    Another,
}

/// Another profile begins after so many bytes.
struct Another {
    at: u64,
}

impl<R: Read> Reader<R> {
    fn expect_magic(&mut self, name: &Path) -> Result<(), RecordingError> {
        let failed = |source| RecordingError::Read { path: name.to_owned(), source };
        let magic = self.take::<{ MAGIC.len() }>().map_err(failed)?;
        if magic.as_ref() != Some(MAGIC) {
            return Err(RecordingError::Foreign { path: name.to_owned() });
        }
        match self.take().map_err(failed)?.map(u32::from_le_bytes) {
            Some(VERSION) => Ok(()),
            Some(found) => Err(RecordingError::Version { path: name.to_owned(), found }),
            None => Err(RecordingError::Nothing { path: name.to_owned() }),
        }
    }

    fn next_chunk(&mut self) -> io::Result<Next> {
        let Some(frame) = self.take()? else { return Ok(Next::Nothing) };
        if frame == *MAGIC {
            return Ok(Next::Another);
        }
        let (length, checksum) = format::frame(frame);
        if length > LARGEST_CHUNK {
            return Ok(Next::Damage);
        }
        let mut chunk = Vec::new();
        // Not allocated at once: a damaged length may be long.
        let found = self.bytes.by_ref().take(length.into()).read_to_end(&mut chunk)?;
        self.position += found as u64;
        if found < length as usize {
            return Ok(Next::Nothing);
        }
        Ok(format::decode(&chunk, checksum).map_or(Next::Damage, Next::Chunk))
    }

    /// So many bytes; nothing if there are fewer.
    fn take<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let mut taken = [0; N];
        match self.bytes.read_exact(&mut taken) {
            Ok(()) => {
                self.position += N as u64;
                Ok(Some(taken))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}
