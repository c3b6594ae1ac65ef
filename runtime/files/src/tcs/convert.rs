//! Sorted entries to a file, in two passes and little memory.

use std::io::{self, Seek, SeekFrom, Write};

use super::count::Counts;
use super::entries::EntryStream;
use super::fill::{Filler, Sink};
use super::header::TcsHeader;
use super::layout::{Level, TcsPart, Width};
use super::ordered::Ordered;
use super::plan::{ConvertError, Extent, StoragePlan};
use super::source::little_endian;
use crate::number::Number;

/// The findings of the first pass.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The header of the file, without checksums.
    pub header: TcsHeader,
    /// How many entries there are, each place once.
    pub entries: u64,
    /// How many entries were added to others at the same place.
    pub added: u64,
}

/// The first pass: reads all entries, and finds out how large the file is.
///
/// # Errors
/// [`ConvertError`].
pub fn survey<T: Number>(stream: impl EntryStream<T>, plan: &StoragePlan<T>) -> Result<Survey, ConvertError> {
    plan.check()?;
    let order = plan.kinds.len();
    let mut entries = Ordered::new(stream, plan);
    let (mut counts, mut at, mut count) = (Counts::default(), Vec::new(), 0);
    while entries.next(&mut at)?.is_some() {
        counts.add(&at);
        count += 1;
    }
    let level = |number: usize| {
        let (least, greatest) = (counts.least.get(number), counts.greatest.get(number));
        let end = greatest.map_or(0, |greatest| greatest.saturating_add(1));
        let range = match &plan.extents[plan.order[number]] {
            Extent::Given(range) => range.clone(),
            Extent::FromZero => 0..end,
            Extent::Tight => least.copied().unwrap_or(0)..end,
        };
        Level { kind: plan.kinds[number], mode: plan.order[number], range, split: None }
    };
    if counts.is_empty() {
        counts.nodes = vec![0; order];
    }
    let header = TcsHeader::new(T::TYPE, plan.width, (0..order).map(level).collect(), &counts.nodes);
    Ok(Survey { header: header.map_err(ConvertError::Large)?, entries: count, added: entries.added })
}

/// The second pass: reads the same entries again, and writes the file. Memory does not depend on how many there are.
///
/// ```
/// use maniple_files::tcs::{self, Duplicates, Extent, StoragePlan, TcsLevelKind, Tensor, Width};
/// use maniple_files::tns;
///
/// let text = "1 2 2.5\n3 1 4\n";
/// let kinds = vec![TcsLevelKind::Dense, TcsLevelKind::Sparse];
/// let (order, extents) = (vec![0, 1], vec![Extent::FromZero; 2]);
/// let plan = StoragePlan { kinds, order, extents, width: Width::Eight, duplicates: Duplicates::Refuse };
/// let open = || tns::Reader::<_, f64>::new(text.as_bytes());
/// let survey = tcs::survey(open()?, &plan)?;
/// let mut file = std::io::Cursor::new(Vec::new());
/// tcs::write(&survey, open()?, &plan, &mut file)?;
/// let tensor = Tensor::<f64>::read(&file.into_inner())?;
/// assert_eq!((&tensor.arrays[1].pos[..], tensor.values), (&[0, 1, 1, 2][..], vec![2.5, 4.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ConvertError`].
pub fn write<T: Number>(
    survey: &Survey,
    stream: impl EntryStream<T>,
    plan: &StoragePlan<T>,
    into: &mut (impl Write + Seek),
) -> Result<(), ConvertError> {
    plan.check()?;
    let mut entries = Ordered::new(stream, plan);
    let mut sections = Sections::new(&survey.header, into);
    let mut filler = Filler::new(&survey.header.levels);
    let mut at = Vec::new();
    while let Some(value) = entries.next(&mut at)? {
        filler.add(&at, value, &mut sections).map_err(changed)?;
    }
    filler.finish::<T>(&mut sections).map_err(changed)?;
    sections.finish().map_err(changed).map(drop)
}

/// Entries that have no place, or arrays with other lengths than were counted, say that entries changed.
fn changed(error: io::Error) -> ConvertError {
    match error.kind() {
        io::ErrorKind::InvalidInput => ConvertError::Changed,
        _ => ConvertError::Write(error),
    }
}

/// So many bytes of an array are gathered before they are written.
const BUFFER: usize = 64 << 10;

/// An array that is being written.
#[derive(Debug)]
struct Section {
    part: TcsPart,
    /// The offset at which the next bytes of the array are written.
    offset: u64,
    /// The offset at which the array ends.
    end: u64,
    bytes: Vec<u8>,
    checksum: crc32fast::Hasher,
}

/// The arrays of a file, all written at the same time, each from its start to its end.
#[derive(Debug)]
pub struct Sections<W> {
    into: W,
    header: TcsHeader,
    sections: Vec<Section>,
    /// For each level, where its `pos` is in the list.
    places: Vec<usize>,
}

impl<W: Write + Seek> Sections<W> {
    /// The arrays of a file with this header, of which nothing is written yet.
    pub fn new(header: &TcsHeader, into: W) -> Self {
        let section = |part: TcsPart| {
            let section = header.section(part);
            let end = section.offset + section.length * header.size(part);
            Section { part, offset: section.offset, end, bytes: Vec::new(), checksum: crc32fast::Hasher::new() }
        };
        let sections: Vec<Section> = header.parts().map(section).collect();
        let place = |level| sections.iter().position(|section| section.part == TcsPart::Pos(level)).unwrap_or(0);
        let places = (0..header.levels.len()).map(place).collect();
        Self { into, header: header.clone(), sections, places }
    }

    /// Writes what is left, and the header with the checksums of all arrays; gives back what is written to.
    ///
    /// # Errors
    /// As of what is written to; [`io::ErrorKind::InvalidInput`] if an array has less elements than the header says.
    pub fn finish(mut self) -> io::Result<W> {
        let mut end = self.header.start();
        for section in &mut self.sections {
            flush(section, &mut self.into)?;
            if section.offset != section.end {
                return Err(short(section.part));
            }
            let start = self.header.section(section.part).offset;
            self.into.seek(SeekFrom::Start(end))?;
            self.into.write_all(&[0; 8][..(start - end) as usize])?;
            end = section.end;
            self.header.set_checksum(section.part, std::mem::take(&mut section.checksum).finalize());
        }
        self.into.seek(SeekFrom::Start(0))?;
        self.into.write_all(&self.header.to_bytes())?;
        self.into.flush()?;
        Ok(self.into)
    }

    fn append(&mut self, place: usize, bytes: &[u8]) -> io::Result<()> {
        let section = &mut self.sections[place];
        section.bytes.extend_from_slice(bytes);
        if section.bytes.len() >= BUFFER { flush(section, &mut self.into) } else { Ok(()) }
    }

    fn append_number(&mut self, place: usize, number: u64) -> io::Result<()> {
        match self.header.width {
            Width::Four => self.append(place, &(number as u32).to_le_bytes()),
            Width::Eight => self.append(place, &number.to_le_bytes()),
        }
    }
}

fn short(part: TcsPart) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{part} has another length than the header says"))
}

fn flush(section: &mut Section, into: &mut (impl Write + Seek)) -> io::Result<()> {
    let length = section.bytes.len() as u64;
    if length > section.end - section.offset {
        return Err(short(section.part));
    }
    if length > 0 {
        into.seek(SeekFrom::Start(section.offset))?;
        into.write_all(&section.bytes)?;
        section.checksum.update(&section.bytes);
        section.offset += length;
        section.bytes.clear();
    }
    Ok(())
}

impl<T: Number, W: Write + Seek> Sink<T> for Sections<W> {
    fn pos(&mut self, level: usize, bound: u64, times: u64) -> io::Result<()> {
        (0..times).try_for_each(|_| self.append_number(self.places[level], bound))
    }

    fn idx(&mut self, level: usize, coordinate: u64) -> io::Result<()> {
        self.append_number(self.places[level] + 1, coordinate)
    }

    fn zeros(&mut self, times: u64) -> io::Result<()> {
        let zero = T::zeroed();
        (0..times).try_for_each(|_| self.value(zero))
    }

    fn value(&mut self, value: T) -> io::Result<()> {
        let mut bytes = [0; 16];
        let bytes = &mut bytes[..size_of::<T>()];
        bytes.copy_from_slice(bytemuck::bytes_of(&value));
        little_endian(bytes, T::TYPE.part_size());
        self.append(self.sections.len() - 1, bytes)
    }
}
