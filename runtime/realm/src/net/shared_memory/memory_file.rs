//! Files that are nothing but memory, which other processes of this user can open as long as their maker keeps them.
//! However the maker ends, nothing stays behind.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// A file in memory. Once it is dropped no others can open it; a process that has it mapped keeps it.
pub(super) struct MemoryFile(Inner);

#[cfg(target_os = "linux")]
type Inner = File;

#[cfg(target_os = "linux")]
impl MemoryFile {
    pub(super) fn create() -> io::Result<Self> {
        use rustix::fs::{MemfdFlags, memfd_create};
        let file = memfd_create("maniple-inbox", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        Ok(Self(file.into()))
    }

    pub(super) fn as_file(&mut self) -> &mut File {
        &mut self.0
    }

    /// Its length can't be changed any more: looking at what is mapped cannot end a process.
    pub(super) fn fix_length(&self) -> io::Result<()> {
        use rustix::fs::{SealFlags, fcntl_add_seals};
        Ok(fcntl_add_seals(&self.0, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?)
    }

    /// The path by which other processes find it.
    pub(super) fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()).into()
    }
}

/// Whether a file that another process offers can't be shortened.
#[cfg(target_os = "linux")]
pub(super) fn has_fixed_length(file: &File) -> bool {
    use rustix::fs::{SealFlags, fcntl_get_seals};
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

#[cfg(not(target_os = "linux"))]
type Inner = tempfile::NamedTempFile;

/// Elsewhere it is a file like others, in the folder for temporary ones.
#[cfg(not(target_os = "linux"))]
impl MemoryFile {
    pub(super) fn create() -> io::Result<Self> {
        tempfile::Builder::new().prefix("maniple-").tempfile().map(Self)
    }

    pub(super) fn as_file(&mut self) -> &mut File {
        self.0.as_file_mut()
    }

    /// There is no means for that: the other processes of the job are trusted.
    pub(super) fn fix_length(&self) -> io::Result<()> {
        Ok(())
    }

    /// The path by which other processes find it.
    pub(super) fn path(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }
}

/// Whether a file that another process offers can't be shortened: the job's processes do not.
#[cfg(not(target_os = "linux"))]
pub(super) fn has_fixed_length(_file: &File) -> bool {
    true
}
