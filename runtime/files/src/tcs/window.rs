//! Arrays of a file, read in parts.

use crc32fast::Hasher;

use super::header::TcsHeader;
use super::layout::TcsPart;
use super::source::{Source, little_endian, number};
use crate::error::{Problem, ReadError};

/// Bytes that are read at once.
const WINDOW: u64 = 64 << 10;

/// An array of a file, of which a part is in memory: reading one element after the other takes few reads of the source.
#[derive(Debug)]
pub(super) struct Window<'a, S: ?Sized> {
    source: &'a S,
    part: TcsPart,
    offset: u64,
    size: u64,
    length: u64,
    /// How many bytes are read at once: few where elements are taken here and there.
    most: u64,
    /// The number of the first element in memory.
    first: u64,
    bytes: Vec<u8>,
}

impl<'a, S: Source + ?Sized> Window<'a, S> {
    pub(super) fn new(source: &'a S, header: &TcsHeader, part: TcsPart) -> Self {
        let (section, size) = (header.section(part), header.size(part));
        Self {
            source,
            part,
            offset: section.offset,
            size,
            length: section.length,
            most: WINDOW,
            first: 0,
            bytes: Vec::new(),
        }
    }

    /// The same array, for elements that are not side by side.
    pub(super) fn scattered(self) -> Self {
        Self { most: 64, ..self }
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The bytes of an element. That the array does not have it is the fault of the file, which says where elements
    /// are.
    pub(super) fn bytes(&mut self, place: u64) -> Result<&[u8], ReadError> {
        if place >= self.length {
            let reason = format!("{} has {} elements, and the file refers to element {place}", self.part, self.length);
            return Err(ReadError::Byte { byte: self.offset, problem: Problem::Malformed(reason) });
        }
        let held = self.bytes.len() as u64 / self.size;
        if place < self.first || place >= self.first + held {
            let count = (self.most / self.size).max(1).min(self.length.saturating_sub(place));
            self.bytes.resize((count * self.size) as usize, 0);
            // Until they are there, none are in memory.
            let into = &mut std::mem::take(&mut self.bytes);
            self.source.read_at(self.offset + place * self.size, into)?;
            (self.first, self.bytes) = (place, std::mem::take(into));
        }
        let start = ((place - self.first) * self.size) as usize;
        Ok(&self.bytes[start..start + self.size as usize])
    }

    /// A number of `pos`, which is a place in an array of so many elements, or its end.
    pub(super) fn bound(&mut self, place: u64, elements: u64) -> Result<u64, ReadError> {
        match self.number(place)? {
            bound if bound <= elements => Ok(bound),
            bound => {
                let reason = format!("{} at {place}: expected at most {elements}, found {bound}", self.part);
                Err(ReadError::Byte { byte: self.offset + place * self.size, problem: Problem::Malformed(reason) })
            }
        }
    }

    /// A number of `pos` or `idx`.
    pub(super) fn number(&mut self, place: u64) -> Result<u64, ReadError> {
        self.bytes(place).map(number)
    }

    /// The element of `val`.
    pub(super) fn value<T: crate::Number>(&mut self, place: u64) -> Result<T, ReadError> {
        let mut bits: T::Carrier = bytemuck::Zeroable::zeroed();
        let bytes = bytemuck::bytes_of_mut(&mut bits);
        bytes.copy_from_slice(self.bytes(place)?);
        little_endian(bytes, T::TYPE.part_size());
        Ok(T::from_carrier(bits))
    }
}

/// The CRC-32 of the bytes of an array.
pub(super) fn checksum(source: &(impl Source + ?Sized), header: &TcsHeader, part: TcsPart) -> Result<u32, ReadError> {
    let (section, mut hasher) = (header.section(part), Hasher::new());
    let (mut place, end) = (section.offset, section.offset + section.length * header.size(part));
    let mut buffer = vec![0; WINDOW.min(end - place) as usize];
    while place < end {
        let bytes = &mut buffer[..WINDOW.min(end - place) as usize];
        source.read_at(place, bytes)?;
        hasher.update(bytes);
        place += bytes.len() as u64;
    }
    Ok(hasher.finalize())
}
