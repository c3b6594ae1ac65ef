//! NumPy's `.npy` files: a dense array in binary, after a header that is a Python dictionary (*NumPy Enhancement Proposal 1*, and `numpy.lib.format`).
//!
//! A [`Header`] says what follows it and where, so that a caller may read all elements by [`read_elements`], or any range of bytes on its own. [`write_array`] writes an array by rows. A [`Description`] is a header of any type of elements, and [`header_of`] makes one.

mod header;
mod literal;

use std::io::{self, Read, Write};

pub(crate) use self::header::name;
pub use self::header::{Description, Header, MAGIC, Other, header_of, little_endian_header};
use bytemuck::Zeroable;

use crate::dense::{Dense, Order};
use crate::error::{Problem, ReadError};
use crate::number::Number;

/// Bytes of elements that are read at once.
const CHUNK: usize = 64 << 10;

/// Reads all elements, in the file's order, as [`Header::number`] says; `source` is at their start, where [`Header::read`] leaves it. `length` is the length of the whole file in bytes, if it is known: then memory
/// is taken once, and a file that is too short is refused before. Otherwise, as with a pipe, memory grows with what is read.
///
/// # Errors
/// [`ReadError`] if the file ends too early, or its elements have another type.
pub fn read_elements<T: Number>(
    header: &Header,
    source: &mut impl Read,
    length: Option<u64>,
) -> Result<Dense<T>, ReadError> {
    if header.number != T::TYPE {
        let reason = format!("its elements are {}, not {}", header.number, T::TYPE);
        return Err(ReadError::Byte { byte: 0, problem: Problem::Unsupported(reason) });
    }
    let count = header.count() as usize;
    let mut elements: Vec<T::Bits> = Vec::new();
    if let Some(length) = length {
        if header.bytes() > length {
            let reason = format!("it says that it has {} elements, but has only {length} bytes", header.extents());
            return Err(ReadError::Byte { byte: length, problem: Problem::Truncated(reason) });
        }
        elements.reserve_exact(count);
    }
    let stored = header.stored_size();
    let mut narrow = Vec::new();
    while elements.len() < count {
        let start = elements.len();
        elements.resize(count.min(start + CHUNK / size_of::<T>()), Zeroable::zeroed());
        let length = (elements.len() - start) * stored;
        let chunk: &mut [u8] = bytemuck::cast_slice_mut(&mut elements[start..]);
        narrow.resize(if stored < size_of::<T>() { length } else { 0 }, 0);
        let into = if narrow.is_empty() { &mut *chunk } else { &mut narrow[..] };
        let found = fill(source, into)?;
        if found < length {
            let found = (start * stored + found) as u64;
            let reason = format!(
                "this is no whole .npy file: it ends after {found} of {} bytes of its elements",
                header.bytes()
            );
            return Err(ReadError::Byte { byte: header.start + found, problem: Problem::Truncated(reason) });
        }
        if header.big_endian != cfg!(target_endian = "big") {
            into.chunks_exact_mut(stored.min(T::TYPE.part_size())).for_each(<[u8]>::reverse);
        }
        if let Some(other) = header.other {
            let widened = other.widen(&narrow, chunk);
            widened.map_err(|problem| ReadError::Byte { byte: header.start, problem })?;
        }
    }
    Ok(Dense { shape: header.shape.clone(), order: header.order, elements: T::of_bits(elements) })
}

/// Reads until the bytes are full or the source ends, and gives how many there are.
pub(crate) fn fill(source: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
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
