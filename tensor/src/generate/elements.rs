//! Random elements of dense tensors, which follow from a seed, the tensor's name and the coordinates.

use super::random::Random;
use crate::element::{Complex, Element, Scalar};
use crate::notation::TensorVariable;
use crate::storage::{DynamicTensor, SparseTensor, StorageError};
use crate::with_element;

/// An element type that has random values: of integers, from -9 to 9, or from 0 to 9 of those without sign; of others,
/// evenly between -1 and 1.
pub trait RandomElement: Element {
    /// The random value with this number.
    fn random(key: u64, number: u64) -> Self;
}

macro_rules! random {
    ($($type:ty: $bits:ident => $value:expr),* $(,)?) => {
        $(impl RandomElement for $type {
            #[inline]
            fn random(key: u64, number: u64) -> Self {
                let $bits = mixed(key ^ mixed(number));
                $value
            }
        })*
    };
}

/// A number all of whose bits depend on all bits of another one.
#[inline]
fn mixed(number: u64) -> u64 {
    Random::of(number, &[]).next()
}

/// Between -1 and 1, with 24 bits, so that all types have the same values.
#[inline]
fn fraction(bits: u64) -> f32 {
    ((bits >> 40) as f32).mul_add(2.0 / (1 << 24) as f32, -1.0)
}

random! {
    bool: bits => bits % 2 == 1,
    u8: bits => (bits % 10) as Self,
    i8: bits => (bits % 19) as Self - 9,
    i16: bits => (bits % 19) as Self - 9,
    u32: bits => (bits % 10) as Self,
    i32: bits => (bits % 19) as Self - 9,
    i64: bits => (bits % 19) as Self - 9,
    f32: bits => fraction(bits),
    f64: bits => f64::from(fraction(bits)),
    Complex<f32>: bits => Self::new(fraction(bits), fraction(bits << 32)),
    Complex<f64>: bits => Self::new(fraction(bits).into(), fraction(bits << 32).into()),
}

/// The random elements of a tensor, the same wherever they are made.
#[derive(Clone, Copy, Debug)]
pub struct RandomElements {
    key: u64,
}

impl RandomElements {
    /// The random elements of a tensor of this name: those of other names have other ones.
    #[must_use]
    pub fn new(seed: u64, tensor: &TensorVariable) -> Self {
        Self { key: tensor.name().bytes().fold(mixed(seed), |key, byte| mixed(key ^ u64::from(byte))) }
    }

    /// A number that follows from the seed and the tensor's name.
    #[must_use]
    pub fn key(self) -> u64 {
        self.key
    }

    /// The element at these coordinates.
    #[must_use]
    pub fn get(self, tensor: &TensorVariable, coordinates: &[i64]) -> Scalar {
        with_element!(tensor.element(), T => self.at::<T>(tensor.dimensions(), coordinates).to_scalar())
    }

    /// The element at these coordinates of a tensor of these extents.
    #[inline]
    pub(crate) fn at<T: RandomElement>(self, dimensions: &[i64], coordinates: &[i64]) -> T {
        let numbered = dimensions.iter().zip(coordinates);
        T::random(self.key, numbered.fold(0, |number, (extent, index)| number * *extent as u64 + *index as u64))
    }

    /// The tensor in memory.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn tensor(self, tensor: &TensorVariable) -> Result<DynamicTensor, StorageError> {
        let count = tensor.dimensions().iter().product::<i64>() as u64;
        let made: DynamicTensor = with_element!(tensor.element(), T => {
            let elements = (0..count).map(|number| T::random(self.key, number)).collect();
            let fill = T::from_scalar(tensor.fill()).expect("fill values have the type of their tensors");
            SparseTensor::from_elements(tensor.dimensions(), fill, elements)?.into()
        });
        made.convert(tensor.format())
    }
}
