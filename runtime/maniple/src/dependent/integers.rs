//! Integers of types that are known at run time.

use maniple_region::{FieldId, FieldType, FieldValue};
use maniple_space::Rect;

use super::values::Values;

/// An integer, as one of 64 bits.
trait Integer: FieldValue {
    /// The number; one of 2^63 or more wraps.
    fn number(self) -> i64;

    /// Whether numbers may have wrapped.
    const WRAPS: bool;
}

macro_rules! integers {
    ($($ty:ty),*) => {
        $(impl Integer for $ty {
            fn number(self) -> i64 {
                self as i64
            }

            const WRAPS: bool = <$ty>::MAX as u64 > i64::MAX as u64;
        })*

        /// The values of a field of integers, wrapped if they are [unsigned](Values::are_unsigned). None if it holds anything else.
        pub(super) fn integers<const S: usize>(field: FieldId, ty: FieldType) -> Option<Values<i64, S>> {
            $(if ty == FieldType::of::<$ty>() {
                return Some(Values::of(field, <$ty>::number).with_unsigned(<$ty>::WRAPS));
            })*
            None
        }

        /// The values of a field of pairs of integers, and whether they may have wrapped. None if it holds anything
        /// else.
        fn pairs_of_integers<const S: usize>(field: FieldId, ty: FieldType) -> Option<(Values<[i64; 2], S>, bool)> {
            $(if ty == FieldType::of::<[$ty; 2]>() {
                return Some((Values::of(field, |pair: [$ty; 2]| pair.map(<$ty>::number)), <$ty>::WRAPS));
            })*
            None
        }
    };
}

integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

/// The ranges of a field of pairs of integers. None if it holds anything else.
pub(super) fn pairs<const S: usize, const T: usize>(field: FieldId, ty: FieldType) -> Option<Values<Rect<T>, S>> {
    let (pairs, wraps) = pairs_of_integers(field, ty)?;
    Some(pairs.map(move |pair| {
        let [lo, end] = pair.map(|number| wide(number, wraps));
        range(lo, end)
    }))
}

/// A number that may have wrapped.
pub(super) fn wide(number: i64, is_unsigned: bool) -> i128 {
    if is_unsigned { (number as u64).into() } else { number.into() }
}

/// Numbers from one up to another, as far as they are numbers of rows: of a space of one dimension, whatever `T` is.
pub(super) fn range<const T: usize>(lo: i128, end: i128) -> Rect<T> {
    let (first, last) = (lo.max(i64::MIN.into()), end.saturating_sub(1).min(i64::MAX.into()));
    if first > last { Rect::EMPTY } else { Rect::new([first as i64; T], [last as i64; T]) }
}
