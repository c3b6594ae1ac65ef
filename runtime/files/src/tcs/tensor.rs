//! A whole tensor in memory.

use std::io::{self, Write};

use bytemuck::Zeroable;

use super::check::{check_level, check_padding, check_sum};
use super::header::{TcsHeader, at};
use super::layout::{Level, TcsLevelKind, TcsPart, Width};
use super::source::{Source, little_endian, number};
use crate::error::{Problem, ReadError};
use crate::number::Number;

/// The arrays of one level. A dense one has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrays {
    /// The position in `idx` at which the segment of each node of the level above begins; at the end, the position at
    /// which the last segment ends.
    pub pos: Vec<i64>,
    /// The coordinates.
    pub idx: Vec<i64>,
}

/// A tensor, as a file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor<T> {
    /// The levels, outermost first.
    pub levels: Vec<Level>,
    /// The arrays of each level.
    pub arrays: Vec<Arrays>,
    /// The elements, one for each node of the last level.
    pub values: Vec<T>,
}

/// Numbers are turned into bytes and back in chunks of so many.
const CHUNK: usize = 8 << 10;

impl<T: Number> Tensor<T> {
    /// Reads a tensor, and checks all of it. Takes memory for what the file has, not for what it says.
    ///
    /// # Errors
    /// [`ReadError`] if anything is wrong, the file is a piece of a tensor, or its elements have another type.
    pub fn read(source: &(impl Source + ?Sized)) -> Result<Self, ReadError> {
        let header = TcsHeader::read(source)?;
        if header.number != T::TYPE {
            return Err(at(
                32,
                Problem::Unsupported(format!(
                    "its elements are {}, not {}",
                    header.number.numpy_name(),
                    T::TYPE.numpy_name()
                )),
            ));
        }
        if header.is_piece {
            return Err(at(
                24,
                Problem::Unsupported("the file is a piece of a tensor: join it with the others".to_owned()),
            ));
        }
        let mut tensor = Self {
            levels: header.levels.clone(),
            arrays: vec![Arrays::default(); header.levels.len()],
            values: Vec::new(),
        };
        let mut end = header.start();
        for part in header.parts() {
            let section = header.section(part);
            check_padding(source, end, section.offset)?;
            match part {
                TcsPart::Pos(level) => tensor.arrays[level].pos = numbers(source, &header, part)?,
                TcsPart::Idx(level) => tensor.arrays[level].idx = numbers(source, &header, part)?,
                TcsPart::Values => tensor.values = values(source, &header)?,
            }
            end = section.offset + section.length * header.size(part);
        }
        for (level, Arrays { pos, idx }) in
            tensor.arrays.iter().enumerate().filter(|(level, _)| header.levels[*level].is_sparse())
        {
            check_level(
                &header,
                level,
                |place| Ok(pos[place as usize] as u64),
                |place| Ok(idx[place as usize] as u64),
            )?;
        }
        Ok(tensor)
    }

    /// The header of the tensor as a file, with checksums.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the arrays have not the lengths that levels say, or do not fit the width.
    pub fn header(&self, width: Width) -> io::Result<TcsHeader> {
        let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidInput, reason);
        if self.arrays.len() != self.levels.len() {
            return Err(invalid(format!("{} levels have {} pairs of arrays", self.levels.len(), self.arrays.len())));
        }
        let counts: Vec<u64> = self.arrays.iter().map(|arrays| arrays.idx.len() as u64).collect();
        let header = TcsHeader::new(T::TYPE, width, self.levels.clone(), &counts);
        let mut header = header.map_err(|problem| invalid(problem.to_string()))?;
        for part in header.parts().collect::<Vec<_>>() {
            let (expected, found) = (header.section(part).length, self.length(part) as u64);
            if expected != found {
                return Err(invalid(format!("{part} has {found} elements, and levels say {expected}")));
            }
            let mut hasher = crc32fast::Hasher::new();
            self.for_each_chunk(part, width, |bytes| {
                hasher.update(bytes);
                Ok(())
            })?;
            header.set_checksum(part, hasher.finalize());
        }
        for (level, Arrays { pos, idx }) in
            self.arrays.iter().enumerate().filter(|(level, _)| self.levels[*level].is_sparse())
        {
            check_level(&header, level, |place| Ok(pos[place as usize] as u64), |place| Ok(idx[place as usize] as u64))
                .map_err(|error| invalid(error.to_string()))?;
        }
        Ok(header)
    }

    /// Writes the tensor as a file.
    ///
    /// # Errors
    /// As of [`header`](Self::header) and of `into`.
    pub fn write(&self, width: Width, into: &mut impl Write) -> io::Result<()> {
        let header = self.header(width)?;
        into.write_all(&header.to_bytes())?;
        let mut end = header.start();
        for part in header.parts() {
            let section = header.section(part);
            into.write_all(&[0; 8][..(section.offset - end) as usize])?;
            self.for_each_chunk(part, width, |bytes| into.write_all(bytes))?;
            end = section.offset + section.length * header.size(part);
        }
        Ok(())
    }

    /// The extent of each dimension: the end of its coordinates.
    #[must_use]
    pub fn extents(&self) -> Vec<u64> {
        let mut extents = vec![0; self.levels.len()];
        self.levels.iter().for_each(|level| extents[level.mode] = level.range.end);
        extents
    }

    /// Visits all entries in the order in which they are stored, with coordinates in the order of dimensions. If the
    /// last level is dense, zeros are none.
    ///
    /// # Panics
    /// If the arrays have not the lengths that levels say: those of a tensor that was [read](Self::read) have.
    pub fn for_each(&self, mut visit: impl FnMut(&[u64], T)) {
        let drops_zeros = self.levels.last().is_some_and(|level| !level.is_sparse());
        self.walk(0, 0, &mut vec![0; self.levels.len()], &mut |at, value| {
            if !drops_zeros || bytemuck::bytes_of(&value).iter().any(|byte| *byte != 0) {
                visit(at, value);
            }
        });
    }

    /// Visits the entries below a node of the level above `level`.
    fn walk(&self, level: usize, node: usize, at: &mut Vec<u64>, visit: &mut dyn FnMut(&[u64], T)) {
        let Some(Level { kind, mode, range, .. }) = self.levels.get(level) else { return visit(at, self.values[node]) };
        match kind {
            TcsLevelKind::Dense => {
                let first = node * (range.end - range.start) as usize;
                for (coordinate, child) in range.clone().zip(first..) {
                    at[*mode] = coordinate;
                    self.walk(level + 1, child, at, visit);
                }
            }
            TcsLevelKind::Sparse => {
                let Arrays { pos, idx } = &self.arrays[level];
                let children = pos[node] as usize..pos[node + 1] as usize;
                for (child, &coordinate) in children.clone().zip(&idx[children]) {
                    at[*mode] = coordinate as u64;
                    self.walk(level + 1, child, at, visit);
                }
            }
        }
    }

    fn length(&self, part: TcsPart) -> usize {
        match part {
            TcsPart::Pos(level) => self.arrays[level].pos.len(),
            TcsPart::Idx(level) => self.arrays[level].idx.len(),
            TcsPart::Values => self.values.len(),
        }
    }

    /// The bytes of an array, in chunks.
    fn for_each_chunk(
        &self,
        part: TcsPart,
        width: Width,
        mut visit: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(CHUNK * 16);
        let mut numbers = |numbers: &[i64], bytes: &mut Vec<u8>| {
            numbers.chunks(CHUNK).try_for_each(|chunk| {
                bytes.clear();
                match width {
                    Width::Four => chunk.iter().for_each(|number| bytes.extend((*number as u32).to_le_bytes())),
                    Width::Eight => chunk.iter().for_each(|number| bytes.extend(number.to_le_bytes())),
                }
                visit(bytes)
            })
        };
        match part {
            TcsPart::Pos(level) => numbers(&self.arrays[level].pos, &mut bytes),
            TcsPart::Idx(level) => numbers(&self.arrays[level].idx, &mut bytes),
            TcsPart::Values => self.values.chunks(CHUNK).try_for_each(|chunk| {
                bytes.clear();
                bytes.extend_from_slice(bytemuck::cast_slice(chunk));
                little_endian(&mut bytes, T::TYPE.part_size());
                visit(&bytes)
            }),
        }
    }
}

/// Room for an array that the file is long enough for.
fn room<E>(length: u64) -> Result<Vec<E>, ReadError> {
    let mut elements = Vec::new();
    let memory =
        |_| at(0, Problem::TooLarge(format!("the system does not give the memory for an array of {length} elements")));
    elements.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX)).map_err(memory)?;
    Ok(elements)
}

/// The numbers of `pos` or `idx`, of the right checksum.
fn numbers(source: &(impl Source + ?Sized), header: &TcsHeader, part: TcsPart) -> Result<Vec<i64>, ReadError> {
    let (section, size) = (header.section(part), header.size(part) as usize);
    let mut all = room(section.length)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = vec![0; (CHUNK * size).min(section.length as usize * size)];
    while (all.len() as u64) < section.length {
        let count = CHUNK.min(section.length as usize - all.len());
        let bytes = &mut bytes[..count * size];
        source.read_at(section.offset + (all.len() * size) as u64, bytes)?;
        hasher.update(bytes);
        all.extend(bytes.chunks_exact(size).map(|bytes| number(bytes) as i64));
    }
    check_sum(header, part, hasher.finalize())?;
    Ok(all)
}

/// The elements, of the right checksum.
fn values<T: Number>(source: &(impl Source + ?Sized), header: &TcsHeader) -> Result<Vec<T>, ReadError> {
    let section = header.section(TcsPart::Values);
    let mut bits: Vec<T::Carrier> = room(section.length)?;
    bits.resize(section.length as usize, Zeroable::zeroed());
    let mut hasher = crc32fast::Hasher::new();
    let mut place = section.offset;
    for chunk in bits.chunks_mut(CHUNK) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(chunk);
        source.read_at(place, bytes)?;
        hasher.update(bytes);
        place += bytes.len() as u64;
        little_endian(bytes, T::TYPE.part_size());
    }
    check_sum(header, TcsPart::Values, hasher.finalize())?;
    Ok(T::from_carriers(bits))
}
