//! Partitions that a tensor was cut into before: what its levels store does not change, so each is made once, whichever
//! computations use it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use maniple::LogicalPartition;
use parking_lot::Mutex;

use super::level_pieces::LevelPieces;
use crate::bounds::Colors;
use crate::placement::Placed;
use crate::plan::{Graph, Pieces, Shares, Space};

/// So many partitions of a tensor are remembered, and as many placements: the ones that were made last.
const MOST: usize = 64;

/// The partitions of a tensor. All nodes of a job have made the same ones.
#[derive(Default)]
pub(super) struct Cuts {
    partitions: Mutex<VecDeque<(Cut, LogicalPartition)>>,
    placements: Mutex<VecDeque<(Arc<Placed>, LevelPieces)>>,
}

/// How a space of a tensor is cut.
#[derive(Clone, PartialEq)]
pub(super) struct Cut {
    space: Space,
    by: By,
}

/// The data from which the pieces of a cut follow.
#[derive(Clone)]
enum By {
    Bounds(Arc<Colors>),
    Rows(Arc<Colors>),
    /// Another partition of the tensor.
    Below(Box<Cut>),
    /// Equal parts of the positions of a level of a tensor.
    Shares(Of, usize, i64, Option<usize>),
    /// The coordinates that a partition of a tensor names, in a dimension.
    Named(Of, Box<Cut>, usize),
}

impl PartialEq for By {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bounds(one), Self::Bounds(other)) | (Self::Rows(one), Self::Rows(other)) => one.has_parts_of(other),
            (Self::Below(one), Self::Below(other)) => one == other,
            (Self::Shares(of, level, parts, rows), Self::Shares(other, other_level, other_parts, other_rows)) => {
                of == other && (level, parts, rows) == (other_level, other_parts, other_rows)
            }
            (Self::Named(of, cut, dimension), Self::Named(other, other_cut, other_dimension)) => {
                of == other && (cut, dimension) == (other_cut, other_dimension)
            }
            _ => false,
        }
    }
}

/// Which tensor, whatever it is called. Another one that is made after it is gone is not taken for it.
#[derive(Clone)]
struct Of(Weak<Cuts>);

impl PartialEq for Of {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Cuts {
    /// How the tensors of a graph are cut, for each of its partitions; a function gives the cuts of the tensor at a
    /// position.
    pub(super) fn of_graph<'t>(graph: &Graph, tensor: impl Fn(usize) -> &'t Arc<Self>) -> Vec<Cut> {
        let mut cuts: Vec<Cut> = Vec::with_capacity(graph.partitions.len());
        let of = |position: usize| Of(Arc::downgrade(tensor(position)));
        for partition in &graph.partitions {
            let by = match &partition.pieces {
                Pieces::Bounds(colors) => By::Bounds(Arc::clone(colors)),
                Pieces::Rows(colors) => By::Rows(Arc::clone(colors)),
                // Partitions come before those that follow from them.
                Pieces::Below(offsets) => By::Below(Box::new(cuts[*offsets].clone())),
                Pieces::Shares(Shares { tensor, level, parts, rows }) => By::Shares(of(*tensor), *level, *parts, *rows),
                Pieces::Named { positions, dimension } => {
                    By::Named(of(graph.partitions[*positions].tensor), Box::new(cuts[*positions].clone()), *dimension)
                }
            };
            cuts.push(Cut { space: partition.space, by });
        }
        cuts
    }

    /// The partition, if it was made before.
    pub(super) fn find(&self, cut: &Cut) -> Option<LogicalPartition> {
        let known = self.partitions.lock();
        known.iter().find(|(known, _)| known == cut).map(|(_, partition)| partition.clone())
    }

    pub(super) fn remember(&self, cut: Cut, partition: &LogicalPartition) {
        push(&mut self.partitions.lock(), (cut, partition.clone()));
    }

    /// The pieces of a placement, if they were made before.
    pub(super) fn find_placed(&self, placed: &Placed) -> Option<LevelPieces> {
        let known = self.placements.lock();
        known.iter().find(|(known, _)| **known == *placed).map(|(_, pieces)| pieces.clone())
    }

    pub(super) fn remember_placed(&self, placed: &Arc<Placed>, pieces: &LevelPieces) {
        push(&mut self.placements.lock(), (Arc::clone(placed), pieces.clone()));
    }
}

/// Which is remembered last is forgotten last, on all nodes alike.
fn push<T>(known: &mut VecDeque<T>, new: T) {
    known.push_front(new);
    known.truncate(MOST);
}

impl fmt::Debug for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cuts").field("partitions", &self.partitions.lock().len()).finish_non_exhaustive()
    }
}
