//! Some of the bytes of a source, read one after the other, and shares of what a source has.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::tcs::Source;

/// A range of the bytes of a source, with a place in it.
pub(crate) struct Section<'a, S: ?Sized> {
    source: &'a S,
    bytes: Range<u64>,
    /// The offset of the next byte, from the beginning of the range.
    place: u64,
}

impl<'a, S: Source + ?Sized> Section<'a, S> {
    pub(crate) fn new(source: &'a S, bytes: Range<u64>) -> Self {
        Self { source, bytes, place: 0 }
    }

    /// The offset of the next byte in the source.
    pub(crate) fn offset(&self) -> u64 {
        self.bytes.start + self.place
    }
}

impl<S: Source + ?Sized> Read for Section<'_, S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.end.saturating_sub(self.offset()).min(into.len() as u64) as usize;
        self.source.read_at(self.offset(), &mut into[..count])?;
        self.place += count as u64;
        Ok(count)
    }
}

impl<S: Source + ?Sized> Seek for Section<'_, S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(place) => (place, 0),
            SeekFrom::End(by) => (self.bytes.end - self.bytes.start, by),
            SeekFrom::Current(by) => (self.place, by),
        };
        let end = u64::MAX - self.bytes.start;
        self.place = from.checked_add_signed(by).filter(|place| *place <= end).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.place)
    }
}

/// The range of `count` that one of so many parts has.
pub(crate) fn share(count: u64, number: u64, parts: u64) -> Range<u64> {
    let bound = |number: u64| (u128::from(count) * u128::from(number) / u128::from(parts.max(1))) as u64;
    bound(number)..bound(number + 1)
}
