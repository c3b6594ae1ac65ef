//! Sparse tensors as sums of outer products; and what all decompositions of sparse tensors need.
//!
//! In each of three orders of its dimensions the tensor is stored once, in parts on all nodes: the product for a factor
//! goes through the tensor with the factor's dimension first, whose rows are dealt to all processors.

use std::path::Path;
use std::sync::Arc;

use maniple_tensor::distributed::{Computation, DistributedError, Tensor};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::element::Scalar;
use maniple_tensor::files::{InputError, Readable};
use maniple_tensor::notation::{TensorVariable, cast, parse};
use maniple_tensor::plan::Plan;
use nalgebra::DMatrix;

use super::rounds::{Found, Mode, iterate};
use super::{Algebra, CommonOptions, DecompositionReport, FACTORS, INDICES, factors, relative_error};
use crate::error::{Error as AppError, Result as AppResult, usage};
use crate::tensor::source::{TensorSource, with_doubles};

/// A tensor in a file.
pub(super) struct GivenTensor {
    name: String,
    size: [i64; 3],
    entries: Readable,
}

impl GivenTensor {
    /// Opens the file of a tensor of three dimensions.
    ///
    /// # Errors
    /// [`AppError::Input`] if there is none.
    pub(super) fn open(file: &Path) -> AppResult<Self> {
        let source = TensorSource::open(file)?;
        let dimensions = source.dimensions();
        let name = file.display().to_string();
        let unsuitable = |reason| AppError::from(InputError::Unsuitable { name: name.clone(), reason });
        let Ok(size) = <[i64; 3]>::try_from(&dimensions[..]) else {
            let reason = format!("the tensor has {} dimensions; three are decomposed", dimensions.len());
            return Err(unsuitable(reason));
        };
        if let Some(mode) = size.iter().position(|extent| *extent == 0) {
            return Err(unsuitable(format!(
                "the extent of dimension {} is 0; there is nothing to decompose",
                mode + 1
            )));
        }
        let entries = source.readable(&stored_by(size, 0).map_err(usage)?, true)?;
        if entries.variable().element().is_complex() {
            return Err(unsuitable("its elements are complex; tensors of real numbers are decomposed".to_owned()));
        }
        Ok(Self { name, size, entries })
    }

    /// The extents.
    pub(super) fn size(&self) -> [i64; 3] {
        self.size
    }

    /// The tensor, stored once for each dimension, which is the first one there.
    ///
    /// # Errors
    /// [`DistributedError::File`] if the file is wrong, or a value is not finite; [`DistributedError::Runtime`].
    pub(super) async fn stored(&self, algebra: &Algebra<'_>) -> Result<StoredTensor, DistributedError> {
        let first = with_doubles(algebra.cx, &self.entries, &self.by(0)?, number).await?;
        type Part = (f64, Option<(Vec<i64>, f64)>);
        let found = first.fold_entries::<f64, Part>(
            algebra.cx,
            || (0.0, None),
            |(square, infinite), at, value| {
                *square += value * value;
                if infinite.is_none() && !value.is_finite() {
                    *infinite = Some((at.to_vec(), value));
                }
            },
        );
        let found = found.await?;
        if let Some((at, value)) = found.iter().find_map(|(_, infinite)| infinite.as_ref()) {
            let reason = format!("the element at {at:?} is {value}, and is to be finite");
            return Err(DistributedError::File { name: self.name.clone(), reason, is_input: true });
        }
        let [second, third] = [self.by(1)?, self.by(2)?];
        let (second, third) = (first.converted(algebra.cx, &second).await?, first.converted(algebra.cx, &third).await?);
        let square = found.iter().map(|(square, _)| square).sum();
        Ok(StoredTensor { by_mode: [first, second, third], square })
    }

    fn by(&self, mode: usize) -> maniple::Result<TensorVariable> {
        stored_by(self.size, mode)
    }
}

/// A tensor that is stored with a dimension first.
fn stored_by(size: [i64; 3], mode: usize) -> maniple::Result<TensorVariable> {
    let [second, third] = others(mode);
    let format = format!("{{D,C,C}}({mode},{second},{third})").parse().map_err(maniple::Error::from_task)?;
    Ok(TensorVariable::new("X", F64, size).stored(format))
}

/// A real number as a double.
fn number(scalar: Scalar) -> f64 {
    match cast(scalar, F64) {
        Scalar::F64(value) => value,
        _ => f64::NAN,
    }
}

/// A tensor in parts on all nodes, in each of three orders of its dimensions.
pub(super) struct StoredTensor {
    by_mode: [Tensor; 3],
    /// The sum of the squares of its elements.
    pub(super) square: f64,
}

impl StoredTensor {
    /// How many entries it has.
    pub(super) fn entries(&self) -> usize {
        self.by_mode[0].count()
    }

    /// A product of the tensor, `X(i,j,k)`, and dense operands, into a dense result, of which a dimension is the first
    /// one: its rows are dealt to all processors.
    pub(super) async fn product(
        &self,
        algebra: &Algebra<'_>,
        text: &str,
        mode: usize,
        [result, one, other]: [&Tensor; 3],
    ) -> Result<Computation, DistributedError> {
        let tensors = [result, &self.by_mode[mode], one, other];
        let variables = tensors.map(|tensor| tensor.variable().clone());
        let statement = parse(text, &variables).map_err(maniple::Error::from_task)?;
        let loops = maniple_tensor::sparse::Computation::new(&statement).map_err(maniple::Error::from_task)?;
        let blocks = (algebra.processors as i64).clamp(1, tensors[1].variable().dimensions()[mode].max(1));
        let loops = loops.on_grid(&[blocks]).map_err(maniple::Error::from_task)?;
        let plan = Arc::new(Plan::new(loops.statement()).map_err(maniple::Error::from_task)?);
        Computation::new(algebra.cx, &plan, &tensors).await
    }

    /// How far what was found is from the tensor, relative to it: `nearby` gives its elements, of whose squares the sum
    /// is `all`. Entry by entry, on the nodes that have them, and where there are none by what is left of `all`.
    pub(super) async fn difference(
        &self,
        algebra: &Algebra<'_>,
        nearby: impl Fn([usize; 3]) -> f64 + Send + Sync + 'static,
        all: f64,
    ) -> Result<f64, DistributedError> {
        let found = self.by_mode[0].fold_entries::<f64, [f64; 2]>(
            algebra.cx,
            || [0.0; 2],
            move |[sum, here], at, value| {
                let nearby = nearby([0, 1, 2].map(|mode| at[mode] as usize));
                *sum += (value - nearby).powi(2);
                *here += nearby.powi(2);
            },
        );
        let found = found.await?;
        let [sum, here] = [0, 1].map(|which| found.iter().map(|part| part[which]).sum::<f64>());
        Ok(relative_error(sum + (all - here).max(0.0), self.square))
    }
}

/// The other two dimensions.
pub(super) fn others(mode: usize) -> [usize; 2] {
    [[1, 2], [0, 2], [0, 1]][mode]
}

/// Finds the sum of `rank` outer products that is near to the tensor.
pub(super) async fn decompose(
    algebra: &Algebra<'_>,
    rank: usize,
    options: &CommonOptions,
    given: &GivenTensor,
) -> Result<DecompositionReport, DistributedError> {
    let stored = given.stored(algebra).await?;
    let size = given.size;
    let start = factors(size, [rank; 3], options.runtime.seed);
    let mut tensors = Vec::new();
    for (mode, start) in start.iter().enumerate() {
        let extents = [size[mode], rank as i64];
        let (factor, product) = (algebra.tensor(FACTORS[mode], &extents)?, algebra.tensor("M", &extents)?);
        let start = DMatrix::from_row_slice(size[mode] as usize, rank, start);
        algebra.set(&factor, &start)?;
        tensors.push((factor, product, start.tr_mul(&start)));
    }
    let mut updates = Vec::new();
    for mode in 0..3 {
        let [one, other] = others(mode);
        let products = [one, other].map(|other| format!(" * {}({},l)", FACTORS[other], INDICES[other]));
        let text = format!("M({},l) = X(i,j,k){}", INDICES[mode], products.concat());
        let dense = [&tensors[mode].1, &tensors[one].0, &tensors[other].0];
        updates.push(stored.product(algebra, &text, mode, dense).await?);
    }
    let modes = tensors.into_iter().zip(updates);
    let modes = modes.map(|((factor, product, gram), update)| Mode { factor, gram, product, update }).collect();
    let found = iterate(algebra, rank, options, modes, size, stored.square).await?;
    let Found { factors: [a, b, c], error, iterations, time } = found;
    let grams = [&a, &b, &c].map(|factor| factor.tr_mul(factor));
    let all = grams[0].component_mul(&grams[1]).component_mul(&grams[2]).sum();
    let sum = move |[i, j, k]: [usize; 3]| (0..rank).map(|l| a[(i, l)] * b[(j, l)] * c[(k, l)]).sum();
    let compared = stored.difference(algebra, sum, all).await?;
    let (rank, entries) = (rank.to_string(), Some(stored.entries()));
    Ok(DecompositionReport { name: "cp", size, rank, iterations, error, compared, entries, time })
}
