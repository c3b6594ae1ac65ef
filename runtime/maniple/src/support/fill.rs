//! Values that fill a region without being stored.

use std::any::{Any, TypeId};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use maniple_realm::transfer;
use maniple_record::{OperationNumber, Value};
use maniple_region::FieldValue;

/// The value of every point of a field, stored nowhere: instances get it when an operation uses it.
#[derive(Clone, Debug)]
pub(crate) enum FillValue {
    /// All bytes zero: the value of every field that was never written. Then it is not on record.
    Zero(Option<OperationNumber>),
    /// This value.
    Value(Arc<GivenValue>, Option<OperationNumber>),
}

/// A value that a program has given.
#[derive(Debug)]
pub(crate) struct GivenValue {
    bytes: transfer::FillValue,
    bits: Option<Bits>,
}

/// The bits of a number, with its type. Of other types, bytes may be padding, which must not be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Bits {
    ty: TypeId,
    bits: u128,
}

impl Bits {
    fn of(value: &dyn Any) -> Option<Self> {
        macro_rules! numbers {
            ($($type:ty => $bits:expr;)*) => {
                $(if let Some(value) = value.downcast_ref::<$type>() {
                    let bits: fn(&$type) -> u128 = $bits;
                    return Some(Self { ty: TypeId::of::<$type>(), bits: bits(value) });
                })*
            };
        }
        numbers! {
            f64 => |value| value.to_bits().into();
            f32 => |value| value.to_bits().into();
            i64 => |value| *value as u128;
            u64 => |value| (*value).into();
            i32 => |value| *value as u128;
            u32 => |value| (*value).into();
            i16 => |value| *value as u128;
            u16 => |value| (*value).into();
            i8 => |value| *value as u128;
            u8 => |value| (*value).into();
            isize => |value| *value as u128;
            usize => |value| *value as u128;
            i128 => |value| *value as u128;
            u128 => |value| *value;
            bool => |value| (*value).into();
            char => |value| u32::from(*value).into();
        }
        None
    }
}

impl Default for FillValue {
    fn default() -> Self {
        Self::Zero(None)
    }
}

impl FillValue {
    /// A value of the program's.
    pub(crate) fn of<T: FieldValue>(value: T) -> Self {
        match Bits::of(&value) {
            Some(Bits { bits: 0, .. }) => Self::default(),
            bits => Self::Value(Arc::new(GivenValue { bytes: transfer::FillValue::of(value), bits }), None),
        }
    }

    /// The bytes to write, to a field of so many bytes.
    pub(crate) fn bytes(&self, size: usize) -> transfer::FillValue {
        match self {
            Self::Zero(_) => transfer::FillValue::from_bytes(&vec![0; size]),
            Self::Value(value, _) => value.bytes.clone(),
        }
    }

    /// Whether it can be told to be the same as another of the same value: if it is zero, or a number.
    pub(crate) fn is_comparable(&self) -> bool {
        match self {
            Self::Zero(_) => true,
            Self::Value(value, _) => value.bits.is_some(),
        }
    }

    /// Whether two values are known to be the same, bit by bit. Which operations gave them makes no difference.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Zero(_), Self::Zero(_)) => true,
            (Self::Value(mine, _), Self::Value(theirs, _)) => {
                Arc::ptr_eq(mine, theirs) || mine.bits.is_some() && mine.bits == theirs.bits
            }
            _ => false,
        }
    }

    /// The same value, whose giving has this number in the record.
    pub(crate) fn recorded_as(&self, number: Option<OperationNumber>) -> Self {
        match self {
            Self::Zero(_) => Self::Zero(number),
            Self::Value(value, _) => Self::Value(value.clone(), number),
        }
    }

    /// Which value it is, for the record.
    pub(crate) fn recorded(&self) -> Value {
        let (Self::Zero(number) | Self::Value(_, number)) = self;
        number.map_or(Value::Initial, Value::Of)
    }
}

/// Values that are [the same](FillValue::is_same) have the same hash.
impl Hash for FillValue {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Self::Zero(_) => {}
            Self::Value(value, _) => value.bits.hash(hasher),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_bit_by_bit_and_other_values_are_never() {
        let same = |one: FillValue, other: FillValue| one.is_same(&other);
        assert!(
            same(FillValue::of(1.5_f64), FillValue::of(1.5_f64)) && same(FillValue::of(-3_i8), FillValue::of(-3_i8))
        );
        assert!(same(FillValue::of(f32::NAN), FillValue::of(f32::NAN)));
        assert!(!same(FillValue::of(1_i64), FillValue::of(2_i64)) && !same(FillValue::of(1_i64), FillValue::of(1_u64)));
        assert!(!same(FillValue::of(-0.0_f64), FillValue::of(0.0_f64)), "their bits differ");
        assert!(same(FillValue::of(0.0_f64), FillValue::Zero(None)), "all its bytes are zero");
        let pair = FillValue::of([1_u8, 2]);
        assert!(!pair.is_comparable() && !pair.is_same(&FillValue::of([1_u8, 2])) && pair.is_same(&pair.clone()));
    }
}
