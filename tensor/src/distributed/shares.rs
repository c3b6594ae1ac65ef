//! Equal parts of the positions of a level: the positions above them and below them, and their rows.
//!
//! Positions above and below those that are next to each other are next to each other too, so each part is an interval
//! in each level. Where it begins and ends there is looked up by tasks in blocks of what levels store, which stay where
//! they are: one task for each block, which gets all that is looked up, and gives what it finds.

use std::ops::Range;
use std::sync::Arc;

use maniple::space::{AnyPoint, AnyRect, AnySpace, Point, Rect};
use maniple::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Context, Error, FieldMask, FieldValue, LogicalPartition, Privilege, Projection, Requirement, Target, TaskLauncher,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::DistributedError;
use super::levels::{Component, words as words_of};
use super::rows::blocks_for;
use super::tensor::Tensor;
use crate::element::ElementType;
use crate::format::{Format, Level};
use crate::level::Per;
use crate::plan::Space;

/// From the first to before the last.
pub(super) type Interval = (i64, i64);

/// The intervals of parts in each level of a tensor.
pub(super) struct Ends {
    /// Of each level, of each part: its positions.
    pub(super) positions: Vec<Vec<Interval>>,
    /// Of each part, the coordinates of the outermost level between those that it has.
    rows: Vec<Interval>,
}

/// A kind of lookup in numbers that ascend, or at places.
#[derive(Clone, Copy, PartialEq)]
enum Lookup {
    /// The number at a place.
    Number,
    /// The last place whose number is not above the one given, of those that are followed by a greater one.
    Segment,
    /// How many numbers are below the one given.
    Below,
}

impl Ends {
    /// Of equal parts of the positions of a level.
    pub(super) async fn new(
        cx: &Context,
        tensor: &Tensor,
        divided: usize,
        parts: i64,
    ) -> Result<Self, DistributedError> {
        Self::around(cx, tensor, divided, blocks(tensor.positions(divided), parts)).await
    }

    /// Of parts of a level that stores a bit for each position, with as many of those that are set each, as far as
    /// these begin with words.
    pub(super) async fn of_bits(
        cx: &Context,
        tensor: &Tensor,
        divided: usize,
        parts: i64,
        bits: &Component,
    ) -> Result<Self, DistributedError> {
        let all = tensor.positions(divided);
        let words = words(cx, bits, parts).await?;
        let ends: Vec<i64> = words.into_iter().map(|word| word.saturating_mul(64).min(all)).collect();
        let own = ends.windows(2).map(|ends| (ends[0], ends[1])).collect();
        Self::around(cx, tensor, divided, own).await
    }

    /// Of parts of the positions of a level.
    async fn around(
        cx: &Context,
        tensor: &Tensor,
        divided: usize,
        own: Vec<Interval>,
    ) -> Result<Self, DistributedError> {
        let format = tensor.variable().format();
        let mut positions = vec![Vec::new(); format.levels().len()];
        positions[divided] = own;
        for level in (1..=divided).rev() {
            positions[level - 1] = above_all(cx, tensor, level, &positions[level]).await?;
        }
        below(cx, tensor, &mut positions, divided).await?;
        let crd = tensor.levels().and_then(|levels| levels.coordinates(0));
        let rows = match crd.filter(|_| format.levels().first() != Some(&Level::RunLength)) {
            None => positions[0].clone(),
            Some(_) if !is_in_order(format) => vec![(0, tensor.extent(0)); positions[0].len()],
            Some(crd) => {
                let found = look_up(cx, crd, &lasts(&positions[0]), Lookup::Number).await?;
                with(&positions[0], &found)
            }
        };
        Ok(Self { positions, rows })
    }

    /// Of blocks of the coordinates of the outermost level, which stores them in order.
    pub(super) async fn of_coordinates(cx: &Context, tensor: &Tensor, parts: i64) -> Result<Self, DistributedError> {
        Self::of_rows(cx, tensor, blocks(tensor.extent(0), parts)).await
    }

    /// Of parts of the coordinates of the outermost level, which stores them in order.
    pub(super) async fn of_rows(cx: &Context, tensor: &Tensor, rows: Vec<Interval>) -> Result<Self, DistributedError> {
        let mut positions = vec![Vec::new(); tensor.variable().format().levels().len()];
        positions[0] = match tensor.levels().and_then(|levels| levels.coordinates(0)) {
            None => rows.clone(),
            Some(crd) => {
                // Runs have where they end, and blocks the runs that begin before their ends.
                let of_runs = i64::from(tensor.variable().format().levels()[0] == Level::RunLength);
                let ends = |(first, end): &Interval| if first < end { [first + of_runs, *end] } else { [0, 0] };
                let wanted: Vec<i64> = rows.iter().flat_map(ends).collect();
                let found = look_up(cx, crd, &wanted, Lookup::Below).await?;
                let some = |(ends, rows): (&[i64], &Interval)| match rows.0 < rows.1 {
                    true => (ends[0], ends[1] + of_runs),
                    false => (0, 0),
                };
                found.chunks(2).zip(&rows).map(some).collect()
            }
        };
        below(cx, tensor, &mut positions, 0).await?;
        Ok(Self { positions, rows })
    }

    /// Of each part, the coordinates of the outermost level between those that it has.
    pub(super) fn rows(&self) -> &[Interval] {
        &self.rows
    }

    /// A partition of a space of a tensor into what belongs to each part; of a dense one that has the coordinates of
    /// the outermost level in a dimension, into those.
    pub(super) fn partition(
        &self,
        cx: &Context,
        tensor: &Tensor,
        space: Space,
        rows_in: Option<usize>,
    ) -> Result<LogicalPartition, DistributedError> {
        let interval = |(first, end): &Interval| AnySpace::from(AnyRect::from(Rect::<1>::from(*first..*end)));
        let pieces: Vec<AnySpace> = match space {
            Space::Positions(level) => self.positions[level].iter().map(interval).collect(),
            Space::Words(level) => {
                self.positions[level].iter().map(|(first, end)| interval(&words_of(*first, *end))).collect()
            }
            // One more ends the last, if there are offsets.
            Space::Offsets(level) => {
                let after = i64::from(offsets(tensor, level).is_some());
                let around = |(first, end): &Interval| if first < end { (*first, end + after) } else { (0, 0) };
                self.positions[level - 1].iter().map(around).map(|around| interval(&around)).collect()
            }
            Space::Elements => {
                let whole = tensor.variable().dimensions();
                let piece = |rows: &Interval| {
                    let bounds = whole.iter().enumerate().map(|(dimension, extent)| match rows_in {
                        Some(own) if own == dimension => *rows,
                        _ => (0, *extent),
                    });
                    tensor.space(&[crate::rectangle::Rectangle::new(bounds)])
                };
                self.rows.iter().map(piece).collect::<Result<_, _>>()?
            }
        };
        let region = tensor.part(space);
        let partitioning = cx.index_partition(region.space(), pieces.len(), &pieces)?;
        Ok(region.partition(&partitioning).map_err(Error::from)?)
    }
}

/// So many numbers in parts, all but the last ones of which have the same length: their number over that of parts,
/// rounded up.
fn blocks(count: i64, parts: i64) -> Vec<Interval> {
    let length = i128::from(count.div_euclid(parts) + i64::from(count.rem_euclid(parts) > 0));
    let end = |number: i64| (i128::from(number) * length).min(i128::from(count)) as i64;
    (0..parts).map(|number| (end(number), end(number + 1))).collect()
}

/// The offsets of a level, if it has some.
fn offsets(tensor: &Tensor, level: usize) -> Option<&Component> {
    tensor.levels().and_then(|levels| levels.offsets(level))
}

/// How many positions of a level without offsets are below each of the level above.
pub(super) fn below_each(tensor: &Tensor, level: usize) -> i64 {
    let above = level.checked_sub(1).map_or(1, |above| tensor.positions(above));
    tensor.positions(level).checked_div(above).unwrap_or(0)
}

/// Whether the coordinates of the outermost level ascend with its positions.
pub(super) fn is_in_order(format: &Format) -> bool {
    let Some(kind) = format.levels().first().map(|level| level.kind()) else { return true };
    let has_holes = kind.components().iter().any(|component| component.per == Per::Slot);
    kind.capabilities().ordered && format.properties()[0].ordered && !has_holes
}

/// Finds the positions of parts in the levels below one.
async fn below(
    cx: &Context,
    tensor: &Tensor,
    positions: &mut [Vec<Interval>],
    divided: usize,
) -> Result<(), DistributedError> {
    for level in divided + 1..positions.len() {
        positions[level] = below_all(cx, tensor, level, &positions[level - 1]).await?;
    }
    Ok(())
}

/// The positions of a level below those of parts of the level above.
pub(super) async fn below_all(
    cx: &Context,
    tensor: &Tensor,
    level: usize,
    above: &[Interval],
) -> Result<Vec<Interval>, DistributedError> {
    let Some(pos) = offsets(tensor, level) else {
        let each_has = below_each(tensor, level);
        return Ok(above.iter().map(|(first, end)| (first * each_has, end * each_has)).collect());
    };
    let ends: Vec<i64> = above.iter().flat_map(|(first, end)| [*first, *end]).collect();
    let found = look_up(cx, pos, &ends, Lookup::Number).await?;
    Ok(found.chunks(2).map(|ends| (ends[0], ends[1])).collect())
}

/// The positions of the level above those of parts of a level, between the first and the last.
pub(super) async fn above_all(
    cx: &Context,
    tensor: &Tensor,
    level: usize,
    own: &[Interval],
) -> Result<Vec<Interval>, DistributedError> {
    match offsets(tensor, level) {
        None => {
            let each_has = below_each(tensor, level).max(1);
            Ok(each(own, |position| position.div_euclid(each_has)))
        }
        Some(pos) => Ok(with(own, &look_up(cx, pos, &lasts(own), Lookup::Segment).await?)),
    }
}

/// The first and the last position of each part that has some.
fn lasts(parts: &[Interval]) -> Vec<i64> {
    parts.iter().filter(|(first, end)| first < end).flat_map(|(first, end)| [*first, end - 1]).collect()
}

/// The interval of each part, from the numbers that were found for the first and the last position of each part that
/// has some.
fn with(parts: &[Interval], found: &[i64]) -> Vec<Interval> {
    let mut found = found.chunks(2);
    let next = |(first, end): &Interval| match first < end {
        true => found.next().map_or((0, 0), |ends| (ends[0], ends[1] + 1)),
        false => (0, 0),
    };
    parts.iter().map(next).collect()
}

/// A function of the first and the last position of each part that has some.
fn each(parts: &[Interval], value: impl Fn(i64) -> i64) -> Vec<Interval> {
    with(parts, &lasts(parts).into_iter().map(value).collect::<Vec<_>>())
}

/// The numbers of a component at places.
pub(super) async fn numbers_at(
    cx: &Context,
    component: &Component,
    places: &[i64],
) -> Result<Vec<i64>, DistributedError> {
    look_up(cx, component, places, Lookup::Number).await
}

/// Looks up numbers in a component, in one task for each block of it.
async fn look_up(
    cx: &Context,
    component: &Component,
    wanted: &[i64],
    lookup: Lookup,
) -> Result<Vec<i64>, DistributedError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let (asked, field, element): (Arc<[i64]>, _, _) = (wanted.into(), component.field, component.element);
    let find = move |call: &LeafCall<'_>, block: Range<i64>| match element {
        ElementType::I32 => found_in::<i32>(call, field, &asked, lookup, block),
        _ => found_in::<i64>(call, field, &asked, lookup, block),
    };
    let found = in_blocks(cx, component, "look up positions", find).await?;
    let mut all = vec![0; wanted.len()];
    for (number, value) in found.into_iter().flatten() {
        if let Some(place) = all.get_mut(number as usize) {
            // What is counted is in several blocks; all else is in one.
            *place += value;
        }
    }
    Ok(all)
}

/// Runs a task on each block of a component, where the block is, and gives the results. A task may look at the numbers
/// before and after its own block, too.
pub(super) async fn in_blocks<R: Clone + Serialize + DeserializeOwned + Send + Sync + 'static>(
    cx: &Context,
    component: &Component,
    name: &str,
    find: impl Fn(&LeafCall<'_>, Range<i64>) -> maniple::Result<R> + Send + Sync + 'static,
) -> Result<Vec<R>, DistributedError> {
    let count = component.region.space().space().volume() as i64;
    let bytes = count as usize * component.element.size();
    let blocks = blocks_for(cx, bytes).min(count.max(1) as usize);
    let begin = move |block: usize| (i128::from(count) * block as i128 / blocks as i128) as i64;
    let block = |number: usize| Rect::<1>::from((begin(number) - 1).max(0)..(begin(number + 1) + 1).min(count));
    let pieces: Vec<AnySpace> = (0..blocks).map(|number| AnyRect::from(block(number)).into()).collect();
    let partitioning = cx.index_partition(component.region.space(), blocks, &pieces)?;
    let partition = component.region.partition(&partitioning).map_err(Error::from)?;
    let run = move |call: &LeafCall<'_>| {
        let number = call.point().coords()[0] as usize;
        Ok(Value::new(find(call, begin(number)..begin(number + 1))?))
    };
    let task = Arc::new(TaskDefinition::new(name).codec(Codec::of::<R>()).leaf(TaskOptions::default(), run));
    let own = Projection::Color(Arc::new(|point: AnyPoint| Point([point[0]]).into()));
    let field = FieldMask::of(component.field);
    let requirement = Requirement::new(Target::Partition(partition, own), field, Privilege::Read);
    let domain = AnyRect::from(Rect::<1>::from(0..blocks as i64));
    Ok(cx.index_launch(domain, TaskLauncher::new(&task).requirement(requirement).typed::<R>()).all().await?)
}

/// The words at which parts begin that have as many set bits each, and how many there are.
async fn words(cx: &Context, bits: &Component, parts: i64) -> Result<Vec<i64>, DistributedError> {
    let (field, count) = (bits.field, bits.region.space().space().volume() as i64);
    let ones = move |call: &LeafCall<'_>, block: Range<i64>| {
        let words = call.read::<i64, 1>(0, field)?;
        Ok(block.map(|word| i64::from(words[Point([word])].count_ones())).sum::<i64>())
    };
    let ones = in_blocks(cx, bits, "count bits", ones).await?;
    let starts = blocks(ones.iter().sum(), parts).into_iter().map(|(first, _)| first);
    let wanted: Arc<[i64]> = starts.collect();
    let before: Vec<i64> = ones.iter().scan(0, |sum, ones| Some(std::mem::replace(sum, *sum + ones))).collect();
    let asked = Arc::clone(&wanted);
    let find = move |call: &LeafCall<'_>, block: Range<i64>| {
        let words = call.read::<i64, 1>(0, field)?;
        let mut sum = before[call.point().coords()[0] as usize];
        let mut found = Vec::new();
        for word in block {
            let next = sum + i64::from(words[Point([word])].count_ones());
            // A part begins with the first word before which there are enough.
            found.extend(
                (0_u64..)
                    .zip(&*asked)
                    .filter(|(_, wanted)| (sum..next).contains(wanted))
                    .map(|(number, wanted)| (number, if *wanted == sum { word } else { word + 1 })),
            );
            sum = next;
        }
        Ok(found)
    };
    let found = in_blocks(cx, bits, "find bits", find).await?;
    // Where no bits are left, nothing is.
    let mut all = vec![count; wanted.len() + 1];
    found.into_iter().flatten().for_each(|(number, word)| all[number as usize] = word);
    all[0] = 0;
    Ok(all)
}

/// The results of a lookup in one block: for each wanted number that the block finds, its place in the list, and the
/// result.
fn found_in<N: FieldValue + Copy + Into<i64>>(
    call: &LeafCall<'_>,
    field: maniple::FieldId,
    wanted: &[i64],
    lookup: Lookup,
    block: Range<i64>,
) -> maniple::Result<Vec<(u64, i64)>> {
    let numbers = call.read::<N, 1>(0, field)?;
    let at = |place: i64| -> i64 { numbers[Point([place])].into() };
    let found = |wanted: i64| match lookup {
        Lookup::Number => block.contains(&wanted).then(|| at(wanted)),
        Lookup::Below => {
            let (mut low, mut high) = (block.start, block.end);
            while low < high {
                let middle = low + (high - low) / 2;
                if at(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            (low > block.start).then_some(low - block.start)
        }
        Lookup::Segment => {
            // The last place of the block that has a number not above the wanted one.
            let (mut low, mut high) = (block.start, block.end);
            while low < high {
                let middle = low + (high - low) / 2;
                if at(middle) <= wanted { low = middle + 1 } else { high = middle }
            }
            let place = low - 1;
            let is_followed = || numbers.space().contains(Point([place + 1])) && at(place + 1) > wanted;
            (place >= block.start && is_followed()).then_some(place)
        }
    };
    Ok((0..).zip(wanted).filter_map(|(number, &wanted)| Some((number, found(wanted)?))).collect())
}
