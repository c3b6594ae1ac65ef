//! Files in a zip archive.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use zip::read::ZipFile;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive};

use super::array::Array;
use super::target::written;
use crate::error::{Problem, ReadError};
use crate::npy::NpyHeader;

/// An archive that is larger than this when it is unpacked, and than so many times its own size, is refused: no array
/// that a user saves is packed so well.
const LEAST_REFUSED: u64 = 256 << 20;

/// See [`LEAST_REFUSED`].
const MOST_TIMES: u64 = 100;

/// An array that is in an archive as it is.
pub(crate) struct Member {
    /// The bytes of its `.npy` file.
    pub(crate) bytes: Range<u64>,
    /// The checksum (CRC-32) of these.
    pub(crate) checksum: u32,
}

/// A `.npz` file that is being read.
#[derive(Debug)]
pub struct Archive<R> {
    zip: ZipArchive<R>,
    /// The bytes of the whole file.
    length: u64,
    /// How many bytes may still be unpacked.
    left: u64,
}

/// An error in the whole, whose place is not known.
pub(super) fn wrong(problem: Problem) -> ReadError {
    ReadError::Byte { byte: 0, problem }
}

pub(super) fn of_zip(error: zip::result::ZipError) -> ReadError {
    match error {
        zip::result::ZipError::Io(error) => ReadError::Io(error),
        error => wrong(Problem::Malformed(format!("this is no .npz file that can be read: {error}"))),
    }
}

impl<R: Read + Seek> Archive<R> {
    /// Reads the list of arrays.
    ///
    /// # Errors
    /// [`ReadError`] if the file is no zip archive.
    pub fn new(mut source: R) -> Result<Self, ReadError> {
        let length = source.seek(SeekFrom::End(0))?;
        let mut start = [0; 4];
        source.seek(SeekFrom::Start(0))?;
        let found = crate::npy::fill(&mut source, &mut start)?;
        if !start[..found].starts_with(b"PK") {
            let reason = match found {
                0 => "this is no .npz file: it is empty".to_owned(),
                _ => {
                    format!("this is no .npz file: it starts with '{}', not 'PK'", crate::text::shown(&start[..found]))
                }
            };
            return Err(wrong(Problem::Foreign(reason)));
        }
        source.seek(SeekFrom::Start(0))?;
        let zip = ZipArchive::new(source).map_err(of_zip)?;
        Ok(Self { zip, length, left: length.saturating_mul(MOST_TIMES).max(LEAST_REFUSED) })
    }

    /// Refuses an archive whose arrays are more than so many bytes together when they are unpacked. Without this, more
    /// than 256 MiB and a hundred times its own size are refused.
    #[must_use]
    pub fn limited_to(self, bytes: u64) -> Self {
        Self { left: bytes, ..self }
    }

    /// The names of all arrays, in the order of the file.
    pub fn names(&self) -> Vec<String> {
        let names = self.zip.file_names().filter_map(Result::ok);
        names.map(|name| name.strip_suffix(".npy").unwrap_or(&name).to_owned()).collect()
    }

    /// Reads the array called `name`; none if there is none.
    ///
    /// # Errors
    /// [`ReadError`] if it is damaged, has elements of another type than those of [`ArrayValues`](super::ArrayValues),
    /// or is suspiciously well packed.
    pub fn array(&mut self, name: &str) -> Result<Option<Array>, ReadError> {
        let Some(place) = self.zip.index_for_name(&format!("{name}.npy")) else { return Ok(None) };
        let read = self.read_file(place, name, |file, length| {
            let array = Array::read(file, length)?;
            // To the end, where the checksum is compared.
            let after = io::copy(file, &mut io::sink())?;
            match after {
                0 => Ok(array),
                _ => Err(wrong(Problem::Malformed(format!("{after} bytes come after its elements")))),
            }
        });
        read.map(Some)
    }

    /// Whether any of the arrays is compressed. If none is, [`unpack`](super::unpack) would copy the archive.
    pub fn is_compressed(&self) -> bool {
        let is_compressed = |place: usize| {
            self.zip.by_index_data(place).is_ok_and(|file| file.compression() != CompressionMethod::Stored)
        };
        self.arrays().into_iter().any(|(place, _)| is_compressed(place))
    }

    /// The places and the names of all arrays.
    pub(super) fn arrays(&self) -> Vec<(usize, String)> {
        let names = self.zip.file_names().enumerate();
        let array = |(place, name): (usize, zip::result::ZipResult<_>)| {
            let name: std::borrow::Cow<'_, str> = name.ok()?;
            Some((place, name.strip_suffix(".npy")?.to_owned()))
        };
        names.filter_map(array).collect()
    }

    /// Reads the file at a place in the archive as `read` does, which is given its bytes, and how many these are if
    /// that can be relied on.
    pub(super) fn read_file<T>(
        &mut self,
        place: usize,
        name: &str,
        read: impl FnOnce(&mut io::Take<ZipFile<'_, R>>, Option<u64>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let file = self.zip.by_index(place).map_err(of_zip)?;
        // What is packed may say what it likes, and what is not has no more than the file.
        let length = (file.compression() == CompressionMethod::Stored).then(|| file.size().min(self.length));
        let mut limited = file.take(self.left);
        let result = read(&mut limited, length);
        self.left = limited.limit();
        if self.left == 0 {
            let reason =
                "the arrays are far larger than the file, as no sparse array is; save them without compression"
                    .to_owned();
            return Err(named(name, wrong(Problem::TooLarge(reason))));
        }
        result.map_err(|error| named(name, error))
    }

    /// The place of the array called `name`, which must be there; none if it is packed.
    pub(crate) fn member(&mut self, name: &str) -> Result<Option<Member>, ReadError> {
        let Some(place) = self.zip.index_for_name(&format!("{name}.npy")) else { return Err(self.missing(name)) };
        let file = self.zip.by_index_raw(place).map_err(of_zip)?;
        let is_plain = file.compression() == CompressionMethod::Stored && !file.encrypted();
        let bytes = |start: u64| Some(start..start.checked_add(file.size())?);
        let bytes = file.data_start().filter(|_| is_plain && file.size() == file.compressed_size()).and_then(bytes);
        Ok(bytes.map(|bytes| Member { bytes, checksum: file.crc32() }))
    }

    /// The header of the array called `name`, which must be there.
    pub(super) fn header(&mut self, name: &str) -> Result<NpyHeader, ReadError> {
        let Some(place) = self.zip.index_for_name(&format!("{name}.npy")) else { return Err(self.missing(name)) };
        let mut file = self.zip.by_index(place).map_err(of_zip)?;
        NpyHeader::read(&mut file).map_err(|error| named(name, error))
    }

    /// Reads the array called `name`, which must be there.
    ///
    /// # Errors
    /// As of [`array`](Self::array).
    pub fn expect(&mut self, name: &str) -> Result<Array, ReadError> {
        self.array(name)?.ok_or_else(|| self.missing(name))
    }

    fn missing(&self, name: &str) -> ReadError {
        let names = self.names();
        let reason = format!("there is no array '{name}'; there are {}", crate::text::shown(names.join(", ")));
        wrong(Problem::Malformed(reason))
    }
}

/// The error with the name of the array.
pub(crate) fn named(name: &str, error: ReadError) -> ReadError {
    let told = |problem: &Problem| format!("array '{name}': {problem}");
    match error {
        // What unpacking finds wrong is no failure of the system.
        ReadError::Io(error)
            if [
                io::ErrorKind::InvalidData,
                io::ErrorKind::InvalidInput,
                io::ErrorKind::UnexpectedEof,
                io::ErrorKind::Other,
            ]
            .contains(&error.kind()) =>
        {
            wrong(Problem::Malformed(format!("array '{name}' is damaged: {error}")))
        }
        ReadError::Byte { byte, problem } => ReadError::Byte {
            byte,
            problem: match &problem {
                Problem::Foreign(_) => Problem::Foreign(told(&problem)),
                Problem::Truncated(_) => Problem::Truncated(told(&problem)),
                Problem::Malformed(_) => Problem::Malformed(told(&problem)),
                Problem::TooLarge(_) => Problem::TooLarge(told(&problem)),
                Problem::Unsupported(_) => Problem::Unsupported(told(&problem)),
            },
        },
        other => other,
    }
}

/// Whether what is written is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As it is, as `numpy.savez` does.
    None,
    /// By deflate, as `numpy.savez_compressed` and `scipy.sparse.save_npz` do.
    Deflate,
}

/// Writes arrays with their names.
///
/// # Errors
/// As of `into`.
pub fn write_arrays<'a>(
    mut into: impl Write + Seek,
    compression: Compression,
    arrays: impl IntoIterator<Item = (&'a str, &'a Array)>,
) -> io::Result<()> {
    let method = match compression {
        Compression::None => CompressionMethod::Stored,
        Compression::Deflate => CompressionMethod::Deflated,
    };
    written(
        &mut into,
        |zip| {
            for (name, array) in arrays {
                let is_large = array.values.len() as u64 >= 1 << 27;
                let options = SimpleFileOptions::default().compression_method(method).large_file(is_large);
                zip.start_file(format!("{name}.npy"), options).map_err(io::Error::other)?;
                array.write(zip)?;
            }
            Ok(())
        },
        io::Error::other,
    )
}
