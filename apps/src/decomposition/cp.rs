//! Canonical polyadic decomposition by alternating least squares (Kolda and Bader, *Tensor decompositions and applications*, 2009, figure 3.3).
//!
//! The tensor is to be the sum over l of A(i,l) B(j,l) C(k,l). In turn each factor is computed from the others: A is X(i,j,k) B(j,l) C(k,l), the matricized tensor times a Khatri-Rao
//! product, times the inverse of the elementwise product of the other factors' Gram matrices.

use std::time::Instant;

use clap::Args;
use maniple_tensor::distributed::{Computation, DistributedError, Tensor};
use nalgebra::DMatrix;

use super::{
    Algebra, CommonOptions, FACTORS, INDICES, MOST_ITERATIONS, Report, compare, factors, is_finite, relative_error,
    run as run_on_runtime,
};
use crate::error::Result as AppResult;
use crate::options::{at_most, default_from_command_line};
use crate::progress::Progress;

/// What `maniple run cp` teaches.
pub const ABOUT: &str = "\
Find the tensor of low rank that is nearest to a given one: a sum of RANK outer products of three vectors each (CP, PARAFAC), by alternating least squares.

The tensor is made so that it has exactly this rank, and so the relative error must come down to what rounding leaves. Each round computes three matricized tensors times \
Khatri-Rao products, M(i,l) = X(i,j,k) * B(j,l) * C(k,l) and the like: statements in index notation that are compiled for this machine and run on all nodes. The small systems that are left are solved on each node.";

/// What `maniple run cp` gives as examples.
pub const EXAMPLES: &str = "\
Examples:
  maniple run cp --size 100,100,100 --rank 8
  maniple launch -n 2 -- maniple run cp --size 200,100,50";

/// What to decompose.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// How many outer products
    #[arg(long, value_name = "R", default_value_t = 8, value_parser = rank, allow_hyphen_values = true)]
    pub rank: usize,

    /// Size and rounds.
    #[command(flatten)]
    pub common: CommonOptions,
}

default_from_command_line!(Options);

fn rank(text: &str) -> Result<usize, String> {
    at_most(1024, text)
}

/// Decomposes a tensor of this rank.
///
/// # Errors
/// [`NoConvergence`](crate::error::Error::NoConvergence) if the tensor was not found again, [`Runtime`](crate::error::Error::Runtime) if a task fails, for instance for want of memory.
pub fn run(options: &Options) -> AppResult<Report> {
    run_on_runtime(&options.common.runtime, async |algebra| decompose(algebra, options).await)?.checked()
}

/// One of the three factors.
struct Mode {
    factor: Tensor,
    gram: DMatrix<f64>,
    product: Tensor,
    update: Computation,
}

async fn decompose(algebra: &Algebra<'_>, options: &Options) -> Result<Report, DistributedError> {
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

    let mut modes = modes(algebra, &x, size, rank).await?;
    let progress = Progress::iterations(&options.common.runtime);
    let (started, mut error, mut iterations) = (Instant::now(), 1.0_f64, 0);
    let mut found: [DMatrix<f64>; 3] = std::array::from_fn(|mode| DMatrix::zeros(size[mode] as usize, rank));
    'rounds: while iterations < options.common.iterations {
        let mut inner = 0.0;
        iterations += 1;
        for mode in 0..3 {
            let system = others(&modes, mode);
            let product = algebra.matrix(&modes[mode].update, &modes[mode].product).await?;
            let Some(factor) = solve(&system, &product) else {
                error = f64::NAN;
                break 'rounds;
            };
            inner = product.dot(&factor);
            modes[mode].gram = factor.tr_mul(&factor);
            algebra.set(&modes[mode].factor, &factor)?;
            found[mode] = factor;
        }
        // |X - Y|^2 = |X|^2 - 2 <X, Y> + |Y|^2, of which the last two come with the last factor.
        let norm = modes[0].gram.component_mul(&modes[1].gram).component_mul(&modes[2].gram).sum();
        let before = std::mem::replace(&mut error, relative_error(square - 2.0 * inner + norm, square));
        progress.set(iterations, || format!("relative error {error:.1e}"));
        if (before - error).abs() <= options.common.tolerance || error.is_nan() {
            break;
        }
    }
    let time = started.elapsed();
    let sum = |[i, j, k]: [usize; 3]| (0..rank).map(|l| found[0][(i, l)] * found[1][(j, l)] * found[2][(k, l)]).sum();
    let compared = compare(size, seed, 4 * rank, (element, sum));
    Ok(Report { name: "cp", size, rank: rank.to_string(), iterations, error, compared, time })
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

/// The elementwise product of the Gram matrices of the other factors.
fn others(modes: &[Mode], mode: usize) -> DMatrix<f64> {
    modes[(mode + 1) % 3].gram.component_mul(&modes[(mode + 2) % 3].gram)
}

/// The factor whose product with a symmetric matrix is nearest to `product`; none if one of the two is not finite.
fn solve(system: &DMatrix<f64>, product: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    if !is_finite(system) || !is_finite(product) {
        return None;
    }
    match system.clone().cholesky() {
        Some(system) => Some(system.solve(&product.transpose()).transpose()),
        // Columns that depend on each other, as where the rank is larger than the tensor's.
        None => {
            let largest = system.amax();
            let values = system.clone().try_svd(true, true, 5.0 * f64::EPSILON, MOST_ITERATIONS)?;
            Some(product * values.pseudo_inverse(largest * 1e-12).ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_has_no_solution() {
        let (system, product) = (DMatrix::identity(3, 3), DMatrix::from_element(2, 3, 2.0));
        assert_eq!(solve(&system, &product), Some(product.clone()));
        // Of a matrix without an inverse the least solution.
        let ones = DMatrix::from_element(3, 3, 1.0);
        assert!(solve(&ones, &product).is_some_and(|found| (found.sum() - 4.0).abs() < 1e-12));
        for wrong in [f64::NAN, f64::INFINITY] {
            assert_eq!(solve(&DMatrix::from_element(3, 3, wrong), &product), None);
            assert_eq!(solve(&system, &DMatrix::from_element(2, 3, wrong)), None);
        }
    }
}
