//! Moving values between a file and memory.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, FileError, Result};
use crate::instances::instance::PhysicalInstance;

/// Bytes that are read or written at once.
const CHUNK: usize = 8 << 20;

/// Where in which file values are.
pub(super) struct Place {
    /// Nothing where another node has it.
    pub(super) file: Option<fs::File>,
    pub(super) path: PathBuf,
    pub(super) offset: u64,
    pub(super) region: String,
}

impl Place {
    fn failed(&self, action: &'static str, offset: u64, source: io::Error) -> Error {
        system(action, &self.path, offset, source)
    }

    /// Reads all bytes.
    fn read(&self, bytes: &mut [u8]) -> Result<()> {
        let (Some(mut file), mut offset) = (self.file.as_ref(), self.offset) else { return Ok(()) };
        let end = offset + bytes.len() as u64;
        file.seek(SeekFrom::Start(offset)).map_err(|error| self.failed("read", offset, error))?;
        for chunk in bytes.chunks_mut(CHUNK) {
            match file.read_exact(chunk) {
                Ok(()) => offset += chunk.len() as u64,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    let found = file.metadata().map_or(offset, |data| data.len());
                    return Err(self.too_short(end, found));
                }
                Err(error) => return Err(self.failed("read", offset, error)),
            }
        }
        Ok(())
    }

    /// Writes all bytes.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<()> {
        let (Some(mut file), mut offset) = (self.file.as_ref(), self.offset) else { return Ok(()) };
        file.seek(SeekFrom::Start(offset)).map_err(|error| self.failed("write", offset, error))?;
        for chunk in bytes.chunks(CHUNK) {
            file.write_all(chunk).map_err(|error| self.failed("write", offset, error))?;
            offset += chunk.len() as u64;
        }
        file.flush().map_err(|error| self.failed("write", offset, error))
    }

    pub(super) fn too_short(&self, end: u64, found: u64) -> Error {
        let (path, region, offset) = (self.path.clone(), self.region.clone(), self.offset);
        FileError::TooShort { path, region, offset, end, found }.into()
    }
}

pub(super) fn system(action: &'static str, path: &Path, offset: u64, source: io::Error) -> Error {
    let advice = match source.kind() {
        io::ErrorKind::NotFound => "check the path, or create the file",
        io::ErrorKind::PermissionDenied => "check who may use it",
        _ => "check that the disk has room and is sound",
    };
    FileError::System { action, path: path.to_owned(), offset, source: Arc::new(source), advice }.into()
}

/// Reads a file into the memory of an instance, which is used by nothing else meanwhile.
pub(super) struct Load {
    pub(super) at: Arc<Place>,
    pub(super) bytes: usize,
}

impl Load {
    /// Reads.
    ///
    /// # Safety
    /// The instance is one of the memory of this file's contents, and nothing uses it before this has returned.
    pub(super) unsafe fn run(self, instance: &PhysicalInstance) -> Result<()> {
        let Some(base) = instance.storage().base() else { return Ok(()) };
        // SAFETY: the memory has so many bytes, all initialised; the rest is promised by the caller.
        self.at.read(unsafe { std::slice::from_raw_parts_mut(base.as_ptr(), self.bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, bytes: &[u8], options: &mut fs::OpenOptions) -> Place {
        let path = std::env::temp_dir().join(format!("maniple-load-{}-{name}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        let file = Some(options.open(&path).unwrap());
        fs::remove_file(&path).unwrap();
        Place { file, path, offset: 2, region: "region `r`".to_owned() }
    }

    #[test]
    fn what_ends_too_early_says_how_long_it_is_and_how_long_it_should_be() {
        let place = place("short", b"0123456", fs::OpenOptions::new().read(true));
        let mut bytes = [0; 5];
        place.read(&mut bytes).unwrap();
        assert_eq!(&bytes, b"23456");
        let found = place.read(&mut [0; 6]);
        let Err(Error::File(FileError::TooShort { offset: 2, end: 8, found: 7, .. })) = found else {
            panic!("{found:?}")
        };
    }

    #[test]
    fn what_the_system_refuses_is_told_with_file_and_offset() {
        let place = place("refused", b"0123456", fs::OpenOptions::new().read(true));
        let refused = place.write(b"abc");
        let Err(Error::File(FileError::System { action: "write", offset: 2, .. })) = &refused else {
            panic!("{refused:?}")
        };
        let place = Place { file: None, ..place };
        place.write(b"abc").unwrap();
        place.read(&mut [0; 100]).unwrap();
    }
}
