//! Fields of integers, and of what is made of integers, read as `i64` whatever their types.

use std::sync::Arc;

use bytemuck::Pod;
use maniple_region::{FieldId, FieldType, FieldValue};
use maniple_space::{Point, Rect, for_dimension};

use crate::data::access::{ErasedValues, Rows};
use crate::support::error::Result;
use crate::task::LeafCall;

/// A field whose values are some integers each. Only what appends them knows its type.
#[derive(Clone)]
pub(super) struct Integers {
    pub(super) field: FieldId,
    ty: FieldType,
    /// Whether negative numbers stand for those that are too large for an `i64`.
    pub(super) is_unsigned: bool,
    append: Arc<Append>,
}

/// Appends the integers of some values.
type Append = dyn Fn(ErasedValues<'_>, &mut Vec<i64>) + Send + Sync;

impl Integers {
    /// The field that holds values of a type, and what each is as integers: an `i64`, an array of them, or what is laid
    /// out as one.
    pub(super) fn of<V: FieldValue, N: Pod>(field: FieldId, integers: impl Fn(V) -> N + Send + Sync + 'static) -> Self {
        const { assert!(size_of::<N>() >= size_of::<i64>() && size_of::<N>().is_multiple_of(size_of::<i64>())) }
        let append = move |values: ErasedValues<'_>, to: &mut Vec<i64>| {
            let start = to.len();
            to.resize(start + values.len() * (size_of::<N>() / size_of::<i64>()), 0);
            let to = bytemuck::cast_slice_mut(&mut to[start..]);
            values.typed::<V>().zip(to).for_each(|(value, to)| *to = integers(value));
        };
        Self { field, ty: FieldType::of::<V>(), is_unsigned: false, append: Arc::new(append) }
    }

    /// A field of points of `dim` dimensions. None if it holds anything else.
    pub(super) fn points(field: FieldId, ty: FieldType, dim: usize) -> Option<Self> {
        for_dimension!(dim, D => (ty == FieldType::of::<Point<D>>()).then(|| Self::of(field, |point: Point<D>| point)))
    }

    /// A field of rectangles of `dim` dimensions: their lowest and their highest points. None if it holds anything
    /// else.
    pub(super) fn rects(field: FieldId, ty: FieldType, dim: usize) -> Option<Self> {
        for_dimension!(dim, D => (ty == FieldType::of::<Rect<D>>()).then(|| Self::of(field, |rect: Rect<D>| rect)))
    }

    /// The values in a call.
    pub(super) fn open<'a>(&self, call: &LeafCall<'a>) -> Result<IntegerRows<'a>> {
        Ok(IntegerRows { rows: call.rows(0, self.field, self.ty)?, append: Arc::clone(&self.append) })
    }
}

/// The values of a field of integers in an instance.
pub(super) struct IntegerRows<'a> {
    pub(super) rows: Rows<'a>,
    append: Arc<Append>,
}

impl IntegerRows<'_> {
    /// Appends the integers of the values of a row. The region has its points.
    pub(super) fn append<const D: usize>(&self, row: Rect<D>, to: &mut Vec<i64>) {
        self.rows.visit(row, &mut |values| (self.append)(values, to));
    }
}

macro_rules! integers {
    ($($ty:ty),*) => {
        impl Integers {
            /// A field of numbers: those of 2^63 and more wrap, and then it is [unsigned](Self::is_unsigned). None if
            /// it holds anything else.
            pub(super) fn numbers(field: FieldId, ty: FieldType) -> Option<Self> {
                $(if ty == FieldType::of::<$ty>() {
                    let numbers = Self::of(field, |number: $ty| number as i64);
                    return Some(Self { is_unsigned: wraps(<$ty>::MAX as u64), ..numbers });
                })*
                None
            }

            /// A field of pairs of numbers, as [`numbers`](Self::numbers) are. None if it holds anything else.
            pub(super) fn pairs(field: FieldId, ty: FieldType) -> Option<Self> {
                $(if ty == FieldType::of::<[$ty; 2]>() {
                    let pairs = Self::of(field, |[one, other]: [$ty; 2]| [one as i64, other as i64]);
                    return Some(Self { is_unsigned: wraps(<$ty>::MAX as u64), ..pairs });
                })*
                None
            }
        }
    };
}

integers!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

fn wraps(most: u64) -> bool {
    most > i64::MAX as u64
}

/// The first and the last of the integers from one number up to another, either of which may have wrapped, clipped to
/// those of an `i64`. `[0, -1]` if there are none.
pub(super) fn range([lo, end]: [i64; 2], is_unsigned: [bool; 2]) -> [i64; 2] {
    let wide = |number: i64, is_unsigned| if is_unsigned { i128::from(number as u64) } else { i128::from(number) };
    clipped(wide(lo, is_unsigned[0]), wide(end, is_unsigned[1]))
}

/// The same of numbers that have not wrapped.
pub(super) fn clipped(lo: i128, end: i128) -> [i64; 2] {
    let (first, last) = (lo.max(i64::MIN.into()), end.saturating_sub(1).min(i64::MAX.into()));
    if first > last { [0, -1] } else { [first as i64, last as i64] }
}
