//! The least and the greatest of values, with the place where each is.

use std::cmp::Ordering;

use bytemuck::Zeroable;
use maniple_space::Point;
use serde::{Deserialize, Serialize};

use super::{ReductionOperator, register_reduction};
use crate::{FieldValue, Ptr};

/// A value, and where it is: what [`ArgMin`] and [`ArgMax`] choose among.
///
/// ```
/// use maniple_region::ReductionOperator;
/// use maniple_region::operators::{ArgMin, Located};
///
/// let mut least = <ArgMin as ReductionOperator<Located<f64>>>::identity();
/// for (at, value) in [3.0, 1.0, f64::NAN, 1.0].into_iter().enumerate() {
///     <ArgMin as ReductionOperator<Located<f64>>>::fold(&mut least, Located { value, at: at as i64 });
/// }
/// assert_eq!(least, Located { value: 1.0, at: 1 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub struct Located<T, P = i64> {
    /// The value.
    pub value: T,
    /// The place of the value: the number of a row, a [`Ptr`], a [`Point`].
    pub at: P,
}

/// Numbers that [`ArgMin`] and [`ArgMax`] compare. A NaN comes after all numbers, whichever is looked for.
pub trait Ranked: FieldValue {
    /// The last value when the least is looked for: every value precedes it or is like it.
    const LAST_OF_LEAST: Self;
    /// The same when the greatest is looked for.
    const LAST_OF_GREATEST: Self;

    /// Whether it precedes another one when the least is looked for.
    fn least_first(&self, other: &Self) -> Ordering;

    /// Whether it precedes another one when the greatest is looked for.
    fn greatest_first(&self, other: &Self) -> Ordering;
}

/// The place of a value. Of equal values the one at the first place is chosen, so that the order of contributions
/// cannot matter.
pub trait Place: FieldValue + Ord {
    /// The place after all others.
    const LAST: Self;
}

macro_rules! integers {
    ($($ty:ty),*) => {
        $(impl Ranked for $ty {
            const LAST_OF_LEAST: Self = Self::MAX;
            const LAST_OF_GREATEST: Self = Self::MIN;

            #[inline]
            fn least_first(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }

            #[inline]
            fn greatest_first(&self, other: &Self) -> Ordering {
                other.cmp(self)
            }
        }

        impl Place for $ty {
            const LAST: Self = Self::MAX;
        })*
    };
}

integers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);

macro_rules! floats {
    ($($ty:ty),*) => {
        $(impl Ranked for $ty {
            const LAST_OF_LEAST: Self = Self::NAN;
            const LAST_OF_GREATEST: Self = Self::NAN;

            #[inline]
            fn least_first(&self, other: &Self) -> Ordering {
                self.partial_cmp(other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }

            #[inline]
            fn greatest_first(&self, other: &Self) -> Ordering {
                other.partial_cmp(self).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
            }
        })*
    };
}

floats!(f32, f64);

impl<const D: usize> Place for Point<D> {
    const LAST: Self = Point([i64::MAX; D]);
}

impl<F: 'static, const D: usize> Place for Ptr<F, D> {
    const LAST: Self = Self::new(Point([i64::MAX; D]));
}

/// Declares an operator that chooses the value which precedes all others.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident: $order:ident, $last:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        impl<T: Ranked, P: Place> ReductionOperator<Located<T, P>> for $name {
            type Rhs = Located<T, P>;

            const APPLIES_AS_IT_FOLDS: bool = true;

            #[inline]
            fn identity() -> Located<T, P> {
                Located { value: T::$last, at: P::LAST }
            }

            #[inline]
            fn apply(value: &mut Located<T, P>, contribution: Located<T, P>) {
                let order = contribution.value.$order(&value.value).then_with(|| contribution.at.cmp(&value.at));
                if order == Ordering::Less {
                    *value = contribution;
                }
            }

            #[inline]
            fn fold(into: &mut Located<T, P>, contribution: Located<T, P>) {
                <Self as ReductionOperator<Located<T, P>>>::apply(into, contribution);
            }
        }

        impl $name {
            /// The usual pairs; others are registered by the tasks that declare them.
            pub(super) fn register() {
                register_reduction::<Self, Located<i32>>();
                register_reduction::<Self, Located<i64>>();
                register_reduction::<Self, Located<u32>>();
                register_reduction::<Self, Located<u64>>();
                register_reduction::<Self, Located<f32>>();
                register_reduction::<Self, Located<f64>>();
            }
        }
    };
}

choice! {
    /// The [`Located`] value that is least, of equal ones that at the first place. A number wins over a NaN, and of two
    /// zeros that at the first place.
    ArgMin: least_first, LAST_OF_LEAST
}

choice! {
    /// The [`Located`] value that is greatest, of equal ones that at the first place. A number wins over a NaN, and of
    /// two zeros that at the first place.
    ArgMax: greatest_first, LAST_OF_GREATEST
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type At = Located<f64, u8>;

    /// Few values and places, so that many are equal; NaNs and infinities among them.
    fn located() -> impl Strategy<Value = At> {
        let values = [-1.0, 0.0, 2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        (prop::sample::select(values.to_vec()), 0..4_u8).prop_map(|(value, at)| Located { value, at })
    }

    /// With NaNs alike.
    fn shown(located: At) -> String {
        format!("{located:?}")
    }

    /// Finds the first of some values by a sort: a second definition of the order.
    fn first(mut all: Vec<At>, is_least: bool) -> Option<At> {
        all.sort_by(|one, other| {
            let numbers = |at: &At| if is_least { at.value } else { -at.value };
            let by_value = numbers(one).partial_cmp(&numbers(other));
            let nans_last = one.value.is_nan().cmp(&other.value.is_nan());
            nans_last.then(by_value.unwrap_or(Ordering::Equal)).then(one.at.cmp(&other.at))
        });
        all.first().copied()
    }

    fn folded<Op: ReductionOperator<At, Rhs = At>>(parts: &[At]) -> At {
        let mut folded = Op::identity();
        parts.iter().for_each(|&part| Op::fold(&mut folded, part));
        folded
    }

    proptest! {
        #[test]
        fn the_first_of_all_wins_in_whatever_order_and_by_whatever_buffers(
            start in located(), parts in prop::collection::vec(located(), 0..8), cut in 0..8_usize
        ) {
            let cut = cut.min(parts.len());
            let all: Vec<At> = parts.iter().copied().chain([start]).collect();
            macro_rules! check {
                ($op:ty, $is_least:expr) => {
                    let expected = shown(first(all.clone(), $is_least).expect("there is the start"));
                    let mut one_by_one = start;
                    parts.iter().rev().for_each(|&part| <$op as ReductionOperator<At>>::apply(&mut one_by_one, part));
                    prop_assert_eq!(shown(one_by_one), expected.clone());
                    let mut buffered = start;
                    for buffer in [&parts[cut..], &parts[..cut]] {
                        <$op as ReductionOperator<At>>::apply(&mut buffered, folded::<$op>(buffer));
                    }
                    prop_assert_eq!(shown(buffered), expected);
                };
            }
            check!(ArgMin, true);
            check!(ArgMax, false);
        }
    }

    #[test]
    fn of_no_values_there_is_the_last_place() {
        let least = <ArgMin as ReductionOperator<Located<i32>>>::identity();
        let greatest = <ArgMax as ReductionOperator<Located<u32, Point<2>>>>::identity();
        assert_eq!(least, Located { value: i32::MAX, at: i64::MAX });
        assert_eq!(greatest, Located { value: 0, at: Point([i64::MAX; 2]) });
    }
}
