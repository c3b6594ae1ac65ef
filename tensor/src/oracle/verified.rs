//! Results of statements on tensors in any formats, compared with what the oracle gives.

use std::collections::BTreeMap;

use super::defined::complex;
use super::{OracleError, SparseMap, run};
use crate::element::{ElementType, Scalar};
use crate::notation::{Assignment, TensorVariable};
use crate::storage::DynamicTensor;

/// Results that are not what the oracle gives, or have nothing to be compared with.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The oracle gives no value.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// An element differs.
    #[error("{tensor}{at:?} is {found}, and by the definition {expected}")]
    Differs {
        /// The result.
        tensor: String,
        /// The coordinates of the element.
        at: Vec<i64>,
        /// The element.
        found: Scalar,
        /// The element by the definition.
        expected: Scalar,
    },
}

/// The distance of a sum of many products from another order of summing it, in units of its size.
fn tolerance(element: ElementType) -> f64 {
    match element {
        ElementType::F32 | ElementType::C32 => 1e-3,
        ElementType::F64 | ElementType::C64 => 1e-9,
        _ => 0.0,
    }
}

/// Compares all elements of results with what the oracle gives for statements on `inputs`, and gives the number of
/// elements that are stored in the results.
///
/// # Errors
///
/// [`VerifyError`] of the first element that differs by more than rounding, or as of [`run`].
pub fn verify(
    statements: &[Assignment],
    results: &[TensorVariable],
    inputs: &BTreeMap<String, DynamicTensor>,
    found: &BTreeMap<String, DynamicTensor>,
) -> Result<usize, VerifyError> {
    let mut maps = inputs.iter().map(|(name, tensor)| (name.clone(), SparseMap::of_dynamic(tensor))).collect();
    run(statements, &mut maps)?;
    let mut count = 0;
    for result in results {
        let (Some(expected), Some(found)) = (maps.get(result.name()), found.get(result.name())) else { continue };
        let is_equal = |one: Scalar, other: Scalar| {
            let (a, b) = (complex(one).re, complex(other).re);
            one == other || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance(found.element()) * (1.0 + a.abs())
        };
        count += found.count();
        let map = SparseMap::of_dynamic(found);
        if let Some(at) = expected.difference(&map, is_equal) {
            let (tensor, expected, found) = (result.name().to_owned(), expected.get(&at), map.get(&at));
            return Err(VerifyError::Differs { tensor, at, found, expected });
        }
    }
    Ok(count)
}
