//! Tensors in memory whose element type is known at run time only.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use super::error::StorageError;
use super::statistics::Statistics;
use super::tensor::SparseTensor;
use crate::element::{Element, ElementType, Scalar};
use crate::format::Format;
use crate::level::LevelData;
use crate::with_element;

/// A [`SparseTensor`] whose element type is known at run time only: code that handles tensors of all types is compiled
/// once. Copies share the tensor.
///
/// ```
/// use maniple_kernel::element::{ElementType, Scalar};
/// use maniple_storage::tensors::{DynamicTensor, SparseTensor};
///
/// let vector = DynamicTensor::from(SparseTensor::from_elements(&[3], 0, vec![5_i64, 0, 7])?);
/// assert_eq!((vector.element(), vector.fill()), (ElementType::I64, Scalar::I64(0)));
/// let compressed = vector.convert(&"{C}".parse()?)?;
/// assert_eq!(compressed.values::<i64>(), Some(&[5, 7][..]));
/// assert!(compressed.values::<f64>().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct DynamicTensor {
    element: ElementType,
    tensor: Arc<dyn Any + Send + Sync>,
}

/// The invariant of dynamic tensors.
const HAS_TYPE: &str = "the tensor has elements of the type that is stored with it";

/// Evaluates an expression in which a name is a dynamic tensor with its own element type.
macro_rules! with_tensor {
    ($dynamic:expr, $tensor:ident => $body:expr) => {
        with_element!($dynamic.element, T => {
            let $tensor = $dynamic.typed::<T>();
            $body
        })
    };
}

impl<T: Element> From<SparseTensor<T>> for DynamicTensor {
    fn from(tensor: SparseTensor<T>) -> Self {
        Self { element: T::TYPE, tensor: Arc::new(tensor) }
    }
}

impl DynamicTensor {
    fn typed<T: Element>(&self) -> &SparseTensor<T> {
        self.downcast_ref().expect(HAS_TYPE)
    }

    /// The tensor, if its elements are of type `T`.
    pub fn downcast_ref<T: Element>(&self) -> Option<&SparseTensor<T>> {
        self.tensor.downcast_ref()
    }

    /// The tensor, shared with this one, if its elements are of type `T`.
    pub fn downcast<T: Element>(&self) -> Option<Arc<SparseTensor<T>>> {
        Arc::clone(&self.tensor).downcast().ok()
    }

    /// [`downcast`](Self::downcast), where the elements are known to be of type `T`.
    ///
    /// # Panics
    ///
    /// If they are not.
    pub fn shared<T: Element>(&self) -> Arc<SparseTensor<T>> {
        self.downcast().expect(HAS_TYPE)
    }

    /// The tensor alone, where the elements are known to be of type `T`.
    pub(super) fn into_shared<T: Element>(self) -> Arc<SparseTensor<T>> {
        self.tensor.downcast().expect(HAS_TYPE)
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// How it is stored.
    pub fn format(&self) -> &Format {
        with_tensor!(self, tensor => tensor.format())
    }

    /// The extent of each dimension.
    pub fn dimensions(&self) -> &[i64] {
        with_tensor!(self, tensor => tensor.dimensions())
    }

    /// The value of what is not stored.
    pub fn fill(&self) -> Scalar {
        with_tensor!(self, tensor => tensor.fill().to_scalar())
    }

    /// The components of the levels.
    pub fn levels(&self) -> &[LevelData] {
        with_tensor!(self, tensor => tensor.levels())
    }

    /// The elements, one for each position of the last level, if they are of type `T`.
    pub fn values<T: Element>(&self) -> Option<&[T]> {
        self.downcast_ref().map(SparseTensor::values)
    }

    /// The number of elements that are stored, one for each position of the last level.
    pub fn count(&self) -> usize {
        with_tensor!(self, tensor => tensor.values().len())
    }

    /// The number of stored elements that equal the fill value.
    pub fn count_fill(&self) -> usize {
        with_tensor!(self, tensor => tensor.values().iter().filter(|value| **value == tensor.fill()).count())
    }

    /// Whether another tensor has elements of the same type, which are equal at each position of the last level.
    pub fn has_values_of(&self, other: &Self) -> bool {
        with_tensor!(self, tensor => other.values() == Some(tensor.values()))
    }

    /// The bytes of all components and elements.
    pub fn bytes(&self) -> usize {
        with_tensor!(self, tensor => tensor.bytes())
    }

    /// The element at these coordinates, as of [`SparseTensor::get`].
    pub fn get(&self, coordinates: &[i64]) -> Scalar {
        with_tensor!(self, tensor => tensor.get(coordinates).to_scalar())
    }

    /// Visits all entries with their coordinates, as [`SparseTensor::for_each`] does.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[i64], Scalar)) {
        with_tensor!(self, tensor => tensor.for_each(|coordinates, value| visit(coordinates, value.to_scalar())));
    }

    /// Visits the entries at a range of positions of the last level, as [`SparseTensor::for_each_within`] does.
    pub fn for_each_within(&self, positions: Range<usize>, visit: &mut dyn FnMut(&[i64], Scalar)) {
        with_tensor!(self, tensor => tensor.for_each_within(positions, |at, value| visit(at, value.to_scalar())));
    }

    /// How many entries [`for_each_within`](Self::for_each_within) visits.
    pub fn count_within(&self, positions: Range<usize>) -> usize {
        with_tensor!(self, tensor => tensor.count_within(positions))
    }

    /// The same tensor in another format, as by [`SparseTensor::convert`].
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn convert(&self, format: &Format) -> Result<Self, StorageError> {
        if format == self.format() {
            return Ok(self.clone());
        }
        with_tensor!(self, tensor => tensor.convert(format).map(Self::from))
    }

    /// How the entries are spread, as of [`SparseTensor::statistics`].
    pub fn statistics(&self) -> &Arc<Statistics> {
        with_tensor!(self, tensor => tensor.statistics())
    }

    /// A number that is different for other extents or entries, as far as 64 bits can be.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.dimensions().hash(&mut hasher);
        self.for_each(&mut |at, value| (at, value.bits()).hash(&mut hasher));
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maniple_kernel::arithmetic::cast;

    use crate::tensors::{Duplicates, DynamicEntries, EntryList};

    /// The matrix `[[0, 1, 0], [1, 0, 1]]` in `csr`.
    fn matrix(element: ElementType) -> DynamicTensor {
        let mut ones = EntryList::new(2);
        [[1, 2], [0, 1], [1, 0]].iter().for_each(|at| ones.push(at, 1_i64));
        let entries = DynamicEntries::from(ones).cast(element, &|one| Some(cast(one, element))).unwrap();
        let csr = "csr".parse().unwrap();
        entries.pack(&csr, &[2, 3], Scalar::I64(0), Duplicates::Refuse).unwrap().0
    }

    #[test]
    fn tensors_of_all_types_are_what_they_are_with_their_types() {
        for element in ElementType::ALL {
            let (dynamic, dense) = (matrix(element), Format::dense(2));
            assert_eq!((dynamic.element(), dynamic.count(), dynamic.count_fill()), (element, 3, 0));
            with_element!(element, T => {
                let typed = dynamic.downcast_ref::<T>().unwrap();
                assert_eq!((typed.format(), typed.dimensions()), (dynamic.format(), dynamic.dimensions()));
                assert_eq!((typed.levels(), typed.bytes()), (dynamic.levels(), dynamic.bytes()));
                assert_eq!(Some(typed.entries()), dynamic.entries().downcast());
                assert_eq!(typed.statistics(), dynamic.statistics());
                let converted = dynamic.convert(&dense).unwrap();
                assert_eq!(typed.convert(&dense).as_ref().ok(), converted.downcast_ref());
                assert_eq!(converted.count_fill(), 3);
            });
        }
    }

    #[test]
    fn copies_share_their_tensor_and_other_types_are_none() {
        let dynamic = matrix(ElementType::F64);
        let (copy, same) = (dynamic.clone(), dynamic.convert(dynamic.format()).unwrap());
        for other in [copy, same] {
            assert!(Arc::ptr_eq(&dynamic.downcast::<f64>().unwrap(), &other.downcast().unwrap()));
        }
        assert!(dynamic.downcast::<f32>().is_none() && dynamic.downcast_ref::<i64>().is_none());
    }

    #[test]
    fn values_are_compared_by_position_and_type() {
        let (rows, columns) = (matrix(ElementType::I32), matrix(ElementType::I32).convert(&"csc".parse().unwrap()));
        assert!(rows.has_values_of(&columns.unwrap()));
        assert!(!rows.has_values_of(&matrix(ElementType::U32)));
        assert!(!rows.has_values_of(&rows.convert(&Format::dense(2)).unwrap()));
    }
}
