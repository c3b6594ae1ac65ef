//! Parts of arrays, written at their places in a file.

use std::io;

use crate::number::Number;
use crate::tcs::header::Header;
use crate::tcs::layout::{Part, Width};
use crate::tcs::source::little_endian;
use crate::tcs::summed::{Summed, Summing};

/// Bytes that are written at once.
const CHUNK: usize = 256 << 10;

/// Bytes that are written at any place, by several threads at the same time.
pub trait Target {
    /// Writes bytes from `offset` on.
    ///
    /// # Errors
    /// As of the system.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

#[cfg(unix)]
impl Target for std::fs::File {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }
}

/// Writes elements of an array, of so many bytes each, from element `start` on: `put` appends the bytes of one to a buffer.
fn write_at<E>(
    target: &(impl Target + ?Sized),
    mut offset: u64,
    elements: impl IntoIterator<Item = E>,
    put: impl Fn(&mut Vec<u8>, E),
) -> io::Result<Summed> {
    let (mut sum, mut bytes) = (Summing::default(), Vec::with_capacity(CHUNK + 16));
    let mut flush = |bytes: &mut Vec<u8>| {
        sum.update(bytes);
        target.write_at(offset, bytes)?;
        offset += bytes.len() as u64;
        bytes.clear();
        Ok::<_, io::Error>(())
    };
    for element in elements {
        put(&mut bytes, element);
        if bytes.len() >= CHUNK {
            flush(&mut bytes)?;
        }
    }
    if !bytes.is_empty() {
        flush(&mut bytes)?;
    }
    Ok(sum.finish())
}

/// Writes numbers of `pos` or `idx` from element `start` on. They are in the ranges that the header's lengths and levels say.
///
/// # Errors
/// As of the target.
pub fn write_numbers(
    target: &(impl Target + ?Sized),
    header: &Header,
    (part, start): (Part, u64),
    numbers: impl IntoIterator<Item = u64>,
) -> io::Result<Summed> {
    let offset = header.section(part).offset + start * header.size(part);
    match header.width {
        Width::Four => write_at(target, offset, numbers, |bytes, number| bytes.extend((number as u32).to_le_bytes())),
        Width::Eight => write_at(target, offset, numbers, |bytes, number| bytes.extend(number.to_le_bytes())),
    }
}

/// Writes elements of `val` from element `start` on.
///
/// # Errors
/// As of the target.
pub fn write_values<T: Number>(
    target: &(impl Target + ?Sized),
    header: &Header,
    start: u64,
    values: impl IntoIterator<Item = T>,
) -> io::Result<Summed> {
    let offset = header.section(Part::Values).offset + start * header.size(Part::Values);
    write_at(target, offset, values, |bytes, value| {
        let begin = bytes.len();
        bytes.extend_from_slice(bytemuck::bytes_of(&value));
        little_endian(&mut bytes[begin..], T::TYPE.part_size());
    })
}
