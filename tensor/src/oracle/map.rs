//! Tensors as maps from coordinates to elements.

use std::collections::BTreeMap;

use crate::element::{Element, ElementType, Scalar};
use crate::notation::{DenseArray, is_fill};
use crate::storage::{DynamicTensor, SparseTensor};

/// A tensor as a map: each coordinate that is not in it has the fill value.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseMap {
    dimensions: Vec<i64>,
    fill: Scalar,
    entries: BTreeMap<Vec<i64>, Scalar>,
}

impl SparseMap {
    /// A tensor that has the fill value everywhere.
    pub fn new(dimensions: &[i64], fill: Scalar) -> Self {
        Self { dimensions: dimensions.to_vec(), fill, entries: BTreeMap::new() }
    }

    /// The elements of a dense array that differ from `fill`.
    pub fn of_array(array: &DenseArray, fill: Scalar) -> Self {
        let mut map = Self::new(array.dimensions(), fill);
        DenseArray::from_fn(array.element(), array.dimensions(), |coordinates| {
            let value = array.get(coordinates).unwrap_or(fill);
            if !is_fill(value, fill) {
                map.entries.insert(coordinates.to_vec(), value);
            }
            value
        });
        map
    }

    /// The entries of a tensor in any format.
    pub fn of_tensor<T: Element>(tensor: &SparseTensor<T>) -> Self {
        let mut map = Self::new(tensor.dimensions(), tensor.fill().to_scalar());
        tensor.for_each(|coordinates, value| _ = map.entries.insert(coordinates.to_vec(), value.to_scalar()));
        map
    }

    /// The entries of a tensor whose element type is known at run time only, in any format.
    pub fn of_dynamic(tensor: &DynamicTensor) -> Self {
        let mut map = Self::new(tensor.dimensions(), tensor.fill());
        tensor.for_each(&mut |coordinates, value| _ = map.entries.insert(coordinates.to_vec(), value));
        map
    }

    /// All elements as a dense array.
    pub fn to_array(&self) -> DenseArray {
        DenseArray::from_fn(self.element(), &self.dimensions, |coordinates| self.get(coordinates))
    }

    /// Sets an element. Of another type than the fill value, or outside of the tensor, it is left out, and the result
    /// is `false`.
    pub fn set(&mut self, coordinates: &[i64], value: Scalar) -> bool {
        let is_inside = coordinates.len() == self.dimensions.len()
            && coordinates.iter().zip(&self.dimensions).all(|(coordinate, extent)| (0..*extent).contains(coordinate));
        let fits = is_inside && value.element_type() == self.element();
        if fits {
            self.entries.insert(coordinates.to_vec(), value);
        }
        fits
    }

    /// The type of the elements.
    pub fn element(&self) -> ElementType {
        self.fill.element_type()
    }

    /// The extent of each dimension.
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// The value of what is not in the map.
    pub fn fill(&self) -> Scalar {
        self.fill
    }

    /// The entries of the map, by ascending coordinates.
    pub fn entries(&self) -> &BTreeMap<Vec<i64>, Scalar> {
        &self.entries
    }

    /// The element at `coordinates`.
    pub fn get(&self, coordinates: &[i64]) -> Scalar {
        self.entries.get(coordinates).copied().unwrap_or(self.fill)
    }

    /// Coordinates at which `is_equal` says of the elements of both tensors that they differ; none if both are the same
    /// tensor. Fill values are compared unless one of the maps has all coordinates. The extents must be the same.
    pub fn difference(&self, other: &Self, is_equal: impl Fn(Scalar, Scalar) -> bool) -> Option<Vec<i64>> {
        let both = self.entries.keys().chain(other.entries.keys());
        let differs = |at: &&Vec<i64>| !is_equal(self.get(at), other.get(at));
        both.clone().find(differs).cloned().or_else(|| {
            let has_others = !self.is_complete() && !other.is_complete() && !is_equal(self.fill, other.fill);
            // The first coordinates that neither has; there are some, as far as both together are not complete.
            let has = |at: &Vec<i64>| self.entries.contains_key(at) || other.entries.contains_key(at);
            has_others.then(|| Points::of(&self.dimensions).find(|at| !has(at))).flatten()
        })
    }

    /// Whether the map has all coordinates.
    pub(super) fn is_complete(&self) -> bool {
        volume(&self.dimensions) == Some(self.entries.len() as u64)
    }
}

/// The number of points, if it can be counted.
pub(super) fn volume(extents: &[i64]) -> Option<u64> {
    if extents.iter().any(|extent| *extent <= 0) {
        return Some(0);
    }
    extents.iter().try_fold(1_u64, |volume, &extent| volume.checked_mul(extent as u64))
}

/// All points of some extents, in ascending order.
pub(super) struct Points<'a> {
    extents: &'a [i64],
    next: Option<Vec<i64>>,
}

impl<'a> Points<'a> {
    pub(super) fn of(extents: &'a [i64]) -> Self {
        let next = (volume(extents) != Some(0)).then(|| vec![0; extents.len()]);
        Self { extents, next }
    }
}

impl Iterator for Points<'_> {
    type Item = Vec<i64>;

    fn next(&mut self) -> Option<Vec<i64>> {
        let point = self.next.take()?;
        let mut after = point.clone();
        for (coordinate, extent) in after.iter_mut().zip(self.extents).rev() {
            *coordinate += 1;
            if *coordinate < *extent {
                self.next = Some(after);
                break;
            }
            *coordinate = 0;
        }
        Some(point)
    }
}
