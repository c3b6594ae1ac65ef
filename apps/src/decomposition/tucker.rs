//! Tucker decomposition by higher-order orthogonal iteration (De Lathauwer, De Moor, Vandewalle, *On the best rank-1
//! and rank-(R1, R2, ..., RN) approximation of higher-order tensors*, 2000).
//!
//! The tensor is to be S(p,q,r) A(i,p) B(j,q) C(k,r) with orthonormal factors. In turn each factor becomes the leading
//! left singular vectors of the tensor times the transposes of the others: two products of a tensor with a matrix, and
//! a product of the result with itself.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use maniple_tensor::distributed::{Computation, DistributedError, Tensor};
use nalgebra::DMatrix;

use super::sparse::GivenTensor;
use super::sparse_tucker;
use super::{
    Algebra, CommonOptions, DecompositionReport, FACTORS, INDICES, compare, factors, relative_error,
    run as run_on_runtime, three,
};
use crate::error::{Error as AppError, Result as AppResult};
use crate::options::default_from_command_line;
use crate::progress::Progress;

/// The long description of `maniple run tucker`, which its `--help` shows.
pub const ABOUT: &str = "\
Find the tensor of low multilinear rank that is nearest to a given one: a small core times an orthonormal basis for each of its three dimensions, by higher-order orthogonal iteration.

Without --tensor, the tensor is made so that it has exactly these ranks, and so the relative error must come down to what rounding leaves. Each round computes products of a tensor with a matrix, \
T(i,j,r) = X(i,j,k) * C(k,r) and the like: statements in index notation that are compiled for this machine and run on all nodes; of a sparse tensor both are one statement that visits what is stored. Eigenvectors of the small matrices that are left are computed on each node.";

/// The examples that `maniple run tucker --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple run tucker --size 100,100,100 --ranks 8,8,8
  maniple run tucker --tensor ratings.tns --ranks 16,16,8 --iterations 50
  maniple launch -n 2 -- maniple run tucker --ranks 4,6,8";

/// The tensor to decompose, and how.
#[derive(Args, Clone, Debug)]
pub struct TuckerOptions {
    /// The extents of the core
    #[arg(long, value_name = "P,Q,R", default_value = "8,8,8", value_parser = three)]
    pub ranks: [i64; 3],

    /// Decompose the sparse tensor of three dimensions in a file: .tns, .tcs, .npy, or .npz of PyData's `sparse`
    #[arg(long, value_name = "FILE", conflicts_with = "size")]
    pub tensor: Option<PathBuf>,

    /// Size and rounds.
    #[command(flatten)]
    pub common: CommonOptions,
}

default_from_command_line!(TuckerOptions);

/// Decomposes a tensor of these ranks.
///
/// # Errors
/// [`Usage`](AppError::Usage) if the core is larger than the tensor, [`Input`](AppError::Input) if a file has none,
/// [`NoConvergence`](AppError::NoConvergence) if the tensor was not found again, [`Runtime`](AppError::Runtime) if a
/// task fails, for instance for want of memory.
pub fn run(options: &TuckerOptions) -> AppResult<DecompositionReport> {
    let given = options.tensor.as_ref().map(|file| GivenTensor::open(file)).transpose()?;
    let (ranks, size) = (options.ranks, given.as_ref().map_or(options.common.size, GivenTensor::size));
    for mode in 0..3 {
        let others = ranks[(mode + 1) % 3] * ranks[(mode + 2) % 3];
        if ranks[mode] > size[mode].min(others) {
            return Err(AppError::Usage(format!(
                "--ranks: rank {} is {}, but can be {} at most: neither more than the tensor's extent, {}, nor than the product of the others, {others}",
                mode + 1,
                ranks[mode],
                size[mode].min(others),
                size[mode]
            )));
        }
    }
    let decompose = async |algebra: &Algebra<'_>| match &given {
        Some(given) => sparse_tucker::decompose(algebra, ranks, &options.common, given).await,
        None => decompose(algebra, options).await,
    };
    run_on_runtime(&options.common.runtime, decompose)?.checked()
}

/// How one of the three factors is computed.
struct Mode {
    factor: Tensor,
    rank: usize,
    /// Two products, and one of the result with itself.
    steps: [Computation; 3],
    /// The result of the two products.
    small: Tensor,
    gram: Tensor,
}

async fn decompose(algebra: &Algebra<'_>, options: &TuckerOptions) -> Result<DecompositionReport, DistributedError> {
    let (ranks, size, seed) = (options.ranks, options.common.size, options.common.runtime.seed);
    let [p, q, r] = ranks.map(|rank| rank as usize);
    let x = algebra.tensor("X", &size)?;
    make(algebra, &x, size, [p, q, r], seed).await?;
    let square = algebra.tensor("n", &[])?;
    let square =
        algebra.matrix(&algebra.statement("n = X(i,j,k) * X(i,j,k)", &[&square, &x]).await?, &square).await?[0];

    let bases: Vec<Tensor> =
        (0..3).map(|mode| algebra.tensor(FACTORS[mode], &[size[mode], ranks[mode]])).collect::<Result<_, _>>()?;
    for (mode, basis) in bases.iter().enumerate() {
        let gram = algebra.tensor("G", &[size[mode], size[mode]])?;
        let statement = algebra.statement(&with_itself("X", INDICES, mode), &[&gram, &x]).await?;
        let gram = algebra.matrix(&statement, &gram).await?;
        algebra.set(basis, &Algebra::leading(gram, ranks[mode] as usize))?;
    }
    let mut modes = Vec::new();
    for mode in 0..3 {
        modes.push(step(algebra, &x, &bases, size, ranks, mode).await?);
    }

    let progress = Progress::iterations(&options.common.runtime);
    let (started, mut error, mut iterations) = (Instant::now(), 1.0_f64, 0);
    let mut found: [DMatrix<f64>; 3] = std::array::from_fn(|_| DMatrix::zeros(0, 0));
    while iterations < options.common.iterations {
        let mut core = 0.0;
        for (mode, Mode { factor, rank, steps: [first, second, third], gram, .. }) in modes.iter().enumerate() {
            // Launches that depend on each other: nothing has to be waited for in between.
            let (first, second) = (first.launch(algebra.cx)?, second.launch(algebra.cx)?);
            let gram = algebra.matrix(third, gram).await?;
            first.await?;
            second.await?;
            let basis = Algebra::leading(gram.clone(), *rank);
            // The squares of the singular values that are kept: those of the core.
            core = (basis.tr_mul(&gram) * &basis).trace();
            algebra.set(factor, &basis)?;
            found[mode] = basis;
        }
        let before = std::mem::replace(&mut error, relative_error(square - core, square));
        iterations += 1;
        progress.set(iterations, || format!("relative error {error:.1e}"));
        if (before - error).abs() <= options.common.tolerance || error.is_nan() {
            break;
        }
    }
    let time = started.elapsed();
    let rank = format!("{p} x {q} x {r}");
    // The core: X(i,j,k) A(i,p) B(j,q), which the last factor was made from, times that factor.
    let small: Vec<f64> = modes[2].small.read_elements(algebra.cx).await?;
    let small = DMatrix::from_row_slice(p * q, size[2] as usize, &small);
    let core = product(&small, &found[2]);
    let own = factors(size, [p, q, r], seed);
    let [own_core, _, _] = core_of([p, q, r], seed);
    let wanted = |place: [usize; 3]| {
        sum(
            [p, q, r],
            |[a, b, c]| own_core[(a * q + b) * r + c],
            |mode, rank| own[mode][place[mode] * [p, q, r][mode] + rank],
        )
    };
    let reached = |place: [usize; 3]| {
        sum([p, q, r], |[a, b, c]| core[(a * q + b, c)], |mode, rank| found[mode][(place[mode], rank)])
    };
    let compared = compare(size, seed, 4 * p * q * r, wanted, reached);
    Ok(DecompositionReport { name: "tucker", size, rank, iterations, error, compared, entries: None, time })
}

/// The random core, in the first place.
fn core_of([p, q, r]: [usize; 3], seed: u64) -> [std::sync::Arc<Vec<f64>>; 3] {
    factors([p as i64, 1, 1], [q * r, 1, 1], seed.wrapping_add(1))
}

/// An element of the tensor with this core and these rows of factors.
fn sum([p, q, r]: [usize; 3], core: impl Fn([usize; 3]) -> f64, row: impl Fn(usize, usize) -> f64) -> f64 {
    let inner = |a: usize, b: usize| (0..r).map(|c| core([a, b, c]) * row(2, c)).sum::<f64>();
    (0..p).map(|a| row(0, a) * (0..q).map(|b| row(1, b) * inner(a, b)).sum::<f64>()).sum()
}

/// A product of matrices by its definition: what is compared must not depend on a library.
fn product(left: &DMatrix<f64>, right: &DMatrix<f64>) -> DMatrix<f64> {
    DMatrix::from_fn(left.nrows(), right.ncols(), |row, column| {
        (0..left.ncols()).map(|inner| left[(row, inner)] * right[(inner, column)]).sum()
    })
}

/// Makes a tensor of these ranks: a random core times random factors.
async fn make(
    algebra: &Algebra<'_>,
    x: &Tensor,
    size: [i64; 3],
    [p, q, r]: [usize; 3],
    seed: u64,
) -> Result<(), DistributedError> {
    let [core, _, _] = core_of([p, q, r], seed);
    let s = algebra.tensor("S", &[p as i64, q as i64, r as i64])?;
    s.write_elements(algebra.cx, core)?;
    let mut parts = Vec::new();
    for (mode, factor) in factors(size, [p, q, r], seed).into_iter().enumerate() {
        let tensor = algebra.tensor(FACTORS[mode], &[size[mode], [p, q, r][mode] as i64])?;
        tensor.write_elements(algebra.cx, factor)?;
        parts.push(tensor);
    }
    let (t, u) =
        (algebra.tensor("T", &[size[0], q as i64, r as i64])?, algebra.tensor("U", &[size[0], size[1], r as i64])?);
    let products = [
        ("T(i,q,r) = S(p,q,r) * A(i,p)", [&t, &s, &parts[0]]),
        ("U(i,j,r) = T(i,q,r) * B(j,q)", [&u, &t, &parts[1]]),
        ("X(i,j,k) = U(i,j,r) * C(k,r)", [x, &u, &parts[2]]),
    ];
    for (text, tensors) in products {
        algebra.statement(text, &tensors).await?.launch(algebra.cx)?.await?;
    }
    Ok(())
}

/// `G(i,m) = T(i,j,k) * T(m,j,k)` for a tensor with these indices.
fn with_itself(tensor: &str, indices: [&str; 3], mode: usize) -> String {
    let mut other = indices;
    other[mode] = "m";
    format!("G({},m) = {tensor}({}) * {tensor}({})", indices[mode], indices.join(","), other.join(","))
}

/// The index variables of the core.
const CORE: [&str; 3] = ["p", "q", "r"];

async fn step(
    algebra: &Algebra<'_>,
    x: &Tensor,
    bases: &[Tensor],
    size: [i64; 3],
    ranks: [i64; 3],
    mode: usize,
) -> Result<Mode, DistributedError> {
    // The last other dimension first: then the sum of the first product is along rows, unless it is the last that
    // stays.
    let (early, late) = [(2, 1), (2, 0), (1, 0)][mode];
    let (mut extents, mut indices) = (size, INDICES);
    (extents[early], indices[early]) = (ranks[early], CORE[early]);
    let partly = algebra.tensor("T", &extents)?;
    let product = |result: &str, of: &str, from: [&str; 3], to: [&str; 3], with: usize| {
        let (from, to) = (from.join(","), to.join(","));
        format!("{result}({to}) = {of}({from}) * {}({},{})", FACTORS[with], INDICES[with], CORE[with])
    };
    let first = algebra.statement(&product("T", "X", INDICES, indices, early), &[&partly, x, &bases[early]]).await?;
    let before = indices;
    (extents[late], indices[late]) = (ranks[late], CORE[late]);
    let small = algebra.tensor("U", &extents)?;
    let second = algebra.statement(&product("U", "T", before, indices, late), &[&small, &partly, &bases[late]]).await?;
    let gram = algebra.tensor("G", &[size[mode], size[mode]])?;
    let third = algebra.statement(&with_itself("U", indices, mode), &[&gram, &small]).await?;
    Ok(Mode { factor: bases[mode].clone(), rank: ranks[mode] as usize, steps: [first, second, third], small, gram })
}
