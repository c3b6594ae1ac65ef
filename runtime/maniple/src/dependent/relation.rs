//! How rows of a region name rows of another one.

use maniple_region::{FieldId, FieldType, LogicalRegion};
use maniple_space::{Point, Rect};

use super::integers::{integers, pairs, range, wide};
use super::values::Values;
use crate::error::{Error, Result};

/// How the rows of a region name rows of another one, by the values of fields whose types are known at run time: for [`Context::logical_image`](crate::Context::logical_image) and
/// [`Context::logical_preimage`](crate::Context::logical_preimage).
///
/// Integers of all widths, signed or not, are numbers of rows of a region of one dimension: of the rows of the region that the fields are of, which may have more dimensions, each names rows
/// there. Numbers of rows that are not there name nothing, and a range names those of its rows that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The field's value is the row: an integer, or a [`Point`] of the other region's dimension.
    Point(FieldId),
    /// The field's value is a range of rows: two integers `[lo, hi]` for `lo..hi`, which is empty unless `lo < hi`, or a [`Rect`] of the other region's dimension.
    Range(FieldId),
    /// The first field's value is the first row of a range, and the second's the row that ends it: the range is empty unless the first is less. The integers may differ in width.
    Between(FieldId, FieldId),
    /// The values are offsets, as compressed rows have them: a row names those from its own value up to the next row's, `offset[r]..offset[r + 1]`, which is empty where offsets fall. The next row is the one
    /// with the next number, if the region that is asked for has it: where that is a part, the last row of each stretch of the part names none, although the whole has a next one. The region has one dimension.
    Offsets(FieldId),
}

/// The values that a relation is read from, at points of `S` dimensions: what they name of a space of `T`.
pub(super) enum Names<const S: usize, const T: usize> {
    Points(Values<Point<T>, S>),
    Rects(Values<Rect<T>, S>),
}

impl Relation {
    /// How the relation is read from the fields of a region.
    ///
    /// # Errors
    /// [`Error::Region`] if the region never had such a field, and [`Error::Access`] if its values name no rows of a space of `T` dimensions.
    pub(super) fn names<const S: usize, const T: usize>(
        self,
        (operation, region): (&str, &LogicalRegion),
    ) -> Result<Names<S, T>> {
        let types = |field| region.fields().type_of(field).map_err(Error::from);
        let unsuited = |field, wanted: &str| unsuited((operation, region), field, wanted);
        let numbers = |field| match integers::<S>(field, types(field)?) {
            Some(_) if T != 1 => Err(unsuited(field, &format!("points of {T} dimensions, as the other region has"))),
            Some(numbers) => Ok(numbers),
            None => Err(unsuited(field, "integers")),
        };
        match self {
            Self::Point(field) if types(field)? == FieldType::of::<Point<T>>() => {
                Ok(Names::Points(Values::of(field, |point: Point<T>| point)))
            }
            Self::Point(field) => Ok(Names::Points(numbers(field)?.map(|number| Point([number; T])))),
            Self::Range(field) if types(field)? == FieldType::of::<Rect<T>>() => {
                Ok(Names::Rects(Values::of(field, |rect: Rect<T>| rect)))
            }
            Self::Range(field) => match pairs(field, types(field)?) {
                Some(ranges) if T == 1 => Ok(Names::Rects(ranges)),
                _ => Err(unsuited(field, &format!("pairs of integers, for a region of one dimension, or `Rect<{T}>`"))),
            },
            Self::Between(first, end) => {
                let (first, end) = (numbers(first)?, numbers(end)?);
                let are_unsigned = [first.are_unsigned(), end.are_unsigned()];
                Ok(Names::Rects(
                    first.zip(end, move |first, end| range(wide(first, are_unsigned[0]), wide(end, are_unsigned[1]))),
                ))
            }
            Self::Offsets(field) => {
                let offsets = numbers(field)?;
                let are_unsigned = offsets.are_unsigned();
                let between = move |start, end| range(wide(start, are_unsigned), wide(end, are_unsigned));
                Ok(Names::Rects(offsets.with_next(between, Rect::EMPTY)))
            }
        }
    }
}

/// A field does not hold what it should.
pub(super) fn unsuited((operation, region): (&str, &LogicalRegion), field: FieldId, wanted: &str) -> Error {
    let found = region.fields().type_of(field).map_or("nothing", |ty| ty.name);
    Error::Access {
        task: operation.to_owned(),
        requirement: 0,
        field: region.fields().name_of(field),
        region: region.to_string(),
        problem: format!("it holds `{found}`, not {wanted}"),
    }
}
