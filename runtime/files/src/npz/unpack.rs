//! Archives without compression, made of others.

use std::io::{self, Read, Seek, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::archive::{Archive, of_zip};
use super::target::written;
use crate::error::ReadError;

/// So many bytes are copied at once.
const AT_ONCE: usize = 64 << 10;

/// Writes an archive with the arrays of another one, in the same order, as they are: without compression. Files in the
/// archive that are no arrays, as their names do not end in `.npy`, are left out. Takes little memory, whatever the
/// archive says.
///
/// The contents of arrays are not looked at, but for their checksums. After an error, `into` has the beginning of an
/// archive, which can't be read.
///
/// ```
/// use std::io::Cursor;
///
/// use maniple_files::EntryArrays;
/// use maniple_files::npz::{Archive, Compression, Sparse, Structure, ArrayValues, unpack};
///
/// let rows = Structure::Compressed { rows: vec![0], starts: vec![0, 1, 3], columns: vec![2, 0, 1] };
/// let matrix = Sparse::new(vec![2, 3], rows, ArrayValues::F64(vec![0.5, 1.5, 2.5]), None)?;
/// let (mut file, mut unpacked) = (Cursor::new(Vec::new()), Cursor::new(Vec::new()));
/// matrix.write(&mut file, Compression::Deflate)?;
/// assert!(Archive::new(&mut file)?.is_compressed());
///
/// unpack(&mut file, &mut unpacked)?;
/// assert!(EntryArrays::npz(unpacked.into_inner())?.is_some());
/// # Ok::<(), maniple_files::ReadError>(())
/// ```
///
/// # Errors
/// [`ReadError`] if the file is no zip archive, or an array in it is damaged or suspiciously well packed: as of
/// [`Archive::array`]. [`ReadError::Io`] also if `into` fails.
pub fn unpack<R: Read + Seek, W: Write + Seek>(from: R, into: &mut W) -> Result<(), ReadError> {
    unpack_archive(Archive::new(from)?, into)
}

fn unpack_archive<R: Read + Seek, W: Write + Seek>(mut archive: Archive<R>, into: &mut W) -> Result<(), ReadError> {
    written(into, |zip| copy_arrays(&mut archive, zip), of_zip)
}

fn copy_arrays<R: Read + Seek, W: Write + Seek>(
    archive: &mut Archive<R>,
    zip: &mut ZipWriter<W>,
) -> Result<(), ReadError> {
    for (place, name) in archive.arrays() {
        // How large a file is, is known when it has been read.
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        zip.start_file(format!("{name}.npy"), options).map_err(of_zip)?;
        archive.read_file(place, &name, |file, _| copy(file, zip))??;
    }
    Ok(())
}

/// Copies bytes to their end: an error of `from`, or what `into` says.
fn copy(from: &mut impl Read, into: &mut impl Write) -> Result<io::Result<()>, ReadError> {
    let mut buffer = vec![0; AT_ONCE];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(Ok(())),
            Ok(read) => {
                if let Err(error) = into.write_all(&buffer[..read]) {
                    return Ok(Err(error));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // in a test, a panic is the report

    use std::io::Cursor;

    use super::*;
    use crate::npz::{Array, ArrayValues, Compression, write_arrays};

    #[test]
    fn archives_that_unpack_to_far_more_than_they_are_are_refused() {
        let zeros = Array::rows(vec![1 << 16], ArrayValues::I64(vec![0; 1 << 16]));
        let mut file = Cursor::new(Vec::new());
        write_arrays(&mut file, Compression::Deflate, [("a", &zeros), ("b", &zeros)]).unwrap();
        let unpacked = |bytes: u64| {
            let mut into = Cursor::new(Vec::new());
            let result = unpack_archive(Archive::new(file.clone()).unwrap().limited_to(bytes), &mut into);
            (result.map_err(|error| error.to_string()), into.into_inner().len() as u64)
        };
        let (result, written) = unpacked(2_000_000);
        assert_eq!(result, Ok(()));
        assert!(written > 2 * (8 << 16));
        for (bytes, name) in [(100_000, "a"), (600_000, "b")] {
            let (result, written) = unpacked(bytes);
            let expected =
                Archive::new(file.clone()).unwrap().limited_to(if name == "a" { bytes } else { 1 }).array(name);
            assert_eq!(result.unwrap_err(), expected.unwrap_err().to_string());
            assert!(written < bytes + 1000, "{written}");
        }
    }
}
