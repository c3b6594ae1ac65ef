//! Canonical polyadic decomposition by alternating least squares (Kolda and Bader, *Tensor decompositions and
//! applications*, 2009, figure 3.3).
//!
//! The tensor is to be the sum over l of A(i,l) B(j,l) C(k,l). In turn each factor is computed from the others: A is
//! X(i,j,k) B(j,l) C(k,l), the matricized tensor times a Khatri-Rao product, times the inverse of the elementwise
//! product of the other factors' Gram matrices.

use std::path::PathBuf;

use clap::Args;
use maniple_tensor::distributed::{Computation, DistributedError, Tensor};

use super::rounds::{Found, Mode, iterate};
use super::sparse;
use super::{Algebra, CommonOptions, DecompositionReport, FACTORS, INDICES, compare, factors, run as run_on_runtime};
use crate::error::Result as AppResult;
use crate::options::{at_most, default_from_command_line};

/// The long description of `maniple run cp`, which its `--help` shows.
pub const ABOUT: &str = "\
Find the tensor of low rank that is nearest to a given one: a sum of RANK outer products of three vectors each (CP, PARAFAC), by alternating least squares.

Without --tensor, the tensor is made so that it has exactly this rank, and so the relative error must come down to what rounding leaves. Each round computes three matricized tensors times \
Khatri-Rao products, M(i,l) = X(i,j,k) * B(j,l) * C(k,l) and the like: statements in index notation that are compiled for this machine and run on all nodes; of a sparse tensor they visit what is stored, in an order of its levels for each. The small systems that are left are solved on each node.";

/// The examples that `maniple run cp --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run cp --size 100,100,100 --rank 8
  maniple run cp --tensor ratings.tns --rank 16 --iterations 50
  maniple launch -n 2 -- maniple run cp --size 200,100,50";

/// The tensor to decompose, and how.
#[derive(Args, Clone, Debug)]
pub struct CpOptions {
    /// How many outer products
    #[arg(long, value_name = "R", default_value_t = 8, value_parser = rank, allow_hyphen_values = true)]
    pub rank: usize,

    /// Decompose the sparse tensor of three dimensions in a file: .tns, .tcs, .npy, or .npz of PyData's `sparse`
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    pub tensor: Option<PathBuf>,

    /// Size and rounds.
    #[command(flatten)]
    pub common: CommonOptions,
}

default_from_command_line!(CpOptions);

fn rank(text: &str) -> Result<usize, String> {
    at_most(1024, text)
}

/// Decomposes a tensor of this rank.
///
/// # Errors
/// [`NoConvergence`](crate::error::Error::NoConvergence) if the tensor was not found again,
/// [`Runtime`](crate::error::Error::Runtime) if a task fails, for instance for want of memory.
pub fn run(options: &CpOptions) -> AppResult<DecompositionReport> {
    let given = options.tensor.as_ref().map(|file| sparse::GivenTensor::open(file)).transpose()?;
    let decompose = async |algebra: &Algebra<'_>| match &given {
        Some(given) => sparse::decompose(algebra, options.rank, &options.common, given).await,
        None => decompose(algebra, options).await,
    };
    run_on_runtime(&options.common.runtime, decompose)?.checked()
}

async fn decompose(algebra: &Algebra<'_>, options: &CpOptions) -> Result<DecompositionReport, DistributedError> {
    let (rank, size, seed) = (options.rank, options.common.size, options.common.runtime.seed);
    let x = algebra.tensor("X", &size)?;
    let own = factors(size, [rank; 3], seed);
    let element = move |point: [usize; 3]| {
        let row = |mode: usize, l: usize| own[mode][point[mode] * rank + l];
        (0..rank).map(|l| row(0, l) * row(1, l) * row(2, l)).sum::<f64>()
    };
    let generated = element.clone();
    x.generate(algebra.cx, &x.slabs(algebra.processors), move |point| {
        generated([point[0], point[1], point[2]].map(|index| index as usize))
    })?;
    let square = algebra.tensor("n", &[])?;
    let square =
        algebra.matrix(&algebra.statement("n = X(i,j,k) * X(i,j,k)", &[&square, &x]).await?, &square).await?[0];

    let modes = modes(algebra, &x, size, rank).await?;
    let Found { factors: found, error, iterations, time } =
        iterate(algebra, rank, &options.common, modes, size, square).await?;
    let sum = |[i, j, k]: [usize; 3]| (0..rank).map(|l| found[0][(i, l)] * found[1][(j, l)] * found[2][(k, l)]).sum();
    let compared = compare(size, seed, 4 * rank, element, sum);
    Ok(DecompositionReport {
        name: "cp",
        size,
        rank: rank.to_string(),
        iterations,
        error,
        compared,
        entries: None,
        time,
    })
}

/// The factors at the beginning: the leading left singular vectors of the tensor in each dimension.
async fn modes(algebra: &Algebra<'_>, x: &Tensor, size: [i64; 3], rank: usize) -> Result<Vec<Mode>, DistributedError> {
    let mut tensors = Vec::new();
    for mode in 0..3 {
        let (factor, product) = (
            algebra.tensor(FACTORS[mode], &[size[mode], rank as i64])?,
            algebra.tensor("M", &[size[mode], rank as i64])?,
        );
        let gram = algebra.tensor("G", &[size[mode], size[mode]])?;
        let mut other = INDICES;
        other[mode] = "p";
        let index = INDICES[mode];
        let text = format!("G({index},p) = X(i,j,k) * X({})", other.join(","));
        let gram = algebra.matrix(&algebra.statement(&text, &[&gram, x]).await?, &gram).await?;
        let start = Algebra::leading(gram, rank);
        algebra.set(&factor, &start)?;
        tensors.push((factor, product, start.tr_mul(&start)));
    }
    let mut updates: Vec<Computation> = Vec::new();
    for mode in 0..3 {
        let others: Vec<usize> = (0..3).filter(|other| *other != mode).collect();
        let factors = others.iter().map(|&other| format!(" * {}({},l)", FACTORS[other], INDICES[other]));
        let text = format!("M({},l) = X(i,j,k){}", INDICES[mode], factors.collect::<String>());
        let tensors = [&tensors[mode].1, x, &tensors[others[0]].0, &tensors[others[1]].0];
        updates.push(algebra.statement(&text, &tensors).await?);
    }
    let modes = tensors.into_iter().zip(updates);
    Ok(modes.map(|((factor, product, gram), update)| Mode { factor, gram, product, update }).collect())
}
