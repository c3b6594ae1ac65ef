//! Tensors of low rank that are near to a given one, by alternating least squares: two applications of compiled tensor
//! algebra.
//!
//! All that touches the large tensor is a statement in index notation, whose schedule is chosen by estimated costs, and
//! which runs on all nodes. What is left is small and dense, and every node computes it for itself. [`cp`]: sums of
//! outer products, `rounds`: how these are found, `sparse`: of sparse tensors; [`tucker`]: a small core times a basis
//! for each dimension, `sparse_tucker`: of sparse tensors; here: what the two share.

pub mod cp;
mod rounds;
mod sparse;
mod sparse_tucker;
pub mod tucker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use maniple::Context;
use maniple::prelude::*;
use maniple_tensor::choose::choose;
use maniple_tensor::cost::Rates;
use maniple_tensor::distributed::{Computation, DistributedError, Tensor, TensorMapper};
use maniple_tensor::element::ElementType;
use maniple_tensor::generate::RandomElement;
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::substitute::library;
use nalgebra::{DMatrix, SymmetricEigen};

use crate::error::{Error as AppError, Result as AppResult, refused_file};
use crate::options::{RuntimeOptions, at_most, positive, workers_of_job};
use crate::report::{ReportTable, scientific, seconds};

/// Options of both decompositions.
#[derive(Args, Clone, Debug)]
pub struct CommonOptions {
    /// The extents of the tensor
    #[arg(long, value_name = "I,J,K", default_value = "100,100,100", value_parser = three)]
    pub size: [i64; 3],

    /// The most rounds, in each of which every factor is computed anew
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = positive, allow_hyphen_values = true)]
    pub iterations: usize,

    /// Stop when a round changes the relative error by no more than this
    #[arg(long, value_name = "T", default_value_t = 1e-7, value_parser = tolerance, allow_hyphen_values = true)]
    pub tolerance: f64,

    /// The runtime.
    #[command(flatten)]
    pub runtime: RuntimeOptions,
}

/// Reads three whole numbers.
fn three(text: &str) -> Result<[i64; 3], String> {
    let numbers: Vec<&str> = text.split(',').collect();
    let [first, second, third] = numbers[..] else {
        return Err("it must be three numbers such as 100,100,100".to_owned());
    };
    let number = |text: &str| at_most(1 << 20, text.trim()).map(|number| number as i64);
    Ok([number(first)?, number(second)?, number(third)?])
}

fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0 && *number < 1.0);
    number.ok_or_else(|| "it must be a number between 0 and 1".to_owned())
}

/// A tensor that has exactly the rank that is looked for differs by no more than this: the error is the root of a
/// difference of squares, each of which is right to some 1e-15.
pub const LARGEST_ERROR: f64 = 1e-5;

/// The result of a decomposition.
#[derive(Clone, Debug)]
pub struct DecompositionReport {
    /// The name of the decomposition.
    pub name: &'static str,
    /// The extents of the tensor.
    pub size: [i64; 3],
    /// The rank, or ranks.
    pub rank: String,
    /// Rounds.
    pub iterations: usize,
    /// How far what was found is from the tensor, relative to it.
    pub error: f64,
    /// The same of some elements, which are computed one by one, without the statements and the library that
    /// multiplies; of a sparse tensor, of all.
    pub compared: f64,
    /// How many entries a tensor has that was given: of one that was made, the error is known.
    pub entries: Option<usize>,
    /// How long the rounds took.
    pub time: Duration,
}

impl fmt::Display for DecompositionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [i, j, k] = self.size;
        let each = self.time / self.iterations.max(1) as u32;
        let right = match self.entries {
            None => format!(" (at most {LARGEST_ERROR:.0e} is right)"),
            Some(_) => String::new(),
        };
        let table = ReportTable::new()
            .line("tensor", format_args!("{i} x {j} x {k}"))
            .maybe("entries", self.entries)
            .line("rank", &self.rank)
            .line("iterations", self.iterations)
            .line("time", format_args!("{} ({} each)", seconds(self.time), seconds(each)))
            .line("fit", format_args!("{:.6}", 1.0 - self.error))
            .line("relative error", format_args!("{}{right}", scientific(self.error)));
        write!(f, "{}\n{table}", self.name)
    }
}

impl DecompositionReport {
    /// Itself, unless the tensor's own rank was not found.
    fn checked(self) -> AppResult<Self> {
        if self.entries.is_some() && (self.compared - self.error).abs() <= LARGEST_ERROR {
            return Ok(self);
        }
        // Of some elements the error may be larger than of all.
        if self.error <= LARGEST_ERROR && self.compared <= 10.0 * LARGEST_ERROR {
            return Ok(self);
        }
        if self.error.is_nan() || self.error <= LARGEST_ERROR || self.entries.is_some() {
            let what = match self.error.is_nan() {
                true => "sums of products are not finite, or contradict each other".to_owned(),
                false => format!(
                    "elements that were compared differ by {}, while sums of products say {}",
                    scientific(self.compared),
                    scientific(self.error)
                ),
            };
            return Err(AppError::Verification(format!(
                "after {} iterations {what}; if {} multiplies wrong, MANIPLE_BLAS=none does without",
                self.iterations,
                library()
            )));
        }
        Err(AppError::NoConvergence(format!(
            "after {} iterations the relative error is {}, more than {LARGEST_ERROR:.0e}; try another --seed, more --iterations or a smaller --tolerance",
            self.iterations,
            scientific(self.error)
        )))
    }
}

/// Runs a decomposition on a runtime of its own.
fn run<T: fmt::Display>(
    options: &RuntimeOptions,
    program: impl AsyncFnOnce(&Algebra<'_>) -> Result<T, DistributedError>,
) -> AppResult<T> {
    options.run_by(
        || Box::new(TensorMapper::new()),
        |runtime| {
            let processors = workers_of_job(runtime)?;
            runtime.run(async |cx| refused_file(program(&Algebra { cx, processors }).await))?
        },
    )
}

/// Tensors and statements on the runtime.
struct Algebra<'a> {
    cx: &'a Context,
    processors: usize,
}

impl Algebra<'_> {
    fn tensor(&self, name: &str, extents: &[i64]) -> Result<Tensor, DistributedError> {
        Tensor::new(self.cx, &TensorVariable::new(name, ElementType::F64, extents))
    }

    /// A statement on these tensors, scheduled and compiled.
    async fn statement(&self, text: &str, tensors: &[&Tensor]) -> Result<Computation, DistributedError> {
        let variables: Vec<TensorVariable> = tensors.iter().map(|tensor| tensor.variable().clone()).collect();
        let assignment = parse(text, &variables).map_err(Error::from_task)?;
        let choice = choose(&assignment, self.processors, &Rates::default());
        Computation::new(self.cx, &Arc::new(choice.best().plan.clone()), tensors).await
    }

    /// Runs a statement and gives its result.
    async fn matrix(&self, computation: &Computation, result: &Tensor) -> Result<DMatrix<f64>, DistributedError> {
        computation.launch(self.cx)?.await?;
        let dimensions = result.variable().dimensions();
        let rows = dimensions.first().map_or(1, |&extent| extent as usize);
        let elements: Vec<f64> = result.read_elements(self.cx).await?;
        Ok(DMatrix::from_row_slice(rows, elements.len() / rows.max(1), &elements))
    }

    fn set(&self, tensor: &Tensor, matrix: &DMatrix<f64>) -> Result<(), DistributedError> {
        tensor.write_elements(self.cx, matrix.transpose().as_slice().to_vec())
    }

    /// The leading eigenvectors of a symmetric matrix, as columns. If there are too few, the rest is zero; if there are
    /// none, as of a matrix that is not finite, all is NaN.
    fn leading(symmetric: DMatrix<f64>, count: usize) -> DMatrix<f64> {
        let rows = symmetric.nrows();
        let eigen = is_finite(&symmetric).then(|| SymmetricEigen::try_new(symmetric, f64::EPSILON, MOST_ITERATIONS));
        let Some(eigen) = eigen.flatten() else { return DMatrix::from_element(rows, count, f64::NAN) };
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
        DMatrix::from_fn(rows, count, |row, column| order.get(column).map_or(0.0, |&at| eigen.eigenvectors[(row, at)]))
    }
}

/// Eigenvalues and singular values of small matrices take a few iterations each.
const MOST_ITERATIONS: usize = 1_000_000;

fn is_finite(matrix: &DMatrix<f64>) -> bool {
    matrix.iter().all(|value| value.is_finite())
}

/// The relative error whose square, times that of the tensor, is `difference`. Rounding may make a difference of 0
/// negative, but only by so much: then it is NaN.
fn relative_error(difference: f64, square: f64) -> f64 {
    match difference < 0.0 && difference >= -LARGEST_ERROR.powi(2) * square {
        true => 0.0,
        false => (difference / square).sqrt(),
    }
}

/// Elements are compared with as many multiplications as take a moment.
const MULTIPLICATIONS: usize = 1 << 23;

/// The relative error of random elements, or of all if these are few: of what was found against what was looked for,
/// both computed by so many multiplications.
fn compare(
    size: [i64; 3],
    seed: u64,
    multiplications: usize,
    wanted: impl Fn([usize; 3]) -> f64,
    found: impl Fn([usize; 3]) -> f64,
) -> f64 {
    let [_, rows, columns] = size.map(|extent| extent as u64);
    let all = size.iter().product::<i64>() as u64;
    let count = ((MULTIPLICATIONS / multiplications.max(1)) as u64).clamp(100, 10_000);
    let mut random = fastrand::Rng::with_seed(seed);
    let numbers: Vec<u64> =
        if all <= count { (0..all).collect() } else { (0..count).map(|_| random.u64(0..all)).collect() };
    let (mut difference, mut square) = (0.0, 0.0);
    for number in numbers {
        let place = [number / (rows * columns), number / columns % rows, number % columns].map(|index| index as usize);
        let wanted = wanted(place);
        difference += (wanted - found(place)).powi(2);
        square += wanted.powi(2);
    }
    relative_error(difference, square)
}

/// Random factors, between -1 and 1: of each dimension `ranks` columns.
fn factors(size: [i64; 3], ranks: [usize; 3], seed: u64) -> [Arc<Vec<f64>>; 3] {
    [0, 1, 2].map(|mode| {
        let count = size[mode] as usize * ranks[mode];
        let key = seed.wrapping_mul(3).wrapping_add(mode as u64);
        Arc::new((0..count as u64).map(|number| f64::random(key, number)).collect())
    })
}

/// The names of the factors, and of the index variables of the dimensions and of the ranks.
const FACTORS: [&str; 3] = ["A", "B", "C"];
const INDICES: [&str; 3] = ["i", "j", "k"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_that_is_too_negative_is_no_error_of_zero() {
        assert_eq!(relative_error(4.0, 100.0), 0.2);
        assert_eq!(relative_error(-1e-13, 1.0), 0.0);
        for wrong in [-1e-6, f64::NAN, f64::NEG_INFINITY] {
            assert!(relative_error(wrong, 1.0).is_nan(), "{wrong}");
        }
    }

    #[test]
    fn eigenvectors_of_what_is_not_finite_are_not_looked_for() {
        for wrong in [f64::NAN, f64::INFINITY] {
            let vectors = Algebra::leading(DMatrix::from_element(3, 3, wrong), 2);
            assert!(vectors.iter().all(|value| value.is_nan()));
        }
    }
}
