//! A `.tcs` file that several nodes read.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_files::ReadError;
use maniple_files::tcs::{Source, TcsHeader, TcsLevelKind};

use crate::element::ElementType;
use crate::format::{Format, FormatError, Level};

/// A `.tcs` file, of which each node reads what its tasks need. All nodes of a job open the same one; its header alone
/// is read then.
///
/// Copies are the same file.
#[derive(Clone)]
pub struct TcsFile {
    name: Arc<str>,
    header: Arc<TcsHeader>,
    source: Arc<Counted>,
}

/// A source that counts the bytes that are read of it on this node.
pub(crate) struct Counted {
    source: Box<dyn Source + Send + Sync>,
    bytes: AtomicU64,
}

impl Counted {
    pub(in super::super) fn new(source: impl Source + Send + Sync + 'static) -> Self {
        Self { source: Box::new(source), bytes: AtomicU64::new(0) }
    }

    pub(in super::super) fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Source for Counted {
    fn length(&self) -> io::Result<u64> {
        self.source.length()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.bytes.fetch_add(into.len() as u64, Ordering::Relaxed);
        self.source.read_at(offset, into)
    }
}

impl TcsFile {
    /// Opens the file at a path, and reads its header.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::of(&path.display().to_string(), File::open(path)?)
    }

    /// The file with these bytes; its name is for messages.
    ///
    /// # Errors
    ///
    /// [`ReadError`] as of [`open`](Self::open).
    pub fn of(name: &str, source: impl Source + Send + Sync + 'static) -> Result<Self, ReadError> {
        let source = Counted::new(source);
        let header = Arc::new(TcsHeader::read(&source)?);
        Ok(Self { name: name.into(), header, source: Arc::new(source) })
    }

    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The header of the file.
    pub fn header(&self) -> &TcsHeader {
        &self.header
    }

    /// How the tensor is stored.
    ///
    /// # Errors
    ///
    /// [`FormatError`] if there is no such format.
    pub fn format(&self) -> Result<Format, FormatError> {
        let kind = |kind: TcsLevelKind| if kind == TcsLevelKind::Sparse { Level::Compressed } else { Level::Dense };
        let kinds: Vec<Level> = self.header.levels.iter().map(|level| kind(level.kind)).collect();
        Format::new(kinds, self.header.levels.iter().map(|level| level.mode).collect::<Vec<_>>())
    }

    /// The extents of the tensor.
    pub fn dimensions(&self) -> Vec<i64> {
        let mut extents = vec![0; self.header.levels.len()];
        self.header.levels.iter().for_each(|level| extents[level.mode] = level.range.end as i64);
        extents
    }

    /// The type of its elements.
    pub fn element(&self) -> ElementType {
        self.header.number
    }

    /// Whether tasks can load it as it is: a whole tensor, with coordinates from 0 on.
    pub fn is_whole(&self) -> bool {
        !self.header.is_piece && self.header.levels.iter().all(|level| level.range.start == 0)
    }

    /// The bytes of all arrays.
    pub fn bytes(&self) -> u64 {
        self.header.bytes() - self.header.start()
    }

    /// How many bytes of it this node has read.
    pub fn bytes_read(&self) -> u64 {
        self.source.bytes_read()
    }

    pub(crate) fn source(&self) -> &Counted {
        &self.source
    }
}

impl fmt::Debug for TcsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcsFile").field("name", &self.name).field("header", &self.header).finish_non_exhaustive()
    }
}
