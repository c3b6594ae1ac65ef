//! A block, assembled from what pieces have of it (Shinde 2019, section 4.4.4).

use std::io::{Seek, SeekFrom, Write};

use crc32fast::Hasher;

use crate::error::{Problem, ReadError};
use crate::number::Number;
use crate::tcs::check::check_sum;
use crate::tcs::convert::Sections;
use crate::tcs::fill::Filler;
use crate::tcs::header::TcsHeader;
use crate::tcs::source::Source;

/// Bytes that are copied at once.
const BUFFER: u64 = 64 << 10;

/// Writes a file with this header, whose arrays are those of `pieces`, files that are pieces, one after the other.
/// Without pieces it has no entries.
///
/// # Errors
/// As of the pieces and of `into`; [`Problem::Malformed`] if arrays of the pieces are not those of this file.
pub fn assemble<T: Number, S: Source>(
    header: &TcsHeader,
    pieces: &[S],
    into: &mut (impl Write + Seek),
) -> Result<(), ReadError> {
    if pieces.is_empty() {
        let mut sections = Sections::new(header, into);
        Filler::new(&header.levels).finish::<T>(&mut sections)?;
        sections.finish()?;
        return Ok(());
    }
    let headers = pieces.iter().map(TcsHeader::read).collect::<Result<Vec<_>, _>>()?;
    let mut header = header.clone();
    let mut end = header.start();
    for part in header.parts().collect::<Vec<_>>() {
        let section = header.section(part);
        into.seek(SeekFrom::Start(end))?;
        into.write_all(&[0; 8][..(section.offset - end) as usize])?;
        let (mut length, mut checksum) = (0, Hasher::new());
        for (piece, own) in pieces.iter().zip(&headers) {
            let is_of =
                own.is_piece && own.levels == header.levels && (own.number, own.width) == (header.number, header.width);
            if !is_of || own.section(part).start != length {
                let reason =
                    format!("{part}: the next piece is one of another file, or does not start at element {length}");
                return Err(ReadError::Byte { byte: 0, problem: Problem::Malformed(reason) });
            }
            let bytes = own.section(part).length * own.size(part);
            let copied = copy(piece, own.section(part).offset, bytes, into)?;
            check_sum(own, part, copied.clone().finalize())?;
            checksum.combine(&copied);
            length += own.section(part).length;
        }
        if length != section.length {
            let reason = format!("{part}: the pieces have {length} elements, and the file has {}", section.length);
            return Err(ReadError::Byte { byte: 0, problem: Problem::Malformed(reason) });
        }
        header.set_checksum(part, checksum.finalize());
        end = section.offset + section.length * header.size(part);
    }
    into.seek(SeekFrom::Start(0))?;
    into.write_all(&header.to_bytes())?;
    Ok(into.flush()?)
}

/// Copies some bytes, and gives what their checksum is made of.
fn copy(from: &impl Source, mut offset: u64, mut left: u64, into: &mut impl Write) -> Result<Hasher, ReadError> {
    let mut buffer = vec![0; left.min(BUFFER) as usize];
    let mut checksum = Hasher::new();
    while left > 0 {
        let bytes = &mut buffer[..left.min(BUFFER) as usize];
        from.read_at(offset, bytes)?;
        checksum.update(bytes);
        into.write_all(bytes)?;
        (offset, left) = (offset + bytes.len() as u64, left - bytes.len() as u64);
    }
    Ok(checksum)
}
