//! NumPy's file format, by the crate `npyz`.

use std::io::{self, Read, Write};
use std::path::Path;

use maniple_tensor::element::ElementType;
use maniple_tensor::with_element;
use npyz::{DType, NpyFile, Order, TypeChar, WriterBuilder};

use super::{Array, Stored, header};
use crate::market::MatrixError;

/// Reads a file of so many bytes.
pub(super) fn read(path: &Path, mut file: impl Read, size: u64) -> Result<Array, MatrixError> {
    let unsuitable = |reason: String| MatrixError::Unsuitable { name: path.display().to_string(), reason };
    let damaged = |source: io::Error| unsuitable(format!("this is no whole .npy file: {}", first_line(&source)));
    let header = header::read(&mut file).map_err(damaged)?.map_err(&unsuitable)?;
    let file = NpyFile::new((&header[..]).chain(file)).map_err(damaged)?;
    let element = element(&file.dtype()).ok_or_else(|| {
        let (found, known) = (file.dtype().descr(), "float32, float64, int32, int64, complex64 and complex128");
        unsuitable(format!("its elements are {found}; tensors have {known}: convert it with NumPy's astype"))
    })?;
    let shape = file.shape();
    // Memory is taken for what is there, not for what is promised.
    let bytes = shape.iter().try_fold(element.size() as u64, |product, &extent| product.checked_mul(extent));
    if bytes.is_none_or(|bytes| bytes > size) {
        let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
        return Err(unsuitable(format!(
            "it says that it has {} elements, but has only {size} bytes",
            if extents.is_empty() { "1".to_owned() } else { extents.join(" x ") }
        )));
    }
    let dimensions: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
    let by_columns = file.order() == Order::Fortran && dimensions.len() > 1;
    with_element!(element, T => {
        let elements: Vec<T> = file.into_vec().map_err(damaged)?;
        let elements = if by_columns { by_rows(&dimensions, &elements) } else { elements };
        Ok(Array::new(dimensions, elements))
    })
}

/// What a reader says, without what follows: a parser shows its grammar there.
fn first_line(error: &io::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn element(found: &DType) -> Option<ElementType> {
    let DType::Plain(found) = found else { return None };
    Some(match (found.type_char(), found.size_field()) {
        (TypeChar::Float, 4) => ElementType::F32,
        (TypeChar::Float, 8) => ElementType::F64,
        (TypeChar::Int, 4) => ElementType::I32,
        (TypeChar::Int, 8) => ElementType::I64,
        (TypeChar::Complex, 8) => ElementType::C32,
        (TypeChar::Complex, 16) => ElementType::C64,
        _ => return None,
    })
}

/// Puts elements whose first dimension runs fastest in the order in which the last one does.
fn by_rows<T: Copy>(dimensions: &[i64], elements: &[T]) -> Vec<T> {
    let mut strides = vec![1; dimensions.len()];
    for dimension in 1..dimensions.len() {
        strides[dimension] = strides[dimension - 1] * dimensions[dimension - 1] as usize;
    }
    let place = |mut rest: usize| {
        let mut place = 0;
        for (extent, stride) in dimensions.iter().zip(&strides).rev() {
            place += rest % *extent as usize * stride;
            rest /= *extent as usize;
        }
        elements[place]
    };
    (0..elements.len()).map(place).collect()
}

/// Writes a tensor, the last dimension fastest.
pub(super) fn write(array: &Array, into: &mut impl Write) -> io::Result<()> {
    fn typed<T: Stored>(array: &Array, into: &mut impl Write) -> io::Result<()> {
        let shape: Vec<u64> = array.dimensions().iter().map(|&extent| extent as u64).collect();
        let mut writer = npyz::WriteOptions::<T>::new().default_dtype().shape(&shape).writer(into).begin_nd()?;
        if let Some(elements) = array.elements::<T>() {
            writer.extend(elements.iter().copied())?;
        }
        writer.finish()
    }
    with_element!(array.element(), T => typed::<T>(array, into))
}
