//! Reduction operators with their types erased, so that copies and instances can carry them.
//!
//! An operator combines values of a left-hand type, which a field holds, with contributions of a right-hand type.
//! *Apply* puts a contribution into a value; *fold* puts a contribution into another one, so that contributions can be
//! gathered in a reduction instance and applied later (Bauer 2014, section 5.2). The typed side is the trait
//! [`Reduction`]; the erased side is [`RawReduction`], a few sizes and function pointers that work on runs of elements.
//!
//! ```
//! use maniple_realm::reduction::{RawReduction, Reduction};
//!
//! struct Sum;
//! impl Reduction for Sum {
//!     type Lhs = f64;
//!     type Rhs = f64;
//!     fn identity() -> f64 { 0.0 }
//!     fn apply(value: &mut f64, contribution: f64) { *value += contribution; }
//!     fn fold(into: &mut f64, contribution: f64) { *into += contribution; }
//! }
//!
//! let sum = RawReduction::of::<Sum>();
//! assert_eq!((sum.lhs_size(), sum.rhs_align()), (8, 8));
//! ```

use std::alloc::Layout;
use std::any::{TypeId, type_name};
use std::fmt;

/// A way of combining contributions with values, in any order.
///
/// Folding contributions together and applying the outcome must give what applying them one by one gives, in any order.
pub trait Reduction: 'static {
    /// A value of a field.
    type Lhs: Copy + Send + Sync + 'static;
    /// A contribution.
    type Rhs: Copy + Send + Sync + 'static;

    /// Values and contributions are of one type, and [`apply`](Self::apply) does what [`fold`](Self::fold) does. Then
    /// contributions can be kept where values are kept.
    const APPLIES_AS_IT_FOLDS: bool = false;

    /// The contribution that changes nothing.
    fn identity() -> Self::Rhs;

    /// Puts a contribution into a value.
    fn apply(value: &mut Self::Lhs, contribution: Self::Rhs);

    /// Puts a contribution into another one. Must be associative and commutative.
    fn fold(into: &mut Self::Rhs, contribution: Self::Rhs);
}

/// Combines `count` contributions into as many values: `(into, stride, from, stride, count)`, strides in bytes.
type CombineRun = unsafe fn(*mut u8, isize, *const u8, isize, usize);

/// Writes the identity to `count` contributions: `(into, stride, count)`, the stride in bytes.
type IdentityRun = unsafe fn(*mut u8, isize, usize);

/// A [`Reduction`] with its types erased. Plain data, cheap to copy. Two are equal if they were made from the same
/// type.
#[derive(Clone, Copy)]
pub struct RawReduction {
    type_id: TypeId,
    name: &'static str,
    lhs: Layout,
    rhs: Layout,
    apply: CombineRun,
    fold: CombineRun,
    identity: IdentityRun,
    applies_as_it_folds: bool,
}

impl RawReduction {
    /// The erased form of `R`.
    #[must_use]
    pub fn of<R: Reduction>() -> Self {
        Self {
            type_id: TypeId::of::<R>(),
            name: type_name::<R>(),
            lhs: Layout::new::<R::Lhs>(),
            rhs: Layout::new::<R::Rhs>(),
            apply: combine_run::<R::Lhs, R::Rhs, Apply<R>>,
            fold: combine_run::<R::Rhs, R::Rhs, Fold<R>>,
            identity: identity_run::<R>,
            applies_as_it_folds: R::APPLIES_AS_IT_FOLDS && TypeId::of::<R::Lhs>() == TypeId::of::<R::Rhs>(),
        }
    }

    /// The name of the type that it was made from.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether contributions can be kept where values are kept: see [`Reduction::APPLIES_AS_IT_FOLDS`].
    #[must_use]
    pub fn applies_as_it_folds(&self) -> bool {
        self.applies_as_it_folds
    }

    /// The size of a value, in bytes.
    #[must_use]
    pub fn lhs_size(&self) -> usize {
        self.lhs.size()
    }

    /// The alignment of a value, in bytes.
    #[must_use]
    pub fn lhs_align(&self) -> usize {
        self.lhs.align()
    }

    /// The size of a contribution, in bytes.
    #[must_use]
    pub fn rhs_size(&self) -> usize {
        self.rhs.size()
    }

    /// The alignment of a contribution, in bytes.
    #[must_use]
    pub fn rhs_align(&self) -> usize {
        self.rhs.align()
    }

    /// Applies `count` contributions to as many values, the nth to the nth. Strides are in bytes.
    ///
    /// # Safety
    ///
    /// Every `lhs + n * lhs_stride` is an aligned, valid left-hand value that nothing else touches meanwhile; every
    /// `rhs + n * rhs_stride` is an aligned, valid contribution that nothing else writes meanwhile; none of the values
    /// overlap each other or a contribution.
    #[inline]
    pub unsafe fn apply(&self, lhs: *mut u8, lhs_stride: isize, rhs: *const u8, rhs_stride: isize, count: usize) {
        // SAFETY: the caller's promise is the function's.
        unsafe { (self.apply)(lhs, lhs_stride, rhs, rhs_stride, count) }
    }

    /// Folds `count` contributions into as many others, the nth into the nth. Strides are in bytes.
    ///
    /// # Safety
    ///
    /// As for [`apply`](Self::apply), with a right-hand value on both sides.
    #[inline]
    pub unsafe fn fold(&self, into: *mut u8, into_stride: isize, rhs: *const u8, rhs_stride: isize, count: usize) {
        // SAFETY: the caller's promise is the function's.
        unsafe { (self.fold)(into, into_stride, rhs, rhs_stride, count) }
    }

    /// Writes the identity to `count` contributions, whatever was there. The stride is in bytes.
    ///
    /// # Safety
    ///
    /// Every `into + n * stride` is aligned memory of the size of a contribution, writable, that nothing else touches
    /// meanwhile.
    #[inline]
    pub unsafe fn write_identity(&self, into: *mut u8, stride: isize, count: usize) {
        // SAFETY: the caller's promise is the function's.
        unsafe { (self.identity)(into, stride, count) }
    }
}

impl PartialEq for RawReduction {
    fn eq(&self, other: &Self) -> bool {
        self.type_id == other.type_id
    }
}

impl Eq for RawReduction {}

impl fmt::Debug for RawReduction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("RawReduction").field(&self.name).finish()
    }
}

/// One of the two ways in which an operator combines, chosen when compiling.
trait Combine<L, R> {
    fn combine(into: &mut L, from: R);
}

struct Apply<R>(std::marker::PhantomData<R>);
struct Fold<R>(std::marker::PhantomData<R>);

impl<R: Reduction> Combine<R::Lhs, R::Rhs> for Apply<R> {
    #[inline]
    fn combine(into: &mut R::Lhs, from: R::Rhs) {
        R::apply(into, from);
    }
}

impl<R: Reduction> Combine<R::Rhs, R::Rhs> for Fold<R> {
    #[inline]
    fn combine(into: &mut R::Rhs, from: R::Rhs) {
        R::fold(into, from);
    }
}

/// # Safety
///
/// As [`RawReduction::apply`].
unsafe fn combine_run<L: Copy, R: Copy, C: Combine<L, R>>(
    into: *mut u8,
    into_stride: isize,
    from: *const u8,
    from_stride: isize,
    count: usize,
) {
    if into_stride == size_of::<L>() as isize && from_stride == size_of::<R>() as isize {
        // SAFETY: `count` adjacent, aligned, valid values on both sides, disjoint, by the caller's promise.
        let (into, from) = unsafe {
            (
                std::slice::from_raw_parts_mut(into.cast::<L>(), count),
                std::slice::from_raw_parts(from.cast::<R>(), count),
            )
        };
        // Slices, so that the compiler knows the lengths and makes vector code.
        for (into, from) in into.iter_mut().zip(from) {
            C::combine(into, *from);
        }
        return;
    }
    for index in 0..count as isize {
        // SAFETY: valid, aligned and unshared by the caller's promise.
        unsafe {
            let value = &mut *into.wrapping_offset(index * into_stride).cast::<L>();
            C::combine(value, from.wrapping_offset(index * from_stride).cast::<R>().read());
        }
    }
}

/// # Safety
///
/// As [`RawReduction::write_identity`].
unsafe fn identity_run<R: Reduction>(into: *mut u8, stride: isize, count: usize) {
    let identity = R::identity();
    for index in 0..count as isize {
        // SAFETY: writable, aligned and unshared by the caller's promise.
        unsafe { into.wrapping_offset(index * stride).cast::<R::Rhs>().write(identity) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps the greatest byte seen in the low half of a pair; the types of the two sides differ.
    struct Greatest;

    impl Reduction for Greatest {
        type Lhs = [u16; 2];
        type Rhs = u8;

        fn identity() -> u8 {
            0
        }

        fn apply(value: &mut [u16; 2], contribution: u8) {
            value[0] = value[0].max(contribution.into());
        }

        fn fold(into: &mut u8, contribution: u8) {
            *into = (*into).max(contribution);
        }
    }

    struct Sum;

    impl Reduction for Sum {
        type Lhs = i32;
        type Rhs = i32;

        fn identity() -> i32 {
            0
        }

        fn apply(value: &mut i32, contribution: i32) {
            *value += contribution;
        }

        fn fold(into: &mut i32, contribution: i32) {
            *into += contribution;
        }
    }

    #[test]
    fn sizes_are_of_the_two_types() {
        let raw = RawReduction::of::<Greatest>();
        assert_eq!((raw.lhs_size(), raw.lhs_align(), raw.rhs_size(), raw.rhs_align()), (4, 2, 1, 1));
        assert!(raw.name().ends_with("Greatest"));
        assert_ne!(raw, RawReduction::of::<Sum>());
        assert_eq!(raw, RawReduction::of::<Greatest>());
    }

    #[test]
    fn applying_a_run_combines_each_pair() {
        let mut values = [[1u16, 7], [5, 7], [2, 7]];
        let contributions = [3u8, 4, 9];
        let raw = RawReduction::of::<Greatest>();
        // SAFETY: two arrays of three valid elements each.
        unsafe { raw.apply(values.as_mut_ptr().cast(), 4, contributions.as_ptr(), 1, 3) };
        assert_eq!(values, [[3, 7], [5, 7], [9, 7]]);
    }

    #[test]
    fn strides_skip_what_lies_between() {
        let mut values = [1, 100, 2, 100, 3, 100];
        let contributions = [30, -1, -1, 20, -1, -1, 10];
        let raw = RawReduction::of::<Sum>();
        // SAFETY: every second of six values, every third of seven from the end back.
        unsafe {
            let last = contributions.as_ptr().add(6);
            raw.apply(values.as_mut_ptr().cast(), 8, last.cast(), -12, 3);
        }
        assert_eq!(values, [11, 100, 22, 100, 33, 100]);
    }

    #[test]
    fn folding_works_on_contributions() {
        let mut into = [1u8, 9];
        let raw = RawReduction::of::<Greatest>();
        // SAFETY: two arrays of two valid elements each.
        unsafe { raw.fold(into.as_mut_ptr(), 1, [5u8, 5].as_ptr(), 1, 2) };
        assert_eq!(into, [5, 9]);
    }

    #[test]
    fn identities_overwrite_what_was_there() {
        let mut into = [8, 8, 8];
        // SAFETY: every second of three values.
        unsafe { RawReduction::of::<Sum>().write_identity(into.as_mut_ptr().cast(), 8, 2) };
        assert_eq!(into, [0, 8, 0]);
    }
}
