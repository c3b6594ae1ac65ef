//! Reduction operators: ways of combining contributions in any order.
//!
//! An operator has two types for a field of type `T`: the field's own and that of a contribution
//! ([`ReductionOperator::Rhs`]). *Apply* puts a contribution into a value; *fold* puts a contribution into another, so
//! that contributions can be gathered in a buffer and applied later (Bauer 2014, section 5.2). For every operator,
//! folding then applying must equal applying one by one, in any order.
//!
//! ```
//! use maniple_region::{ReductionOperator, operators::Sum};
//! let mut buffer = <Sum as ReductionOperator<i32>>::identity();
//! <Sum as ReductionOperator<i32>>::fold(&mut buffer, 2);
//! <Sum as ReductionOperator<i32>>::fold(&mut buffer, 3);
//! let mut value = 10;
//! <Sum as ReductionOperator<i32>>::apply(&mut value, buffer);
//! assert_eq!(value, 15);
//! ```

mod located;

use std::any::TypeId;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, OnceLock};

use maniple_realm::locks::RwLock;
use maniple_realm::reduction::{RawReduction, Reduction};
use num_complex::{Complex, Complex32, Complex64};
use rustc_hash::FxHashMap;

pub use self::located::{ArgMax, ArgMin, Located, Place, Ranked};
use crate::{FieldType, FieldValue};

/// A way of combining contributions with values of type `T`, in any order.
///
/// Implement it for a marker type of your own to use `reduces(YourOperator, field)`.
#[diagnostic::on_unimplemented(
    message = "the operator `{Self}` is not defined on fields of type `{T}`",
    label = "not an operator on `{T}`",
    note = "name an operator that is, or implement `ReductionOperator<{T}>` for a type of your own"
)]
pub trait ReductionOperator<T: FieldValue>: Send + Sync + 'static {
    /// A contribution.
    type Rhs: FieldValue;

    /// Values and contributions are of one type, and [`apply`](Self::apply) does what [`fold`](Self::fold) does, as
    /// with sums. Say so of your own operators where it is true: then several nodes can contribute side by side. Else
    /// such tasks run on one node.
    const APPLIES_AS_IT_FOLDS: bool = false;

    /// The contribution that changes nothing.
    fn identity() -> Self::Rhs;

    /// Puts a contribution into a value.
    fn apply(value: &mut T, contribution: Self::Rhs);

    /// Puts a contribution into another one. Must be associative and commutative.
    fn fold(into: &mut Self::Rhs, contribution: Self::Rhs);
}

/// The identity of an operator, whatever the type it works on. Two reductions commute exactly if their operators are
/// the same.
#[derive(Clone, Copy)]
pub struct OperatorId {
    type_id: TypeId,
    path: &'static str,
}

impl OperatorId {
    /// The identity of the operator `Op`.
    #[must_use]
    pub fn of<Op: 'static>() -> Self {
        Self { type_id: TypeId::of::<Op>(), path: std::any::type_name::<Op>() }
    }

    /// The operator's type name without its path.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.path.rsplit("::").next().unwrap_or(self.path)
    }

    /// The type-erased reduction of this operator on fields of type `ty`, if that pair is known: every built-in pair
    /// is, others from the moment that [`register_reduction`] (or a task that declares them) has named them.
    #[must_use]
    pub fn reduction_on(self, ty: FieldType) -> Option<&'static RawReduction> {
        BUILT_IN.get_or_init(register_built_in);
        REDUCTIONS.read().get(&(self.type_id, ty.type_id)).copied()
    }
}

impl PartialEq for OperatorId {
    fn eq(&self, other: &Self) -> bool {
        self.type_id == other.type_id
    }
}

impl Eq for OperatorId {}

impl Hash for OperatorId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.type_id.hash(state);
    }
}

impl fmt::Debug for OperatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for OperatorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

type Table = FxHashMap<(TypeId, TypeId), &'static RawReduction>;

static REDUCTIONS: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);
static BUILT_IN: OnceLock<()> = OnceLock::new();

/// Makes the pair of operator `Op` and field type `T` known by value, and returns its type-erased form.
///
/// Repeated calls return the same reference; one small allocation a pair stays for the life of the process.
pub fn register_reduction<Op: ReductionOperator<T>, T: FieldValue>() -> &'static RawReduction {
    let key = (TypeId::of::<Op>(), TypeId::of::<T>());
    if let Some(known) = REDUCTIONS.read().get(&key) {
        return known;
    }
    let mut table = REDUCTIONS.write();
    table.entry(key).or_insert_with(|| Box::leak(Box::new(RawReduction::of::<On<Op, T>>())))
}

/// Operator `Op` on fields of type `T`, as the machine layer wants it.
struct On<Op, T>(std::marker::PhantomData<(Op, T)>);

impl<Op: ReductionOperator<T>, T: FieldValue> Reduction for On<Op, T> {
    type Lhs = T;
    type Rhs = Op::Rhs;

    const APPLIES_AS_IT_FOLDS: bool = Op::APPLIES_AS_IT_FOLDS;

    fn identity() -> Op::Rhs {
        Op::identity()
    }

    fn apply(value: &mut T, contribution: Op::Rhs) {
        Op::apply(value, contribution);
    }

    fn fold(into: &mut Op::Rhs, contribution: Op::Rhs) {
        Op::fold(into, contribution);
    }
}

/// Declares an operator whose contributions have the field's own type, with its identity and its combination for groups
/// of types.
macro_rules! operator {
    ($(#[$doc:meta])* $name:ident { $([$($ty:ty),*] $identity:expr, |$a:ident, $b:ident| $combined:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        $($(impl ReductionOperator<$ty> for $name {
            type Rhs = $ty;

            const APPLIES_AS_IT_FOLDS: bool = true;

            #[inline]
            fn identity() -> $ty {
                $identity
            }

            #[inline]
            fn apply(value: &mut $ty, $b: $ty) {
                let $a = *value;
                *value = $combined;
            }

            #[inline]
            fn fold(into: &mut $ty, contribution: $ty) {
                <Self as ReductionOperator<$ty>>::apply(into, contribution);
            }
        })*)*

        impl $name {
            fn register() {
                $($(register_reduction::<Self, $ty>();)*)*
            }
        }
    };
}

operator! {
    /// Addition; integers wrap around on overflow, so that the order of contributions can't matter.
    Sum {
        [i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize] 0, |a, b| a.wrapping_add(b);
        [f32, f64] 0.0, |a, b| a + b;
        [Complex32, Complex64] Complex { re: 0.0, im: 0.0 }, |a, b| a + b;
    }
}

operator! {
    /// Multiplication; integers wrap around on overflow.
    Product {
        [i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize] 1, |a, b| a.wrapping_mul(b);
        [f32, f64] 1.0, |a, b| a * b;
        [Complex32, Complex64] Complex { re: 1.0, im: 0.0 }, |a, b| a * b;
    }
}

operator! {
    /// The least value; of floats, a number wins over a NaN, wherever it is (IEEE 754-2019 `minimumNumber`), and either
    /// zero may win over the other.
    Min {
        [i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize] Bounded::GREATEST, |a, b| a.min(b);
        [f32, f64] Bounded::GREATEST, |a, b| a.min(b);
    }
}

operator! {
    /// The greatest value; of floats, a number wins over a NaN, wherever it is (IEEE 754-2019 `maximumNumber`), and
    /// either zero may win over the other.
    Max {
        [i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize] Bounded::LEAST, |a, b| a.max(b);
        [f32, f64] Bounded::LEAST, |a, b| a.max(b);
    }
}

operator! {
    /// Bitwise and; logical and of truth values.
    And {
        [i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize] !0, |a, b| a & b;
        [bool] true, |a, b| a & b;
    }
}

operator! {
    /// Bitwise or; logical or of truth values.
    Or {
        [i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize] 0, |a, b| a | b;
        [bool] false, |a, b| a | b;
    }
}

operator! {
    /// Bitwise exclusive or; of truth values, whether an odd number is true.
    Xor {
        [i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize] 0, |a, b| a ^ b;
        [bool] false, |a, b| a ^ b;
    }
}

/// The ends of a type's range, infinities for floats.
trait Bounded {
    const LEAST: Self;
    const GREATEST: Self;
}

macro_rules! bounded {
    ($($ty:ty: $least:expr, $greatest:expr;)*) => {
        $(impl Bounded for $ty {
            const LEAST: Self = $least;
            const GREATEST: Self = $greatest;
        })*
    };
    (integers $($ty:ty),*) => { bounded! { $($ty: <$ty>::MIN, <$ty>::MAX;)* } };
}

bounded!(integers i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);
bounded! {
    f32: f32::NEG_INFINITY, f32::INFINITY;
    f64: f64::NEG_INFINITY, f64::INFINITY;
}

fn register_built_in() {
    Sum::register();
    Product::register();
    Min::register();
    Max::register();
    And::register();
    Or::register();
    Xor::register();
    ArgMin::register();
    ArgMax::register();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folding_equals_applying<Op: ReductionOperator<T, Rhs = T>, T: FieldValue + PartialEq + fmt::Debug>(
        start: T,
        parts: &[T],
    ) {
        let mut one_by_one = start;
        parts.iter().rev().for_each(|&part| Op::apply(&mut one_by_one, part));
        let mut buffer = Op::identity();
        parts.iter().for_each(|&part| Op::fold(&mut buffer, part));
        let mut folded = start;
        Op::apply(&mut folded, buffer);
        assert_eq!(one_by_one, folded);
    }

    proptest! {
        #[test]
        fn folding_then_applying_equals_applying_one_by_one_in_any_order(start: i64, parts: Vec<i64>) {
            folding_equals_applying::<Sum, _>(start, &parts);
            folding_equals_applying::<Product, _>(start, &parts);
            folding_equals_applying::<Min, _>(start, &parts);
            folding_equals_applying::<Max, _>(start, &parts);
            folding_equals_applying::<And, _>(start, &parts);
            folding_equals_applying::<Or, _>(start, &parts);
            folding_equals_applying::<Xor, _>(start, &parts);
        }
    }

    #[test]
    fn least_and_greatest_numbers_win_over_nans_in_any_place() {
        for length in 2..=8 {
            for place in 0..length {
                let parts: Vec<f64> =
                    (0..length).map(|number| if number == place { f64::NAN } else { number as f64 }).collect();
                let (mut least, mut greatest) =
                    (<Min as ReductionOperator<f64>>::identity(), <Max as ReductionOperator<f64>>::identity());
                parts.iter().for_each(|&part| <Min as ReductionOperator<f64>>::fold(&mut least, part));
                parts.iter().for_each(|&part| <Max as ReductionOperator<f64>>::fold(&mut greatest, part));
                let expected =
                    (f64::from(u8::from(place == 0)), f64::from(length - 1 - i32::from(place == length - 1)));
                assert_eq!((least, greatest), expected, "{parts:?}");
            }
        }
    }

    #[test]
    fn complex_numbers_have_sums_and_products() {
        let parts = [Complex64::new(1.0, 2.0), Complex64::new(-3.0, 0.5), Complex64::new(0.0, -1.0)];
        let (mut sum, mut product) =
            (<Sum as ReductionOperator<Complex64>>::identity(), <Product as ReductionOperator<Complex64>>::identity());
        for part in parts {
            <Sum as ReductionOperator<Complex64>>::fold(&mut sum, part);
            <Product as ReductionOperator<Complex64>>::fold(&mut product, part);
        }
        // (1 + 2i)(-3 + i/2) = -4 - 11i/2, and that times -i.
        assert_eq!((sum, product), (Complex64::new(-2.0, 1.5), Complex64::new(-5.5, 4.0)));
        assert!(OperatorId::of::<Sum>().reduction_on(FieldType::of::<Complex32>()).is_some());
        assert!(OperatorId::of::<Min>().reduction_on(FieldType::of::<Complex32>()).is_none());
    }

    #[test]
    fn identities_of_float_extremes_are_infinities() {
        assert_eq!(<Min as ReductionOperator<f32>>::identity(), f32::INFINITY);
        assert_eq!(<Max as ReductionOperator<f64>>::identity(), f64::NEG_INFINITY);
        assert_eq!(<Min as ReductionOperator<i32>>::identity(), i32::MAX);
    }

    #[test]
    fn built_in_pairs_are_known_and_others_only_once_registered() {
        let sum = OperatorId::of::<Sum>();
        assert!(sum.reduction_on(FieldType::of::<f64>()).is_some());
        assert!(sum.reduction_on(FieldType::of::<[f64; 2]>()).is_none());

        struct Longest;
        impl ReductionOperator<[u8; 2]> for Longest {
            type Rhs = u8;
            fn identity() -> u8 {
                0
            }
            fn apply(value: &mut [u8; 2], contribution: u8) {
                value[0] = value[0].max(contribution);
            }
            fn fold(into: &mut u8, contribution: u8) {
                *into = (*into).max(contribution);
            }
        }
        let longest = OperatorId::of::<Longest>();
        assert!(longest.reduction_on(FieldType::of::<[u8; 2]>()).is_none());
        register_reduction::<Longest, [u8; 2]>();
        let raw = longest.reduction_on(FieldType::of::<[u8; 2]>()).unwrap();
        assert_eq!((raw.lhs_size(), raw.rhs_size()), (2, 1));
        assert_eq!(longest.name(), "Longest");
    }
}
