//! Memory that a node lends for the bodies of messages to its neighbours, which read them where they are: what is long
//! is not cut into cells, and not copied on its way.
//!
//! It is the end of the inbox's file. A *block* is one body, behind a line of its own with the number of neighbours
//! that still read it. It is free again when its owner has let go of it and that number is zero. A reader takes the
//! owner's word for place and length, once they are found to be within the memory; the owner trusts no neighbour: a
//! number that never becomes zero costs it that block.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use memmap2::MmapRaw;

use crate::locks::Mutex;
use crate::net::transport::{Lent, Loan};

/// Blocks begin at cache lines, and the first is for the number of readers.
const LINE: usize = 64;

/// So much memory is made ready to be used at a time, as that costs a call of the system.
const STEP: usize = 256 << 10;

/// To see whether a block is still read takes about as long as to fill so many bytes.
const LOOK: usize = 128;

/// The memory that this node lends.
pub(super) struct Lending {
    map: Arc<MmapRaw>,
    /// The range of this memory in the file.
    area: Range<usize>,
    blocks: Mutex<Blocks>,
}

/// Which parts of the area are in use, by where they begin: their lengths.
#[derive(Debug, Default)]
struct Blocks {
    /// Two that touch are one.
    free: BTreeMap<usize, usize>,
    /// The same, by length.
    by_length: BTreeSet<(usize, usize)>,
    lent: BTreeMap<usize, usize>,
    /// Blocks that their owner has let go of, while neighbours may still read them.
    read: VecDeque<(usize, usize)>,
    /// The system has given memory up to here.
    ready: usize,
}

impl Blocks {
    fn new(area: &Range<usize>) -> Self {
        let mut blocks = Self { ready: area.start, ..Self::default() };
        blocks.insert(area.start, area.len());
        blocks
    }

    fn insert(&mut self, start: usize, length: usize) {
        self.free.insert(start, length);
        self.by_length.insert((length, start));
    }

    fn remove(&mut self, start: usize) -> Option<usize> {
        let length = self.free.remove(&start)?;
        self.by_length.remove(&(length, start));
        Some(length)
    }

    /// Takes the shortest free part that is long enough.
    fn take(&mut self, length: usize) -> Option<usize> {
        let &(room, start) = self.by_length.range((length, 0)..).next()?;
        self.remove(start);
        if room > length {
            self.insert(start + length, room - length);
        }
        Some(start)
    }

    fn give_back(&mut self, mut start: usize, mut length: usize) {
        if let Some((&before, &room)) = self.free.range(..start).next_back()
            && before + room == start
        {
            self.remove(before);
            (start, length) = (before, room + length);
        }
        if let Some(room) = self.remove(start + length) {
            length += room;
        }
        self.insert(start, length);
    }

    /// Frees those that are not read any more, of as many as may be looked at: those that wait for longest first, and
    /// each in its turn.
    fn collect(&mut self, looks: usize, is_read: impl Fn(usize) -> bool) {
        for _ in 0..looks.min(self.read.len()) {
            let Some((start, length)) = self.read.pop_front() else { return };
            match is_read(start) {
                true => self.read.push_back((start, length)),
                false => self.give_back(start, length),
            }
        }
    }

    /// There is no more memory than what is ready: nothing beyond is in use.
    fn end_where_ready(&mut self) {
        if let Some((&start, _)) = self.free.last_key_value() {
            self.remove(start);
            if start < self.ready {
                self.insert(start, self.ready - start);
            }
        }
    }
}

impl Lending {
    /// The end of a file that is mapped.
    pub(super) fn new(map: Arc<MmapRaw>, area: Range<usize>) -> Arc<Self> {
        let blocks = Mutex::new(Blocks::new(&area));
        Arc::new(Self { map, area, blocks })
    }

    /// Memory for so many bytes, if there is some.
    pub(super) fn lend(self: &Arc<Self>, length: usize) -> Option<Loan> {
        let whole = length.checked_next_multiple_of(LINE)?.checked_add(LINE)?;
        let mut blocks = self.blocks.lock();
        // Acquire: a neighbour that is counted as a reader no more has done its reading.
        blocks.collect(whole / LOOK, |start| self.readers(start).load(Ordering::Acquire) > 0);
        let start = blocks.take(whole)?;
        if !self.make_ready(&mut blocks, start + whole) {
            blocks.give_back(start, whole);
            blocks.end_where_ready();
            return None;
        }
        blocks.lent.insert(start, whole);
        drop(blocks);
        self.readers(start).store(0, Ordering::Relaxed);
        Some(Loan::new(Block { lending: Arc::clone(self), start, length }))
    }

    /// Asks the system for memory now: that there is none is found out here, not by a signal when it is used. Step by
    /// step: what it has given before it had no more is of use for shorter blocks.
    fn make_ready(&self, blocks: &mut Blocks, end: usize) -> bool {
        while blocks.ready < end {
            let next = (blocks.ready + 1).next_multiple_of(STEP).min(self.area.end);
            if let Err(error) = populate(&self.map, blocks.ready..next) {
                tracing::debug!(%error, "no more memory is lent to the other nodes of this machine: long messages take longer");
                return false;
            }
            blocks.ready = next;
        }
        true
    }

    /// The block whose content these bytes are: one more neighbour reads it from now on.
    pub(super) fn share(&self, bytes: &[u8]) -> Option<u64> {
        let start = bytes.as_ptr().addr().checked_sub(self.map.as_ptr().addr())?.checked_sub(LINE)?;
        if !self.area.contains(&start) {
            return None;
        }
        let length = *self.blocks.lock().lent.get(&start)?;
        if bytes.len() + LINE > length {
            return None;
        }
        self.readers(start).fetch_add(1, Ordering::Relaxed);
        Some(start as u64)
    }

    /// The neighbour is not told of the block, after all.
    pub(super) fn take_back(&self, block: u64) {
        self.readers(block as usize).fetch_sub(1, Ordering::Relaxed);
    }

    fn readers(&self, start: usize) -> &AtomicU32 {
        readers(&self.map, start)
    }
}

#[cfg(target_os = "linux")]
fn populate(map: &MmapRaw, part: Range<usize>) -> std::io::Result<()> {
    map.advise_range(memmap2::Advice::PopulateWrite, part.start, part.len())
}

/// There are no means for that.
#[cfg(not(target_os = "linux"))]
fn populate(_map: &MmapRaw, _part: Range<usize>) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// How many neighbours read a block.
fn readers(map: &MmapRaw, start: usize) -> &AtomicU32 {
    assert!(start.is_multiple_of(LINE) && start + LINE <= map.len());
    // SAFETY: within the mapping, and aligned, as mappings begin at pages; all processes use it as an atomic only.
    unsafe { AtomicU32::from_ptr(map.as_mut_ptr().add(start).cast()) }
}

/// Memory that is lent, on its owner's side.
struct Block {
    lending: Arc<Lending>,
    start: usize,
    length: usize,
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        let start = self.lending.map.as_ptr().wrapping_add(self.start + LINE);
        // SAFETY: the block is within the mapping, which `lending` keeps, and is in no other use. Neighbours, which
        // have shown that they are this program, only read it.
        unsafe { slice::from_raw_parts(start, self.length) }
    }
}

impl AsMut<[u8]> for Block {
    fn as_mut(&mut self) -> &mut [u8] {
        let start = self.lending.map.as_mut_ptr().wrapping_add(self.start + LINE);
        // SAFETY: as above; and no neighbour was told of it yet, as it is shared by what the loan becomes, which cannot
        // be changed.
        unsafe { slice::from_raw_parts_mut(start, self.length) }
    }
}

impl Lent for Block {}

impl Drop for Block {
    fn drop(&mut self) {
        let mut blocks = self.lending.blocks.lock();
        let Some(length) = blocks.lent.remove(&self.start) else { return };
        match self.lending.readers(self.start).load(Ordering::Acquire) {
            0 => blocks.give_back(self.start, length),
            _ => blocks.read.push_back((self.start, length)),
        }
    }
}

/// The bytes of a block of a neighbour that lends this area, if they are within. They count as read until the last of
/// them are let go of.
pub(super) fn borrow(map: &Arc<MmapRaw>, area: &Range<usize>, block: u64, length: u64) -> Option<Bytes> {
    let (start, length) = (usize::try_from(block).ok()?, usize::try_from(length).ok()?);
    let end = start.checked_add(LINE)?.checked_add(length)?;
    let is_within = start.is_multiple_of(LINE) && start >= area.start && end <= area.end.min(map.len());
    is_within.then(|| Bytes::from_owner(Borrowed { map: Arc::clone(map), start, length }))
}

struct Borrowed {
    map: Arc<MmapRaw>,
    start: usize,
    length: usize,
}

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: within the mapping, as `borrow` has found. Its owner, which has shown that it is this program, does
        // not change the block before it is told that nothing reads it.
        unsafe { slice::from_raw_parts(self.map.as_ptr().add(self.start + LINE), self.length) }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // Release: all that was read was read before.
        readers(&self.map, self.start).fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use memmap2::MmapOptions;
    use proptest::prelude::*;

    use super::*;

    const AREA: Range<usize> = 4096..4096 + (1 << 16);

    fn lending() -> Arc<Lending> {
        lending_of(AREA, AREA.end)
    }

    /// Of a file that is perhaps shorter.
    fn lending_of(area: Range<usize>, length: usize) -> Arc<Lending> {
        let file = tempfile_of(length);
        Lending::new(Arc::new(MmapOptions::new().len(area.end).map_raw(&file).unwrap()), area)
    }

    fn tempfile_of(length: usize) -> std::fs::File {
        let mut file = super::super::memory_file::MemoryFile::create().unwrap();
        file.as_file().set_len(length as u64).unwrap();
        file.as_file().try_clone().unwrap()
    }

    fn bytes_of(mut loan: Loan, value: u8) -> Bytes {
        loan.bytes_mut().fill(value);
        loan.freeze()
    }

    #[derive(Clone, Debug)]
    enum Deed {
        Lend(usize),
        LetGo(usize),
        Share(usize),
        Return(usize),
    }

    fn deeds() -> impl Strategy<Value = Vec<Deed>> {
        let deed = prop_oneof![
            (1..20_000_usize).prop_map(Deed::Lend),
            any::<usize>().prop_map(Deed::LetGo),
            any::<usize>().prop_map(Deed::Share),
            any::<usize>().prop_map(Deed::Return),
        ];
        proptest::collection::vec(deed, 0..200)
    }

    proptest! {
        /// Blocks that are lent or read keep their bytes, whatever else is lent meanwhile; and all memory is free again
        /// in the end.
        #[test]
        fn nothing_that_somebody_has_is_lent_again(deeds in deeds()) {
            let lending = lending();
            let (mut lent, mut read, mut value) = (Vec::<(Bytes, u8)>::new(), Vec::<(Bytes, u8)>::new(), 0_u8);
            for deed in deeds {
                match deed {
                    Deed::Lend(length) => {
                        value = value.wrapping_add(1);
                        if let Some(loan) = lending.lend(length) {
                            lent.push((bytes_of(loan, value), value));
                        }
                    }
                    Deed::LetGo(which) if !lent.is_empty() => drop(lent.swap_remove(which % lent.len())),
                    Deed::Share(which) if !lent.is_empty() => {
                        let (bytes, value) = &lent[which % lent.len()];
                        let block = lending.share(bytes).unwrap();
                        let borrowed = borrow(&lending.map, &AREA, block, bytes.len() as u64).unwrap();
                        read.push((borrowed, *value));
                    }
                    Deed::Return(which) if !read.is_empty() => drop(read.swap_remove(which % read.len())),
                    _ => {}
                }
                for (bytes, value) in lent.iter().chain(&read) {
                    prop_assert!(bytes.iter().all(|byte| byte == value));
                }
                let blocks = lending.blocks.lock();
                let by_length: BTreeSet<_> = blocks.free.iter().map(|(&start, &length)| (length, start)).collect();
                prop_assert_eq!(&by_length, &blocks.by_length);
            }
            drop((lent, read));
            prop_assert!(lending.lend(AREA.len() - LINE).is_some());
        }
    }

    #[test]
    fn what_is_too_long_or_not_lent_is_refused() {
        let lending = lending();
        assert!(lending.lend(AREA.len()).is_none(), "there is no room for the readers");
        assert!(lending.lend(usize::MAX).is_none());
        assert!(lending.share(&[1, 2, 3]).is_none(), "memory of another kind");
        let bytes = bytes_of(lending.lend(1000).unwrap(), 1);
        assert!(lending.share(&bytes[64..]).is_none(), "not from its beginning");
        let block = lending.share(&bytes).unwrap();
        let borrow = |block, length| borrow(&lending.map, &AREA, block, length);
        for (block, length) in
            [(block + 1, 1), (0, 1), (block, u64::MAX), (u64::MAX - 63, 64), (AREA.end as u64, 0), (block, 1 << 16)]
        {
            assert!(borrow(block, length).is_none(), "{length} bytes at {block}");
        }
        assert!(borrow(block, 1000).is_some());
    }

    #[test]
    fn a_neighbour_who_never_says_that_it_has_read_costs_one_block_and_no_more() {
        let lending = lending();
        let bytes = bytes_of(lending.lend(1000).unwrap(), 1);
        lending.share(&bytes).unwrap();
        drop(bytes);
        let rest = AREA.len() - 1000_usize.next_multiple_of(LINE) - LINE;
        for _ in 0..3 {
            assert!(lending.lend(rest).is_none(), "as much as is left has no room for its readers");
            assert!(lending.lend(rest - LINE).is_some());
        }
    }

    #[test]
    fn many_blocks_that_are_still_read_are_looked_at_a_few_at_a_time_and_all_in_turn() {
        let (mut blocks, looks) = (Blocks::new(&(0..0)), std::cell::RefCell::new(Vec::new()));
        blocks.read = (0..100).map(|block| (block * 128, 64)).collect();
        let is_read = |start| {
            looks.borrow_mut().push(start / 128);
            start != 70 * 128
        };
        for round in 0..5 {
            blocks.collect(16, is_read);
            assert_eq!(looks.take(), (round * 16..(round + 1) * 16).collect::<Vec<_>>());
        }
        assert_eq!((blocks.read.len(), blocks.free[&(70 * 128)]), (99, 64));
        blocks.collect(1000, is_read);
        assert_eq!(looks.take().len(), 99, "once each");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_system_has_no_memory_for_is_not_lent() {
        // The file ends in the middle.
        let (area, length) = (4096..4096 + 4 * STEP, 4096 + 2 * STEP);
        let lending = lending_of(area, length);
        for _ in 0..3 {
            assert!(lending.lend(2 * STEP).is_none());
            let lent: Vec<Bytes> = std::iter::from_fn(|| Some(bytes_of(lending.lend(10_000)?, 1))).collect();
            assert!((length - STEP) / 10_100 < lent.len() && lent.len() < length / 10_000, "{}", lent.len());
        }
        assert!(lending.lend(STEP).is_some(), "what was let go of is one again");
    }
}
