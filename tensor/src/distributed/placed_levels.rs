//! Tensors in levels, cut into the pieces of a placement, and brought to where these are placed.
//!
//! A piece has the positions of some coordinates of a level (a *universe* partition in Yadav, Aiken, Kjolstad,
//! *SpDISTAL: compiling distributed sparse tensor computations*, SC 2022), or an equal part of the positions of a level
//! (a *non-zero* one), with all that is above and below. These are an interval of each level, unless a level has the
//! coordinates of a piece in several places. Pieces share positions above those that are divided; intervals at most
//! their first and last.

use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace, IndexSpace, Rect};
use maniple::{Context, Error, FieldMask, LogicalPartition, Privilege, Requirement, Target, TaskLauncher};

use super::error::DistributedError;
use super::fetch::by_color;
use super::launched::Launched;
use super::level_pieces::{LevelPieces, StoredPieces};
use super::levels::{Component, Levels, words};
use super::pending::Pending;
use super::place::PLACE;
use super::scattered::{self, Dealt, Shift};
use super::shares::{Ends, Interval, is_in_order};
use super::tensor::Tensor;
use crate::format::{Format, Level, LevelExpression};
use crate::level::{Per, Stored};
use crate::lower::Slot;
use crate::machine::Machine;
use crate::notation::TensorVariable;
use crate::placement::{Along, Cut, Placed, Placement};
use crate::rectangle::Rectangle;

/// A cut of positions, bits or coordinates, with the number of parts.
enum LevelParts {
    /// The positions of a level, into parts of equal length.
    Positions(usize, i64),
    /// The bits of a level, into parts with as many of those that are set.
    Bits(usize, i64),
    /// The coordinates of the outermost level, which is in their order, into blocks.
    Coordinates(i64),
    /// The coordinates of a level, or of the dimension that follows from them and the diagonals.
    Dealt(usize, Dealt, Option<Shift>),
}

impl Tensor {
    /// Cuts a tensor in levels into the pieces of a placement, once: asked for again, they are the same partitions.
    /// They are the tensor's, and go with it: a program that destroys them can't ask again. `xy -> x` makes blocks of
    /// the coordinates of the level that stores `x`, `xy -> cyclic(x)` deals them in turn, `xy -> ~y` makes parts with
    /// as many positions each of the level that stores `y`, which is the one of its blocks where `y` is stored in
    /// blocks, and the one along diagonals where it follows from these, and `xy -> f : ~f` parts with as many elements
    /// each; of a level with a bit for each coordinate, as many that are set, as far as words of 64 are not cut. Blocks
    /// along several dimensions of the machine, as `xy -> xy`, have the positions that are in all of the cuts, and of
    /// the levels above the positions that these are below.
    ///
    /// A piece has what is above and below its own positions, too. Where it begins in other levels is looked up in what
    /// these store, as it is after all that was launched before: on each of several nodes in the blocks that it has.
    /// Pieces of coordinates lie together if their level is the outermost and has them in order; else each run of
    /// neighbours is one of their parts, of which there can be a million.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Placement`] if the placement does not fit the tensor and the machine;
    /// [`DistributedError::Pieces`] if it cuts a tensor in levels in another way; [`DistributedError::Scattered`] if
    /// pieces lie apart in too many places; [`DistributedError::Dense`] if the tensor is dense;
    /// [`DistributedError::Runtime`].
    pub fn partition_levels<'a>(
        &'a self,
        cx: &'a Context,
        placement: &'a Placement,
        machine: &'a Machine,
    ) -> Pending<'a, LevelPieces> {
        Box::pin(async move {
            let (name, rank) = (self.variable().name(), self.variable().format().levels().len());
            let Some(levels) = self.levels() else {
                return Err(DistributedError::Dense { tensor: name.to_owned() });
            };
            let placed = placed(self.variable(), placement, machine)?;
            if let Some(known) = self.cuts().find_placed(&placed) {
                return Ok(known);
            }
            warn_of_blocks(self.variable(), placement);
            let mut cuts = Vec::new();
            for parts in parts(self.variable(), &placed)? {
                cuts.push((parts.level(), self.cut_by(cx, levels, parts).await?));
            }
            let positions = match cuts.pop() {
                None => (0..rank).map(|level| vec![vec![(0, self.positions(level))]]).collect(),
                Some((_, only)) if cuts.is_empty() => only,
                Some(last) => {
                    cuts.push(last);
                    // All cuts are known at the innermost level that one of them cuts.
                    let level = cuts.iter().map(|(level, _)| *level).max().unwrap_or(0);
                    let runs: Vec<&Vec<Vec<Interval>>> = cuts.iter().map(|(_, positions)| &positions[level]).collect();
                    let (runs, parts) = scattered::met(&runs);
                    scattered::around(cx, self, level, runs, parts).await?
                }
            };
            let (levels, values) = cut_levels(cx, self, &positions)?;
            let pieces = LevelPieces { placed: Arc::new(placed), levels, values };
            self.cuts().remember_placed(&pieces.placed, &pieces);
            Ok(pieces)
        })
    }

    /// For each level, the positions of each part of one cut.
    async fn cut_by(
        &self,
        cx: &Context,
        levels: &Levels,
        parts: LevelParts,
    ) -> Result<Vec<Vec<Vec<Interval>>>, DistributedError> {
        let together = |positions: Vec<Vec<Interval>>| {
            let runs = |level: Vec<Interval>| level.into_iter().map(|run| vec![run]).collect();
            positions.into_iter().map(runs).collect::<Vec<Vec<Vec<Interval>>>>()
        };
        Ok(match parts {
            LevelParts::Positions(level, parts) => together(Ends::new(cx, self, level, parts).await?.positions),
            LevelParts::Bits(level, parts) => match levels.stored(level) {
                [(_, bits)] => together(Ends::of_bits(cx, self, level, parts, bits).await?.positions),
                _ => together(Ends::new(cx, self, level, parts).await?.positions),
            },
            LevelParts::Coordinates(parts) => together(Ends::of_coordinates(cx, self, parts).await?.positions),
            LevelParts::Dealt(level, dealt, shift) => scattered::pieces(cx, self, level, dealt, shift).await?,
        })
    }

    /// Brings what a tensor in levels stores to where a placement says that its pieces are on a machine, whose
    /// processors run on the nodes of the job in blocks. What is there already costs nothing.
    ///
    /// # Errors
    ///
    /// As of [`partition_levels`](Self::partition_levels).
    pub fn place_levels<'a>(
        &'a self,
        cx: &'a Context,
        placement: &'a Placement,
        machine: &'a Machine,
    ) -> Pending<'a, Launched> {
        Box::pin(async move {
            let pieces = self.partition_levels(cx, placement, machine).await?;
            let processors = machine.size() as i64;
            let mut launcher = TaskLauncher::new(&PLACE);
            let mut bring = |component: Component, partition: &LogicalPartition| {
                let placed = Arc::clone(&pieces.placed);
                let color = move |processor: i64| {
                    placed.number(&placed.machine().point(processor as usize)).map_or(0, |piece| piece as i64 + 1)
                };
                let target = Target::Partition(partition.clone(), by_color(processors, color));
                let requirement = Requirement::new(target, FieldMask::of(component.field), Privilege::Read);
                launcher = std::mem::replace(&mut launcher, TaskLauncher::new(&PLACE)).requirement(requirement);
            };
            for (level, stored) in pieces.levels.iter().enumerate() {
                for ((_, component), (_, partition)) in
                    self.levels().iter().flat_map(|all| all.stored(level)).zip(stored)
                {
                    bring(component.clone(), partition);
                }
            }
            bring(self.component(&Slot::Values(String::new())), pieces.values());
            let domain = AnyRect::from(Rect::<1>::from(0..processors));
            Ok(Launched { steps: vec![cx.index_launch(domain, launcher.typed())] })
        })
    }
}

/// Refuses a placement that does not fit a tensor in levels and a machine, of which only the variable is known.
///
/// # Errors
///
/// [`DistributedError::Placement`], [`DistributedError::Pieces`].
pub fn check_placement(
    variable: &TensorVariable,
    placement: &Placement,
    machine: &Machine,
) -> Result<(), DistributedError> {
    match variable.format().is_dense() {
        true => {
            Placed::new(placement, &Rectangle::whole(variable.dimensions()), machine).map(|_| ()).map_err(Into::into)
        }
        false => parts(variable, &placed(variable, placement, machine)?).map(|_| ()),
    }
}

fn placed(variable: &TensorVariable, placement: &Placement, machine: &Machine) -> Result<Placed, DistributedError> {
    Ok(Placed::in_levels(placement, &Rectangle::whole(variable.dimensions()), machine)?)
}

/// Says of parts with as many positions each that they are blocks, where a level stores all coordinates.
fn warn_of_blocks(variable: &TensorVariable, placement: &Placement) {
    let format = variable.format();
    for distribution in &placement.levels {
        for along in &distribution.grid {
            if let Along::Partition(mode, Cut::Positions) = *along
                && Storing::find(format, mode).is_some_and(|storing| format.levels()[storing.level] == Level::Dense)
            {
                let (tensor, name) = (variable.name(), &distribution.dimensions[mode]);
                tracing::warn!(
                    "{tensor} stores all of {name}, so that `~{name}` in `{placement}` makes blocks: write `{name}`"
                );
            }
        }
    }
}

impl LevelParts {
    /// The level that is cut.
    fn level(&self) -> usize {
        match self {
            Self::Positions(level, _) | Self::Bits(level, _) | Self::Dealt(level, ..) => *level,
            Self::Coordinates(_) => 0,
        }
    }
}

/// The cuts of a placement, along each dimension of the machine that cuts something.
fn parts(variable: &TensorVariable, placed: &Placed) -> Result<Vec<LevelParts>, DistributedError> {
    let format = variable.format();
    let along = placed.placement().levels.iter().flat_map(|level| &level.grid).zip(placed.machine().extents());
    let cuts: Vec<(Along, usize)> = along
        .filter(|(along, _)| !matches!(along, Along::Fixed(_) | Along::Broadcast))
        .map(|(along, extent)| (*along, extent))
        .collect();
    let refused = || DistributedError::Pieces {
        tensor: variable.name().to_owned(),
        format: format.clone(),
        placement: placed.placement().to_string(),
    };
    let positions = |level: usize, parts: i64| match format.levels()[level] {
        Level::Bitmap => LevelParts::Bits(level, parts),
        _ => LevelParts::Positions(level, parts),
    };
    let one = |(along, extent): (Along, usize)| {
        let (mode, cut) = match along {
            Along::Entries => return format.levels().len().checked_sub(1).map(|last| positions(last, extent as i64)),
            Along::Partition(mode, cut) => (mode, cut),
            Along::Fixed(_) | Along::Broadcast => return None,
        };
        let (Storing { level, unit, shift }, parts) = (Storing::find(format, mode)?, extent as i64);
        let extent = match shift {
            Some(_) => variable.dimensions()[mode],
            None => {
                let bounds = format.expressions()[level].bounds(variable.dimensions());
                bounds.end - bounds.start
            }
        };
        let in_units = |length: i64, unit: i64| length / unit + i64::from(length % unit > 0);
        let block = match cut {
            Cut::Positions => return Some(positions(level, parts)),
            Cut::Blocked => in_units(extent, parts),
            Cut::Cyclic(block) => in_units(i64::try_from(block).unwrap_or(i64::MAX), unit),
        };
        Some(match cut {
            Cut::Blocked if level == 0 && is_in_order(format) => LevelParts::Coordinates(parts),
            _ => LevelParts::Dealt(level, Dealt { block: block.clamp(1, extent.max(1)), parts }, shift),
        })
    };
    let found: Option<Vec<LevelParts>> = cuts.iter().map(|cut| one(*cut)).collect();
    // Equal parts are of all positions, and blocks of all coordinates: neither are cut once more.
    let is_once = |(along, _): &(Along, usize)| match along {
        Along::Partition(_, Cut::Positions) | Along::Entries => false,
        Along::Partition(mode, _) => {
            cuts.iter().filter(|(other, _)| matches!(other, Along::Partition(of, _) if of == mode)).count() == 1
        }
        Along::Fixed(_) | Along::Broadcast => true,
    };
    found.filter(|_| cuts.len() == 1 || cuts.iter().all(is_once)).ok_or_else(refused)
}

/// How a format stores a dimension.
struct Storing {
    level: usize,
    /// So many coordinates of the dimension are one of the level: those of blocks, which are not cut.
    unit: i64,
    /// If the level stores another dimension, below diagonals.
    shift: Option<Shift>,
}

impl Storing {
    fn find(format: &Format, mode: usize) -> Option<Self> {
        let expressions = format.expressions();
        let position = |stores: &dyn Fn(&LevelExpression) -> bool| expressions.iter().position(stores);
        if let Some(level) = position(&|expression| *expression == LevelExpression::Mode(mode)) {
            return Some(Self { level, unit: 1, shift: None });
        }
        let blocks = expressions.iter().enumerate().find_map(|(level, expression)| match *expression {
            LevelExpression::Block(of, size) if of == mode => Some((level, size)),
            _ => None,
        });
        if let Some((level, unit)) = blocks {
            return Some(Self { level, unit, shift: None });
        }
        // Along diagonals the place tells the other dimension.
        let shift = match *expressions {
            [LevelExpression::Difference(first, second), LevelExpression::Mode(stored)] => match mode {
                _ if mode == first && stored == second => Shift { sign: 1, of_diagonal: 1 },
                _ if mode == second && stored == first => Shift { sign: 1, of_diagonal: -1 },
                _ => return None,
            },
            [LevelExpression::Sum(first, second), LevelExpression::Mode(stored)]
                if [first, second].contains(&mode) && [first, second].contains(&stored) =>
            {
                Shift { sign: -1, of_diagonal: 1 }
            }
            _ => return None,
        };
        let is_dense = format.levels()[1] == Level::Range;
        is_dense.then_some(Self { level: 1, unit: 1, shift: Some(shift) })
    }
}

/// Partitions of what each level of a tensor stores, and of its elements, into the pieces of parts that have these runs
/// of positions of each level: piece `k + 1` is that of the `k`th part.
pub(super) fn cut_levels(
    cx: &Context,
    tensor: &Tensor,
    positions: &[Vec<Vec<Interval>>],
) -> Result<(StoredPieces, LogicalPartition), DistributedError> {
    let name = || tensor.variable().name().to_owned();
    let levels = tensor.levels().ok_or_else(|| DistributedError::Dense { tensor: name() })?;
    let root = || positions.first().map(|parts| vec![vec![(0, 1)]; parts.len()]).unwrap_or_default();
    let mut made = Vec::with_capacity(positions.len());
    for (level, own) in positions.iter().enumerate() {
        let above = level.checked_sub(1).map_or_else(root, |above| positions[above].clone());
        let component = |(stored, component): &(Stored, Component)| {
            let numbers = |parts: &[Vec<Interval>], change: fn(Interval) -> Interval| -> Vec<Vec<Interval>> {
                let change = |part: &Vec<Interval>| {
                    part.iter().copied().filter(|(first, end)| first < end).map(change).collect()
                };
                parts.iter().map(change).collect()
            };
            let pieces = match stored.per {
                Per::Offset => numbers(&above, |(first, end)| (first, end + 1)),
                Per::Parent => numbers(&above, |own| own),
                Per::Position | Per::Slot => numbers(own, |own| own),
                Per::Word => numbers(own, |(first, end)| words(first, end)),
            };
            Ok((*stored, cut(cx, component, &pieces)?))
        };
        made.push(levels.stored(level).iter().map(component).collect::<Result<_, DistributedError>>()?);
    }
    let of_values = positions.last().cloned().unwrap_or_else(|| vec![vec![(0, 1)]]);
    Ok((made, cut(cx, levels.values(), &of_values)?))
}

/// A partition of a component into parts, each of some intervals, after a piece without anything.
fn cut(cx: &Context, component: &Component, parts: &[Vec<Interval>]) -> Result<LogicalPartition, DistributedError> {
    let piece = |intervals: &Vec<Interval>| {
        let rects = intervals.iter().map(|(first, end)| Rect::<1>::from(*first..*end));
        AnySpace::from(IndexSpace::<1>::from_rects(rects.collect::<Vec<_>>()))
    };
    let pieces: Vec<AnySpace> = std::iter::once(&Vec::new()).chain(parts).map(piece).collect();
    let partitioning = cx.index_partition(component.region.space(), pieces.len(), &pieces)?;
    Ok(component.region.partition(&partitioning).map_err(Error::from)?)
}
