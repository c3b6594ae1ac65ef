//! Published algorithms, as schedules.
//!
//! Each function takes an unscheduled statement of the right form, whatever its names are, and a grid of processors,
//! and gives the scheduled statement with the placement of each tensor that the algorithm begins with ([`Algorithm`]).
//! New loops are called after the variables that they come from: `io` counts blocks of `i`, `ii` is within one, and `s`
//! is appended where a loop is rotated.
//!
//! | | | computes | processors |
//! | --- | --- | --- | --- |
//! | [`cannon`] | Cannon, 1969 | `A(i,j) = B(i,k) * C(k,j)` | a grid, best square |
//! | [`pumma`] | Choi, Dongarra, Walker, 1994 | the same | a grid |
//! | [`summa`] | van de Geijn, Watts, 1997 | the same | a grid |
//! | [`johnson`] | Agarwal et al., 1995 | the same | a cube |
//! | [`solomonik`] | Solomonik, Demmel, 2011 | the same | a square times copies |
//! | [`cosma`] | Kwasniewski et al., 2019 | the same | as many as [`cosma_grid`] takes |
//! | [`ttv`] | | `A(i,j) = B(i,j,k) * c(k)` | a grid |
//! | [`innerprod`] | | `a = B(i,j,k) * C(i,j,k)` | a line, a grid or a box |
//! | [`ttm`] | | `A(i,j,l) = B(i,j,k) * C(k,l)` | a line |
//! | [`mttkrp`] | Ballard, Knight, Rouse, 2018 | `A(i,l) = B(i,j,k) * C(j,l) * D(k,l)` | a box |
//!
//! ```
//! use maniple_tensor::algorithms;
//! use maniple_tensor::concrete::Statement;
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::notation::{TensorVariable, parse};
//!
//! let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, ElementType::F64, [100, 100]));
//! let product = Statement::new(&parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?);
//! assert_eq!(
//!     algorithms::cannon(&product, [2, 2])?.statement.to_string(),
//!     "A(i,j) = 0
//! distributed(0) for io in 0..2
//!   distributed(0) for jo in 0..2, communicates A
//!     for kos in 0..2, communicates B, C
//!       for ii in 0..50, by Gemm
//!         for ji in 0..50
//!           for ki in 0..50
//!             A(i,j) += B(i,k) * C(k,j)
//! such that
//!   i = io * 50 + ii
//!   j = jo * 50 + ji
//!   k = ko * 50 + ki
//!   ko = (kos + io + jo) % 2
//! "
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cannon;
mod commuted;
mod cosma;
mod innerprod;
mod johnson;
mod mttkrp;
mod pumma;
mod roles;
mod solomonik;
mod summa;
mod ttm;
mod ttv;

pub use cannon::cannon;
pub use commuted::in_any_order;
pub use cosma::{CosmaGrid, cosma, cosma_grid};
pub use innerprod::innerprod;
pub use johnson::johnson;
pub use mttkrp::mttkrp;
pub use pumma::pumma;
pub use solomonik::solomonik;
pub use summa::summa;
pub use ttm::ttm;
pub use ttv::ttv;

use crate::concrete::Statement;
use crate::notation::TensorVariable;
use crate::placement::Placement;
use crate::schedule::ScheduleError;

/// A scheduled statement, and where its tensors are at the beginning.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm {
    /// The statement.
    pub statement: Statement,
    /// The grid of processors.
    pub grid: Vec<i64>,
    /// The placement of each tensor on the grid.
    pub placements: Vec<(TensorVariable, Placement)>,
}

/// An algorithm can't be used for a statement or a grid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AlgorithmError {
    /// The statement computes something else, or is scheduled already.
    #[error("{algorithm} computes {wanted}, unscheduled, not\n{found}")]
    Form {
        /// The algorithm.
        algorithm: &'static str,
        /// The statement that the algorithm computes.
        wanted: &'static str,
        /// The statement.
        found: String,
    },
    /// The grid has the wrong shape.
    #[error("{algorithm} can't use {found}: {wanted}")]
    Grid {
        /// The algorithm.
        algorithm: &'static str,
        /// The grid or the numbers.
        found: String,
        /// The requirement of the algorithm.
        wanted: &'static str,
    },
    /// A command is refused.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
}
