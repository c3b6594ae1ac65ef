//! The memory that a node shares with its neighbours: a ring of bytes from each of them, a flag that says that something came, and a *bell* that says
//! whether it is to be told over the other transport.
//!
//! The other processes are trusted not to shorten the file. Nothing else of theirs is: every place is computed from what this process knows itself.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use bytes::BytesMut;
use memmap2::{MmapOptions, MmapRaw};
use serde::{Deserialize, Serialize};
use tempfile::TempPath;

/// The first bytes of an inbox: what it is, and in which layout.
const MAGIC: [u8; 16] = *b"maniple inbox 1\n";

/// Things that different processes write are so far apart: two cache lines, which processors fetch together.
const LINE: usize = 128;

const BELL: usize = LINE;
const MAIL: usize = 2 * LINE;
const RINGS: usize = 3 * LINE;

/// Of a ring: how far it was read and written, and whether the writer waits for room. Then come its bytes.
const READ: usize = 0;
const WRITTEN: usize = LINE;
const WANTS_ROOM: usize = 2 * LINE;
const BYTES: usize = 3 * LINE;

/// What a neighbour needs to know to open an inbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Offer {
    path: PathBuf,
    /// Random: another file of that name on another machine has not got it.
    nonce: [u8; 16],
    rings: u32,
    capacity: u32,
    ring: u32,
}

impl Offer {
    /// The same to a neighbour who is to write to this ring.
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
    map: MmapRaw,
    rings: usize,
    /// Bytes of a ring: a power of two.
    capacity: usize,
}

/// Positions that do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged;

impl Inbox {
    /// A new inbox, its file, and what to tell neighbours. The file can go once all have opened it.
    pub(super) fn create(rings: usize, capacity: usize) -> io::Result<(Self, TempPath, Offer)> {
        let capacity = capacity.next_power_of_two();
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let length = RINGS + rings * (BYTES + capacity);
        let mut file = create_file()?;
        // Written, not only lengthened: whether there is memory for it is found out here, not by a signal when it is used.
        file.write_all(&MAGIC)?;
        file.write_all(&nonce)?;
        let zeros = vec![0; 64 << 10];
        let mut left = length - MAGIC.len() - nonce.len();
        while left > 0 {
            let part = left.min(zeros.len());
            file.write_all(&zeros[..part])?;
            left -= part;
        }
        let inbox = Self { map: map(file.as_file(), length)?, rings, capacity };
        let path = file.into_temp_path();
        let too_large = |_| io::Error::new(io::ErrorKind::InvalidInput, "an inbox has at most 4 GiB");
        let offer = Offer {
            path: path.to_path_buf(),
            nonce,
            rings: u32::try_from(rings).map_err(too_large)?,
            capacity: u32::try_from(capacity).map_err(too_large)?,
            ring: 0,
        };
        Ok((inbox, path, offer))
    }

    /// The inbox that another process offers, if it is one on this machine.
    pub(super) fn open(offer: &Offer) -> io::Result<Self> {
        let refuse = |reason| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        let (rings, capacity) = (offer.rings as usize, offer.capacity as usize);
        if !capacity.is_power_of_two() || offer.ring >= offer.rings {
            return refuse("an offer that makes no sense");
        }
        let file = OpenOptions::new().read(true).write(true).open(&offer.path)?;
        let length = RINGS + rings * (BYTES + capacity);
        if file.metadata()?.len() != length as u64 {
            return refuse("a file of another length");
        }
        let inbox = Self { map: map(&file, length)?, rings, capacity };
        let mut start = [0; 32];
        // SAFETY: the mapping is longer than that; whatever another process writes there meanwhile, bytes are bytes.
        unsafe { ptr::copy_nonoverlapping(inbox.map.as_ptr(), start.as_mut_ptr(), start.len()) };
        if start[..16] != MAGIC || start[16..] != offer.nonce {
            return refuse("a file that is no inbox of this job");
        }
        Ok(inbox)
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
        RINGS + ring * (BYTES + self.capacity)
    }

    /// Copies as much of the pieces, one after the other, as there is room for into a ring, of which `written` bytes were written before. Gives how many.
    pub(super) fn write(&self, ring: usize, written: &mut u64, pieces: &[&[u8]]) -> Result<usize, Damaged> {
        let start = self.ring(ring);
        let read = self.atomic64(start + READ).load(Ordering::Acquire);
        let used = usize::try_from(written.wrapping_sub(read)).map_err(|_| Damaged)?;
        let room = self.capacity.checked_sub(used).ok_or(Damaged)?;
        let mut done = 0;
        for piece in pieces {
            let length = piece.len().min(room - done);
            self.copy_in(start + BYTES, *written + done as u64, &piece[..length]);
            done += length;
        }
        *written += done as u64;
        self.atomic64(start + WRITTEN).store(*written, Ordering::Release);
        Ok(done)
    }

    /// Appends what a ring has, up to `limit` bytes, of which `read` were read before. Gives how many.
    pub(super) fn read(
        &self,
        ring: usize,
        read: &mut u64,
        into: &mut BytesMut,
        limit: usize,
    ) -> Result<usize, Damaged> {
        let start = self.ring(ring);
        let written = self.atomic64(start + WRITTEN).load(Ordering::Acquire);
        let there = usize::try_from(written.wrapping_sub(*read)).map_err(|_| Damaged)?;
        if there > self.capacity {
            return Err(Damaged);
        }
        let length = there.min(limit);
        if length > 0 {
            self.copy_out(start + BYTES, *read, length, into);
            *read += length as u64;
            self.atomic64(start + READ).store(*read, Ordering::Release);
        }
        Ok(length)
    }

    /// The writer of a ring waits for room: it has to try once more after this.
    pub(super) fn want_room(&self, ring: usize) {
        self.atomic32(self.ring(ring) + WANTS_ROOM).store(1, Ordering::Relaxed);
        // Against the one in `take_wish`: either the reader sees the wish, or the writer the room.
        fence(Ordering::SeqCst);
    }

    /// Whether the writer waited for room, now that some was made.
    pub(super) fn take_wish(&self, ring: usize) -> bool {
        fence(Ordering::SeqCst);
        let wish = self.atomic32(self.ring(ring) + WANTS_ROOM);
        wish.load(Ordering::Relaxed) != 0 && wish.swap(0, Ordering::Relaxed) != 0
    }

    fn copy_in(&self, base: usize, position: u64, bytes: &[u8]) {
        let offset = position as usize & (self.capacity - 1);
        let first = bytes.len().min(self.capacity - offset);
        let to = self.map.as_mut_ptr();
        // SAFETY: `base` is where the bytes of a ring begin (`ring` has checked that it exists), `offset + first` and the rest are within its capacity,
        // which `bytes` does not exceed (`write`). The reader does not look at them before `written` is published; one that does gets bytes.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(base + offset), first);
            ptr::copy_nonoverlapping(bytes.as_ptr().add(first), to.add(base), bytes.len() - first);
        }
    }

    fn copy_out(&self, base: usize, position: u64, length: usize, into: &mut BytesMut) {
        let offset = position as usize & (self.capacity - 1);
        let first = length.min(self.capacity - offset);
        into.reserve(length);
        let (from, end) = (self.map.as_ptr(), into.len());
        // SAFETY: as in `copy_in` for the source; the target has room for `length` bytes behind its end, which are then written. Should the other process
        // write at the same time, against the protocol, they are some bytes: what they say is checked like all that comes from others.
        unsafe {
            let to = into.as_mut_ptr().add(end);
            ptr::copy_nonoverlapping(from.add(base + offset), to, first);
            ptr::copy_nonoverlapping(from.add(base), to.add(first), length - first);
            into.set_len(end + length);
        }
    }

    fn atomic32(&self, offset: usize) -> &AtomicU32 {
        assert!(offset + 4 <= self.map.len() && offset.is_multiple_of(4));
        // SAFETY: within the mapping, which lives as long as `self`; aligned, as mappings begin at pages; all processes use it as an atomic only.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    fn atomic64(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= self.map.len() && offset.is_multiple_of(8));
        // SAFETY: as in `atomic32`.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }
}

fn map(file: &File, length: usize) -> io::Result<MmapRaw> {
    MmapOptions::new().len(length).map_raw(file)
}

/// A file in memory where there is such a place, that only this user may open.
fn create_file() -> io::Result<tempfile::NamedTempFile> {
    let memory = Path::new("/dev/shm");
    let make = |folder: &Path| tempfile::Builder::new().prefix("maniple-").tempfile_in(folder);
    match memory.is_dir() {
        true => make(memory).or_else(|_| make(&std::env::temp_dir())),
        false => make(&std::env::temp_dir()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(capacity: usize) -> (Inbox, Inbox) {
        let (inbox, _path, offer) = Inbox::create(2, capacity).unwrap();
        let other = Inbox::open(&Offer { ring: 1, ..offer }).unwrap();
        (inbox, other)
    }

    #[test]
    fn bytes_come_out_as_they_went_in_around_the_end_of_the_ring() {
        let (inbox, other) = pair(64);
        let (mut written, mut read, mut random) = (0, 0, fastrand::Rng::with_seed(1));
        let (mut sent, mut came) = (Vec::new(), BytesMut::new());
        for _ in 0..1000 {
            let mut bytes = vec![0; random.usize(..100)];
            random.fill(&mut bytes);
            let (one, two) = bytes.split_at(bytes.len() / 3);
            let done = other.write(1, &mut written, &[one, two]).unwrap();
            sent.extend_from_slice(&bytes[..done]);
            inbox.read(1, &mut read, &mut came, random.usize(..100)).unwrap();
        }
        inbox.read(1, &mut read, &mut came, 64).unwrap();
        assert!(sent.len() > 10_000);
        assert_eq!(came, sent);
    }

    #[test]
    fn positions_that_make_no_sense_are_found_out() {
        let (inbox, other) = pair(64);
        other.atomic64(other.ring(1) + WRITTEN).store(65, Ordering::Relaxed);
        assert_eq!(inbox.read(1, &mut 0, &mut BytesMut::new(), 100), Err(Damaged));
        inbox.atomic64(inbox.ring(0) + READ).store(1, Ordering::Relaxed);
        assert_eq!(other.write(0, &mut 0, &[&[1]]), Err(Damaged));
    }

    #[test]
    fn a_file_that_is_not_the_one_offered_is_refused() {
        let (_inbox, path, offer) = Inbox::create(1, 64).unwrap();
        assert!(Inbox::open(&offer).is_ok());
        assert!(Inbox::open(&Offer { nonce: [7; 16], ..offer.clone() }).is_err());
        assert!(Inbox::open(&Offer { capacity: 128, ..offer.clone() }).is_err());
        assert!(Inbox::open(&Offer { capacity: 63, ..offer.clone() }).is_err());
        assert!(Inbox::open(&Offer { ring: 1, ..offer.clone() }).is_err());
        drop(path);
        assert!(Inbox::open(&offer).is_err(), "it is gone");
    }
}
