//! Random elements, which follow from a key and a number.

use maniple::FieldValue;
use maniple_tensor::element::{Complex, Element};

/// The output function of SplitMix64 (Steele, Lea, Flood, *Fast splittable pseudorandom number generators*, 2014): all
/// bits of the result depend on all bits of the number.
#[inline]
pub(super) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// An element type that has random values: of integers, from -9 to 9, or from 0 to 9 of those without sign; of others,
/// evenly between -1 and 1.
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
    bool: bits => bits % 2 == 1,
    u8: bits => (bits % 10) as Self,
    i8: bits => (bits % 19) as Self - 9,
    u16: bits => (bits % 10) as Self,
    i16: bits => (bits % 19) as Self - 9,
    u32: bits => (bits % 10) as Self,
    i32: bits => (bits % 19) as Self - 9,
    u64: bits => (bits % 10) as Self,
    i64: bits => (bits % 19) as Self - 9,
    f32: bits => fraction(bits),
    f64: bits => f64::from(fraction(bits)),
    Complex<f32>: bits => Self::new(fraction(bits), fraction(bits << 32)),
    Complex<f64>: bits => Self::new(fraction(bits).into(), fraction(bits << 32).into()),
}
