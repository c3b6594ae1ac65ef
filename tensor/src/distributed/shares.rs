//! What belongs to equal parts of the positions of a level: the positions above them and below them, and their rows.
//!
//! Positions above and below those that are next to each other are next to each other too, so each part is an interval in each level. Where it begins and ends there is looked up by tasks in
//! blocks of what levels store, which stay where they are: one task for each block, which gets all that is looked up, and gives what it finds.

use std::sync::Arc;

use maniple::space::{AnyPoint, AnyRect, AnySpace, Point, Rect};
use maniple::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Context, Error, FieldMask, FieldValue, LogicalPartition, Privilege, Projection, Requirement, Target, TaskLauncher,
};

use super::error::DistributedError;
use super::levels::Component;
use super::rows::blocks_for;
use super::tensor::Tensor;
use crate::element::ElementType;
use crate::format::Level;
use crate::lower::Slot;
use crate::plan::{Shares, Space};

/// From the first to before the last.
pub(super) type Interval = (i64, i64);

/// Where parts are in each level of a tensor.
pub(super) struct Ends {
    /// Of each level, of each part: its positions.
    pub(super) positions: Vec<Vec<Interval>>,
    /// Of each part, the coordinates of the outermost level between those that it has.
    rows: Vec<Interval>,
}

/// What is looked up in numbers that ascend, or at places.
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
        (divided, parts): (usize, i64),
    ) -> Result<Self, DistributedError> {
        let levels = tensor.variable().format().levels();
        let mut positions = vec![Vec::new(); levels.len()];
        positions[divided] = blocks(tensor.positions(divided), parts);
        for level in (1..=divided).rev() {
            positions[level - 1] = match levels[level] {
                Level::Dense => {
                    let extent = tensor.extent(level).max(1);
                    each(&positions[level], |position| position.div_euclid(extent))
                }
                _ => {
                    let pos = tensor.component(&Slot::Positions(String::new(), level));
                    let found = look_up(cx, &pos, &lasts(&positions[level]), Lookup::Segment).await?;
                    with(&positions[level], &found)
                }
            };
        }
        below(cx, tensor, &mut positions, divided).await?;
        let rows = match levels[0] {
            Level::Dense => positions[0].clone(),
            _ => {
                let crd = tensor.component(&Slot::Coordinates(String::new(), 0));
                let found = look_up(cx, &crd, &lasts(&positions[0]), Lookup::Number).await?;
                with(&positions[0], &found)
            }
        };
        Ok(Self { positions, rows })
    }

    /// Of blocks of the coordinates of the outermost level, which is compressed.
    pub(super) async fn of_coordinates(cx: &Context, tensor: &Tensor, parts: i64) -> Result<Self, DistributedError> {
        let rows = blocks(tensor.extent(0), parts);
        let crd = tensor.component(&Slot::Coordinates(String::new(), 0));
        let ends: Vec<i64> = rows.iter().flat_map(|(first, end)| [*first, *end]).collect();
        let found = look_up(cx, &crd, &ends, Lookup::Below).await?;
        let mut positions = vec![Vec::new(); tensor.variable().format().rank()];
        positions[0] = found.chunks(2).map(|ends| (ends[0], ends[1])).collect();
        below(cx, tensor, &mut positions, 0).await?;
        Ok(Self { positions, rows })
    }

    /// A partition of a space of a tensor into what belongs to each part.
    pub(super) fn partition(
        &self,
        cx: &Context,
        (tensor, space): (&Tensor, Space),
        shares: &Shares,
    ) -> Result<LogicalPartition, DistributedError> {
        let interval = |(first, end): &Interval| AnySpace::from(AnyRect::from(Rect::<1>::from(*first..*end)));
        let pieces: Vec<AnySpace> = match space {
            Space::Positions(level) => self.positions[level].iter().map(interval).collect(),
            // One more ends the last.
            Space::Offsets(level) => {
                let around = |(first, end): &Interval| if first < end { (*first, end + 1) } else { (0, 0) };
                self.positions[level - 1].iter().map(around).map(|around| interval(&around)).collect()
            }
            Space::Elements => {
                let whole = tensor.variable().dimensions();
                let piece = |rows: &Interval| {
                    let bounds = whole.iter().enumerate().map(|(dimension, extent)| match shares.rows {
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

/// So many numbers in parts, all but the last ones of which have the same length: their number over that of parts, rounded up.
fn blocks(count: i64, parts: i64) -> Vec<Interval> {
    let length = i128::from(count.div_euclid(parts) + i64::from(count.rem_euclid(parts) > 0));
    let end = |number: i64| (i128::from(number) * length).min(i128::from(count)) as i64;
    (0..parts).map(|number| (end(number), end(number + 1))).collect()
}

/// Finds the positions of parts in the levels below one.
async fn below(
    cx: &Context,
    tensor: &Tensor,
    positions: &mut [Vec<Interval>],
    divided: usize,
) -> Result<(), DistributedError> {
    let levels = tensor.variable().format().levels();
    for level in divided + 1..levels.len() {
        positions[level] = match levels[level] {
            Level::Dense => {
                let extent = tensor.extent(level);
                positions[level - 1].iter().map(|(first, end)| (first * extent, end * extent)).collect()
            }
            _ => {
                let pos = tensor.component(&Slot::Positions(String::new(), level));
                let ends: Vec<i64> = positions[level - 1].iter().flat_map(|(first, end)| [*first, *end]).collect();
                let found = look_up(cx, &pos, &ends, Lookup::Number).await?;
                found.chunks(2).map(|ends| (ends[0], ends[1])).collect()
            }
        };
    }
    Ok(())
}

/// The first and the last position of each part that has some.
fn lasts(parts: &[Interval]) -> Vec<i64> {
    parts.iter().filter(|(first, end)| first < end).flat_map(|(first, end)| [*first, end - 1]).collect()
}

/// What was found for the first and the last position of each part that has some.
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
    let count = component.region.space().space().volume() as i64;
    let bytes = count as usize * component.element.size();
    let blocks = blocks_for(cx, bytes).min(count.max(1) as usize);
    let begin = move |block: usize| (i128::from(count) * block as i128 / blocks as i128) as i64;
    // Each block has the first number of the next one, where its last segment ends.
    let block = |number: usize| Rect::<1>::from(begin(number)..(begin(number + 1) + 1).min(count));
    let pieces: Vec<AnySpace> = (0..blocks).map(|number| AnyRect::from(block(number)).into()).collect();
    let partitioning = cx.index_partition(component.region.space(), blocks, &pieces)?;
    let partition = component.region.partition(&partitioning).map_err(Error::from)?;
    let (wanted, field, element): (Arc<[i64]>, _, _) = (wanted.into(), component.field, component.element);
    let asked = Arc::clone(&wanted);
    let find = move |call: &LeafCall<'_>| {
        let number = call.point().coords()[0] as usize;
        let own = (begin(number), begin(number + 1));
        Ok(Value::new(match element {
            ElementType::I32 => found_in::<i32>(call, field, (&asked, lookup), own)?,
            _ => found_in::<i64>(call, field, (&asked, lookup), own)?,
        }))
    };
    let task = TaskDefinition::new("look up positions").codec(Codec::of::<Vec<(u64, i64)>>());
    let task = Arc::new(task.leaf(TaskOptions::default(), find));
    let own = Projection::Color(Arc::new(|point: AnyPoint| Point([point[0]]).into()));
    let requirement = Requirement::new(Target::Partition(partition, own), FieldMask::of(field), Privilege::Read);
    let domain = AnyRect::from(Rect::<1>::from(0..blocks as i64));
    let found = cx.index_launch(domain, TaskLauncher::new(&task).requirement(requirement).typed::<Vec<(u64, i64)>>());
    let mut all = vec![0; wanted.len()];
    for (number, value) in found.all().await?.into_iter().flatten() {
        if let Some(place) = all.get_mut(number as usize) {
            // What is counted is in several blocks; all else is in one.
            *place += value;
        }
    }
    Ok(all)
}

/// What a block has of what is looked up: the number of each that it finds, and what it finds.
fn found_in<N: FieldValue + Copy + Into<i64>>(
    call: &LeafCall<'_>,
    field: maniple::FieldId,
    (wanted, lookup): (&[i64], Lookup),
    (first, end): Interval,
) -> maniple::Result<Vec<(u64, i64)>> {
    let numbers = call.read::<N, 1>(0, field)?;
    let at = |place: i64| -> i64 { numbers[Point([place])].into() };
    let found = |wanted: i64| match lookup {
        Lookup::Number => (first..end).contains(&wanted).then(|| at(wanted)),
        Lookup::Below => {
            let (mut low, mut high) = (first, end);
            while low < high {
                let middle = low + (high - low) / 2;
                if at(middle) < wanted { low = middle + 1 } else { high = middle }
            }
            (low > first).then_some(low - first)
        }
        Lookup::Segment => {
            // The last place of the block that has a number not above the wanted one.
            let (mut low, mut high) = (first, end);
            while low < high {
                let middle = low + (high - low) / 2;
                if at(middle) <= wanted { low = middle + 1 } else { high = middle }
            }
            let place = low - 1;
            let is_followed = || numbers.space().contains(Point([place + 1])) && at(place + 1) > wanted;
            (place >= first && is_followed()).then_some(place)
        }
    };
    Ok((0..).zip(wanted).filter_map(|(number, &wanted)| Some((number, found(wanted)?))).collect())
}
