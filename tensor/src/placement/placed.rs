//! The meaning of a placement: which point of a machine holds what of a tensor.

use super::{Along, Cut, Distribution, Piece, Placement, PlacementError};
use crate::machine::{Grid, Machine};
use crate::rectangle::Rectangle;

/// A placement of a tensor with a given domain on a given machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    placement: Placement,
    domain: Rectangle,
    machine: Machine,
}

impl Placed {
    /// Places a tensor whose elements are the points of `domain` on `machine`.
    ///
    /// # Errors
    ///
    /// [`PlacementError`], if the three do not fit.
    pub fn new(placement: &Placement, domain: &Rectangle, machine: &Machine) -> Result<Self, PlacementError> {
        let cuts_entries = |level: &&Distribution| level.grid.contains(&Along::Entries);
        if let Some(level) = placement.levels.iter().find(cuts_entries) {
            return Err(PlacementError::Entries { statement: level.to_string() });
        }
        Self::in_levels(placement, domain, machine)
    }

    /// The same for a tensor in levels, of which what is stored may be cut, and not a rectangle: then there are no
    /// [pieces](Self::piece), only their numbers.
    pub(crate) fn in_levels(
        placement: &Placement,
        domain: &Rectangle,
        machine: &Machine,
    ) -> Result<Self, PlacementError> {
        if placement.levels.len() != machine.levels().len() {
            return Err(PlacementError::Levels {
                placement: placement.to_string(),
                statements: placement.levels.len(),
                machine: machine.to_string(),
                levels: machine.levels().len(),
            });
        }
        for (distribution, grid) in placement.levels.iter().zip(machine.levels()) {
            check(distribution, domain.order(), grid)?;
        }
        Ok(Self { placement: placement.clone(), domain: domain.clone(), machine: machine.clone() })
    }

    /// The placement.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The tensor's points.
    pub fn domain(&self) -> &Rectangle {
        &self.domain
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The piece that the processor at `point` holds. A point may hold nothing: beside a face, or where a tensor has
    /// fewer indices than the grid has processors. A point outside of the machine holds nothing too.
    pub fn piece(&self, point: &[usize]) -> Piece {
        if self.machine.number(point).is_none() {
            return Piece::nothing(self.domain.order());
        }
        let mut piece = Piece::whole(&self.domain);
        for (along, index, extent) in self.along(point) {
            match *along {
                Along::Partition(dimension, cut) => piece.cut(dimension, cut, index, extent),
                Along::Fixed(face) if face != index => piece.keep_nothing(),
                Along::Fixed(_) | Along::Broadcast | Along::Entries => {}
            }
        }
        piece
    }

    /// The processors that hold the element at `coordinate`, in the machine's order. There is always one, for
    /// coordinates in bounds.
    pub fn holders(&self, coordinate: &[i64]) -> Vec<Vec<usize>> {
        self.machine.points().filter(|point| self.piece(point).contains(coordinate)).collect()
    }

    /// The extents of the space of colors that tells pieces apart: those of the grid's dimensions that cut the tensor.
    pub fn colors(&self) -> Vec<usize> {
        let all = self.placement.levels.iter().flat_map(|level| &level.grid).zip(self.machine.extents());
        all.filter(|(along, _)| along.cuts()).map(|(_, extent)| extent).collect()
    }

    /// The color of the piece at `point`; `None` beside a face. Points of one color hold copies of one piece.
    pub fn color(&self, point: &[usize]) -> Option<Vec<usize>> {
        self.machine.number(point)?;
        let mut color = Vec::new();
        for (along, index, _) in self.along(point) {
            match *along {
                Along::Partition(..) | Along::Entries => color.push(index),
                Along::Fixed(face) if face != index => return None,
                Along::Fixed(_) | Along::Broadcast => {}
            }
        }
        Some(color)
    }

    /// The number of the piece at `point` among [all](Self::pieces); `None` beside a face.
    pub(crate) fn number(&self, point: &[usize]) -> Option<usize> {
        Some(
            self.color(point)?
                .into_iter()
                .zip(self.colors())
                .fold(0, |number, (index, extent)| number * extent + index),
        )
    }

    /// The piece of each color, the last dimension of the colors running fastest.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let count: usize = self.colors().into_iter().product();
        (0..count).map(|mut number| {
            let along = self.placement.levels.iter().flat_map(|level| &level.grid).zip(self.machine.extents());
            let mut point: Vec<usize> = Vec::new();
            for (along, extent) in along.collect::<Vec<_>>().into_iter().rev() {
                point.push(match *along {
                    Along::Partition(..) | Along::Entries => number % extent,
                    Along::Fixed(face) => face,
                    Along::Broadcast => 0,
                });
                if along.cuts() {
                    number /= extent;
                }
            }
            point.reverse();
            self.piece(&point)
        })
    }

    /// Whether no element is held by two processors.
    pub fn is_disjoint(&self) -> bool {
        let copies = |(along, extent): (&Along, usize)| *along == Along::Broadcast && extent > 1;
        !self.placement.levels.iter().flat_map(|level| &level.grid).zip(self.machine.extents()).any(copies)
    }

    /// Whether every piece is a single rectangle: no cut is cyclic.
    pub fn is_blocked(&self) -> bool {
        let cyclic = |along: &Along| matches!(along, Along::Partition(_, Cut::Cyclic(_)));
        !self.placement.levels.iter().flat_map(|level| &level.grid).any(cyclic)
    }

    /// The role of each dimension of the machine, with the point's index and the extent.
    fn along<'a>(&'a self, point: &'a [usize]) -> impl Iterator<Item = (&'a Along, usize, usize)> {
        let grid = self.placement.levels.iter().flat_map(|level| &level.grid);
        grid.zip(point).zip(self.machine.extents()).map(|((along, index), extent)| (along, *index, extent))
    }
}

fn check(distribution: &Distribution, rank: usize, grid: &Grid) -> Result<(), PlacementError> {
    let statement = || distribution.to_string();
    if distribution.dimensions.len() != rank {
        let names = distribution.dimensions.len();
        return Err(PlacementError::Tensor { statement: statement(), names, dimensions: rank });
    }
    if distribution.grid.len() != grid.rank() {
        return Err(PlacementError::Grid {
            statement: statement(),
            along: distribution.grid.len(),
            grid: grid.to_string(),
            dimensions: grid.rank(),
        });
    }
    let mut cut = vec![false; rank];
    for (dimension, (along, &extent)) in distribution.grid.iter().zip(grid.extents()).enumerate() {
        match *along {
            Along::Fixed(index) if index >= extent => {
                return Err(PlacementError::Fixed { statement: statement(), index, dimension, extent });
            }
            Along::Partition(_, Cut::Cyclic(0)) => return Err(PlacementError::Block { statement: statement() }),
            Along::Partition(of, _) => match cut.get_mut(of) {
                Some(cut) if !*cut => *cut = true,
                _ => return Err(PlacementError::Partition { statement: statement(), dimension: of }),
            },
            Along::Fixed(_) | Along::Broadcast | Along::Entries => {}
        }
    }
    Ok(())
}

impl Along {
    /// Whether its processors hold different parts.
    fn cuts(self) -> bool {
        matches!(self, Self::Partition(..) | Self::Entries)
    }
}
