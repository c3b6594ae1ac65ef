//! Pieces of a tensor with the arrays as they are in its file: for tensors that are kept as one, and not as blocks.

use std::ops::Range;

use crate::error::ReadError;
use crate::number::Number;
use crate::tcs::check::check_padding;
use crate::tcs::header::{TcsHeader, at, malformed};
use crate::tcs::layout::TcsPart;
use crate::tcs::source::{Source, little_endian, number};
use crate::tcs::summed::{Summed, Summing};
use crate::tcs::window::Window;

/// Bytes that are read at once.
const CHUNK: u64 = 256 << 10;

/// Which elements of each array are those of which piece. Each element is in one piece, and pieces follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Of the place above all levels, and then of each level, where the nodes of each piece begin; at the end, how many
    /// nodes there are.
    cuts: Vec<Vec<u64>>,
}

impl Pieces {
    /// The pieces that end at these places, each the node of each level, as
    /// [`Finder::end_of_piece`](super::Finder::end_of_piece) finds them. The last one has all that is left.
    #[must_use]
    pub fn new(header: &TcsHeader, ends: &[Vec<u64>]) -> Self {
        let inner = &ends[..ends.len().saturating_sub(1)];
        let cuts = |(level, nodes): (usize, u64)| {
            let mut cuts = vec![0];
            for end in inner {
                let end = level.checked_sub(1).and_then(|level| end.get(level)).copied().unwrap_or(0);
                // Places in damaged files need not follow each other.
                cuts.push(end.min(nodes).max(cuts[cuts.len() - 1]));
            }
            cuts.push(nodes);
            cuts
        };
        let nodes = [1].into_iter().chain(header.nodes());
        Self { cuts: nodes.enumerate().map(cuts).collect() }
    }

    /// So many pieces with about as many elements of each array each, in whole rows of the first level if all levels
    /// are dense. What is below the nodes of one need not be in it.
    #[must_use]
    pub fn equal(header: &TcsHeader, count: usize) -> Self {
        let nodes = header.nodes();
        let is_dense = header.levels.iter().all(|level| !level.is_sparse());
        let share = |nodes: u64, piece: usize| (u128::from(nodes) * piece as u128 / count.max(1) as u128) as u64;
        let end = |piece: usize| match nodes.first() {
            Some(&rows) if is_dense => {
                nodes.iter().map(|nodes| nodes.checked_div(rows).unwrap_or(0) * share(rows, piece)).collect()
            }
            _ => nodes.iter().map(|nodes| share(*nodes, piece)).collect(),
        };
        Self::new(header, &(1..=count.max(1)).map(end).collect::<Vec<_>>())
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.cuts[0].len() - 1
    }

    /// The elements of an array that a piece has.
    ///
    /// # Panics
    /// If there is no such piece or level.
    #[must_use]
    pub fn range(&self, part: TcsPart, piece: usize) -> Range<u64> {
        let cuts = match part {
            TcsPart::Pos(level) => &self.cuts[level],
            TcsPart::Idx(level) => &self.cuts[level + 1],
            TcsPart::Values => &self.cuts[self.cuts.len() - 1],
        };
        // One more bound ends the last segment.
        let after = u64::from(matches!(part, TcsPart::Pos(_)) && piece + 1 == self.count());
        cuts[piece]..cuts[piece + 1] + after
    }

    /// The bytes of arrays that a piece has.
    ///
    /// # Panics
    /// If there is no such piece.
    #[must_use]
    pub fn bytes(&self, header: &TcsHeader, piece: usize) -> u64 {
        let bytes = |part: TcsPart| {
            let range = self.range(part, piece);
            (range.end - range.start) * header.size(part)
        };
        header.parts().map(bytes).sum()
    }
}

/// Elements of an array one after another, as bytes, of which many are read at once.
struct Chunks<'s, S: ?Sized> {
    source: &'s S,
    header: &'s TcsHeader,
    part: TcsPart,
    /// The elements that were not read yet.
    rest: Range<u64>,
    bytes: Vec<u8>,
    sum: Summing,
}

impl<'s, S: Source + ?Sized> Chunks<'s, S> {
    fn new(source: &'s S, header: &'s TcsHeader, part: TcsPart, rest: Range<u64>) -> Self {
        Self { source, header, part, rest, bytes: Vec::new(), sum: Summing::default() }
    }

    /// The next ones, and the number of the first; none at the end.
    fn next(&mut self) -> Result<Option<(u64, &mut [u8])>, ReadError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (size, first) = (self.header.size(self.part), self.rest.start);
        let count = (CHUNK / size).min(self.rest.end - first);
        self.bytes.resize((count * size) as usize, 0);
        self.source.read_at(self.header.section(self.part).offset + first * size, &mut self.bytes)?;
        self.sum.update(&self.bytes);
        self.rest.start += count;
        Ok(Some((first, &mut self.bytes)))
    }
}

/// Reads a range of `pos` or `idx`, number by number. Bounds are at most the number of coordinates, and coordinates in
/// the range of their level.
///
/// # Errors
/// As of the source; [`Problem::Malformed`](crate::Problem::Malformed) if a number is outside of these ranges.
pub fn read_numbers(
    source: &(impl Source + ?Sized),
    header: &TcsHeader,
    part: TcsPart,
    range: Range<u64>,
    mut take: impl FnMut(u64),
) -> Result<Summed, ReadError> {
    let allowed = match part {
        TcsPart::Pos(level) => 0..header.section(TcsPart::Idx(level)).length + 1,
        TcsPart::Idx(level) => header.levels[level].range.clone(),
        TcsPart::Values => 0..0,
    };
    let size = header.size(part) as usize;
    let mut chunks = Chunks::new(source, header, part, range);
    while let Some((first, bytes)) = chunks.next()? {
        for (place, bytes) in (first..).zip(bytes.chunks_exact(size)) {
            match number(bytes) {
                number if allowed.contains(&number) => take(number),
                number => {
                    let expected = format!("expected a number from {} and below {}", allowed.start, allowed.end);
                    return Err(wrong(header, part, place, &format!("{expected}, found {number}")));
                }
            }
        }
    }
    Ok(chunks.sum.finish())
}

/// Reads a range of `val`, one element after another.
pub struct Values<'s, S: ?Sized> {
    chunks: Chunks<'s, S>,
    /// How many bytes of the last chunk were given out.
    given: usize,
}

impl<'s, S: Source + ?Sized> Values<'s, S> {
    /// These elements of a file.
    pub fn new(source: &'s S, header: &'s TcsHeader, range: Range<u64>) -> Self {
        Self { chunks: Chunks::new(source, header, TcsPart::Values, range), given: 0 }
    }

    /// Sets elements to the next ones, of the type that the header says: all of them, or as many as are left.
    ///
    /// # Errors
    /// As of the source.
    pub fn read<T: Number>(&mut self, mut into: &mut [T]) -> Result<(), ReadError> {
        while !into.is_empty() && self.advance()? {
            let bytes = self.chunks.bytes[self.given..].chunks_exact(size_of::<T>());
            let count = bytes.len().min(into.len());
            for (element, bytes) in into.iter_mut().zip(bytes) {
                *element = T::from_carrier(bytemuck::pod_read_unaligned(bytes));
            }
            self.given += count * size_of::<T>();
            into = &mut into[count..];
        }
        Ok(())
    }

    /// Reads what is left, and gives the sum of all.
    ///
    /// # Errors
    /// As of the source.
    pub fn finish(mut self) -> Result<Summed, ReadError> {
        while self.chunks.next()?.is_some() {}
        Ok(self.chunks.sum.finish())
    }

    /// Whether there is a next element, which is then among the bytes.
    fn advance(&mut self) -> Result<bool, ReadError> {
        if self.given < self.chunks.bytes.len() {
            return Ok(true);
        }
        let size = self.chunks.header.number.part_size();
        let Some((_, bytes)) = self.chunks.next()? else { return Ok(false) };
        little_endian(bytes, size);
        self.given = 0;
        Ok(true)
    }
}

/// Checks what a piece has of a sparse level, of which functions give the numbers that it has read; the two numbers
/// beside them are looked up. If that holds of all pieces, then all that [`check`](crate::tcs::check()) asks of the
/// level does, but for checksums.
///
/// # Errors
/// As of the source; [`Problem::Malformed`](crate::Problem::Malformed) with the place of what is wrong.
///
/// # Panics
/// If there is no such level or piece, or the level is dense.
pub fn check_piece(
    source: &(impl Source + ?Sized),
    header: &TcsHeader,
    pieces: &Pieces,
    piece: usize,
    level: usize,
    pos: impl Fn(u64) -> u64,
    idx: impl Fn(u64) -> u64,
) -> Result<(), ReadError> {
    let (of_pos, of_idx) = (TcsPart::Pos(level), TcsPart::Idx(level));
    let (bounds, places) = (pieces.range(of_pos, piece), pieces.range(of_idx, piece));
    let (parents, count) = (header.section(of_pos).length - 1, header.section(of_idx).length);
    // The bound after those that the piece has, and the coordinate before.
    let after = match bounds.end <= parents {
        true => Some(Window::new(source, header, of_pos).scattered().number(bounds.end)?),
        false => None,
    };
    let mut before = match places.start {
        0 => None,
        start => Some(Window::new(source, header, of_idx).scattered().number(start - 1)?),
    };
    let bound = |place: u64| if bounds.contains(&place) { Some(pos(place)) } else { after };
    for place in bounds.clone() {
        let found = pos(place);
        if place == 0 && found != 0 {
            return Err(wrong(header, of_pos, 0, &format!("expected 0, found {found}")));
        }
        if place == parents && found != count {
            let reason = format!("expected {count}, the number of coordinates, found {found}");
            return Err(wrong(header, of_pos, place, &reason));
        }
        if let Some(next) = bound(place + 1).filter(|next| !(found..=count).contains(next)) {
            let reason = format!("expected a number from {found} to {count}, found {next}");
            return Err(wrong(header, of_pos, place + 1, &reason));
        }
    }
    let range = &header.levels[level].range;
    let mut next = bounds.start;
    for place in places {
        let mut begins = place == 0;
        while let Some(start) = bound(next).filter(|start| next <= bounds.end && *start <= place) {
            begins |= start == place;
            next += 1;
        }
        let coordinate = idx(place);
        let least = before.filter(|_| !begins).map_or(range.start, |before| before.saturating_add(1));
        if coordinate < least || coordinate >= range.end {
            let rule = if begins { "" } else { ", as coordinates below one parent ascend," };
            let reason =
                format!("expected a coordinate from {least}{rule} and below {}, found {coordinate}", range.end);
            return Err(wrong(header, of_idx, place, &reason));
        }
        before = Some(coordinate);
    }
    Ok(())
}

/// Checks that the bytes between arrays are zero.
///
/// # Errors
/// As of the source; [`Problem::Malformed`](crate::Problem::Malformed) if they are not.
pub fn check_gaps(source: &(impl Source + ?Sized), header: &TcsHeader) -> Result<(), ReadError> {
    let mut end = header.start();
    for part in header.parts() {
        let section = header.section(part);
        check_padding(source, end, section.offset)?;
        end = section.offset + section.length * header.size(part);
    }
    Ok(())
}

fn wrong(header: &TcsHeader, part: TcsPart, place: u64, reason: &str) -> ReadError {
    let byte = header.section(part).offset + place * header.size(part);
    at(byte, malformed(format!("{part} at {place}: {reason}")))
}
