//! Parts of arrays, written at their places in a file.

use std::io;

use crate::number::Number;
use crate::tcs::header::TcsHeader;
use crate::tcs::layout::{TcsPart, Width};
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

/// Writes elements of an array one after another.
pub struct Writer<'t> {
    target: &'t dyn Target,
    /// The place in the file of the bytes that wait.
    offset: u64,
    waiting: Vec<u8>,
    sum: Summing,
    width: Width,
}

impl<'t> Writer<'t> {
    /// Of an array, from element `start` on.
    #[must_use]
    pub fn new(target: &'t dyn Target, header: &TcsHeader, part: TcsPart, start: u64) -> Self {
        let offset = header.section(part).offset + start * header.size(part);
        let waiting = Vec::with_capacity(CHUNK + 16);
        Self { target, offset, waiting, sum: Summing::default(), width: header.width }
    }

    /// Writes a number of `pos` or `idx`, which is in the range that the header's lengths and levels say.
    ///
    /// # Errors
    /// As of the target.
    pub fn number(&mut self, number: u64) -> io::Result<()> {
        match self.width {
            Width::Four => self.waiting.extend((number as u32).to_le_bytes()),
            Width::Eight => self.waiting.extend(number.to_le_bytes()),
        }
        self.write_chunk(CHUNK)
    }

    /// Writes elements of `val`, of the type that the header says.
    ///
    /// # Errors
    /// As of the target.
    pub fn values<T: Number>(&mut self, values: &[T]) -> io::Result<()> {
        for values in values.chunks((CHUNK / size_of::<T>()).max(1)) {
            let begin = self.waiting.len();
            self.waiting.extend_from_slice(bytemuck::cast_slice(values));
            little_endian(&mut self.waiting[begin..], T::TYPE.part_size());
            self.write_chunk(CHUNK)?;
        }
        Ok(())
    }

    /// Writes all that waits, and gives the sum of what was written.
    ///
    /// # Errors
    /// As of the target.
    pub fn finish(mut self) -> io::Result<Summed> {
        self.write_chunk(1)?;
        Ok(self.sum.finish())
    }

    /// Writes what waits, if it has so many bytes.
    fn write_chunk(&mut self, least: usize) -> io::Result<()> {
        if self.waiting.len() < least {
            return Ok(());
        }
        self.sum.update(&self.waiting);
        self.target.write_at(self.offset, &self.waiting)?;
        self.offset += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

/// Writes numbers of `pos` or `idx` from element `start` on. They are in the ranges that the header's lengths and
/// levels say.
///
/// # Errors
/// As of the target.
pub fn write_numbers(
    target: &dyn Target,
    header: &TcsHeader,
    part: TcsPart,
    start: u64,
    numbers: impl IntoIterator<Item = u64>,
) -> io::Result<Summed> {
    let mut writer = Writer::new(target, header, part, start);
    numbers.into_iter().try_for_each(|number| writer.number(number))?;
    writer.finish()
}
