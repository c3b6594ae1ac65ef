//! The offsets and the numbers of lines in a source that is read in parts.

use std::io::{self, BufReader, Read};
use std::ops::Range;

use crate::error::ReadError;
use crate::matrix_market::{MatrixMarketHeader, Reader};
use crate::section::Section;
use crate::tcs::Source;

/// So many bytes are read at once.
pub(crate) const AT_ONCE: usize = 1 << 20;

/// So many bytes are looked at for the end of a line.
const LOOKED_AT: usize = 4 << 10;

/// The header of a Matrix Market file, above its entries, and the range of the bytes after it.
pub(crate) fn head(source: &impl Source) -> Result<(MatrixMarketHeader, Range<u64>), ReadError> {
    let length = source.length()?;
    let reader = Reader::new(BufReader::new(Section::new(source, 0..length)))?;
    let read = reader.source();
    let begin = read.get_ref().offset() - read.buffer().len() as u64;
    Ok((*reader.header(), begin..length))
}

/// The offset of the first line of a range that begins at this byte or after it.
pub(crate) fn line_from(source: &(impl Source + ?Sized), bytes: &Range<u64>, byte: u64) -> io::Result<u64> {
    if byte <= bytes.start {
        return Ok(bytes.start);
    }
    // The end of the line before may be the byte before.
    let mut at = byte - 1;
    let mut buffer = [0; LOOKED_AT];
    while at < bytes.end {
        let some = &mut buffer[..(bytes.end - at).min(LOOKED_AT as u64) as usize];
        source.read_at(at, some)?;
        if let Some(end) = some.iter().position(|&byte| byte == b'\n') {
            return Ok(at + end as u64 + 1);
        }
        at += some.len() as u64;
    }
    Ok(bytes.end)
}

/// How many lines there are up to a byte, where the last one may have no end. Reads all of them: for messages.
pub(crate) fn lines(source: &(impl Source + ?Sized), byte: u64) -> io::Result<u64> {
    let mut last = [b'\n'];
    if byte > 0 {
        source.read_at(byte - 1, &mut last)?;
    }
    Ok(lines_before(source, byte)? + u64::from(last != *b"\n"))
}

/// How many lines end before a byte. Reads all of them: for messages.
fn lines_before(source: &(impl Source + ?Sized), byte: u64) -> io::Result<u64> {
    let mut lines = 0;
    let mut source = Section::new(source, 0..byte);
    let mut buffer = vec![0; AT_ONCE];
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(lines),
            read => lines += buffer[..read].iter().filter(|&&byte| byte == b'\n').count() as u64,
        }
    }
}

/// The error with the number of its line in the source; it has the number among the lines that begin at a byte or after
/// it.
pub(crate) fn in_source(source: &(impl Source + ?Sized), byte: u64, error: ReadError) -> ReadError {
    match error {
        ReadError::Line { line, problem } => match lines_before(source, byte) {
            Ok(before) => ReadError::Line { line: line + before, problem },
            Err(error) => error.into(),
        },
        other => other,
    }
}
