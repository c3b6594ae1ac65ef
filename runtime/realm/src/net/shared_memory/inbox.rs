//! The memory that a node shares with its neighbours: a ring from each of them, a flag that says that something came,
//! and a *bell* that says whether it is to be told over the other transport. Behind them comes what it
//! [lends](super::lending).
//!
//! A ring is made of cells, each a cache line: some bytes, and a *tag* that says which of all cells that were ever
//! written it is, and how many bytes it holds. So a short message is one line that goes from one core to another, and
//! nothing besides: the reader looks at the tag of the cell that comes next, and the writer looks only now and then how
//! far the reader has come.
//!
//! The other processes are not trusted: the file cannot be shortened (where the system has means for that), and every
//! place is computed from what this process knows itself.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use bytes::{Bytes, BytesMut};
use memmap2::{MmapOptions, MmapRaw};
use serde::{Deserialize, Serialize};

use super::lending::{self, Lending};
use super::memory_file::{MemoryFile, has_fixed_length};
use crate::topology::longest_file;

/// The first bytes of an inbox: what it is, and in which layout.
const MAGIC: [u8; 16] = *b"maniple inbox 3\n";

/// Things that different processes write are so far apart: two cache lines, which processors fetch together.
const LINE: usize = 128;

const BELL: usize = LINE;
const MAIL: usize = 2 * LINE;
const RINGS: usize = 3 * LINE;

/// Of a ring: how many cells were read, and whether the writer waits for room. Then come its cells.
const READ: usize = 0;
const WANTS_ROOM: usize = LINE;
const CELLS: usize = 2 * LINE;

/// The bytes of a cell: first those of messages, then its tag.
const CELL: usize = 64;
const CONTENT: usize = CELL - 8;

/// A tag is one more than the number of the cell, shifted by so much, and how many bytes it holds.
const COUNT: u32 = 6;

/// The alignment of memory to be lent: it begins and ends at a page, also where pages are large.
const PAGE: usize = 64 << 10;

/// A node whose inbox has so few rings looks at them all; for others there is the flag.
const FEW: usize = 4;

/// The data that a neighbour needs to open an inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Offer {
    path: PathBuf,
    /// Random: another file of that name on another machine has not got it.
    nonce: [u8; 16],
    rings: u32,
    capacity: u32,
    ring: u32,
    /// So many bytes come behind the rings, which the owner lends.
    lent: u64,
}

impl Offer {
    /// The same to a neighbour that is to write to this ring.
    pub(super) fn of_ring(&self, ring: usize) -> Self {
        Self { ring: ring as u32, ..self.clone() }
    }

    /// The ring that is the neighbour's to write to.
    pub(super) fn ring(&self) -> usize {
        self.ring as usize
    }
}

/// Memory that this node and its neighbours have in common.
pub(super) struct Inbox {
    map: Arc<MmapRaw>,
    rings: usize,
    /// Cells of a ring: a power of two.
    capacity: usize,
    /// The range that the owner lends.
    lent: Range<usize>,
}

/// The content of a cell.
pub(super) struct InboxCell {
    content: [u8; CONTENT],
    length: usize,
}

impl InboxCell {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.content[..self.length]
    }
}

/// The position of the writer of a ring.
#[derive(Debug, Default)]
pub(super) struct WriterPosition {
    cells: u64,
    /// At least so many were read.
    read: u64,
}

/// Positions that do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

impl Inbox {
    /// A new inbox with rings of so many bytes, and so many to be lent, or as many as a file may have; its file, and
    /// what to tell neighbours. The file can go once all have opened it.
    pub(super) fn create(rings: usize, bytes: usize, lent: usize) -> io::Result<(Self, MemoryFile, Offer)> {
        let capacity = bytes.div_ceil(CELL).next_power_of_two();
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let length = length(rings, capacity).ok_or_else(too_large)?;
        let mut lent = area(length, lent).ok_or_else(too_large)?;
        let longest = usize::try_from(longest_file()).unwrap_or(usize::MAX);
        if lent.start > longest {
            return Err(io::Error::other(format!("{} bytes are needed, and a file may have {longest}", lent.start)));
        }
        lent.end = lent.end.min(longest / PAGE * PAGE);
        let mut shared = MemoryFile::create()?;
        let file = shared.as_file();
        // Written, not only lengthened: whether there is memory for it is found out here, not by a signal when it is
        // used. For what is lent, that is found out when it is.
        file.write_all(&MAGIC)?;
        file.write_all(&nonce)?;
        let zeros = vec![0; 64 << 10];
        let mut left = length - MAGIC.len() - nonce.len();
        while left > 0 {
            let part = left.min(zeros.len());
            file.write_all(&zeros[..part])?;
            left -= part;
        }
        file.set_len(lent.end as u64)?;
        let inbox = Self { map: map(file, lent.end)?, rings, capacity, lent: lent.clone() };
        shared.fix_length()?;
        let offer = Offer {
            path: shared.path(),
            nonce,
            rings: u32::try_from(rings).map_err(|_| too_large())?,
            capacity: u32::try_from(capacity).map_err(|_| too_large())?,
            ring: 0,
            lent: lent.len() as u64,
        };
        Ok((inbox, shared, offer))
    }

    /// The inbox that another process offers, if it is one on this machine.
    pub(super) fn open(offer: &Offer) -> io::Result<Self> {
        let refuse = |reason| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        let (rings, capacity) = (offer.rings as usize, offer.capacity as usize);
        if !capacity.is_power_of_two() || offer.ring >= offer.rings {
            return refuse("an offer that makes no sense");
        }
        let lent = usize::try_from(offer.lent).ok().and_then(|lent| area(length(rings, capacity)?, lent));
        let Some(lent) = lent else { return refuse("an offer that makes no sense") };
        let file = OpenOptions::new().read(true).write(true).open(&offer.path)?;
        if file.metadata()?.len() != lent.end as u64 {
            return refuse("a file of another length");
        }
        if !has_fixed_length(&file) {
            return refuse("a file that may become shorter");
        }
        let inbox = Self { map: map(&file, lent.end)?, rings, capacity, lent };
        let mut start = [0; 32];
        // SAFETY: the mapping is longer than that; whatever another process writes there meanwhile, bytes are bytes.
        unsafe { ptr::copy_nonoverlapping(inbox.map.as_ptr(), start.as_mut_ptr(), start.len()) };
        if start[..16] != MAGIC || start[16..] != offer.nonce {
            return refuse("a file that is no inbox of this job");
        }
        Ok(inbox)
    }

    /// The memory that its owner lends, for the owner.
    pub(super) fn lending(&self) -> Arc<Lending> {
        Lending::new(Arc::clone(&self.map), self.lent.clone())
    }

    /// Bytes that its owner lends.
    pub(super) fn borrow(&self, block: u64, length: u64) -> Result<Bytes, Damaged> {
        lending::borrow(&self.map, &self.lent, block, length).ok_or(Damaged)
    }

    /// Whether the owner is to be told over the other transport when something comes.
    pub(super) fn bell(&self) -> &AtomicU32 {
        self.atomic32(BELL)
    }

    /// Whether something has come that the owner has not looked at.
    pub(super) fn mail(&self) -> &AtomicU32 {
        self.atomic32(MAIL)
    }

    fn ring(&self, ring: usize) -> usize {
        assert!(ring < self.rings, "ring {ring} of {}", self.rings);
        RINGS + ring * (CELLS + self.capacity * CELL)
    }

    /// Whether its owner looks at the rings: the flag need not be set for what comes there.
    pub(super) fn has_few_rings(&self) -> bool {
        self.rings <= FEW
    }

    /// Whether a ring of which so many cells were read has another one.
    #[inline]
    pub(super) fn has_next(&self, ring: usize, read: u64) -> bool {
        self.tag(self.ring(ring), read).load(Ordering::Relaxed) >> COUNT == read + 1
    }

    /// Copies as much of the pieces, one after the other, as there is room for into cells of a ring. Gives how many
    /// bytes.
    pub(super) fn write(&self, ring: usize, written: &mut WriterPosition, pieces: &[&[u8]]) -> Result<usize, Damaged> {
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let cells = (length.div_ceil(CONTENT) as u64).min(self.make_room(ring, written, length)?);
        self.fill(ring, written, cells, pieces);
        Ok(length.min(cells as usize * CONTENT))
    }

    /// As [`write`](Self::write), if there is room for all of it. False if not: then nothing was written.
    pub(super) fn write_whole(
        &self,
        ring: usize,
        written: &mut WriterPosition,
        pieces: &[&[u8]],
    ) -> Result<bool, Damaged> {
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let cells = length.div_ceil(CONTENT) as u64;
        let has_room = self.make_room(ring, written, length)? >= cells;
        match cells {
            _ if !has_room => {}
            1 => self.fill_one(ring, written, pieces),
            _ => self.fill(ring, written, cells, pieces),
        }
        Ok(has_room)
    }

    /// For how many cells there is room. Looks how far the reader has come only if that is not known to be enough for
    /// so many bytes.
    fn make_room(&self, ring: usize, written: &mut WriterPosition, length: usize) -> Result<u64, Damaged> {
        let room = self.room(written)?;
        if room >= length.div_ceil(CONTENT) as u64 {
            return Ok(room);
        }
        written.read = self.atomic64(self.ring(ring) + READ).load(Ordering::Acquire);
        self.room(written)
    }

    /// Copies as much of the pieces as so many cells hold, for which there is room.
    fn fill(&self, ring: usize, written: &mut WriterPosition, cells: u64, pieces: &[&[u8]]) {
        let start = self.ring(ring);
        let mut rest = BytePieces { pieces, done: 0 };
        for _ in 0..cells {
            let cell = self.cell(start, written.cells);
            let mut filled = 0;
            while filled < CONTENT
                && let Some(bytes) = rest.next(CONTENT - filled)
            {
                self.copy_in(cell + filled, bytes);
                filled += bytes.len();
            }
            self.publish(start, written, filled);
        }
    }

    /// As [`fill`](Self::fill), for a few bytes that fit into one cell: most messages.
    fn fill_one(&self, ring: usize, written: &mut WriterPosition, pieces: &[&[u8]]) {
        let start = self.ring(ring);
        let (mut content, mut filled) = ([0; CONTENT], 0);
        for piece in pieces {
            content[filled..][..piece.len()].copy_from_slice(piece);
            filled += piece.len();
        }
        self.copy_in(self.cell(start, written.cells), &content);
        self.publish(start, written, filled);
    }

    /// The next cell of the ring that begins there holds so many bytes, all of which are in place.
    #[inline]
    fn publish(&self, start: usize, written: &mut WriterPosition, bytes: usize) {
        let tag = (written.cells + 1) << COUNT | bytes as u64;
        self.tag(start, written.cells).store(tag, Ordering::Release);
        written.cells += 1;
    }

    /// For how many cells there is room, as far as is known.
    fn room(&self, written: &WriterPosition) -> Result<u64, Damaged> {
        let used = written.cells.checked_sub(written.read).ok_or(Damaged)?;
        (self.capacity as u64).checked_sub(used).ok_or(Damaged)
    }

    /// Appends what a ring has, of which `read` cells were read before: no more once there are `limit` bytes. Gives how
    /// many bytes.
    pub(super) fn read(
        &self,
        ring: usize,
        read: &mut u64,
        into: &mut BytesMut,
        limit: usize,
    ) -> Result<usize, Damaged> {
        let mut length = 0;
        while length < limit
            && let Some(cell) = self.peek(ring, *read)?
        {
            into.extend_from_slice(cell.bytes());
            (length, *read) = (length + cell.bytes().len(), *read + 1);
        }
        if length > 0 {
            self.publish_read(ring, *read);
        }
        Ok(length)
    }

    /// A copy of the next cell of a ring of which so many were read, if it has come.
    pub(super) fn peek(&self, ring: usize, read: u64) -> Result<Option<InboxCell>, Damaged> {
        let start = self.ring(ring);
        let tag = self.tag(start, read).load(Ordering::Acquire);
        if tag >> COUNT != read + 1 {
            return Ok(None);
        }
        let length = tag as usize & ((1 << COUNT) - 1);
        if !(1..=CONTENT).contains(&length) {
            return Err(Damaged);
        }
        Ok(Some(InboxCell { content: self.copy_out(self.cell(start, read)), length }))
    }

    /// Tells the writer of a ring that so many cells were read, and may be written again.
    pub(super) fn publish_read(&self, ring: usize, read: u64) {
        self.atomic64(self.ring(ring) + READ).store(read, Ordering::Release);
    }

    /// The writer of a ring waits for room: it has to try once more after this.
    pub(super) fn want_room(&self, ring: usize) {
        // Release: the thread that is told of the room sees what was there to be written.
        self.atomic32(self.ring(ring) + WANTS_ROOM).store(1, Ordering::Release);
        // Against the one in `take_wish`: either the reader sees the wish, or the writer the room.
        fence(Ordering::SeqCst);
    }

    /// Whether the writer waited for room, now that some was made.
    pub(super) fn take_wish(&self, ring: usize) -> bool {
        fence(Ordering::SeqCst);
        let wish = self.atomic32(self.ring(ring) + WANTS_ROOM);
        wish.load(Ordering::Relaxed) != 0 && wish.swap(0, Ordering::AcqRel) != 0
    }

    /// The offset of a cell, in a ring that begins at `start`.
    fn cell(&self, start: usize, number: u64) -> usize {
        start + CELLS + (number as usize & (self.capacity - 1)) * CELL
    }

    fn tag(&self, start: usize, number: u64) -> &AtomicU64 {
        self.atomic64(self.cell(start, number) + CONTENT)
    }

    fn copy_in(&self, to: usize, bytes: &[u8]) {
        assert!(to + bytes.len() <= self.map.len());
        // SAFETY: within the mapping. The reader does not look at them before the cell's tag is published; one that
        // does gets bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.as_mut_ptr().add(to), bytes.len()) };
    }

    fn copy_out(&self, from: usize) -> [u8; CONTENT] {
        assert!(from + CONTENT <= self.map.len());
        let mut content = [0; CONTENT];
        // SAFETY: within the mapping. Should the other process write at the same time, against the protocol, they are
        // some bytes: what they say is checked like all that comes from others.
        unsafe { ptr::copy_nonoverlapping(self.map.as_ptr().add(from), content.as_mut_ptr(), CONTENT) };
        content
    }

    fn atomic32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= self.map.len() && offset.is_multiple_of(4));
        // SAFETY: within the mapping, which lives as long as `self`; aligned, as mappings begin at pages; all processes
        // use it as an atomic only.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    fn atomic64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= self.map.len() && offset.is_multiple_of(8));
        // SAFETY: as in `atomic32`.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }
}

/// Some bytes in pieces, from which others of other lengths are cut.
struct BytePieces<'a> {
    pieces: &'a [&'a [u8]],
    /// So many bytes of the first are gone.
    done: usize,
}

impl<'a> BytePieces<'a> {
    /// The next bytes, as many as there are in one piece, up to a limit.
    fn next(&mut self, limit: usize) -> Option<&'a [u8]> {
        loop {
            let (first, others) = self.pieces.split_first()?;
            let left = &first[self.done..];
            if !left.is_empty() {
                let bytes = &left[..left.len().min(limit)];
                self.done += bytes.len();
                return Some(bytes);
            }
            (self.pieces, self.done) = (others, 0);
        }
    }
}

/// The bytes of an inbox, if there are so many.
fn length(rings: usize, capacity: usize) -> Option<usize> {
    rings.checked_mul(capacity.checked_mul(CELL)?.checked_add(CELLS)?)?.checked_add(RINGS)
}

/// The range of the memory to be lent, in a file whose rings end at `rings`; `None` if there are no such addresses.
fn area(rings: usize, bytes: usize) -> Option<Range<usize>> {
    let start = rings.checked_next_multiple_of(PAGE)?;
    Some(start..start.checked_add(bytes)?.checked_next_multiple_of(PAGE)?)
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "rings so long or so many cannot be addressed")
}

fn map(file: &File, length: usize) -> io::Result<Arc<MmapRaw>> {
    MmapOptions::new().len(length).map_raw(file).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(capacity: usize) -> (Inbox, Inbox) {
        let (inbox, _file, offer) = Inbox::create(2, capacity, 1).unwrap();
        let other = Inbox::open(&Offer { ring: 1, ..offer }).unwrap();
        (inbox, other)
    }

    #[test]
    fn bytes_come_out_as_they_went_in_around_the_end_of_the_ring() {
        let (inbox, other) = pair(4 * CELL);
        let (mut written, mut read, mut random) = (WriterPosition::default(), 0, fastrand::Rng::with_seed(1));
        let (mut sent, mut came) = (Vec::new(), BytesMut::new());
        for _ in 0..1000 {
            let mut bytes = vec![0; random.usize(..400)];
            random.fill(&mut bytes);
            let (one, two) = bytes.split_at(bytes.len() / 3);
            let done = other.write(1, &mut written, &[one, two]).unwrap();
            sent.extend_from_slice(&bytes[..done]);
            assert_eq!(inbox.has_next(1, read), came.len() < sent.len());
            inbox.read(1, &mut read, &mut came, random.usize(..400)).unwrap();
        }
        inbox.read(1, &mut read, &mut came, usize::MAX).unwrap();
        assert!(sent.len() > 40_000);
        assert_eq!(came, sent);
    }

    #[test]
    fn a_writer_that_has_not_looked_for_long_finds_all_the_room_there_is() {
        let (inbox, other) = pair(4 * CELL);
        let (mut written, mut read, mut came) = (WriterPosition::default(), 0, BytesMut::new());
        assert_eq!(other.write(0, &mut written, &[&[1; 1000]]), Ok(4 * CONTENT), "what there is room for");
        assert_eq!(other.write(0, &mut written, &[&[1]]), Ok(0));
        assert_eq!(inbox.read(0, &mut read, &mut came, 1), Ok(CONTENT), "whole cells");
        assert_eq!(inbox.read(0, &mut read, &mut came, usize::MAX), Ok(3 * CONTENT));
        assert_eq!(other.write(0, &mut written, &[&[1; 1000]]), Ok(4 * CONTENT));
    }

    #[test]
    fn positions_and_tags_that_make_no_sense_are_found_out() {
        let (inbox, other) = pair(4 * CELL);
        for bytes in [0, CONTENT as u64 + 1, 63] {
            other.tag(other.ring(1), 0).store(1 << COUNT | bytes, Ordering::Relaxed);
            assert_eq!(inbox.read(1, &mut 0, &mut BytesMut::new(), 100), Err(Damaged));
        }
        other.tag(other.ring(1), 0).store(2 << COUNT | 1, Ordering::Relaxed);
        assert_eq!(inbox.read(1, &mut 0, &mut BytesMut::new(), 100), Ok(0), "a cell of another time");
        let mut written = WriterPosition::default();
        assert_eq!(other.write_whole(0, &mut written, &[&[1; 4 * CONTENT], &[1]]), Ok(false), "all or nothing");
        inbox.atomic64(inbox.ring(0) + READ).store(5, Ordering::Relaxed);
        assert_eq!(other.write(0, &mut written, &[&[1; 4 * CELL]]), Err(Damaged), "more was read than written");
    }

    #[test]
    fn a_file_that_is_not_the_one_offered_is_refused() {
        let (_inbox, file, offer) = Inbox::create(1, 4 * CELL, 1).unwrap();
        assert!(Inbox::open(&offer).is_ok());
        assert!(Inbox::open(&Offer { nonce: [7; 16], ..offer.clone() }).is_err());
        assert!(Inbox::open(&Offer { capacity: 1 << 16, ..offer.clone() }).is_err());
        assert!(Inbox::open(&Offer { capacity: 3, ..offer.clone() }).is_err());
        assert!(Inbox::open(&Offer { ring: 1, ..offer.clone() }).is_err());
        let endless = Offer { rings: u32::MAX, capacity: 1 << 31, ..offer.clone() };
        assert!(Inbox::open(&endless).is_err(), "longer than memory");
        assert!(Inbox::open(&Offer { lent: 0, ..offer.clone() }).is_err(), "of another length");
        assert!(Inbox::open(&Offer { lent: u64::MAX, ..offer.clone() }).is_err());
        drop(file);
        assert!(Inbox::open(&offer).is_err(), "it is gone");
    }
}
