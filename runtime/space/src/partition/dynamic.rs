//! The operators of [`partition`](super) for spaces and fields whose dimensions are known only at run time.
//!
//! They are compiled once for each dimension of what values name, whatever the values are stored as and the dimension
//! of the space that they are at.

use bytemuck::Pod;

use super::collect::{PointerSet, Runs};
use super::color::pieces_by_field;
use super::field::{Values, numbered_rows};
use super::image::union_of_rects;
use super::preimage::{pieces_by_pointers, pieces_by_rects};
use super::{PartitionError, checked_pieces};
use crate::dynamic::typed_list;
use crate::{AnySpace, DimensionMismatch, IndexSpace, for_dimension};

/// A field of numbers, points or rectangles, read as integers: a point as its coordinates, a rectangle as those of its
/// lowest and then of its highest point.
pub trait IntegerField {
    /// Calls `visit` with the integers of all points of a space in row-major order, in chunks of any length that hold
    /// whole values.
    fn for_each_chunk(&self, space: &AnySpace, visit: &mut dyn FnMut(&[i64]));
}

/// The points that the values of a field name.
#[derive(Clone, Copy)]
pub enum Names<'a> {
    /// A point each.
    Points(&'a dyn IntegerField),
    /// All points of a rectangle each.
    Rects(&'a dyn IntegerField),
}

/// A field at the points of a space.
struct Integers<'a> {
    field: &'a dyn IntegerField,
    space: &'a AnySpace,
    /// The points' numbers, as runs of a first one and so many.
    numbers: Vec<(i64, u64)>,
}

impl<'a> Integers<'a> {
    fn numbered(field: &'a dyn IntegerField, space: &'a AnySpace) -> Self {
        let mut numbers: Vec<(i64, u64)> = Vec::new();
        for_dimension!(space, |space| for (number, row) in numbered_rows(space) {
            let length = row.volume();
            match numbers.last_mut() {
                Some(last) if last.0.wrapping_add_unsigned(last.1) == number => last.1 += length,
                _ => numbers.push((number, length)),
            }
        });
        Self { field, space, numbers }
    }

    /// For operators that take no points' numbers.
    fn unnumbered(field: &'a dyn IntegerField, space: &'a AnySpace) -> Self {
        Self { field, space, numbers: vec![(0, space.volume())] }
    }
}

impl<T: Pod> Values<T> for Integers<'_> {
    fn count(&self) -> u64 {
        self.space.volume()
    }

    fn for_each(&self, mut visit: impl FnMut(i64, T)) {
        let mut runs = self.numbers.iter().copied();
        let (mut number, mut left) = (0, 0);
        self.field.for_each_chunk(self.space, &mut |chunk| {
            let mut values: &[T] = bytemuck::cast_slice(chunk);
            while !values.is_empty() {
                if left == 0 {
                    (number, left) = runs.next().expect(AS_MANY);
                }
                let (now, later) = values.split_at(values.len().min(left as usize));
                for &value in now {
                    visit(number, value);
                    number = number.wrapping_add(1);
                }
                (left, values) = (left - now.len() as u64, later);
            }
        });
        assert!(left == 0 && runs.next().is_none_or(|(_, count)| count == 0), "{AS_MANY}");
    }
}

const AS_MANY: &str = "a field has as many values as the space has points";

/// As [`equal`](super::equal).
///
/// # Errors
/// As of [`equal`](super::equal).
pub fn equal(parent: &AnySpace, pieces: usize) -> Result<Vec<AnySpace>, PartitionError> {
    for_dimension!(parent, |parent| Ok(erased(super::equal(parent, pieces)?)))
}

/// As [`by_field`](super::by_field), of a field of numbers of colors.
///
/// # Errors
/// When there are no colors, or too many.
///
/// # Panics
/// If the field has more or fewer values than the space has points.
pub fn by_field(parent: &AnySpace, colors: u64, field: &dyn IntegerField) -> Result<Vec<AnySpace>, PartitionError> {
    Ok(spaces(pieces_by_field(checked_pieces(colors)?, &Integers::numbered(field, parent))?, parent))
}

/// As [`image`](super::image) and [`image_rects`](super::image_rects).
///
/// # Panics
/// If the field's integers are not those of as many points or rectangles of the target's dimension.
pub fn image(sources: &[AnySpace], names: Names<'_>, target: &AnySpace) -> Vec<AnySpace> {
    for_dimension!(target, |target| match names {
        Names::Points(field) => {
            let mut pointers = PointerSet::new(target.membership());
            sources.iter().map(|source| pointers.of(&Integers::unnumbered(field, source)).into()).collect()
        }
        Names::Rects(field) => {
            sources.iter().map(|source| union_of_rects(&Integers::unnumbered(field, source), target).into()).collect()
        }
    })
}

/// As [`preimage`](super::preimage) and [`preimage_rects`](super::preimage_rects).
///
/// # Errors
/// When the targets differ in their number of dimensions.
///
/// # Panics
/// If the field's integers are not those of as many points or rectangles of the targets' dimension.
pub fn preimage(targets: &[AnySpace], names: Names<'_>, source: &AnySpace) -> Result<Vec<AnySpace>, DimensionMismatch> {
    let Some(first) = targets.first() else { return Ok(Vec::new()) };
    let pieces = for_dimension!(first.dim(), T => {
        let targets = typed_list::<T>(targets)?;
        match names {
            Names::Points(field) => pieces_by_pointers(&targets, &Integers::numbered(field, source)),
            Names::Rects(field) => pieces_by_rects(&targets, &Integers::numbered(field, source)),
        }
    });
    Ok(spaces(pieces, source))
}

fn spaces(pieces: Runs, source: &AnySpace) -> Vec<AnySpace> {
    for_dimension!(source, |source| erased(pieces.into_spaces(source)))
}

fn erased<const D: usize>(spaces: Vec<IndexSpace<D>>) -> Vec<AnySpace> {
    spaces.into_iter().map(AnySpace::from).collect()
}
