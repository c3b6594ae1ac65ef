//! Tensors to and from tensors in memory whose element type is known at run time only.

use maniple::{Context, FieldValue};

use super::error::DistributedError;
use super::pending::Pending;
use super::tensor::Tensor;
use crate::element::Element;
use crate::level::Component;
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
        Box::pin(async move {
            let levels = match self.levels() {
                Some(levels) => Some(levels.read_levels(cx).await?),
                None => None,
            };
            with_element!(self.variable().element(), T => {
                let elements: Pending<'_, Vec<T>> = match self.levels() {
                    Some(levels) => Box::pin(levels.values().read(cx)),
                    None => Box::pin(self.read_elements(cx)),
                };
                self.whole(levels, elements.await?)
            })
        })
    }

    /// The tensor in memory with what its levels store, unless it is dense, and these elements.
    fn whole<T: Element + FieldValue>(
        &self,
        levels: Option<Vec<Vec<Component>>>,
        elements: Vec<T>,
    ) -> Result<DynamicTensor, DistributedError> {
        if let Some(levels) = levels {
            return Ok(self.with_components(levels, elements)?.into());
        }
        let variable = self.variable();
        let fill = T::from_scalar(variable.fill()).expect("fill values have the type of their tensors");
        let stored = SparseTensor::from_elements(variable.dimensions(), fill, elements).map(DynamicTensor::from);
        let stored = stored.and_then(|stored| stored.convert(variable.format()));
        Ok(stored.map_err(maniple::Error::from_task)?)
    }
}
