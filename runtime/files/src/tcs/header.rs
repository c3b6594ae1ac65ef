//! The header of a file, as it is in memory and in bytes.

use super::layout::{
    Lengths, Level, MOST_LEVELS, Split, TcsLevelKind, TcsPart, Width, check_levels, parts, size_of_part,
};
use super::source::Source;
use maniple_element::ElementType;

use crate::error::{Problem, ReadError};
use crate::text::shown;

/// How files begin: the name with the version, and a number that tells the order of bytes.
pub const MAGIC: [u8; 8] = *b"TCS1\x04\x03\x02\x01";

/// The bytes before those of levels.
const START: usize = 80;

/// The bytes of each level.
const RECORD: usize = 120;

/// The range of the checksum in the header, in bytes.
const CHECKSUM: std::ops::Range<usize> = 76..80;

/// The types of elements, in the order of their codes.
const NUMBERS: [ElementType; 13] = [
    ElementType::F64,
    ElementType::F32,
    ElementType::C64,
    ElementType::C32,
    ElementType::I64,
    ElementType::I32,
    ElementType::I16,
    ElementType::I8,
    ElementType::U32,
    ElementType::U8,
    ElementType::Bool,
    ElementType::U64,
    ElementType::U16,
];

/// The flag of a block.
const BLOCK: u64 = 1;

/// The flag of a piece.
const PIECE: u64 = 2;

/// The place of an array in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The byte where it begins: a multiple of 8.
    pub offset: u64,
    /// How many elements it has.
    pub length: u64,
    /// Of a piece, the number of its first element in the array of the whole.
    pub start: u64,
    /// The CRC-32 of its bytes.
    pub checksum: u32,
}

/// The header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcsHeader {
    /// The type of elements.
    pub number: ElementType,
    /// The bytes of each number of `pos` and `idx`.
    pub width: Width,
    /// The levels, outermost first.
    pub levels: Vec<Level>,
    /// Whether arrays are parts of those of a larger tensor.
    pub is_piece: bool,
    /// The places of `pos` and `idx` of each level; empty for dense levels.
    sections: Vec<[Section; 2]>,
    values: Section,
}

impl TcsHeader {
    /// The header of a tensor whose sparse levels have as many nodes as `counts` says. Checksums are those of nothing.
    ///
    /// # Errors
    /// [`Problem`] if the levels are those of no tensor, or it is too large.
    pub fn new(number: ElementType, width: Width, levels: Vec<Level>, counts: &[u64]) -> Result<Self, Problem> {
        check_levels(&levels).map_err(|(_, problem)| problem)?;
        let lengths = Lengths::of(&levels, counts)?;
        Self::of(number, width, levels, &lengths, None)
    }

    /// The header of a piece of a tensor: sections of its arrays, of these lengths, each with the number of its first
    /// element.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn piece(
        number: ElementType,
        width: Width,
        levels: Vec<Level>,
        lengths: &Lengths,
        starts: &Lengths,
    ) -> Result<Self, Problem> {
        check_levels(&levels).map_err(|(_, problem)| problem)?;
        Self::of(number, width, levels, lengths, Some(starts))
    }

    fn of(
        number: ElementType,
        width: Width,
        levels: Vec<Level>,
        lengths: &Lengths,
        starts: Option<&Lengths>,
    ) -> Result<Self, Problem> {
        let sections = vec![[Section::default(); 2]; levels.len()];
        let mut header =
            Self { number, width, levels, is_piece: starts.is_some(), sections, values: Section::default() };
        let mut end = header.start();
        for part in parts(&header.levels.clone()) {
            let (length, size) = (lengths.length(part), size_of_part(part, width, number));
            if matches!(part, TcsPart::Idx(_)) && length > width.greatest() {
                return Err(Problem::TooLarge(format!(
                    "{part} has {length} numbers, and bounds of {} bytes hold {}",
                    width.bytes(),
                    width.greatest()
                )));
            }
            let offset = end.next_multiple_of(8);
            let bytes = length.checked_mul(size).filter(|bytes| *bytes < i64::MAX as u64 - offset);
            let bytes =
                bytes.ok_or_else(|| Problem::TooLarge(format!("{part} has {length} elements, which no file holds")))?;
            let start = starts.map_or(0, |starts| starts.length(part));
            *header.section_mut(part) = Section { offset, length, start, checksum: 0 };
            end = offset + bytes;
        }
        let wide = header.levels.iter().position(|level| level.is_sparse() && level.range.end > width.greatest() + 1);
        match wide {
            Some(level) => Err(Problem::TooLarge(format!(
                "coordinates of level {level} up to {} do not fit {} bytes",
                header.levels[level].range.end,
                width.bytes()
            ))),
            None => Ok(header),
        }
    }

    /// The bytes of the header.
    #[must_use]
    pub fn start(&self) -> u64 {
        (START + RECORD * self.levels.len()) as u64
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.values.offset + self.values.length * self.number.size() as u64
    }

    /// The arrays, in the order of the file.
    pub fn parts(&self) -> impl Iterator<Item = TcsPart> {
        parts(&self.levels)
    }

    /// The place of an array.
    #[must_use]
    pub fn section(&self, part: TcsPart) -> Section {
        match part {
            TcsPart::Pos(level) => self.sections[level][0],
            TcsPart::Idx(level) => self.sections[level][1],
            TcsPart::Values => self.values,
        }
    }

    fn section_mut(&mut self, part: TcsPart) -> &mut Section {
        match part {
            TcsPart::Pos(level) => &mut self.sections[level][0],
            TcsPart::Idx(level) => &mut self.sections[level][1],
            TcsPart::Values => &mut self.values,
        }
    }

    /// The same header with the checksum of an array.
    pub fn set_checksum(&mut self, part: TcsPart, checksum: u32) {
        self.section_mut(part).checksum = checksum;
    }

    /// The bytes of each element of an array.
    #[must_use]
    pub fn size(&self, part: TcsPart) -> u64 {
        size_of_part(part, self.width, self.number)
    }

    /// How many nodes each level has.
    #[must_use]
    pub fn nodes(&self) -> Vec<u64> {
        let mut above = 1;
        let node = |(level, sections): (&Level, &[Section; 2])| {
            above = if level.is_sparse() { sections[1].length } else { above * level.extent() };
            above
        };
        self.levels.iter().zip(&self.sections).map(node).collect()
    }

    /// The header in bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let is_block = self.levels.iter().any(|level| level.split.is_some());
        let flags = if is_block { BLOCK } else { 0 } | if self.is_piece { PIECE } else { 0 };
        let code = NUMBERS.iter().position(|number| *number == self.number).unwrap_or(0) as u64;
        let Section { offset, length, start, checksum } = self.values;
        let mut bytes = MAGIC.to_vec();
        let mut write = |numbers: &[u64]| numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        write(&[
            self.levels.len() as u64,
            self.bytes(),
            flags,
            code,
            self.width.bytes(),
            offset,
            length,
            start,
            checksum.into(),
        ]);
        for (level, [pos, idx]) in self.levels.iter().zip(&self.sections) {
            let Split { range, index, count } =
                level.split.clone().unwrap_or(Split { range: 0..0, index: 0, count: 0 });
            write(&[u64::from(level.is_sparse()), level.mode as u64, level.range.start, level.extent()]);
            write(&[pos.offset, pos.length, idx.offset, idx.length]);
            write(&[range.start, range.end, index, count, pos.start, idx.start]);
            write(&[u64::from(pos.checksum) | u64::from(idx.checksum) << 32]);
        }
        let checksum = crc32fast::hash(&bytes);
        bytes[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads and checks the header of a file: all that it says follows from levels and counts, and the file is as long
    /// as it says. Arrays are not looked at.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn read(source: &(impl Source + ?Sized)) -> Result<Self, ReadError> {
        let length = source.length()?;
        let mut start = vec![0; START.min(length as usize)];
        source.read_at(0, &mut start)?;
        check_magic(&start)?;
        if start.len() < START {
            return Err(truncated(length, START as u64));
        }
        let order = word(&start, 8);
        if !(1..=MOST_LEVELS as u64).contains(&order) {
            return Err(at(
                8,
                malformed(format!("a tensor has 1 to {MOST_LEVELS} levels, and this file says {order}")),
            ));
        }
        let mut bytes = vec![0; START + RECORD * order as usize];
        if (length as usize) < bytes.len() {
            return Err(truncated(length, bytes.len() as u64));
        }
        source.read_at(0, &mut bytes)?;
        Self::parse(&bytes, length)
    }

    fn parse(bytes: &[u8], length: u64) -> Result<Self, ReadError> {
        let mut hashed = bytes.to_vec();
        hashed[CHECKSUM].fill(0);
        let (stored, found) = ((word(bytes, 72) >> 32) as u32, crc32fast::hash(&hashed));
        if stored != found {
            return Err(at(
                76,
                malformed(format!("the header is damaged: its checksum is {found:08x}, and should be {stored:08x}")),
            ));
        }
        let flags = word(bytes, 24);
        if flags & !(BLOCK | PIECE) != 0 {
            let reason = format!("the flags {flags:#x} have bits other than those of blocks (1) and pieces (2)");
            return Err(unsupported(24, reason));
        }
        let (code, most) = (word(bytes, 32), NUMBERS.len() - 1);
        let number = usize::try_from(code).ok().and_then(|code| NUMBERS.get(code).copied());
        let reason = || format!("elements are of type {code}, and types are numbered from 0 to {most}");
        let number = number.ok_or_else(|| unsupported(32, reason()))?;
        let width = match word(bytes, 40) {
            4 => Width::Four,
            8 => Width::Eight,
            other => {
                return Err(unsupported(40, format!("numbers of pos and idx have {other} bytes, and can have 4 or 8")));
            }
        };
        let records: Vec<&[u8]> = bytes[START..].chunks_exact(RECORD).collect();
        let levels = records
            .iter()
            .enumerate()
            .map(|(number, record)| level(record, number, flags & BLOCK != 0))
            .collect::<Result<Vec<_>, _>>()?;
        check_levels(&levels).map_err(|(level, problem)| at((START + RECORD * level) as u64, problem))?;
        let column = |offset: usize| records.iter().map(|record| word(record, offset)).collect::<Vec<_>>();
        let said = Lengths { pos: column(40), idx: column(56), values: word(bytes, 56) };
        let starts = Lengths { pos: column(96), idx: column(104), values: word(bytes, 64) };
        let is_piece = flags & PIECE != 0;
        let lengths = if is_piece {
            said
        } else {
            Lengths::of(&levels, &said.idx).map_err(|problem| at(START as u64, problem))?
        };
        let header = Self::of(number, width, levels, &lengths, is_piece.then_some(&starts));
        let mut header = header.map_err(|problem| at(START as u64, problem))?;
        if header.bytes() != length {
            let (expected, said) = (header.bytes(), word(bytes, 16));
            let reason = format!(
                "arrays of the lengths that the header says end at byte {expected}, and the file has {length} bytes (and says {said})"
            );
            return Err(at(
                length.min(expected),
                if length < expected { Problem::Truncated(reason) } else { malformed(reason) },
            ));
        }
        header.values.checksum = word(bytes, 72) as u32;
        for (level, record) in records.iter().enumerate().filter(|(level, _)| header.levels[*level].is_sparse()) {
            let both = word(record, 112);
            header.sections[level][0].checksum = both as u32;
            header.sections[level][1].checksum = (both >> 32) as u32;
        }
        // All that is left must be what is written for such a tensor.
        let mut expected = header.to_bytes();
        expected[CHECKSUM].fill(0);
        match expected.chunks(8).zip(hashed.chunks(8)).position(|(expected, found)| expected != found) {
            None => Ok(header),
            Some(place) => {
                let (expected, found) = (word(&expected, 8 * place), word(bytes, 8 * place));
                Err(at(
                    8 * place as u64,
                    malformed(format!("expected {expected}, as follows from levels and lengths, found {found}")),
                ))
            }
        }
    }
}

fn level(record: &[u8], number: usize, is_block: bool) -> Result<Level, ReadError> {
    let start = (START + RECORD * number) as u64;
    let kind = match word(record, 0) {
        0 => TcsLevelKind::Dense,
        1 => TcsLevelKind::Sparse,
        other => {
            return Err(at(
                start,
                Problem::Unsupported(format!("level {number} is of kind {other}, and can be dense (0) or sparse (1)")),
            ));
        }
    };
    let (first, extent) = (word(record, 16), word(record, 24));
    let end = first.checked_add(extent).ok_or_else(|| {
        at(
            start + 16,
            malformed(format!("level {number} has {extent} coordinates from {first} on, which is beyond 2^64")),
        )
    })?;
    let split = is_block.then(|| Split {
        range: word(record, 64)..word(record, 72),
        index: word(record, 80),
        count: word(record, 88),
    });
    Ok(Level { kind, mode: word(record, 8).try_into().unwrap_or(usize::MAX), range: first..end, split })
}

/// The number of 8 bytes at `place`, which is within `bytes`.
fn word(bytes: &[u8], place: usize) -> u64 {
    bytes[place..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

fn check_magic(start: &[u8]) -> Result<(), ReadError> {
    let foreign = |reason: String| Err(at(0, Problem::Foreign(reason)));
    if start.is_empty() {
        return foreign("this is no .tcs file: it is empty".to_owned());
    }
    if let Some(problem) = crate::text::packed(start) {
        return Err(at(0, problem));
    }
    let magic = &start[..start.len().min(MAGIC.len())];
    match magic {
        _ if magic == MAGIC => Ok(()),
        [b'T', b'C', b'S', version, ..] if *version != b'1' => {
            foreign(format!("this is a .tcs file of version '{}', and version 1 is read", shown([*version])))
        }
        [b'T', b'C', b'S', b'1', 1, 2, 3, 4] => foreign(
            "the bytes of its numbers are in the order of big-endian machines, and the format has the other one"
                .to_owned(),
        ),
        _ if MAGIC.starts_with(magic) => Err(truncated(start.len() as u64, START as u64)),
        _ => foreign(format!("this is no .tcs file: it starts with '{}', not 'TCS1'", shown(magic))),
    }
}

fn unsupported(byte: u64, reason: String) -> ReadError {
    at(byte, Problem::Unsupported(reason))
}

pub(super) fn malformed(reason: String) -> Problem {
    Problem::Malformed(reason)
}

pub(super) fn at(byte: u64, problem: Problem) -> ReadError {
    ReadError::Byte { byte, problem }
}

fn truncated(length: u64, expected: u64) -> ReadError {
    at(length, Problem::Truncated(format!("the header has {expected} bytes, and the file has {length}")))
}
