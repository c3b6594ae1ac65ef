//! Sparse tensors as sums of outer products; and what all decompositions of sparse tensors need.
//!
//! In each of three orders of its dimensions the tensor is stored once: the product for a factor goes through the tensor with the factor's dimension first, whose rows are dealt to all
//! processors.

use std::path::Path;
use std::sync::Arc;

use maniple_tensor::distributed::{Computation, DistributedError, Tensor};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::format::Format;
use maniple_tensor::notation::{TensorVariable, parse};
use maniple_tensor::plan::Plan;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use nalgebra::DMatrix;

use super::rounds::{Found, Mode, iterate};
use super::{Algebra, CommonOptions, FACTORS, INDICES, Report, factors, relative_error};
use crate::error::{Error as AppError, Result as AppResult};
use crate::input::InputError;
use crate::tensor::operands::read;

/// A tensor from a file.
pub(super) struct Given {
    size: [i64; 3],
    entries: EntryList<f64>,
}

impl Given {
    /// Reads a tensor of three dimensions.
    ///
    /// # Errors
    /// [`AppError::Input`] if there is none, or a value is not finite.
    pub(super) fn read(file: &Path) -> AppResult<Self> {
        let (dimensions, entries) = read(file)?;
        let unsuitable = |reason| AppError::from(InputError::Unsuitable { name: file.display().to_string(), reason });
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
        let infinite = entries.iter().find(|(_, value)| !value.is_finite());
        if let Some((at, value)) = infinite {
            return Err(unsuitable(format!("the element at {at:?} is {value}, and is to be finite")));
        }
        Ok(Self { size, entries })
    }

    /// The extents.
    pub(super) fn size(&self) -> [i64; 3] {
        self.size
    }

    /// The tensor with a dimension first, and the others in their order.
    pub(super) fn by(&self, mode: usize) -> Result<Arc<SparseTensor<f64>>, DistributedError> {
        let [first, second] = others(mode);
        let format: Format =
            format!("{{D,C,C}}({mode},{first},{second})").parse().map_err(maniple::Error::from_task)?;
        let packed = pack(&format, &self.size, 0.0, self.entries.clone(), Duplicates::Sum);
        Ok(Arc::new(packed.map_err(maniple::Error::from_task)?.tensor))
    }
}

/// The other two dimensions.
pub(super) fn others(mode: usize) -> [usize; 2] {
    [[1, 2], [0, 2], [0, 1]][mode]
}

/// A product of a tensor, `X(i,j,k)` stored with a dimension first, and dense operands, into a dense result that has that dimension first too: its rows are dealt to all processors.
pub(super) async fn product(
    algebra: &Algebra<'_>,
    text: &str,
    (mode, stored): (usize, &Arc<SparseTensor<f64>>),
    [result, one, other]: [&Tensor; 3],
) -> Result<Computation, DistributedError> {
    let x = TensorVariable::new("X", F64, stored.dimensions()).stored(stored.format().clone());
    let dense = [result, one, other];
    let variables = [x.clone()].into_iter().chain(dense.map(|tensor| tensor.variable().clone()));
    let statement = parse(text, &variables.collect::<Vec<_>>()).map_err(maniple::Error::from_task)?;
    let loops = maniple_tensor::sparse::Computation::new(&statement).map_err(maniple::Error::from_task)?;
    let blocks = (algebra.processors as i64).clamp(1, stored.dimensions()[mode].max(1));
    let loops = loops.on_grid(&[blocks]).map_err(maniple::Error::from_task)?;
    let plan = Arc::new(Plan::new(loops.statement()).map_err(maniple::Error::from_task)?);
    let x = Tensor::from_sparse(algebra.cx, &x, Arc::clone(stored))?;
    Computation::new(algebra.cx, &plan, &[result, &x, one, other]).await
}

/// Finds the sum of `rank` outer products that is near to the tensor.
pub(super) async fn decompose(
    algebra: &Algebra<'_>,
    (rank, options): (usize, &CommonOptions),
    given: &Given,
) -> Result<Report, DistributedError> {
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
    let (mut updates, mut entries, mut whole) = (Vec::new(), 0, None);
    for mode in 0..3 {
        let [one, other] = others(mode);
        let stored = given.by(mode)?;
        let products = [one, other].map(|other| format!(" * {}({},l)", FACTORS[other], INDICES[other]));
        let text = format!("M({},l) = X(i,j,k){}", INDICES[mode], products.concat());
        let dense = [&tensors[mode].1, &tensors[one].0, &tensors[other].0];
        updates.push(product(algebra, &text, (mode, &stored), dense).await?);
        entries = stored.values().len();
        whole.get_or_insert(stored);
    }
    let whole = whole.expect("there are three dimensions");
    let square = whole.values().iter().map(|value| value * value).sum();
    let modes = tensors.into_iter().zip(updates);
    let modes = modes.map(|((factor, product, gram), update)| Mode { factor, gram, product, update }).collect();
    let found = iterate(algebra, (rank, options), modes, (size, square)).await?;
    let compared = difference(&whole, (rank, square), &found);
    let Found { error, iterations, time, .. } = found;
    let entries = Some(entries);
    Ok(Report { name: "cp", size, rank: rank.to_string(), iterations, error, compared, entries, time })
}

/// How far a sum of outer products is from the tensor, relative to it: entry by entry, and where there are none by what is left of the sum's own square.
fn difference(tensor: &SparseTensor<f64>, (rank, square): (usize, f64), found: &Found) -> f64 {
    let [a, b, c] = &found.factors;
    let (mut sum, mut here) = (0.0, 0.0);
    tensor.for_each(|at, value| {
        let [i, j, k] = [0, 1, 2].map(|mode| at[mode] as usize);
        let nearby: f64 = (0..rank).map(|l| a[(i, l)] * b[(j, l)] * c[(k, l)]).sum();
        sum += (value - nearby).powi(2);
        here += nearby.powi(2);
    });
    let grams = [a, b, c].map(|factor| factor.tr_mul(factor));
    let all = grams[0].component_mul(&grams[1]).component_mul(&grams[2]).sum();
    relative_error(sum + (all - here).max(0.0), square)
}
