//! Shares of blocks that pieces of a tensor have: counted, merged, and written (Shinde 2019, sections 4.4.2 and 4.4.3).

use std::collections::BTreeMap;
use std::io::{self, Cursor};
use std::ops::Range;

use super::iterate::{Found, SortedEntries};
use super::splits::Splits;
use crate::error::{Problem, ReadError};
use crate::number::Number;
use crate::tcs::convert::Sections;
use crate::tcs::count::Counts;
use crate::tcs::fill::Filler;
use crate::tcs::header::TcsHeader;
use crate::tcs::layout::{Lengths, Level, Split, TcsLevelKind};

/// A block: for each level, the number of its range.
pub type Block = Vec<u64>;

/// The share of a block that a piece has, as all writers of pieces must know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPart {
    /// The number of the piece.
    pub piece: usize,
    /// How many nodes each level has in the pieces before.
    pub nodes: Vec<u64>,
    /// The last entry of the pieces before; empty if they have none.
    pub last: Vec<u64>,
    /// How many elements each array has in the pieces before.
    pub starts: Lengths,
    /// How many elements each array gets by this piece.
    pub lengths: Lengths,
    /// Whether no later piece has entries of the block.
    pub is_final: bool,
}

/// A block, and what pieces have of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockPlan {
    /// The header of the block, without checksums.
    pub header: TcsHeader,
    /// The counts of all entries of the block.
    pub counts: Counts,
    /// The pieces that have entries of it, in their order; none of an empty block.
    pub parts: Vec<BlockPart>,
}

/// Visits sorted entries, but zeros below a last level that is dense: what is not written is zero there, too.
fn for_each<T: Number>(
    mut entries: impl SortedEntries<T>,
    levels: &[Level],
    mut visit: impl FnMut(Found<'_, T>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let drops_zeros = levels.last().is_some_and(|level| level.kind == TcsLevelKind::Dense);
    while let Some(found) = entries.next_sorted()? {
        if !drops_zeros || bytemuck::bytes_of(&found.value).iter().any(|byte| *byte != 0) {
            visit(found)?;
        }
    }
    Ok(())
}

/// The first pass over a piece: counts the entries of each block that it has.
///
/// # Errors
/// As of the source.
pub fn count<T: Number>(piece: impl SortedEntries<T>, levels: &[Level]) -> Result<BTreeMap<Block, Counts>, ReadError> {
    let mut blocks: BTreeMap<Block, Counts> = BTreeMap::new();
    for_each(piece, levels, |found| {
        match blocks.get_mut(found.ranges) {
            Some(counts) => counts.add(found.at),
            None => blocks.entry(found.ranges.to_vec()).or_default().add(found.at),
        }
        Ok(())
    })?;
    Ok(blocks)
}

/// Merges the counts of all pieces, in their order, into a plan for each block, empty blocks included.
///
/// # Errors
/// [`Problem::TooLarge`] if a block is.
///
/// # Panics
/// If the splits are for another number of levels.
pub fn merge(
    whole: &TcsHeader,
    splits: &Splits,
    pieces: &[BTreeMap<Block, Counts>],
) -> Result<BTreeMap<Block, BlockPlan>, Problem> {
    let plan = |block: Block| {
        let plan = plan(whole, levels(whole, splits, &block), &block, pieces)?;
        Ok((block, plan))
    };
    splits.blocks().map(plan).collect()
}

/// Merges the counts of all pieces, in their order, into a plan for one tensor that has all entries: with the levels,
/// widths and elements of `whole`, whatever arrays that has.
///
/// # Errors
/// [`Problem::TooLarge`] if it is.
pub fn merge_all(whole: &TcsHeader, pieces: &[BTreeMap<Block, Counts>]) -> Result<BTreeMap<Block, BlockPlan>, Problem> {
    let block = vec![0; whole.levels.len()];
    let plan = plan(whole, whole.levels.clone(), &block, pieces)?;
    Ok([(block, plan)].into())
}

fn plan(
    whole: &TcsHeader,
    levels: Vec<Level>,
    block: &Block,
    pieces: &[BTreeMap<Block, Counts>],
) -> Result<BlockPlan, Problem> {
    let mut counts = Counts::default();
    let mut parts = Vec::new();
    for (piece, found) in pieces.iter().enumerate() {
        let Some(found) = found.get(block) else { continue };
        let none = vec![0; levels.len()];
        let nodes = if counts.is_empty() { none } else { counts.nodes.clone() };
        let starts = written(&levels, &nodes, &counts.last);
        let last = counts.last.clone();
        counts.append(found);
        let lengths = between(&starts, &written(&levels, &counts.nodes, &counts.last));
        parts.push(BlockPart { piece, nodes, last, starts, lengths, is_final: false });
    }
    let nodes = if counts.is_empty() { vec![0; levels.len()] } else { counts.nodes.clone() };
    if let Some(last) = parts.last_mut() {
        last.is_final = true;
        last.lengths = between(&last.starts, &Lengths::of(&levels, &nodes)?);
    }
    let header = TcsHeader::new(whole.number, whole.width, levels, &nodes)?;
    Ok(BlockPlan { header, counts, parts })
}

/// For each level the coordinates from the least to the greatest one of the entries of all blocks; none if there is no
/// entry.
pub fn bounds<'a>(plans: impl IntoIterator<Item = &'a BlockPlan>) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for counts in plans.into_iter().map(|plan| &plan.counts).filter(|counts| !counts.is_empty()) {
        let own = counts.least.iter().zip(&counts.greatest).map(|(least, greatest)| *least..greatest + 1);
        match all.is_empty() {
            true => all.extend(own),
            false => {
                all.iter_mut().zip(own).for_each(|(all, own)| *all = all.start.min(own.start)..all.end.max(own.end))
            }
        }
    }
    all
}

/// The levels of a block.
fn levels(whole: &TcsHeader, splits: &Splits, block: &[u64]) -> Vec<Level> {
    let level = |(number, (level, index)): (usize, (&Level, &u64))| {
        let range = splits.range(number, *index);
        let split = Split { range: range.clone(), index: *index, count: splits.count(number) };
        Level { kind: level.kind, mode: level.mode, range, split: Some(split) }
    };
    whole.levels.iter().zip(block).enumerate().map(level).collect()
}

/// How many elements arrays have after entries with so many nodes, of which the last one is given. Those that are
/// outside of levels, or too many, are refused later.
fn written(levels: &[Level], nodes: &[u64], last: &[u64]) -> Lengths {
    let mut lengths = Lengths { pos: vec![0; levels.len()], idx: vec![0; levels.len()], values: 0 };
    if last.is_empty() {
        return lengths;
    }
    let mut above = 0_u64;
    for (number, level) in levels.iter().enumerate() {
        above = match level.kind {
            TcsLevelKind::Dense => {
                above.saturating_mul(level.extent()).saturating_add(last[number].saturating_sub(level.range.start))
            }
            TcsLevelKind::Sparse => {
                (lengths.pos[number], lengths.idx[number]) = (above.saturating_add(1), nodes[number]);
                nodes[number] - 1
            }
        };
    }
    lengths.values = above.saturating_add(1);
    lengths
}

fn between(start: &Lengths, end: &Lengths) -> Lengths {
    let difference = |start: &[u64], end: &[u64]| {
        let pairs = start.iter().zip(end);
        pairs.map(|(start, end)| end.saturating_sub(*start)).collect()
    };
    let values = end.values.saturating_sub(start.values);
    Lengths { pos: difference(&start.pos, &end.pos), idx: difference(&start.idx, &end.idx), values }
}

/// The writer of a section of a block, and whether the section is the last one.
type Writer = (Filler, Sections<Cursor<Vec<u8>>>, bool);

/// The second pass over a piece: for each block that it has entries of, sections of the block's arrays, as the bytes of
/// a file that is a piece.
///
/// # Errors
/// As of the source; [`Problem::Malformed`] if the entries are not those that were counted, or are outside of the
/// ranges of their blocks.
pub fn write<T: Number>(
    piece: impl SortedEntries<T>,
    number: usize,
    plans: &BTreeMap<Block, BlockPlan>,
) -> Result<BTreeMap<Block, Vec<u8>>, ReadError> {
    let changed = |_| ReadError::Byte {
        byte: 0,
        problem: Problem::Malformed("the entries of the piece are not those that were counted".to_owned()),
    };
    let mut writers = BTreeMap::new();
    let mut levels = Vec::new();
    for (block, plan) in plans {
        levels.clone_from(&plan.header.levels);
        let Some(part) = plan.parts.iter().find(|part| part.piece == number) else { continue };
        let header =
            TcsHeader::piece(plan.header.number, plan.header.width, levels.clone(), &part.lengths, &part.starts);
        let header = header.map_err(|problem| ReadError::Byte { byte: 0, problem })?;
        let filler = Filler::after(&levels, part.nodes.clone(), part.last.clone());
        writers.insert(block.clone(), (filler, Sections::new(&header, Cursor::new(Vec::new())), part.is_final));
    }
    for_each(piece, &levels, |found| {
        let Some((filler, sections, _)) = writers.get_mut(found.ranges) else { return Err(changed(())) };
        filler.add(found.at, found.value, sections).map_err(|_| changed(()))
    })?;
    let finish = |(block, (filler, mut sections, is_final)): (Block, Writer)| {
        if is_final {
            filler.finish::<T>(&mut sections)?;
        }
        Ok((block, sections.finish()?.into_inner()))
    };
    writers.into_iter().map(finish).collect::<io::Result<_>>().map_err(|_| changed(()))
}
