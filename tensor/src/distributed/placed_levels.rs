//! Tensors in levels, cut into the pieces of a placement, and brought to where these are placed.
//!
//! A piece is an interval of the positions of each level: those of a block of coordinates of the outermost one (a *universe* partition in Yadav, Aiken, Kjolstad, *SpDISTAL: compiling
//! distributed sparse tensor computations*, SC 2022), or an equal part of the positions of any level (a *non-zero* one), with all that is above and below. Pieces share positions above those that
//! are divided, at most their first and last.

use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace, Rect};
use maniple::{Context, Error, FieldMask, LogicalPartition, Privilege, Requirement, Target, TaskLauncher};

use super::error::DistributedError;
use super::fetch::by_color;
use super::launched::Launched;
use super::levels::Component;
use super::place::PLACE;
use super::shares::{Ends, Interval};
use super::tensor::Tensor;
use crate::format::Level;
use crate::lower::Slot;
use crate::machine::Machine;
use crate::placement::{Along, Cut, Placed, Placement};
use crate::plan::Space;
use crate::rectangle::Rectangle;

/// The pieces of a tensor in levels, as partitions of what is stored of it: piece `k + 1` is that of the `k`th part, and the first has nothing.
#[derive(Clone, Debug)]
pub struct LevelPieces {
    placed: Arc<Placed>,
    /// Of each level, if it is compressed: of its offsets.
    offsets: Vec<Option<LogicalPartition>>,
    /// Of each level, if it is compressed: of its coordinates.
    coordinates: Vec<Option<LogicalPartition>>,
    values: LogicalPartition,
}

/// What is cut into how many parts.
enum Parts {
    /// Nothing: one part has all.
    Whole,
    /// The positions of a level, into parts of equal length.
    Positions(usize, i64),
    /// The coordinates of the outermost level, which is compressed, into blocks.
    Coordinates(i64),
}

impl LevelPieces {
    /// Of the offsets of a level, each piece with the one that ends its last position; none if the level is dense.
    pub fn offsets(&self, level: usize) -> Option<&LogicalPartition> {
        self.offsets.get(level)?.as_ref()
    }

    /// Of the coordinates of a level; none if it is dense.
    pub fn coordinates(&self, level: usize) -> Option<&LogicalPartition> {
        self.coordinates.get(level)?.as_ref()
    }

    /// Of the elements.
    pub fn values(&self) -> &LogicalPartition {
        &self.values
    }
}

impl Tensor {
    /// Cuts a tensor in levels into the pieces of a placement. `xy -> x` makes blocks of the coordinates of the outermost level, `xy -> ~y` parts with as many positions each of the level that
    /// stores `y`, and `xy -> f : ~f` parts with as many elements each.
    ///
    /// Where pieces begin in levels above and below is looked up in what these store, as it is after all that was launched before: on each of several nodes in the blocks that it has.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Placement`] if the placement does not fit the tensor and the machine; [`DistributedError::Pieces`] if it cuts a tensor in levels in another way;
    /// [`DistributedError::Dense`] if the tensor is dense; [`DistributedError::Runtime`].
    pub async fn partition_levels(
        &self,
        cx: &Context,
        placement: &Placement,
        machine: &Machine,
    ) -> Result<LevelPieces, DistributedError> {
        let (name, format) = (self.variable().name(), self.variable().format());
        if !self.is_in_levels() {
            return Err(DistributedError::Dense { tensor: name.to_owned() });
        }
        let domain = Rectangle::whole(self.variable().dimensions());
        let placed = Placed::in_levels(placement, &domain, machine)?;
        let positions = match self.parts(&placed)? {
            Parts::Whole => (0..format.rank()).map(|level| vec![(0, self.positions(level))]).collect(),
            Parts::Positions(level, parts) => Ends::new(cx, self, (level, parts)).await?.positions,
            Parts::Coordinates(parts) => Ends::of_coordinates(cx, self, parts).await?.positions,
        };
        let offsets = |level: usize| match level.checked_sub(1) {
            None => vec![(0, 2); positions[0].len()],
            Some(above) => {
                let around = |(first, end): &Interval| if first < end { (*first, end + 1) } else { (0, 0) };
                positions[above].iter().map(around).collect()
            }
        };
        let is_compressed = |level: &usize| format.levels()[*level] != Level::Dense;
        let cut = |space: Space, parts: &[Interval]| self.cut(cx, space, parts);
        let levels = 0..format.rank();
        Ok(LevelPieces {
            offsets: levels
                .clone()
                .map(|level| Some(level).filter(is_compressed).map(|_| cut(Space::Offsets(level), &offsets(level))))
                .map(Option::transpose)
                .collect::<Result<_, _>>()?,
            coordinates: levels
                .map(|level| Some(level).filter(is_compressed).map(|_| cut(Space::Positions(level), &positions[level])))
                .map(Option::transpose)
                .collect::<Result<_, _>>()?,
            values: match format.rank().checked_sub(1) {
                Some(last) => cut(Space::Positions(last), &positions[last])?,
                None => cut(Space::Positions(0), &[(0, 1)])?,
            },
            placed: Arc::new(placed),
        })
    }

    /// Brings what a tensor in levels stores to where a placement says that its pieces are on a machine, whose processors run on the nodes of the job in blocks. What is there already costs nothing.
    ///
    /// # Errors
    ///
    /// As of [`partition_levels`](Self::partition_levels).
    pub async fn place_levels(
        &self,
        cx: &Context,
        placement: &Placement,
        machine: &Machine,
    ) -> Result<Launched, DistributedError> {
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
        for level in 0..self.variable().format().rank() {
            if let (Some(offsets), Some(coordinates)) = (pieces.offsets(level), pieces.coordinates(level)) {
                bring(self.component(&Slot::Positions(String::new(), level)), offsets);
                bring(self.component(&Slot::Coordinates(String::new(), level)), coordinates);
            }
        }
        bring(self.component(&Slot::Values(String::new())), pieces.values());
        let domain = AnyRect::from(Rect::<1>::from(0..processors));
        Ok(Launched { steps: vec![cx.index_launch(domain, launcher.typed())] })
    }

    /// What a placement cuts.
    fn parts(&self, placed: &Placed) -> Result<Parts, DistributedError> {
        let format = self.variable().format();
        let along = placed.placement().levels.iter().flat_map(|level| &level.grid).zip(placed.machine().extents());
        let cuts: Vec<(Along, usize)> = along
            .filter(|(along, _)| !matches!(along, Along::Fixed(_) | Along::Broadcast))
            .map(|(along, extent)| (*along, extent))
            .collect();
        let refused = || DistributedError::Pieces {
            tensor: self.variable().name().to_owned(),
            format: format.clone(),
            placement: placed.placement().to_string(),
        };
        match cuts[..] {
            [] => Ok(Parts::Whole),
            [(Along::Entries, extent)] if format.rank() > 0 => Ok(Parts::Positions(format.rank() - 1, extent as i64)),
            [(Along::Partition(mode, cut), extent)] => {
                let level = format.level_of(mode).ok_or_else(refused)?;
                match (cut, format.levels()[level]) {
                    (Cut::Positions, _) | (Cut::Blocked, Level::Dense) if level == 0 || cut == Cut::Positions => {
                        Ok(Parts::Positions(level, extent as i64))
                    }
                    (Cut::Blocked, _) if level == 0 => Ok(Parts::Coordinates(extent as i64)),
                    _ => Err(refused()),
                }
            }
            _ => Err(refused()),
        }
    }

    /// A partition of a space into intervals, after a piece without anything.
    fn cut(&self, cx: &Context, space: Space, parts: &[Interval]) -> Result<LogicalPartition, DistributedError> {
        let all = std::iter::once(&(0, 0)).chain(parts);
        let pieces: Vec<AnySpace> =
            all.map(|(first, end)| AnyRect::from(Rect::<1>::from(*first..*end)).into()).collect();
        let region = self.part(space);
        let partitioning = cx.index_partition(region.space(), pieces.len(), &pieces)?;
        Ok(region.partition(&partitioning).map_err(Error::from)?)
    }
}
