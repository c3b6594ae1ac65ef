//! Random elements of operands.

use maniple::Context;
use maniple_tensor::distributed::{DistributedError, Tensor};
use maniple_tensor::element::{Element, Scalar};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::rectangle::Rectangle;
use maniple_tensor::storage::{DynamicTensor, SparseTensor, StorageError};
use maniple_tensor::with_element;

use super::random::{Random as _, mixed};

/// Random elements of a tensor, which follow from this key and the coordinates.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The random elements of a tensor of this name.
    #[must_use]
    pub fn new(seed: u64, tensor: &TensorVariable) -> Self {
        Self(key(seed, tensor))
    }

    /// The element at these coordinates.
    #[must_use]
    pub fn get(self, tensor: &TensorVariable, coordinates: &[i64]) -> Scalar {
        let position = position(tensor.dimensions(), coordinates);
        with_element!(tensor.element(), T => T::random(self.0, position).to_scalar())
    }

    /// Gives a tensor these elements, each piece by a task.
    ///
    /// # Errors
    /// The errors of the runtime.
    pub fn put(self, cx: &Context, tensor: &Tensor, pieces: &[Rectangle]) -> Result<(), DistributedError> {
        let variable = tensor.variable();
        let dimensions = variable.dimensions().to_vec();
        with_element!(variable.element(), T => {
            tensor.generate(cx, pieces, move |point| T::random(self.0, position(&dimensions, point)))
        })
    }
}

/// A dense tensor of random elements, in memory.
///
/// # Errors
/// [`StorageError`].
pub(super) fn random(seed: u64, tensor: &TensorVariable) -> Result<DynamicTensor, StorageError> {
    let (key, count) = (key(seed, tensor), tensor.dimensions().iter().product::<i64>() as u64);
    let made: DynamicTensor = with_element!(tensor.element(), T => {
        let elements = (0..count).map(|number| T::random(key, number)).collect();
        let fill = T::from_scalar(tensor.fill()).expect("fill values have the type of their tensors");
        SparseTensor::from_elements(tensor.dimensions(), fill, elements)?.into()
    });
    made.convert(tensor.format())
}

/// The key from which the random elements of a tensor follow: tensors of other names have other keys.
#[must_use]
pub(super) fn key(seed: u64, tensor: &TensorVariable) -> u64 {
    tensor.name().bytes().fold(mixed(seed), |key, byte| mixed(key ^ u64::from(byte)))
}

/// The number of an element, in the order of coordinates.
#[inline]
fn position(dimensions: &[i64], coordinates: &[i64]) -> u64 {
    dimensions.iter().zip(coordinates).fold(0, |position, (extent, index)| position * *extent as u64 + *index as u64)
}
