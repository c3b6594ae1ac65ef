//! The wishes of the user, which the choice of a schedule follows.

use crate::algorithms::AlgorithmError;
use crate::cost::Rates;
use crate::machine::MachineError;
use crate::placement::Placement;
use crate::plan::PlanError;
use crate::schedule::ScheduleError;
use crate::traffic::TrafficError;

/// A way to run a statement, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Their descriptions say what they are.
pub enum AlgorithmName {
    Summa,
    Cannon,
    Pumma,
    Johnson,
    Solomonik,
    Cosma,
    Ttv,
    Innerprod,
    Ttm,
    Mttkrp,
    None,
}

impl AlgorithmName {
    /// All algorithms, each with its name in texts and a description.
    pub const ALL: [(Self, &'static str, &'static str); 11] = [
        (Self::Summa, "summa", "A product of matrices: panels are broadcast along rows and columns of a grid"),
        (Self::Cannon, "cannon", "A product of matrices: tiles go round in rows and columns of a grid"),
        (Self::Pumma, "pumma", "A product of matrices: one operand goes round, the other is broadcast"),
        (Self::Johnson, "johnson", "A product of matrices on a box: one tile each, and a sum at the end"),
        (
            Self::Solomonik,
            "solomonik",
            "A product of matrices: Cannon's algorithm in layers, the last extent of the grid, with a sum at the end",
        ),
        (Self::Cosma, "cosma", "A product of matrices on a box as near to cubes as the sizes allow"),
        (Self::Ttv, "ttv", "A tensor times a vector, `A(i,j) = B(i,j,k) * c(k)`, on a grid"),
        (
            Self::Innerprod,
            "innerprod",
            "The inner product of two tensors, `a = B(i,j,k) * C(i,j,k)`, on a line, a grid or a box",
        ),
        (Self::Ttm, "ttm", "A tensor times a matrix, `A(i,j,l) = B(i,j,k) * C(k,l)`, on a line"),
        (Self::Mttkrp, "mttkrp", "`A(i,l) = B(i,j,k) * C(j,l) * D(k,l)`, on a box"),
        (Self::None, "none", "In one piece, on one processor"),
    ];
}

/// Wishes that do not fit the statements.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// A grid that does not fit the algorithm.
    #[error("{0}")]
    Unfit(String),
    /// A wish where schedules say how all statements run.
    #[error("schedules say how all statements run: leave the {0} out")]
    Scheduled(&'static str),
    /// A chunk for another algorithm.
    #[error("chunks are for SUMMA alone")]
    Chunk,
    /// A grid for one processor.
    #[error("a grid is for several processors: in one piece, a statement uses one")]
    Alone,
    /// A grid over which the loops of a statement are not distributed.
    #[error("the loops of {statement} cannot be distributed over a grid of {grid:?}: take one of fewer dimensions")]
    Grid {
        /// The statement.
        statement: String,
        /// The extents of the grid.
        grid: Vec<i64>,
        /// Grids that suit the statement.
        known: Vec<String>,
    },
    /// An algorithm that computes something else.
    #[error(transparent)]
    Algorithm(#[from] AlgorithmError),
    /// A schedule that does not fit its statement.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// Loops that can't be divided so.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A grid that is no machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// Placements that do not fit.
    #[error(transparent)]
    Traffic(#[from] TrafficError),
}

/// The wishes of the user, which the choice follows.
#[derive(Clone, Copy, Debug)]
pub struct Wishes<'a> {
    /// The speed of processors.
    pub rates: &'a Rates,
    /// The algorithm.
    pub algorithm: Option<AlgorithmName>,
    /// The grid.
    pub grid: Option<&'a [i64]>,
    /// SUMMA's chunk.
    pub chunk: Option<i64>,
    /// The placements of tensors, by name.
    pub places: &'a [(String, Placement)],
    /// The number of processors.
    pub processors: i64,
}

/// A grid in text.
#[must_use]
pub fn grid_text(grid: &[i64]) -> String {
    let extents: Vec<String> = grid.iter().map(ToString::to_string).collect();
    if extents.is_empty() { "1".to_owned() } else { extents.join("x") }
}
