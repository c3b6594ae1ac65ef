//! NumPy's `.npy` files: a dense array in binary, after a header that is a Python dictionary (*NumPy Enhancement
//! Proposal 1*, and `numpy.lib.format`).
//!
//! A [`NpyHeader`] says what follows it and where, so that a caller may read all elements by [`read_elements`], or any
//! range of bytes on its own. [`write_array`] writes an array by rows. A [`Description`] is a header of any type of
//! elements, and [`header_of`] makes one.

mod header;
mod literal;

use std::io::{self, Read, Write};

pub use self::header::{Description, MAGIC, NpyHeader, Other, header_of, little_endian_header};
use bytemuck::Zeroable;
use maniple_element::ElementType;

use crate::dense::{Dense, Order};
use crate::error::{Problem, ReadError};
use crate::number::Number;

/// Bytes of elements that are read at once.
const CHUNK: usize = 64 << 10;

/// Reads all elements, in the file's order, as [`NpyHeader::number`] says; `source` is at their start, where
/// [`NpyHeader::read`] leaves it. `length` is the length of the whole file in bytes, if it is known: then memory is
/// taken once, and a file that is too short is refused before. Otherwise, as with a pipe, memory grows with what is
/// read.
///
/// # Errors
/// [`ReadError`] if the file ends too early, or its elements have another type.
pub fn read_elements<T: Number>(
    header: &NpyHeader,
    source: &mut impl Read,
    length: Option<u64>,
) -> Result<Dense<T>, ReadError> {
    check(header, T::TYPE, length)?;
    let count = header.count() as usize;
    let mut elements: Vec<T::Carrier> = Vec::new();
    if length.is_some() {
        elements.reserve_exact(count);
    }
    let mut narrow = Vec::new();
    while elements.len() < count {
        let start = elements.len();
        elements.resize(count.min(start + CHUNK / size_of::<T>()), Zeroable::zeroed());
        let chunk = bytemuck::cast_slice_mut(&mut elements[start..]);
        read_chunk(header, source, start, chunk, size_of::<T>(), &mut narrow)?;
    }
    Ok(Dense { shape: header.shape.clone(), order: header.order, elements: T::from_carriers(elements) })
}

/// Refuses a file that has elements of another type, or is too short if its length is known.
fn check(header: &NpyHeader, wanted: ElementType, length: Option<u64>) -> Result<(), ReadError> {
    if header.number != wanted {
        let reason = format!("its elements are {}, not {}", header.number.numpy_name(), wanted.numpy_name());
        return Err(ReadError::Byte { byte: 0, problem: Problem::Unsupported(reason) });
    }
    match length.filter(|length| header.bytes() > *length) {
        None => Ok(()),
        Some(length) => {
            let reason = format!("it says that it has {} elements, but has only {length} bytes", header.extents());
            Err(ReadError::Byte { byte: length, problem: Problem::Truncated(reason) })
        }
    }
}

/// Reads the elements from one on, of so many bytes each: as many as fit `chunk`. They are widened from `narrow` if the
/// file has fewer bytes of each.
fn read_chunk(
    header: &NpyHeader,
    source: &mut dyn Read,
    start: usize,
    chunk: &mut [u8],
    size: usize,
    narrow: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let stored = header.stored_size();
    let length = chunk.len() / size * stored;
    narrow.resize(if stored < size { length } else { 0 }, 0);
    let into = if narrow.is_empty() { &mut *chunk } else { &mut narrow[..] };
    let found = fill(source, into)?;
    if found < length {
        let found = (start * stored + found) as u64;
        let reason =
            format!("this is no whole .npy file: it ends after {found} of {} bytes of its elements", header.bytes());
        return Err(ReadError::Byte { byte: header.start + found, problem: Problem::Truncated(reason) });
    }
    if header.big_endian != cfg!(target_endian = "big") {
        into.chunks_exact_mut(stored.min(header.number.part_size())).for_each(<[u8]>::reverse);
    }
    if let Some(other) = header.other {
        other.widen(narrow, chunk);
    }
    Ok(())
}

/// Reads until the bytes are full or the source ends, and gives how many there are.
pub(crate) fn fill(source: &mut dyn Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut found = 0;
    while found < bytes.len() {
        match source.read(&mut bytes[found..]) {
            Ok(0) => break,
            Ok(more) => found += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Writes an array whose elements are in the order of [`Order::Rows`].
///
/// # Errors
/// As of `into`; and [`io::ErrorKind::InvalidInput`] if there are not as many elements as the shape says.
pub fn write_array<T: Number>(into: &mut impl Write, shape: &[u64], elements: &[T]) -> io::Result<()> {
    if shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent)) != Some(elements.len() as u64) {
        let reason = format!("an array of shape {shape:?} has no {} elements", elements.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    into.write_all(&header::text::<T>(shape)?)?;
    into.write_all(bytemuck::cast_slice(elements))
}

/// Writes the header of an array with elements of a type that NumPy describes like this.
pub(crate) fn write_described(into: &mut dyn Write, descr: &str, order: Order, shape: &[u64]) -> io::Result<()> {
    into.write_all(&header_of(descr, order, shape)?)
}
