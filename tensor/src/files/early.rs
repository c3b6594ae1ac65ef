//! Files that are on their way to the disk while they are written.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

/// A file which the system begins to bring to the disk while it is written. Some file systems (ext4) do so only when it
/// takes the place of another file, which then waits for all of it.
pub(super) struct Early<'f> {
    file: &'f File,
    /// The offset of the next byte.
    place: u64,
    /// The offset of the first byte that is in memory alone.
    begun: u64,
}

/// So many bytes go at once: a disk is as fast with them as with more.
const AT_ONCE: u64 = 8 << 20;

impl<'f> Early<'f> {
    /// A file that is empty.
    pub(super) fn new(file: &'f File) -> Self {
        Self { file, place: 0, begun: 0 }
    }

    /// Begins to bring the bytes so far to the disk, if there are enough. If that fails, they go with the rest.
    fn begin(&mut self) {
        if self.place.saturating_sub(self.begun) >= AT_ONCE {
            #[cfg(target_os = "linux")]
            {
                // As they are not needed soon, the system begins to write them, and does not wait for that.
                let length = std::num::NonZero::new(self.place - self.begun);
                _ = rustix::fs::fadvise(self.file, self.begun, length, rustix::fs::Advice::DontNeed);
            }
            self.begun = self.place;
        }
    }
}

impl Write for Early<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.place += written as u64;
        self.begin();
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Early<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.place = self.file.seek(to)?;
        // What is changed once more goes with the rest.
        self.begun = self.begun.max(self.place);
        Ok(self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_early_is_what_is_written() {
        let mut file = tempfile::tempfile().unwrap();
        let mut early = Early::new(&file);
        let bytes: Vec<u8> = (0..3 * AT_ONCE / 2).map(|number| (number % 251) as u8).collect();
        early.write_all(&bytes).unwrap();
        early.write_all(&bytes).unwrap();
        early.seek(SeekFrom::Start(5)).unwrap();
        early.write_all(b"changed").unwrap();
        early.seek(SeekFrom::End(0)).unwrap();
        early.write_all(b"end").unwrap();
        early.flush().unwrap();
        let mut expected = [&bytes[..], &bytes, b"end"].concat();
        expected[5..12].copy_from_slice(b"changed");
        let mut found = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        io::Read::read_to_end(&mut file, &mut found).unwrap();
        assert!(found == expected);
    }
}
