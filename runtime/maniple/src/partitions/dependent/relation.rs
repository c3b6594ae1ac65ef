//! How rows of a region name rows of another one.

use maniple_region::{FieldId, LogicalRegion};

use super::integers::Integers;
use super::values::DependentValues;
use crate::support::error::{Error, Result};

/// How the rows of a region name rows of another one, by the values of fields whose types are known at run time: for
/// [`Context::logical_image`](crate::Context::logical_image) and
/// [`Context::logical_preimage`](crate::Context::logical_preimage).
///
/// Integers of all widths, signed or not, are numbers of rows of a region of one dimension: of the rows of the region
/// that the fields are of, which may have more dimensions, each names rows there. Numbers of rows that are not there
/// name nothing, and a range names those of its rows that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The field's value is the row: an integer, or a [`Point`](crate::space::Point) of the other region's dimension.
    Point(FieldId),
    /// The field's value is a range of rows: two integers `[lo, hi]` for `lo..hi`, which is empty unless `lo < hi`, or
    /// a [`Rect`](crate::space::Rect) of the other region's dimension.
    Range(FieldId),
    /// The first field's value is the first row of a range, and the second's the row that ends it: the range is empty
    /// unless the first is less. The integers may differ in width.
    Between(FieldId, FieldId),
    /// The values are offsets, as compressed rows have them: a row names those from its own value up to the next row's,
    /// `offset[r]..offset[r + 1]`, which is empty where offsets fall. The next row is the one with the next number, if
    /// the region that is asked for has it: where that is a part, the last row of each stretch of the part names none,
    /// although the whole has a next one. The region has one dimension.
    Offsets(FieldId),
}

impl Relation {
    /// How the relation is read from the fields of a region.
    ///
    /// # Errors
    /// [`Error::Region`] if the region never had such a field, and [`Error::Access`] if its values name no rows of a
    /// space of `dim` dimensions.
    pub(super) fn values(self, operation: &str, region: &LogicalRegion, dim: usize) -> Result<DependentValues> {
        let type_of = |field| region.fields().type_of(field).map_err(Error::from);
        let unsuited = |field, wanted: &str| unsuited(operation, region, field, wanted);
        let numbers = |field| match Integers::numbers(field, type_of(field)?) {
            Some(_) if dim != 1 => {
                Err(unsuited(field, &format!("points of {dim} dimensions, as the other region has")))
            }
            Some(numbers) => Ok(numbers),
            None => Err(unsuited(field, "integers")),
        };
        Ok(match self {
            Self::Point(field) => match Integers::points(field, type_of(field)?, dim) {
                Some(points) => DependentValues::points(points),
                None => DependentValues::points(numbers(field)?),
            },
            Self::Range(field) => {
                let ty = type_of(field)?;
                match (Integers::rects(field, ty, dim), Integers::pairs(field, ty)) {
                    (Some(rects), _) => DependentValues::rects(rects),
                    (None, Some(pairs)) if dim == 1 => DependentValues::ranges(pairs),
                    _ => {
                        let wanted = format!("pairs of integers, for a region of one dimension, or `Rect<{dim}>`");
                        return Err(unsuited(field, &wanted));
                    }
                }
            }
            Self::Between(first, end) => DependentValues::between(numbers(first)?, numbers(end)?),
            Self::Offsets(field) => DependentValues::offsets(numbers(field)?),
        })
    }
}

/// A field does not hold what it should.
pub(super) fn unsuited(operation: &str, region: &LogicalRegion, field: FieldId, wanted: &str) -> Error {
    let found = region.fields().type_of(field).map_or("nothing", |ty| ty.name);
    Error::Access {
        task: operation.to_owned(),
        requirement: 0,
        field: region.fields().name_of(field),
        region: region.to_string(),
        problem: format!("it holds `{found}`, not {wanted}"),
    }
}
