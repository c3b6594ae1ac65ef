//! Values that a program gives, as nodes compare and show them.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};

use maniple_region::{FieldType, FieldValue};
use rustc_hash::FxHasher;

use super::number::Number;

/// The form in which nodes compare values that a program gives to a region. Values that may have padding are not
/// compared, as a difference of their bytes would say nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compared {
    Number(Number),
    /// Their bytes have this hash.
    Bytes(u64),
}

/// Of more bytes a sample is compared, so that it costs little beside the use of the values.
const MOST_COMPARED: usize = 64 << 10;

/// The parts of a sample: as many bytes as processors read at once.
const PART: usize = 64;

impl Compared {
    /// One value, of a field of this type.
    pub(crate) fn one<T: FieldValue>(value: &T, declared: FieldType) -> Option<Self> {
        let number = Number::of(value as &dyn Any).map(Self::Number);
        number.or_else(|| {
            (declared.is_plain() && declared == FieldType::of::<T>()).then(|| {
                let base = std::ptr::from_ref(value).cast::<u8>();
                // SAFETY: the value has so many bytes, all of them initialised, as its type has no padding.
                Self::of(unsafe { std::slice::from_raw_parts(base, size_of::<T>()) })
            })
        })
    }

    /// Areas, by their hash.
    pub(crate) fn areas(hash: u64) -> Self {
        Self::Number(Number::Integer(hash.into()))
    }

    /// Many values, by their bytes: all of them, or a sample from the first to the last.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut hasher = FxHasher::default();
        bytes.len().hash(&mut hasher);
        if bytes.len() <= MOST_COMPARED {
            hasher.write(bytes);
        } else {
            let (parts, last) = (MOST_COMPARED / PART, bytes.len() - PART);
            for part in 0..parts {
                let at = (last as u128 * part as u128 / (parts as u128 - 1)) as usize;
                hasher.write(&bytes[at..at + PART]);
            }
        }
        Self::Bytes(hasher.finish())
    }
}

impl Hash for Compared {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Self::Number(number) => number.hash(hasher),
            Self::Bytes(hash) => hash.hash(hasher),
        }
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Bytes(hash) => write!(f, "values with hash {hash:016x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_padding_are_compared_by_their_bytes() {
        let plain = FieldType::plain::<[f32; 3]>();
        let shown = |value: [f32; 3], ty| Compared::one(&value, ty).map(|compared| compared.to_string());
        assert_eq!(shown([1.0; 3], plain), shown([1.0; 3], plain));
        assert_ne!(shown([1.0; 3], plain), shown([1.0, 1.0, 2.0], plain));
        assert_eq!(shown([1.0; 3], FieldType::of::<[f32; 3]>()), None, "it may have padding");
        assert_eq!(shown([1.0; 3], FieldType::plain::<[u32; 3]>()), None, "another type");
        assert_eq!(Compared::one(&7_i64, FieldType::of::<i64>()).unwrap().to_string(), "7");
    }

    #[test]
    fn of_many_bytes_the_first_and_the_last_are_in_the_sample() {
        let hash = |bytes: &[u8]| Compared::of(bytes).to_string();
        for length in [1, MOST_COMPARED, MOST_COMPARED + 1, 10 * MOST_COMPARED + 7] {
            let same = hash(&vec![0; length]);
            for at in [0, length - 1] {
                let mut other = vec![0; length];
                other[at] = 1;
                assert_ne!(hash(&other), same, "{at} of {length}");
            }
        }
        assert_ne!(hash(&[0; 3]), hash(&[0; 4]));
    }
}
