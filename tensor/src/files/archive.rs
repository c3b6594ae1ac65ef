//! Sparse tensors as the arrays of a `.npz` file.

use std::io;

use maniple_files::npz::{ArrayValues, Sparse, Structure};

use super::contents::{Contents, StoredElement};
use crate::element::{Element, Scalar};
use crate::format::{Format, LevelExpression};
use crate::storage::{DynamicTensor, EntryList};
use crate::with_element;

/// The contents of a file.
pub(super) fn contents(sparse: &Sparse) -> Contents {
    let dimensions = sparse.shape().iter().map(|&extent| extent as i64).collect();
    let fill = scalar(sparse.fill(), 0);
    let element = sparse.values().number().unwrap_or(fill.element_type());
    let (coordinates, places) = sparse.entries();
    let entries = with_element!(element, T => {
        EntryList::<T>::of(coordinates, elements(sparse.values(), &places)).into()
    });
    Contents { dimensions, fill, entries }
}

fn elements<T: Element>(values: &ArrayValues, places: &[usize]) -> Vec<T> {
    places.iter().map(|&place| T::from_scalar(scalar(values, place)).unwrap_or(T::zeroed())).collect()
}

/// An element of a file.
fn scalar(values: &ArrayValues, place: usize) -> Scalar {
    match values {
        ArrayValues::Bool(values) => Scalar::Bool(values[place]),
        ArrayValues::U8(values) => Scalar::U8(values[place]),
        ArrayValues::I8(values) => Scalar::I8(values[place]),
        ArrayValues::U16(values) => Scalar::U16(values[place]),
        ArrayValues::I16(values) => Scalar::I16(values[place]),
        ArrayValues::U32(values) => Scalar::U32(values[place]),
        ArrayValues::I32(values) => Scalar::I32(values[place]),
        ArrayValues::U64(values) => Scalar::U64(values[place]),
        ArrayValues::I64(values) => Scalar::I64(values[place]),
        ArrayValues::F32(values) => Scalar::F32(values[place]),
        ArrayValues::F64(values) => Scalar::F64(values[place]),
        ArrayValues::C32(values) => Scalar::C32(values[place]),
        ArrayValues::C64(values) => Scalar::C64(values[place]),
        ArrayValues::Text(_) => Scalar::I32(0),
    }
}

/// A tensor as SciPy stores it: as it is if it has compressed rows or columns, or blocks; otherwise by coordinates.
pub(super) fn archive(tensor: &DynamicTensor, shape: Vec<u64>) -> io::Result<Sparse> {
    let named = |name: &str| name.parse::<Format>().is_ok_and(|format| *tensor.format() == format);
    let numbers = |level: usize, name: &str| {
        let array = tensor.levels()[level].component(name);
        let mut numbers = vec![0; array.len()];
        array.read(0, &mut numbers);
        numbers
    };
    let fill = with_element!(tensor.element(), T => T::from_scalar(tensor.fill()).map(|fill| T::values(vec![fill])));
    let (starts, columns) = (|| numbers(1, "pos"), || numbers(1, "crd"));
    let structure = match blocks(tensor.format()) {
        _ if named("csr") => Structure::Compressed { rows: vec![0], starts: starts(), columns: columns() },
        _ if named("csc") => Structure::Compressed { rows: vec![1], starts: starts(), columns: columns() },
        // SciPy has no block that reaches beyond the matrix.
        Some(size) if shape.iter().zip(size).all(|(extent, size)| extent % size == 0) => {
            Structure::Blocks { size, starts: starts(), columns: columns() }
        }
        _ => {
            let (coordinates, elements) = with_element!(tensor.element(), T => {
                let entries = tensor.entries().downcast::<T>();
                let (coordinates, elements) = entries.map(EntryList::into_parts).unwrap_or_default();
                (coordinates, T::values(elements))
            });
            let sparse = Sparse::new(shape, Structure::Coordinates(coordinates), elements, fill);
            return sparse.map_err(io::Error::other);
        }
    };
    let elements = with_element!(tensor.element(), T => T::values(tensor.values::<T>().unwrap_or_default().to_vec()));
    Sparse::new(shape, structure, elements, fill).map_err(io::Error::other)
}

/// The extents of the blocks of a format that has nothing but them.
fn blocks(format: &Format) -> Option<[u64; 2]> {
    use LevelExpression::Within;
    let [_, _, Within(0, rows), Within(1, columns)] = format.expressions() else { return None };
    let named: Format = format!("bcsr:{rows}x{columns}").parse().ok()?;
    (named == *format).then_some([*rows as u64, *columns as u64])
}
