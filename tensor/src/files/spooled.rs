//! Bytes that come through a pipe, kept in a temporary file, so that they can be read more than once.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use tempfile::TempPath;

/// A temporary file, which goes with the last copy of this.
#[derive(Clone, Debug)]
pub(super) struct Spooled(Arc<TempPath>);

impl PartialEq for Spooled {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Spooled {}

impl Spooled {
    /// Reads a pipe or device to its end, and gives its first bytes too.
    pub(super) fn of(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let mut file = tempfile::NamedTempFile::new()?;
        io::copy(&mut File::open(path)?, file.as_file_mut())?;
        let mut start = Vec::new();
        file.rewind()?;
        file.as_file_mut().take(16).read_to_end(&mut start)?;
        Ok((Self(Arc::new(file.into_temp_path())), start))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}
