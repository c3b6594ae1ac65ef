//! Entries in any order to sorted ones, by way of a file if they do not fit the memory that is given.

use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::Zeroable;

use super::entries::EntryStream;
use super::plan::{ConvertError, StoragePlan};
use super::source::number;
use super::tournament::Tournament;
use crate::error::{Problem, ReadError};
use crate::number::Number;

/// Runs are read in buffers of at least so many bytes.
const LEAST_BUFFER: usize = 4 << 10;

/// Entries that were sorted, in runs in a file.
#[derive(Debug)]
pub struct Sorted<W, T> {
    scratch: W,
    /// The bytes of each run.
    runs: Vec<Range<u64>>,
    order: Vec<usize>,
    memory: usize,
    value: PhantomData<T>,
}

/// Entries that are gathered in memory until they are sorted.
struct Chunk<T> {
    rank: usize,
    /// For each entry its coordinates in the order of levels, and its line.
    keys: Vec<u64>,
    values: Vec<T>,
}

impl<T: Number> Chunk<T> {
    fn write(&mut self, into: &mut impl Write) -> io::Result<()> {
        let row = |entry: usize| &self.keys[entry * (self.rank + 1)..][..self.rank + 1];
        let mut entries: Vec<usize> = (0..self.values.len()).collect();
        // Entries at the same place stay in their order.
        entries.sort_by(|one, other| row(*one)[..self.rank].cmp(&row(*other)[..self.rank]));
        let mut bytes = Vec::new();
        for entry in entries {
            bytes.clear();
            row(entry).iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            bytes.extend_from_slice(bytemuck::bytes_of(&self.values[entry]));
            into.write_all(&bytes)?;
        }
        self.keys.clear();
        self.values.clear();
        Ok(())
    }
}

/// Sorts all entries of a stream by coordinates, in the order of levels; entries at the same place stay in their order.
/// Takes about `memory` bytes, and as many bytes of `scratch` as 8 for each coordinate, 8 more, and those of the value
/// for each entry.
///
/// # Errors
/// As of the stream and of `scratch`.
pub fn sort<T: Number, W: Read + Write + Seek>(
    mut stream: impl EntryStream<T>,
    plan: &StoragePlan<T>,
    mut scratch: W,
    memory: usize,
) -> Result<Sorted<W, T>, ConvertError> {
    plan.check()?;
    let (order, rank) = (&plan.order, plan.order.len());
    let most = (memory / (8 * (rank + 1) + size_of::<T>() + 12)).max(1);
    let mut chunk = Chunk { rank, keys: Vec::new(), values: Vec::new() };
    // Room for all at once, if there is: vectors that grow are there twice for a moment. What is not used takes no
    // memory.
    let _ = chunk.keys.try_reserve_exact(most.saturating_mul(rank + 1));
    let _ = chunk.values.try_reserve_exact(most);
    let (mut runs, mut end, mut at) = (Vec::new(), 0, Vec::new());
    scratch.rewind().map_err(ConvertError::Write)?;
    let mut into = BufWriter::with_capacity(1 << 18, &mut scratch);
    let record = (8 * (rank + 1) + size_of::<T>()) as u64;
    loop {
        let value = stream.next_entry(&mut at)?;
        if let Some(value) = value {
            if at.len() != rank {
                let reason = format!("the entry has {} coordinates, and is stored in {rank} levels", at.len());
                return Err(ReadError::Line { line: stream.line(), problem: Problem::Malformed(reason) }.into());
            }
            chunk.keys.extend(order.iter().map(|mode| at[*mode]));
            chunk.keys.push(stream.line());
            chunk.values.push(value);
        }
        if value.is_none() || chunk.values.len() == most {
            let bytes = chunk.values.len() as u64 * record;
            chunk.write(&mut into).map_err(ConvertError::Write)?;
            runs.push(end..end + bytes);
            end += bytes;
        }
        if value.is_none() {
            break;
        }
    }
    into.flush().map_err(ConvertError::Write)?;
    drop(into);
    Ok(Sorted { scratch, runs, order: order.clone(), memory, value: PhantomData })
}

impl<W: Read + Seek, T: Number> Sorted<W, T> {
    /// The sorted entries, from the first one on.
    ///
    /// # Errors
    /// As of the file.
    pub fn entries(&mut self) -> io::Result<Merge<'_, W, T>> {
        let rank = self.order.len();
        let record = 8 * (rank + 1) + size_of::<T>();
        let size = (self.memory / self.runs.len().max(1)).clamp(LEAST_BUFFER, 1 << 20) / record;
        let runs: Vec<SortedRun> =
            self.runs.iter().map(|left| SortedRun { left: left.clone(), bytes: Vec::new(), at: 0 }).collect();
        let tournament = Tournament::new(runs.len(), rank);
        let mut merge = Merge {
            scratch: &mut self.scratch,
            order: &self.order,
            runs,
            record,
            buffer: size.max(1) * record,
            tournament,
            key: Vec::new(),
            line: 0,
            value: PhantomData,
        };
        for run in 0..merge.runs.len() {
            merge.advance(run)?;
        }
        Ok(merge)
    }
}

/// A run that is being read.
#[derive(Debug)]
struct SortedRun {
    /// The bytes that are still in the file.
    left: Range<u64>,
    bytes: Vec<u8>,
    /// The offset of the next record in `bytes`.
    at: usize,
}

/// Several runs as one sequence.
#[derive(Debug)]
pub struct Merge<'a, W, T> {
    scratch: &'a mut W,
    order: &'a [usize],
    runs: Vec<SortedRun>,
    /// The bytes of an entry.
    record: usize,
    /// The bytes of a run in memory.
    buffer: usize,
    tournament: Tournament,
    key: Vec<u64>,
    line: u64,
    value: PhantomData<T>,
}

impl<W: Read + Seek, T: Number> Merge<'_, W, T> {
    /// Tells the tournament of the next entry of a run.
    fn advance(&mut self, run: usize) -> io::Result<()> {
        let SortedRun { left, bytes, at } = &mut self.runs[run];
        if *at == bytes.len() && !left.is_empty() {
            let length = (self.buffer as u64).min(left.end - left.start);
            bytes.resize(length as usize, 0);
            self.scratch.seek(SeekFrom::Start(left.start))?;
            self.scratch.read_exact(bytes)?;
            (left.start, *at) = (left.start + length, 0);
        }
        let record = bytes.get(*at..).filter(|record| !record.is_empty());
        self.key.clear();
        self.key
            .extend(record.into_iter().flat_map(|record| record[..8 * self.order.len()].chunks_exact(8).map(number)));
        self.tournament.set(run, record.map(|_| &self.key[..]));
        Ok(())
    }
}

impl<W: Read + Seek, T: Number> EntryStream<T> for Merge<'_, W, T> {
    fn next_entry(&mut self, coordinates: &mut Vec<u64>) -> Result<Option<T>, ReadError> {
        let Some(winner) = self.tournament.winner() else { return Ok(None) };
        coordinates.resize(self.order.len(), 0);
        self.order.iter().zip(self.tournament.key(winner)).for_each(|(mode, at)| coordinates[*mode] = *at);
        let run = &mut self.runs[winner];
        let rest = &run.bytes[run.at + 8 * self.order.len()..run.at + self.record];
        self.line = number(rest);
        let mut bits: T::Carrier = Zeroable::zeroed();
        bytemuck::bytes_of_mut(&mut bits).copy_from_slice(&rest[8..]);
        run.at += self.record;
        self.advance(winner)?;
        Ok(Some(T::from_carrier(bits)))
    }

    fn line(&self) -> u64 {
        self.line
    }
}
