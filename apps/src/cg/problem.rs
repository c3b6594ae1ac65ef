//! The system that is solved: where its matrix comes from, and how it comes to the nodes.

use std::path::Path;
use std::sync::Arc;

use maniple::Context;
use maniple_tensor::distributed::{DistributedError, Tensor};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::generate::Generator;
use maniple_tensor::notation::TensorVariable;

use super::matrix::{self, Matrix};
use super::matrix_market::MatrixFile;
use super::tasks;
use crate::error::{Error, Result};
use crate::options::place;

/// A system whose right-hand side is all ones.
#[derive(Clone, Debug)]
pub struct CgProblem {
    name: String,
    rows: usize,
    source: ProblemSource,
}

#[derive(Clone, Debug)]
enum ProblemSource {
    /// Each node makes its rows.
    Made(Generator),
    /// Each node reads its ranges.
    File(MatrixFile),
    /// All nodes have it.
    Given(Arc<Matrix>),
}

impl CgProblem {
    /// The five-point discretisation of the Laplace equation on a square of `side` x `side` unknowns, with zero on the
    /// boundary.
    ///
    /// # Errors
    /// [`Error::Usage`] if it has more rows than can be numbered.
    pub fn poisson(side: usize) -> Result<Self> {
        let rows = side.saturating_mul(side);
        if rows > u32::MAX as usize {
            let most = u32::MAX;
            return Err(Error::Usage(format!(
                "a square of {side} x {side} unknowns is too large: at most {most} in all"
            )));
        }
        let source = ProblemSource::Made(Generator::Poisson { side: side as i64, dimensions: 2 });
        Ok(Self { name: format!("Poisson {side} x {side}"), rows, source })
    }

    /// The matrix of a Matrix Market file, of which no more is read than its header.
    ///
    /// # Errors
    /// [`Error::Input`] if it can't be read, or is no real, square matrix of a kind that can be symmetric.
    pub fn file(path: &Path) -> Result<Self> {
        let file = MatrixFile::open(path)?;
        Ok(Self { name: path.display().to_string(), rows: file.rows(), source: ProblemSource::File(file) })
    }

    /// A matrix that all nodes have.
    #[must_use]
    pub fn given(name: &str, matrix: &Arc<Matrix>) -> Self {
        Self { name: name.to_owned(), rows: matrix::rows(matrix), source: ProblemSource::Given(Arc::clone(matrix)) }
    }

    /// The name of the system in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of rows, and of columns.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Refuses a system for which the nodes have no room together, each of which has so many bytes. To read and check
    /// it may take more.
    pub(super) fn check_room(&self, capacity: u64) -> Result<()> {
        let (what, entries) = match &self.source {
            // It is there.
            ProblemSource::Given(_) => return Ok(()),
            ProblemSource::Made(_) => {
                // Four neighbours each, but for those on the four sides.
                let side = self.rows.isqrt();
                (format!("a Poisson problem on {side} x {side} unknowns"), 5 * self.rows - 4 * side)
            }
            ProblemSource::File(file) => (format!("the matrix of {}", self.name), file.entries()),
        };
        let wanted = tasks::bytes(self.rows as u64, entries as u64);
        let available = capacity.saturating_mul(place().nodes as u64);
        match wanted > available {
            true => Err(Error::TooLarge { what, wanted, available: Some(available) }),
            false => Ok(()),
        }
    }

    /// The matrix as `A`, in compressed rows; of a file all that can be told of one that is solved, but for its
    /// diagonal.
    pub(super) async fn matrix(&self, cx: &Context) -> Result<Tensor, DistributedError> {
        let stored = "csr".parse().map_err(maniple::Error::from_task)?;
        let variable = TensorVariable::new("A", F64, [self.rows as i64; 2]).stored(stored);
        match &self.source {
            ProblemSource::Made(generator) => Tensor::generated(cx, &variable, generator, 0).await,
            ProblemSource::File(file) => file.read(cx, &variable).await,
            ProblemSource::Given(matrix) => Tensor::from_sparse(cx, &variable, Arc::clone(matrix)),
        }
    }
}
