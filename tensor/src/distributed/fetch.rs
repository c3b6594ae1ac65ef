//! Which part of a tensor each point of each step is given.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use maniple::space::{AnyPoint, AnyRect, AnySpace, IndexSpace, Point, Rect};
use maniple::{
    Context, Error, Field, FieldMask, LogicalPartition, LogicalRegion, Partition as Split, Privilege as Held,
    Projection, Region, Requirement, Target,
};

use super::error::DistributedError;
use super::levels::{parents_of, words};
use super::operators::operator;
use super::shares::below_each;
use super::tensor::Tensor;
use crate::bounds::Colors;
use crate::element::ElementType;
use crate::lower::Slot;
use crate::plan::{Fetch, Launching, PlanOrder, Privilege, Space};
use crate::rectangle::Rectangle;

/// The colors of so many points are looked up in a table; those of more are computed where they are asked for.
const MOST_IN_TABLE: i64 = 1 << 12;

/// The partition or the region of which points are given pieces.
#[derive(Clone)]
pub(super) enum GivenPieces {
    Piece(LogicalPartition),
    All(LogicalRegion),
}

/// The pieces of one space of a tensor that the points of a launch are given, at all steps.
pub(super) struct Fetching {
    /// Of its pieces each point has one; of a region all.
    pieces: GivenPieces,
    fields: FieldMask,
    /// The bytes of these at a point of the space.
    bytes: u64,
    element: ElementType,
    order: Arc<PlanOrder>,
    fetch: Fetch,
    /// The positions of the sequences' variables on whose values pieces depend.
    sequences: Vec<usize>,
    /// For each different combination of their values, and what is done, what launches ask for.
    requirements: HashMap<(Vec<i64>, Privilege), (usize, Requirement)>,
}

impl Fetching {
    pub(super) fn new(
        launching: &Launching,
        fetch: &Fetch,
        element: ElementType,
        fields: FieldMask,
        bytes: u64,
        pieces: GivenPieces,
    ) -> Self {
        let (depends, order) = (fetch.loops(), Arc::clone(&launching.order));
        let sequences = order.sequences().map(|(position, _)| position);
        let sequences = sequences.filter(|position| depends.contains(position)).collect();
        Self { pieces, fields, bytes, element, order, fetch: fetch.clone(), sequences, requirements: HashMap::new() }
    }

    /// The region and the fields of which one part after the other is read, each at steps of its own; none if they are
    /// not read so.
    pub(super) fn passes(&self) -> Option<(LogicalRegion, FieldMask)> {
        let is_read = self.fetch.privilege(&self.order, 0) == Privilege::Read;
        match &self.pieces {
            GivenPieces::Piece(partition) if is_read && !self.sequences.is_empty() => {
                Some((partition.parent(), self.fields.clone()))
            }
            _ => None,
        }
    }

    /// If it is [read of one part after the other](Self::passes): the most bytes that the points of one of so many
    /// nodes are given at two steps that follow one another, where points are dealt to nodes in blocks.
    pub(super) fn most_at_two_steps(&self, nodes: usize) -> u64 {
        let GivenPieces::Piece(partition) = &self.pieces else { return 0 };
        if self.passes().is_none() {
            return 0;
        }
        let (pieces, points) =
            (partition.partitioning().pieces(), AnyRect::from(Rect::<1>::from(0..self.order.points())));
        let of = |step: i64, block: &AnyRect| {
            let colors = block.points().map(|point| self.fetch.color(&self.order, step, point[0]));
            let colors: BTreeSet<i64> = colors.collect();
            colors.iter().map(|color| pieces[*color as usize].space().volume() * self.bytes).sum::<u64>()
        };
        let of_block = |block: AnyRect| {
            let steps: Vec<u64> = (0..self.order.steps()).map(|step| of(step, &block)).collect();
            steps.windows(2).map(|two| two[0] + two[1]).max().or(steps.first().copied())
        };
        let blocks = if points.is_empty() { Vec::new() } else { points.split(nodes) };
        blocks.into_iter().filter_map(of_block).max().unwrap_or(0)
    }

    /// The requirement of a launch at a step, with a number. Steps with the same number have the same requirement.
    ///
    /// # Errors
    ///
    /// [`DistributedError::NoOperator`].
    pub(super) fn requirement(&mut self, step: i64) -> Result<(usize, Requirement), DistributedError> {
        let (values, privilege) = (self.order.values(step, 0), self.fetch.privilege(&self.order, step));
        let key = (self.sequences.iter().map(|&position| values[position]).collect(), privilege);
        if let Some(known) = self.requirements.get(&key) {
            return Ok(known.clone());
        }
        let held = match privilege {
            Privilege::Read => Held::Read,
            Privilege::ReadWrite => Held::ReadWrite,
            Privilege::Write => Held::Discard,
            Privilege::Reduce(reduction) => Held::Reduce(
                operator(reduction, self.element)
                    .ok_or_else(|| DistributedError::NoOperator { operator: format!("{reduction:?}") })?,
            ),
        };
        let (order, fetch) = (Arc::clone(&self.order), self.fetch.clone());
        let projection = || by_color(self.order.points(), move |point| fetch.color(&order, step, point));
        let target = match &self.pieces {
            GivenPieces::Piece(partition) => Target::Partition(partition.clone(), projection()),
            GivenPieces::All(region) => region.clone().into(),
        };
        let requirement = (self.requirements.len(), Requirement::new(target, self.fields.clone(), held));
        self.requirements.insert(key, requirement.clone());
        Ok(requirement)
    }
}

/// The piece of each of so many points.
pub(super) fn by_color(points: i64, color: impl Fn(i64) -> i64 + Send + Sync + 'static) -> Projection {
    let color: Box<dyn Fn(i64) -> i64 + Send + Sync> = if points <= MOST_IN_TABLE {
        let table: Vec<i64> = (0..points).map(color).collect();
        Box::new(move |point| table[point as usize])
    } else {
        Box::new(color)
    };
    Projection::Color(Arc::new(move |point: AnyPoint| Point([color(point[0])]).into()))
}

/// A partition of a space of the tensor into the pieces of all colors.
pub(super) fn partition(
    cx: &Context,
    tensor: &Tensor,
    space: Space,
    colors: &Colors,
) -> Result<LogicalPartition, DistributedError> {
    let (format, dimensions) = (tensor.variable().format(), tensor.variable().dimensions());
    let has_offsets = |level: usize| tensor.levels().is_some_and(|levels| levels.offsets(level).is_some());
    let piece = |color| match space {
        Space::Positions(1) if !format.is_plain() => Ok(along_diagonals(tensor, &colors.parts(color))),
        Space::Offsets(level) => {
            // One more ends the last.
            let after = i64::from(has_offsets(level));
            let parents = parents_of(&colors.parts(color), format, dimensions, level).into_iter();
            Ok(positions(parents.map(|(first, end)| (first, end + after))))
        }
        Space::Words(level) => {
            let each_has = below_each(tensor, level);
            let parents = parents_of(&colors.parts(color), format, dimensions, level).into_iter();
            Ok(positions(
                parents.filter(|(first, end)| first < end).map(|(first, end)| words(first * each_has, end * each_has)),
            ))
        }
        // Below so many positions above, without offsets.
        Space::Positions(level) => {
            let each_has = below_each(tensor, level);
            let parents = parents_of(&colors.parts(color), format, dimensions, level).into_iter();
            Ok(positions(parents.map(|(first, end)| (first * each_has, end * each_has))))
        }
        Space::Elements => tensor.space(&colors.parts(color)),
    };
    let pieces = (0..colors.count()).map(piece).collect::<Result<Vec<AnySpace>, _>>()?;
    let region = tensor.part(space);
    let partitioning = cx.index_partition(region.space(), pieces.len(), &pieces)?;
    Ok(region.partition(&partitioning).map_err(Error::from)?)
}

/// More intervals of the positions along diagonals are not told apart: a piece has those of all of each diagonal.
const MOST_ALONG: i64 = 1 << 12;

/// The positions of parts of a matrix along all of its diagonals.
fn along_diagonals(tensor: &Tensor, parts: &[Rectangle]) -> AnySpace {
    let (diagonals, length) = (tensor.positions(0), tensor.extent(1));
    let dimension = tensor.variable().format().expressions()[1].modes()[0];
    let bounds = parts.iter().filter(|part| !part.is_empty()).filter_map(|part| part.bounds().nth(dimension));
    let bounds: Vec<(i64, i64)> = bounds.collect();
    if bounds.is_empty() {
        return positions(std::iter::empty());
    }
    if bounds.contains(&(0, length)) || diagonals.saturating_mul(bounds.len() as i64) > MOST_ALONG {
        return positions(std::iter::once((0, diagonals * length)));
    }
    let of_all = (0..diagonals).flat_map(|diagonal| bounds.iter().map(move |own| (diagonal * length, *own)));
    positions(of_all.map(|(begin, (first, end))| (begin + first, begin + end)))
}

/// The space of these intervals, from the first to before the second of each.
pub(super) fn positions(intervals: impl Iterator<Item = (i64, i64)>) -> AnySpace {
    IndexSpace::<1>::from_rects(intervals.map(|(first, end)| Rect::from(first..end)).collect::<Vec<_>>()).into()
}

/// A partition of the positions of a level into what is below the pieces of its offsets.
pub(super) async fn below(
    cx: &Context,
    tensor: &Tensor,
    level: usize,
    offsets: &LogicalPartition,
) -> Result<LogicalPartition, DistributedError> {
    let sources: Split<(), 1> = Split::try_from_logical(offsets.clone())?;
    let positions: Region<(), 1> = Region::try_from_logical(tensor.part(Space::Positions(level)).clone())?;
    let pos = tensor.component(&Slot::Positions(String::new(), level));
    let found = match pos.element {
        ElementType::I32 => cx.image_of_offsets(&positions, &sources, Field::<(), i32>::new(pos.field)).await,
        _ => cx.image_of_offsets(&positions, &sources, Field::<(), i64>::new(pos.field)).await,
    };
    Ok(found?.logical().clone())
}
