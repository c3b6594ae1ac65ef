//! The headers of `.npy` files that are attached: checked against the field and region, or made for them.

use std::any::TypeId;
use std::path::Path;

use maniple_files::npy::Description;
use maniple_files::{Order, ReadError};
use maniple_region::Complex;
use maniple_space::AnyRect;

use super::array::{Array, extent};
use super::values::FieldValues;
use crate::support::error::{FileError, Result};

/// The type of elements in NumPy's terms, without the order of bytes, and the bytes of each number that they consist
/// of.
pub(super) struct Element {
    name: &'static str,
    part: usize,
}

impl Element {
    /// The type of the values of a field.
    pub(super) fn of(values: &FieldValues<'_>, path: &Path) -> Result<Self> {
        macro_rules! names {
            ($($ty:ty => $name:literal, $part:literal;)*) => {
                [$((TypeId::of::<$ty>(), $name, $part)),*]
            };
        }
        let known = names! {
            u8 => "u1", 1; i8 => "i1", 1; u16 => "u2", 2; i16 => "i2", 2; u32 => "u4", 4; i32 => "i4", 4;
            u64 => "u8", 8; i64 => "i8", 8; f32 => "f4", 4; f64 => "f8", 8;
            Complex<f32> => "c8", 4; Complex<f64> => "c16", 8;
        };
        let found = known.into_iter().find(|(id, ..)| *id == values.ty.type_id);
        let found = found.map(|(_, name, part)| Self { name, part });
        found.ok_or_else(|| {
            let (field, region) = values.names();
            FileError::NotNumbers { path: path.to_owned(), field, region, ty: values.ty.name }.into()
        })
    }

    /// As a header of this machine's has it.
    fn descr(&self) -> String {
        let order = match (self.part, cfg!(target_endian = "big")) {
            (1, _) => '|',
            (_, true) => '>',
            (_, false) => '<',
        };
        format!("{order}{}", self.name)
    }

    /// The header of an array of such elements, and where they are behind it.
    pub(super) fn header(
        &self,
        values: &FieldValues<'_>,
        path: &Path,
        offset: u64,
        bounds: AnyRect,
        by_columns: bool,
    ) -> Result<(Vec<u8>, Array)> {
        let shape: Vec<u64> = (0..bounds.dim()).map(|dimension| extent(&bounds, dimension)).collect();
        let order = if by_columns { Order::Columns } else { Order::Rows };
        let header = maniple_files::npy::header_of(&self.descr(), order, &shape);
        let header = header.map_err(|error| unreadable(path, &ReadError::Io(error)))?;
        let start = offset.saturating_add(header.len() as u64);
        Ok((header, Array { start, bounds, by_columns, size: values.ty.size, swapped: 1 }))
    }

    /// Checks that a file with such a header has the elements of a field at the points of a rectangle, in an order that
    /// was asked for or any. Gives the place of the elements.
    pub(super) fn check(
        &self,
        values: &FieldValues<'_>,
        path: &Path,
        found: &Description,
        offset: u64,
        bounds: AnyRect,
        by_columns: Option<bool>,
    ) -> Result<Array> {
        let differs = |what, expected: String, found: String, advice| -> Result<Array> {
            let (field, region) = values.names();
            Err(FileError::Differs { path: path.to_owned(), what, expected, found, field, region, advice }.into())
        };
        if found.type_name != self.name || (found.byte_order == '|' && self.part > 1) {
            let expected = format!("'{}', as {} is written", self.descr(), values.ty.name);
            let advice = "use a field of the file's type, or convert the file with NumPy's astype";
            return differs("elements of type", expected, found.descr.clone(), advice);
        }
        let shape: Vec<u64> = (0..bounds.dim()).map(|dimension| extent(&bounds, dimension)).collect();
        // A rectangle without points does not know in which dimension it has none.
        let is_empty = bounds.is_empty() && found.shape.len() == shape.len() && found.shape.contains(&0);
        if found.shape != shape && !is_empty {
            let advice = "make the region as large as the array; a part of an array is attached with `File::within`";
            return differs("the shape", tuple(&shape), tuple(&found.shape), advice);
        }
        let in_columns = found.order == Order::Columns;
        // Both orders of an array with one dimension are the same.
        if by_columns.is_some_and(|asked| asked != in_columns) && shape.len() > 1 {
            let name = |by_columns| if by_columns { "by columns" } else { "by rows" }.to_owned();
            let advice = "do not ask for an order, or convert the file";
            return differs("its elements", name(!in_columns), name(in_columns), advice);
        }
        let swapped = if found.is_big_endian() == cfg!(target_endian = "big") { 1 } else { self.part };
        let start = offset.saturating_add(found.start);
        Ok(Array { start, bounds, by_columns: in_columns, size: values.ty.size, swapped })
    }
}

/// A file whose header cannot be read.
pub(super) fn unreadable(path: &Path, error: &ReadError) -> crate::support::error::Error {
    FileError::Npy { path: path.to_owned(), problem: error.to_string() }.into()
}

/// A shape as Python writes it.
fn tuple(shape: &[u64]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}
