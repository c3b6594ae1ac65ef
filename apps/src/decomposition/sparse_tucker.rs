//! Tucker decomposition of sparse tensors, by the same iteration as that of dense ones.
//!
//! The product of the tensor with two factors is one statement, which visits what is stored and has a small dense
//! result: nothing between has more elements. Where a dimension is long, its leading singular vectors come from the
//! eigenvectors of the smaller of the two products of that result with itself.

use std::time::Instant;

use maniple_tensor::distributed::{Computation, DistributedError, Tensor};
use nalgebra::{DMatrix, SymmetricEigen};

use super::sparse::{GivenTensor, others};
use super::{
    Algebra, CommonOptions, DecompositionReport, FACTORS, INDICES, MOST_ITERATIONS, factors, is_finite, relative_error,
};
use crate::progress::Progress;

/// The index variables of the core.
const CORE: [&str; 3] = ["p", "q", "r"];

/// How one of the three factors is computed.
struct Mode {
    factor: Tensor,
    small: Tensor,
    update: Computation,
}

/// Finds the tensor of these multilinear ranks that is near to a given one.
pub(super) async fn decompose(
    algebra: &Algebra<'_>,
    ranks: [i64; 3],
    options: &CommonOptions,
    given: &GivenTensor,
) -> Result<DecompositionReport, DistributedError> {
    let stored = given.stored(algebra).await?;
    let size = given.size();
    let [p, q, r] = ranks.map(|rank| rank as usize);
    let mut bases = Vec::new();
    for (mode, start) in factors(size, [p, q, r], options.runtime.seed).iter().enumerate() {
        let basis = algebra.tensor(FACTORS[mode], &[size[mode], ranks[mode]])?;
        let start = DMatrix::from_row_slice(size[mode] as usize, ranks[mode] as usize, start);
        algebra.set(&basis, &start.qr().q())?;
        bases.push(basis);
    }
    let mut modes = Vec::new();
    for mode in 0..3 {
        let [one, other] = others(mode);
        let small = algebra.tensor("U", &[size[mode], ranks[one], ranks[other]])?;
        let products = [one, other].map(|other| format!(" * {}({},{})", FACTORS[other], INDICES[other], CORE[other]));
        let text = format!("U({},{},{}) = X(i,j,k){}", INDICES[mode], CORE[one], CORE[other], products.concat());
        let update = stored.product(algebra, &text, mode, [&small, &bases[one], &bases[other]]).await?;
        modes.push(Mode { factor: bases[mode].clone(), small, update });
    }
    let square = stored.square;
    let progress = Progress::iterations(&options.runtime);
    let (started, mut error, mut iterations) = (Instant::now(), 1.0_f64, 0);
    let mut found: [DMatrix<f64>; 3] = std::array::from_fn(|_| DMatrix::zeros(0, 0));
    let mut core = DMatrix::zeros(0, 0);
    while iterations < options.iterations {
        for (mode, Mode { factor, small, update }) in modes.iter().enumerate() {
            let small = algebra.matrix(update, small).await?;
            let basis = leading(&small, ranks[mode] as usize);
            core = basis.tr_mul(&small);
            algebra.set(factor, &basis)?;
            found[mode] = basis;
        }
        let before = std::mem::replace(&mut error, relative_error(square - core.norm_squared(), square));
        iterations += 1;
        progress.set(iterations, || format!("relative error {error:.1e}"));
        if (before - error).abs() <= options.tolerance || error.is_nan() {
            break;
        }
    }
    let time = started.elapsed();
    let all = core.norm_squared();
    let compared = stored.difference(algebra, product_of([p, q], found, core), all).await?;
    let (rank, entries) = (format!("{p} x {q} x {r}"), Some(stored.entries()));
    Ok(DecompositionReport { name: "tucker", size, rank, iterations, error, compared, entries, time })
}

/// The leading left singular vectors of a matrix, as columns: by the eigenvectors of its product with itself that is
/// the smaller one. All NaN, if there are none.
fn leading(matrix: &DMatrix<f64>, count: usize) -> DMatrix<f64> {
    let rows = matrix.nrows();
    if rows <= matrix.ncols() {
        return Algebra::leading(matrix * matrix.transpose(), count);
    }
    let gram = matrix.tr_mul(matrix);
    let eigen = is_finite(&gram).then(|| SymmetricEigen::try_new(gram, f64::EPSILON, MOST_ITERATIONS));
    let Some(eigen) = eigen.flatten() else { return DMatrix::from_element(rows, count, f64::NAN) };
    let mut order: Vec<usize> = (0..eigen.eigenvalues.len()).collect();
    order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
    let vectors = eigen.eigenvectors.select_columns(order.iter().take(count));
    // What they become has the lengths of the singular values; their orthonormal basis has the same span, whatever
    // rounding did to the short ones.
    (matrix * vectors).qr().q()
}

/// The elements of a core times its bases. `core` has the rows of the last dimension, and the others in its columns.
fn product_of(
    [p, q]: [usize; 2],
    [a, b, c]: [DMatrix<f64>; 3],
    core: DMatrix<f64>,
) -> impl Fn([usize; 3]) -> f64 + Send + Sync + 'static {
    move |[i, j, k]| {
        let inner = |row: usize, column: usize| -> f64 {
            (0..c.ncols()).map(|last| core[(last, row * q + column)] * c[(k, last)]).sum()
        };
        (0..p).map(|row| a[(i, row)] * (0..q).map(|column| b[(j, column)] * inner(row, column)).sum::<f64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_vectors_of_long_and_of_wide_matrices_span_the_same() {
        let mut random = fastrand::Rng::with_seed(4);
        let thin = DMatrix::from_fn(30, 3, |_, _| random.f64() - 0.5);
        let wide = &thin * DMatrix::from_fn(3, 40, |_, _| random.f64() - 0.5);
        let long = &thin * DMatrix::from_fn(3, 5, |_, _| random.f64() - 0.5);
        for matrix in [wide, long] {
            let basis = leading(&matrix, 3);
            assert!((basis.tr_mul(&basis) - DMatrix::identity(3, 3)).amax() < 1e-9);
            assert!((&basis * basis.tr_mul(&matrix) - &matrix).amax() < 1e-9);
        }
        assert!(leading(&DMatrix::from_element(4, 2, f64::NAN), 1).iter().all(|value| value.is_nan()));
    }
}
