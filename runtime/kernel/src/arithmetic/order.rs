//! The lesser and the greater of two numbers, in which the order of the two does not matter.

/// Numbers of which the lesser and the greater are known.
pub trait Ordered: Copy {
    /// The lesser; of floats, IEEE 754-2019 `minimum`: NaN if either is, and -0 is less than +0.
    fn lesser(self, other: Self) -> Self;

    /// The greater; of floats, IEEE 754-2019 `maximum`: NaN if either is, and +0 is greater than -0.
    fn greater(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Ordered for $type {
            fn lesser(self, other: Self) -> Self {
                self.min(other)
            }

            fn greater(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl Ordered for $type {
            fn lesser(self, other: Self) -> Self {
                if self.is_nan() || other.is_nan() {
                    Self::NAN
                } else if self < other || self == other && self.is_sign_negative() {
                    self
                } else {
                    other
                }
            }

            fn greater(self, other: Self) -> Self {
                -(-self).lesser(-other)
            }
        }
    )*};
}

integers!(bool, u8, i8, u16, i16, u32, i32, u64, i64);
floats!(f32, f64);
