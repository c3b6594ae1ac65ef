//! Tensors in one format to another.

use std::any::Any;

use super::direct::directly;
use super::entries::EntryList;
use super::error::StorageError;
use super::pack::Packer;
use super::rows::Rows;
use super::sort::Duplicates;
use super::tensor::SparseTensor;
use super::transpose::transposed;
use super::value::{distance, is_fill};
use crate::element::{Element, ElementType};
use crate::format::Format;
use crate::kernel::Team;
use crate::parallel::threads;
use crate::with_element;

/// Converts a tensor whose elements have this type to one whose elements have it too.
fn convert_any(
    element: ElementType,
    tensor: &dyn Any,
    format: &Format,
    team: &dyn Team,
) -> Result<Box<dyn Any>, StorageError> {
    with_element!(element, T => {
        let tensor = tensor.downcast_ref::<SparseTensor<T>>().expect("a tensor has elements of its type");
        Ok(Box::new(tensor.converted(format, team)?))
    })
}

impl<T: Element> SparseTensor<T> {
    /// The same tensor in another format. Coordinates that are there several times are added up.
    ///
    /// From compressed rows to compressed columns, or the reverse, by counting, with no more memory besides the result
    /// than that has; from compressed rows to blocks, diagonals and as many entries for each row, straight to their
    /// places; otherwise by way of [`entries`](Self::entries), which are sorted unless they have the order of the
    /// format. Large tensors are converted by all processors, as by [`convert_by`](Self::convert_by).
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn convert(&self, format: &Format) -> Result<Self, StorageError> {
        self.convert_by(format, &threads(self.values().len()))
    }

    /// [`convert`](Self::convert) by the threads of `team`. The result is the same for any team.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn convert_by(&self, format: &Format, team: &dyn Team) -> Result<Self, StorageError> {
        if format == self.format() {
            return Ok(self.clone());
        }
        // By way of what is compiled here, and not in each crate that converts.
        let converted = convert_any(T::TYPE, self, format, team)?;
        Ok(*converted.downcast().expect("a tensor is converted to one of the same type"))
    }

    fn converted(&self, format: &Format, team: &dyn Team) -> Result<Self, StorageError> {
        if let Some(converted) = transposed(self, format, team).or_else(|| directly(self, format, team)) {
            return converted;
        }
        let entries = Rows::of(self).map_or_else(|| self.entries_by(team), |rows| rows.entries(team))?;
        Ok(Packer::new(team, format, self.dimensions()).pack(self.fill(), entries, Duplicates::Sum)?.0)
    }

    /// The same tensor without entries that differ from the fill value by `tolerance` or less.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn drop(&self, tolerance: f64) -> Result<Self, StorageError> {
        let mut entries = EntryList::new(self.dimensions().len());
        self.for_each(|coordinates, value| {
            // A NaN is not close to anything.
            if !(is_fill(value, self.fill()) || distance(value, self.fill()) <= tolerance) {
                entries.push(coordinates, value);
            }
        });
        let team = threads(entries.len());
        Ok(Packer::new(&team, self.format(), self.dimensions()).pack(self.fill(), entries, Duplicates::Sum)?.0)
    }
}
