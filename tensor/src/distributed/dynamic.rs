//! Tensors to and from tensors in memory whose element type is known at run time only.

use maniple::{Context, FieldValue};

use super::error::DistributedError;
use super::pending::Pending;
use super::tensor::Tensor;
use crate::element::Element;
use crate::notation::TensorVariable;
use crate::storage::{DynamicTensor, SparseTensor};
use crate::with_element;

impl Tensor {
    /// [`from_sparse`](Self::from_sparse) of a tensor whose element type is known at run time only.
    ///
    /// # Errors
    ///
    /// As of [`from_sparse`](Self::from_sparse).
    pub fn from_dynamic(
        cx: &Context,
        variable: &TensorVariable,
        stored: &DynamicTensor,
    ) -> Result<Self, DistributedError> {
        with_element!(stored.element(), T => Self::from_sparse(cx, variable, stored.shared::<T>()))
    }

    /// Sets all elements of a dense tensor to those of another one, stored or not, as by
    /// [`write_elements`](Self::write_elements).
    ///
    /// # Errors
    ///
    /// As of [`write_elements`](Self::write_elements).
    pub fn write_dynamic(&self, cx: &Context, stored: &DynamicTensor) -> Result<(), DistributedError> {
        with_element!(stored.element(), T => self.write_elements(cx, stored.shared::<T>().elements()))
    }

    /// All of a tensor, dense or in levels, in its format, as it is after all that was launched before this call: on
    /// each of several nodes.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Runtime`]: what has failed before.
    pub fn read_dynamic<'a>(&'a self, cx: &'a Context) -> Pending<'a, DynamicTensor> {
        with_element!(self.variable().element(), T => Box::pin(async move { self.whole::<T>(cx).await.map(DynamicTensor::from) }))
    }

    async fn whole<T: Element + FieldValue>(&self, cx: &Context) -> Result<SparseTensor<T>, DistributedError> {
        let variable = self.variable();
        if !variable.format().is_dense() {
            return self.read_sparse(cx).await;
        }
        let elements = self.read_elements(cx).await?;
        let fill = T::from_scalar(variable.fill()).expect("fill values have the type of their tensors");
        let stored = SparseTensor::from_elements(variable.dimensions(), fill, elements);
        let stored = stored.and_then(|stored| stored.convert(variable.format()));
        Ok(stored.map_err(maniple::Error::from_task)?)
    }
}
