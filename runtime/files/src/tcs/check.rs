//! Arrays of a file, checked.

use super::header::{TcsHeader, at, malformed};
use super::layout::TcsPart;
use super::source::Source;
use super::window::{Window, checksum};
use crate::error::ReadError;

/// Checks all arrays of a file, whose header was read, with little memory: their checksums, the zeros between them,
/// that the bounds of segments start with 0 and ascend to the number of coordinates, and that the coordinates of each
/// segment ascend and are in their range.
///
/// Of a piece, checksums and zeros alone.
///
/// # Errors
/// [`ReadError`] with the place of what is wrong.
pub fn check(source: &(impl Source + ?Sized), header: &TcsHeader) -> Result<(), ReadError> {
    let mut end = header.start();
    for part in header.parts() {
        let section = header.section(part);
        check_padding(source, end, section.offset)?;
        check_sum(header, part, checksum(source, header, part)?)?;
        end = section.offset + section.length * header.size(part);
    }
    if header.is_piece {
        return Ok(());
    }
    for level in (0..header.levels.len()).filter(|level| header.levels[*level].is_sparse()) {
        let (mut pos, mut idx) =
            (Window::new(source, header, TcsPart::Pos(level)), Window::new(source, header, TcsPart::Idx(level)));
        check_level(header, level, |place| pos.number(place), |place| idx.number(place))?;
    }
    Ok(())
}

/// Refuses an array whose checksum is another than the header says.
pub(super) fn check_sum(header: &TcsHeader, part: TcsPart, found: u32) -> Result<(), ReadError> {
    let section = header.section(part);
    match section.checksum == found {
        true => Ok(()),
        false => Err(at(
            section.offset,
            malformed(format!(
                "{part} is damaged: its checksum is {found:08x}, and should be {:08x}",
                section.checksum
            )),
        )),
    }
}

/// Refuses bytes between arrays that are not zero.
pub(super) fn check_padding(source: &(impl Source + ?Sized), start: u64, end: u64) -> Result<(), ReadError> {
    let mut bytes = [0; 8];
    let bytes = &mut bytes[..(end - start) as usize];
    source.read_at(start, bytes)?;
    match bytes.iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(place) => {
            Err(at(start + place as u64, malformed(format!("byte {} between two arrays is not zero", bytes[place]))))
        }
    }
}

/// Checks the arrays of a sparse level, of which functions give the numbers.
pub(super) fn check_level(
    header: &TcsHeader,
    level: usize,
    mut pos: impl FnMut(u64) -> Result<u64, ReadError>,
    mut idx: impl FnMut(u64) -> Result<u64, ReadError>,
) -> Result<(), ReadError> {
    let wrong = |part: TcsPart, place: u64, reason: String| {
        Err(at(
            header.section(part).offset + place * header.size(part),
            malformed(format!("{part} at {place}: {reason}")),
        ))
    };
    let (parents, count) = (header.section(TcsPart::Pos(level)).length - 1, header.section(TcsPart::Idx(level)).length);
    let range = &header.levels[level].range;
    let mut start = pos(0)?;
    if start != 0 {
        return wrong(TcsPart::Pos(level), 0, format!("expected 0, found {start}"));
    }
    for parent in 0..parents {
        let end = pos(parent + 1)?;
        if !(start..=count).contains(&end) {
            return wrong(
                TcsPart::Pos(level),
                parent + 1,
                format!("expected a number from {start} to {count}, found {end}"),
            );
        }
        let mut least = range.start;
        for place in start..end {
            let coordinate = idx(place)?;
            if coordinate < least || coordinate >= range.end {
                let rule = if place == start { "" } else { ", as coordinates below one parent ascend," };
                return wrong(
                    TcsPart::Idx(level),
                    place,
                    format!("expected a coordinate from {least}{rule} and below {}, found {coordinate}", range.end),
                );
            }
            least = coordinate + 1;
        }
        start = end;
    }
    match start == count {
        true => Ok(()),
        false => {
            wrong(TcsPart::Pos(level), parents, format!("expected {count}, the number of coordinates, found {start}"))
        }
    }
}
