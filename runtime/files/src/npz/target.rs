//! The target to which an archive is written.

use std::cell::Cell;
use std::io::{self, Seek, SeekFrom, Write};

use zip::ZipWriter;
use zip::result::ZipError;

/// Writes an archive whose files `write` writes.
pub(super) fn written<W: Write + Seek, E>(
    into: &mut W,
    write: impl FnOnce(&mut ZipWriter<ArchiveTarget<'_, W>>) -> Result<(), E>,
    of_zip: impl FnOnce(ZipError) -> E,
) -> Result<(), E> {
    let is_abandoned = Cell::new(false);
    let mut zip = ZipWriter::new(ArchiveTarget { into, place: 0, is_abandoned: &is_abandoned });
    let written = write(&mut zip);
    is_abandoned.set(is_abandoned.get() || written.is_err());
    let ended = zip.finish().map_err(of_zip).map(|_| ());
    written.and(ended)
}

/// The target to which an archive is written. After an error, it writes nothing more and tells no error: a
/// [`ZipWriter`] ends its archive whatever happened, with a file that it has in part, and prints what goes wrong.
pub(super) struct ArchiveTarget<'a, W> {
    into: &'a mut W,
    /// The place of the next byte.
    place: u64,
    is_abandoned: &'a Cell<bool>,
}

impl<W: Write> Write for ArchiveTarget<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if self.is_abandoned.get() { Ok(bytes.len()) } else { self.into.write(bytes) };
        match &written {
            Ok(written) => self.place += *written as u64,
            Err(error) => self.is_abandoned.set(error.kind() != io::ErrorKind::Interrupted),
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_abandoned.get() { Ok(()) } else { self.into.flush() }
    }
}

impl<W: Seek> Seek for ArchiveTarget<'_, W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if !self.is_abandoned.get() {
            self.place = self.into.seek(to).inspect_err(|_| self.is_abandoned.set(true))?;
            return Ok(self.place);
        }
        self.place = match to {
            SeekFrom::Start(place) => place,
            SeekFrom::Current(by) => self.place.saturating_add_signed(by),
            SeekFrom::End(_) => self.place,
        };
        Ok(self.place)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // in a test, a panic is the report

    use std::io::Cursor;

    use super::*;
    use crate::npz::{Array, ArrayValues, Compression, write_arrays};

    /// Has room for so many bytes, and notes what is asked of it when it is full.
    struct Small {
        inside: Cursor<Vec<u8>>,
        room: usize,
        refused: usize,
    }

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.inside.get_ref().len() + bytes.len() > self.room {
                self.refused += 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.inside.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Small {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.inside.seek(to)
        }
    }

    #[test]
    fn nothing_more_is_written_after_an_error_which_is_told_once() {
        let numbers = Array::rows(vec![1 << 10], ArrayValues::I64(vec![7; 1 << 10]));
        for room in [0, 40, 200, 5000] {
            let mut small = Small { inside: Cursor::new(Vec::new()), room, refused: 0 };
            let written = write_arrays(&mut small, Compression::None, [("a", &numbers), ("b", &numbers)]);
            assert!(written.unwrap_err().to_string().contains("no storage space"), "with room for {room}");
            assert_eq!(small.refused, 1, "with room for {room}");
        }
    }
}
