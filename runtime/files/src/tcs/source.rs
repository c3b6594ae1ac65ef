//! Bytes that are read at any place.

use std::io;

/// Bytes that are read at any place, by several threads at the same time.
pub trait Source {
    /// How many bytes there are.
    ///
    /// # Errors
    /// As of the system.
    fn length(&self) -> io::Result<u64>;

    /// Reads the bytes from `offset` on, as many as `into` has.
    ///
    /// # Errors
    /// As of the system; [`io::ErrorKind::UnexpectedEof`] if there are not as many.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

impl Source for [u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let from = start.checked_add(into.len()).and_then(|end| self.get(start..end));
        into.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Source for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        self[..].length()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self[..].read_at(offset, into)
    }
}

#[cfg(unix)]
impl Source for std::fs::File {
    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|data| data.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, into, offset)
    }
}

/// The number that four or eight bytes are.
pub(super) fn number(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word).into()),
    }
}

/// Turns the bytes of elements, each of parts of so many, from the order of this machine to that of files, or back.
pub(super) fn little_endian(bytes: &mut [u8], part: usize) {
    if cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
}
