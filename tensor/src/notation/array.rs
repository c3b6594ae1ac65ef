//! Arrays of elements of any type, for reference results: slow and simple.

use super::cast;
use crate::element::{Element, ElementType, Scalar};

/// The elements of a tensor, in the order of their coordinates, the last dimension fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseArray {
    element: ElementType,
    dimensions: Vec<i64>,
    values: Vec<Scalar>,
}

/// The zero of a type.
fn zero(element: ElementType) -> Scalar {
    cast(Scalar::I64(0), element)
}

impl DenseArray {
    /// An array of zeros. Negative extents count as zero.
    pub fn zeros(element: ElementType, dimensions: &[i64]) -> Self {
        Self::from_fn(element, dimensions, |_| zero(element))
    }

    /// The array with `value(coordinates)` everywhere.
    pub fn from_fn(element: ElementType, dimensions: &[i64], mut value: impl FnMut(&[i64]) -> Scalar) -> Self {
        let count: i64 = dimensions.iter().map(|&extent| extent.max(0)).product();
        let mut coordinates = vec![0; dimensions.len()];
        let values = (0..count)
            .map(|position| {
                let mut rest = position;
                for (coordinate, &extent) in coordinates.iter_mut().zip(dimensions).rev() {
                    *coordinate = rest % extent;
                    rest /= extent;
                }
                value(&coordinates)
            })
            .collect();
        Self { element, dimensions: dimensions.to_vec(), values }
    }

    /// The array with these elements, unless there are too few or too many.
    pub fn from_elements<T: Element>(dimensions: &[i64], elements: &[T]) -> Option<Self> {
        let mut rest = elements.iter();
        let count = usize::try_from(dimensions.iter().product::<i64>()).ok()?;
        (count == elements.len()).then(|| {
            Self::from_fn(T::TYPE, dimensions, |_| rest.next().map_or(zero(T::TYPE), |element| element.to_scalar()))
        })
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The extent of each dimension.
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// All elements.
    pub fn values(&self) -> &[Scalar] {
        &self.values
    }

    /// The element at `coordinates`, unless they are outside.
    pub fn get(&self, coordinates: &[i64]) -> Option<Scalar> {
        self.position(coordinates).map(|position| self.values[position])
    }

    /// Replaces the element at `coordinates`; outside, nothing happens and the result is `false`.
    pub fn set(&mut self, coordinates: &[i64], value: Scalar) -> bool {
        match self.position(coordinates) {
            Some(position) => {
                self.values[position] = value;
                true
            }
            None => false,
        }
    }

    fn position(&self, coordinates: &[i64]) -> Option<usize> {
        let mut position = 0;
        for (&coordinate, &extent) in coordinates.iter().zip(&self.dimensions) {
            if coordinate < 0 || coordinate >= extent {
                return None;
            }
            position = position * extent as usize + coordinate as usize;
        }
        (coordinates.len() == self.dimensions.len()).then_some(position)
    }
}
