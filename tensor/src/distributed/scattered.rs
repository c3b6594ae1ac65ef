//! Positions that belong to coordinates of a level that is not the outermost, or that does not store them in order:
//! positions that lie apart.
//!
//! Tasks go through what the level stores in blocks, and give the runs of positions whose coordinates belong to each
//! part. What is above and below is looked up for each run, as for [equal parts](super::shares).

use std::ops::Range;

use maniple::space::Point;
use maniple::task::LeafCall;
use maniple::{Context, FieldId, FieldValue};

use super::error::DistributedError;
use super::shares::{Interval, above_all, below_all, below_each, in_blocks, numbers_at};
use super::tensor::Tensor;
use crate::element::ElementType;
use crate::format::Level;

/// All nodes know where each run begins and ends: there can be so many.
const MOST_RUNS: usize = 1 << 20;

/// The coordinates of parts: blocks of equal length that are dealt to them in turn.
#[derive(Clone, Copy)]
pub(super) struct Dealt {
    /// How long blocks are.
    pub(super) block: i64,
    pub(super) parts: i64,
}

impl Dealt {
    /// The part of a coordinate.
    fn part(self, coordinate: i64) -> i64 {
        (coordinate / self.block.max(1)) % self.parts
    }

    /// The parts of neighbouring coordinates, each once.
    fn parts(self, coordinates: Range<i64>) -> Vec<i64> {
        if coordinates.is_empty() {
            return Vec::new();
        }
        let (first, last) = (coordinates.start / self.block.max(1), (coordinates.end - 1) / self.block.max(1));
        (first..=last).take(self.parts as usize).map(|block| block % self.parts).collect()
    }
}

/// How a coordinate follows from the diagonal and the place along it: so many times the one and the other, which are 1
/// or -1.
#[derive(Clone, Copy)]
pub(super) struct Shift {
    /// Of the place.
    pub(super) sign: i64,
    pub(super) of_diagonal: i64,
}

/// A part, and neighbouring positions that belong to it.
type Run = (i64, i64, i64);

/// For each level, the positions that belong to each part of the coordinates of one level: runs of them, that ascend.
pub(super) async fn pieces(
    cx: &Context,
    tensor: &Tensor,
    level: usize,
    dealt: Dealt,
    shift: Option<Shift>,
) -> Result<Vec<Vec<Vec<Interval>>>, DistributedError> {
    let found = match shift {
        Some(shift) => along_diagonals(cx, tensor, dealt, shift).await?,
        None => of_coordinates(cx, tensor, level, dealt).await?,
    };
    around(cx, tensor, level, found, dealt.parts).await
}

/// For each level, the positions that belong to each of so many parts, of which the runs of one level are given.
pub(super) async fn around(
    cx: &Context,
    tensor: &Tensor,
    level: usize,
    runs: Vec<(i64, Interval)>,
    parts: i64,
) -> Result<Vec<Vec<Vec<Interval>>>, DistributedError> {
    let rank = tensor.variable().format().levels().len();
    let mut found: Vec<Vec<(i64, Interval)>> = vec![Vec::new(); rank];
    found[level] = runs;
    for above in (1..=level).rev() {
        let own: Vec<Interval> = found[above].iter().map(|(_, run)| *run).collect();
        let runs = above_all(cx, tensor, above, &own).await?;
        found[above - 1] = joined(found[above].iter().map(|(part, _)| *part).zip(runs).collect());
    }
    for below in level + 1..rank {
        let own: Vec<Interval> = found[below - 1].iter().map(|(_, run)| *run).collect();
        let runs = below_all(cx, tensor, below, &own).await?;
        found[below] = joined(found[below - 1].iter().map(|(part, _)| *part).zip(runs).collect());
    }
    let in_parts = |runs: Vec<(i64, Interval)>| {
        let mut all = vec![Vec::new(); parts as usize];
        runs.into_iter().for_each(|(part, run)| all[part as usize].push(run));
        all
    };
    Ok(found.into_iter().map(in_parts).collect())
}

/// The intersections of parts, one part of each cut of a level, for all combinations of parts, those of the last cut
/// running fastest: runs, and the number of combinations.
pub(super) fn met(cuts: &[&Vec<Vec<Interval>>]) -> (Vec<(i64, Interval)>, i64) {
    let mut all: Vec<Vec<Interval>> = vec![vec![(0, i64::MAX)]];
    for cut in cuts {
        all = all.iter().flat_map(|own| cut.iter().map(|other| in_both(own, other))).collect();
    }
    let count = all.len() as i64;
    let runs = (0..).zip(all).flat_map(|(part, runs)| runs.into_iter().map(move |run| (part, run)));
    (joined(runs.collect()), count)
}

/// The intersection of two lists of intervals that ascend.
fn in_both(one: &[Interval], other: &[Interval]) -> Vec<Interval> {
    let (mut found, mut at, mut of) = (Vec::new(), 0, 0);
    while let (Some(own), Some(others)) = (one.get(at), other.get(of)) {
        let (first, end) = (own.0.max(others.0), own.1.min(others.1));
        if first < end {
            found.push((first, end));
        }
        if own.1 <= others.1 { at += 1 } else { of += 1 }
    }
    found
}

/// Runs in the order of their parts, and of their positions; those that touch are one.
fn joined(mut runs: Vec<(i64, Interval)>) -> Vec<(i64, Interval)> {
    runs.retain(|(_, (first, end))| first < end);
    runs.sort_unstable();
    runs.dedup_by(|(part, next), (before, run)| {
        let touch = part == before && next.0 <= run.1;
        if touch {
            run.1 = run.1.max(next.1);
        }
        touch
    });
    runs
}

/// The runs of positions along diagonals at which the other coordinate belongs to each part.
async fn along_diagonals(
    cx: &Context,
    tensor: &Tensor,
    dealt: Dealt,
    shift: Shift,
) -> Result<Vec<(i64, Interval)>, DistributedError> {
    let (count, length, block) = (tensor.positions(0), below_each(tensor, 1), dealt.block.max(1));
    let diagonals: Vec<i64> = match tensor.levels().and_then(|levels| levels.coordinates(0)) {
        Some(crd) => numbers_at(cx, crd, &(0..count).collect::<Vec<_>>()).await?,
        None => {
            let bounds = tensor.variable().format().expressions()[0].bounds(tensor.variable().dimensions());
            (bounds.start..).take(count as usize).collect()
        }
    };
    let expressions = tensor.variable().format().expressions();
    let stored = expressions[1].modes();
    let other = expressions[0].modes().into_iter().find(|mode| !stored.contains(mode));
    let extent = other.map_or(0, |mode| tensor.variable().dimensions()[mode]);
    let blocks = extent / block + i64::from(extent % block > 0);
    if count.checked_mul(blocks).is_none_or(|runs| runs > MOST_RUNS as i64) {
        return Err(too_many(tensor));
    }
    let run = |(number, diagonal): (i64, i64), part: i64| {
        let (first, end) = (part * block, ((part + 1) * block).min(extent));
        let from = |coordinate: i64| shift.sign * (coordinate - shift.of_diagonal * diagonal);
        let (first, end) = if shift.sign > 0 { (from(first), from(end)) } else { (from(end - 1), from(first) + 1) };
        let within = |place: i64| number * length + place.clamp(0, length);
        (part % dealt.parts, (within(first), within(end)))
    };
    let all = (0..).zip(diagonals).flat_map(|of| (0..blocks).map(move |part| (of, part)));
    Ok(joined(all.map(|(of, part)| run(of, part)).collect()))
}

fn too_many(tensor: &Tensor) -> DistributedError {
    DistributedError::Scattered { tensor: tensor.variable().name().to_owned(), most: MOST_RUNS }
}

/// The runs of positions of a level whose coordinates belong to each part.
async fn of_coordinates(
    cx: &Context,
    tensor: &Tensor,
    level: usize,
    dealt: Dealt,
) -> Result<Vec<(i64, Interval)>, DistributedError> {
    let Some(crd) = tensor.levels().and_then(|levels| levels.coordinates(level)) else {
        let extent = below_each(tensor, level);
        let parents = tensor.positions(level).checked_div(extent).unwrap_or(0);
        let blocks = (extent + dealt.block.max(1) - 1) / dealt.block.max(1);
        if parents.checked_mul(blocks).is_none_or(|runs| runs > MOST_RUNS as i64) {
            return Err(too_many(tensor));
        }
        let block = |parent: i64, number: i64| {
            let (first, end) = (number * dealt.block, ((number + 1) * dealt.block).min(extent));
            (number % dealt.parts, (parent * extent + first, parent * extent + end))
        };
        return Ok(joined(
            (0..parents).flat_map(|parent| (0..blocks).map(move |number| block(parent, number))).collect(),
        ));
    };
    let is_run_length = tensor.variable().format().levels()[level] == Level::RunLength;
    let (field, element, extent) = (crd.field, crd.element, tensor.extent(level));
    let find = move |call: &LeafCall<'_>, block: Range<i64>| match element {
        ElementType::I32 => runs_in::<i32>(call, field, block, dealt, is_run_length, extent),
        _ => runs_in::<i64>(call, field, block, dealt, is_run_length, extent),
    };
    let found = in_blocks(cx, crd, "find coordinates", find).await?;
    let runs = found.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| too_many(tensor))?;
    let runs = joined(runs.into_iter().flatten().map(|(part, first, end)| (part, (first, end))).collect());
    if runs.len() > MOST_RUNS { Err(too_many(tensor)) } else { Ok(runs) }
}

/// The runs in a block of coordinates, or of where runs of a level end: none if there are too many.
fn runs_in<N: FieldValue + Into<i64>>(
    call: &LeafCall<'_>,
    field: FieldId,
    block: Range<i64>,
    dealt: Dealt,
    is_run_length: bool,
    extent: i64,
) -> maniple::Result<Option<Vec<Run>>> {
    let numbers = call.read::<N, 1>(0, field)?;
    let at = |position: i64| -> i64 { numbers[Point([position])].into() };
    // Of each part, the run that may go on.
    let mut open: Vec<Option<Interval>> = vec![None; dealt.parts as usize];
    let mut runs = Vec::new();
    for position in block {
        let parts = match is_run_length {
            // The runs below a parent end with the last coordinate.
            true => {
                let before = if position == 0 { extent } else { at(position - 1) };
                dealt.parts(if before == extent { 0 } else { before }..at(position))
            }
            // What marks that nothing is stored is no coordinate.
            false => (0..extent).contains(&at(position)).then(|| dealt.part(at(position))).into_iter().collect(),
        };
        for part in parts {
            match &mut open[part as usize] {
                Some(run) if run.1 == position => run.1 += 1,
                open => {
                    runs.extend(open.replace((position, position + 1)).map(|(first, end)| (part, first, end)));
                }
            }
        }
        if runs.len() > MOST_RUNS {
            return Ok(None);
        }
    }
    let open = (0..).zip(open).filter_map(|(part, run)| run.map(|(first, end)| (part, first, end)));
    runs.extend(open);
    Ok(Some(runs))
}
