//! Rounds of alternating least squares: each factor of a sum of outer products from the others.

use std::time::{Duration, Instant};

use maniple_tensor::distributed::{Computation, DistributedError, Tensor};
use nalgebra::DMatrix;

use super::{Algebra, CommonOptions, MOST_ITERATIONS, is_finite, relative_error};
use crate::progress::Progress;

/// One of the three factors.
pub(super) struct Mode {
    pub(super) factor: Tensor,
    pub(super) gram: DMatrix<f64>,
    pub(super) product: Tensor,
    pub(super) update: Computation,
}

/// The result of the rounds.
pub(super) struct Found {
    pub(super) factors: [DMatrix<f64>; 3],
    pub(super) error: f64,
    pub(super) iterations: usize,
    pub(super) time: Duration,
}

/// Computes one factor after the other anew, until that makes no difference. `square` is the sum of the squares of the
/// tensor's elements.
pub(super) async fn iterate(
    algebra: &Algebra<'_>,
    rank: usize,
    options: &CommonOptions,
    mut modes: Vec<Mode>,
    size: [i64; 3],
    square: f64,
) -> Result<Found, DistributedError> {
    let progress = Progress::iterations(&options.runtime);
    let (started, mut error, mut iterations) = (Instant::now(), 1.0_f64, 0);
    let mut found: [DMatrix<f64>; 3] = std::array::from_fn(|mode| DMatrix::zeros(size[mode] as usize, rank));
    'rounds: while iterations < options.iterations {
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
        if (before - error).abs() <= options.tolerance || error.is_nan() {
            break;
        }
    }
    Ok(Found { factors: found, error, iterations, time: started.elapsed() })
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
