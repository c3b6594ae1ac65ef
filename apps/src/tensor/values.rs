//! The elements of operands.

use std::sync::Arc;

use maniple::{Context, FieldValue};
use maniple_tensor::distributed::{DistributedError, Tensor};
use maniple_tensor::element::{Complex, Element, Scalar};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::rectangle::Rectangle;
use maniple_tensor::with_element;

use super::files::Array;

/// What the elements of a tensor are, wherever they are.
#[derive(Clone, Debug)]
pub enum Values {
    /// Random ones, which follow from this key and the coordinates.
    Random(u64),
    /// Those of a file.
    Given(Array),
}

impl Values {
    /// Random elements for a tensor of this name.
    #[must_use]
    pub fn random(seed: u64, tensor: &TensorVariable) -> Self {
        let name = tensor.name().bytes();
        Self::Random(name.fold(mixed(seed), |key, byte| mixed(key ^ u64::from(byte))))
    }

    /// The element at these coordinates.
    #[must_use]
    pub fn get(&self, tensor: &TensorVariable, coordinates: &[i64]) -> Scalar {
        let position = position(tensor.dimensions(), coordinates);
        match self {
            Self::Random(key) => with_element!(tensor.element(), T => T::random(*key, position).to_scalar()),
            // Coordinates are within the tensor.
            Self::Given(array) => array.get(position as usize).unwrap_or(Scalar::I32(0)),
        }
    }

    /// Gives a tensor these elements, each piece by a task.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn put(&self, cx: &Context, tensor: &Tensor, pieces: &[Rectangle]) -> Result<(), DistributedError> {
        let variable = tensor.variable();
        match self {
            Self::Random(key) => {
                let (key, dimensions) = (*key, variable.dimensions().to_vec());
                with_element!(variable.element(), T => {
                    tensor.generate(cx, pieces, move |point| T::random(key, position(&dimensions, point)))
                })
            }
            Self::Given(array) => with_element!(variable.element(), T => {
                array.elements::<T>().map_or(Ok(()), |elements| tensor.write_elements(cx, Arc::clone(elements)))
            }),
        }
    }
}

/// The number of an element, in the order of coordinates.
#[inline]
fn position(dimensions: &[i64], coordinates: &[i64]) -> u64 {
    dimensions.iter().zip(coordinates).fold(0, |position, (extent, index)| position * *extent as u64 + *index as u64)
}

/// The output function of SplitMix64 (Steele, Lea, Flood, *Fast splittable pseudorandom number generators*, 2014): all bits of the result depend on all bits of
/// the number.
#[inline]
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// An element type that has random values: of integers, from -9 to 9; of others, evenly between -1 and 1.
pub trait Random: Element + FieldValue {
    /// The random value with this number.
    fn random(key: u64, number: u64) -> Self;
}

macro_rules! random {
    ($($type:ty: $bits:ident => $value:expr),* $(,)?) => {
        $(impl Random for $type {
            #[inline]
            fn random(key: u64, number: u64) -> Self {
                let $bits = mixed(key ^ mixed(number));
                $value
            }
        })*
    };
}

/// Between -1 and 1, with 24 bits, so that all types have the same values.
#[inline]
fn fraction(bits: u64) -> f32 {
    ((bits >> 40) as f32).mul_add(2.0 / (1 << 24) as f32, -1.0)
}

random! {
    i32: bits => (bits % 19) as Self - 9,
    i64: bits => (bits % 19) as Self - 9,
    f32: bits => fraction(bits),
    f64: bits => f64::from(fraction(bits)),
    Complex<f32>: bits => Self::new(fraction(bits), fraction(bits << 32)),
    Complex<f64>: bits => Self::new(fraction(bits).into(), fraction(bits << 32).into()),
}
