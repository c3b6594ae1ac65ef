//! Values that nodes can compare and show.

use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A number that a program gave. Other values may have padding between their parts, which says nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    /// The number of a value, if it is a number or a truth value.
    pub(crate) fn of(value: &dyn Any) -> Option<Self> {
        macro_rules! integers {
            ($($type:ty)*) => {
                $(if let Some(&value) = value.downcast_ref::<$type>() {
                    return Some(Self::Integer(value.into()));
                })*
            };
        }
        integers!(bool u8 u16 u32 u64 i8 i16 i32 i64 i128);
        if let Some(&value) = value.downcast_ref::<usize>() {
            return i128::try_from(value).ok().map(Self::Integer);
        }
        if let Some(&value) = value.downcast_ref::<isize>() {
            return i128::try_from(value).ok().map(Self::Integer);
        }
        let single = value.downcast_ref::<f32>().map(|&value| value.into());
        single.or_else(|| value.downcast_ref::<f64>().copied()).map(Self::Float)
    }
}

impl Hash for Number {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Self::Integer(value) => value.hash(hasher),
            // Equal bits are what all nodes must have: 0.0 and -0.0 differ.
            Self::Float(value) => value.to_bits().hash(hasher),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => fmt::Debug::fmt(value, f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &dyn Any) -> Option<String> {
        Number::of(value).map(|number| number.to_string())
    }

    #[test]
    fn numbers_are_known_and_nothing_else() {
        assert_eq!(shown(&-3_i32).as_deref(), Some("-3"));
        assert_eq!(shown(&usize::MAX), Some(usize::MAX.to_string()));
        assert_eq!(shown(&0.5_f32).as_deref(), Some("0.5"));
        assert_eq!(shown(&-0.0_f64).as_deref(), Some("-0.0"));
        assert_eq!(shown(&(1_u8, 2_u16)), None);
    }
}
