//! The values that a partition depends on: what the fields of a relation say at the points of a space.

use maniple_region::{FieldId, FieldMask};
use maniple_space::partition::dynamic::{IntegerField, Names};
use maniple_space::{AnySpace, IndexSpace, Rect, for_dimension};
use smallvec::{SmallVec, smallvec};

use super::integers::{IntegerRows, Integers, range};
use crate::support::error::Result;
use crate::task::LeafCall;

/// How a task reads the values that a partition depends on: of one field, or of two.
#[derive(Clone)]
pub(super) struct DependentValues {
    /// The fields with the values. The place of the first decides where the values are read.
    fields: SmallVec<[Integers; 2]>,
    form: Form,
}

/// The meaning of the integers of a point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A number, or a point.
    Point,
    /// A rectangle.
    Rect,
    /// The first row of a range, and the row that ends it.
    Range,
    /// The first row of a range, which the next point's ends; of a point whose next is not there, nothing.
    Offset,
}

impl DependentValues {
    /// Numbers, or points.
    pub(super) fn points(field: Integers) -> Self {
        Self { fields: smallvec![field], form: Form::Point }
    }

    /// Rectangles.
    pub(super) fn rects(field: Integers) -> Self {
        Self { fields: smallvec![field], form: Form::Rect }
    }

    /// Ranges of rows, of which pairs are the first and the one that ends it.
    pub(super) fn ranges(pairs: Integers) -> Self {
        Self { fields: smallvec![pairs], form: Form::Range }
    }

    /// Ranges of rows, from a number up to another.
    pub(super) fn between(first: Integers, end: Integers) -> Self {
        Self { fields: smallvec![first, end], form: Form::Range }
    }

    /// Ranges of rows, from a point's number up to that of the next along the last dimension.
    pub(super) fn offsets(field: Integers) -> Self {
        Self { fields: smallvec![field], form: Form::Offset }
    }

    /// The fields.
    pub(super) fn mask(&self) -> FieldMask {
        self.fields.iter().map(|integers| integers.field).collect()
    }

    /// The field whose place decides where the values are looked at.
    pub(super) fn first_field(&self) -> FieldId {
        self.fields[0].field
    }

    /// Whether the value of a point depends on the next point too.
    pub(super) fn uses_next(&self) -> bool {
        self.form == Form::Offset
    }

    /// Of the points of a space, those that the values can name: negative numbers that have wrapped name nothing.
    pub(super) fn nameable(&self, space: &AnySpace) -> AnySpace {
        if self.form == Form::Point && self.fields[0].is_unsigned && space.bounds().lo()[0] < 0 {
            let numbers = Rect::<1>::new([0], [i64::MAX]).into();
            return space.intersection(&numbers).expect("numbers name points of one dimension");
        }
        space.clone()
    }

    /// The values in a call, at the points of its first requirement.
    pub(super) fn column<'a>(&'a self, call: &LeafCall<'a>) -> Result<CallColumn<'a>> {
        let rows = self.fields.iter().map(|field| field.open(call)).collect::<Result<_>>()?;
        Ok(CallColumn { values: self, rows })
    }
}

/// The values in a call.
pub(super) struct CallColumn<'a> {
    values: &'a DependentValues,
    rows: SmallVec<[IntegerRows<'a>; 2]>,
}

/// How many values are read at a time: they stay in the first-level cache.
const CHUNK: i64 = 512;

impl CallColumn<'_> {
    /// The points that have values.
    pub(super) fn space(&self) -> &AnySpace {
        self.rows[0].rows.space()
    }

    /// The points or rectangles that the values name.
    pub(super) fn names(&self) -> Names<'_> {
        match self.values.form {
            Form::Point => Names::Points(self),
            Form::Rect | Form::Range | Form::Offset => Names::Rects(self),
        }
    }

    /// The integers of one point, as they are in the first field.
    pub(super) fn read<const D: usize>(&self, at: Rect<D>) -> i64 {
        let mut values = Vec::with_capacity(1);
        self.rows[0].append(at, &mut values);
        values[0]
    }

    fn read_rows<const D: usize>(&self, space: &IndexSpace<D>, visit: &mut dyn FnMut(&[i64])) {
        let (mut values, mut scratch) = (Vec::new(), Vec::new());
        for row in space.rows() {
            let mut part = row;
            loop {
                part.hi.0[D - 1] = part.lo[D - 1].saturating_add(CHUNK - 1).min(row.hi[D - 1]);
                self.append(part, &mut values, &mut scratch);
                if values.len() >= CHUNK as usize {
                    visit(&values);
                    values.clear();
                }
                if part.hi == row.hi {
                    break;
                }
                part.lo.0[D - 1] = part.hi[D - 1] + 1;
            }
        }
        visit(&values);
    }

    /// Appends the values of a row.
    fn append<const D: usize>(&self, row: Rect<D>, values: &mut Vec<i64>, scratch: &mut Vec<i64>) {
        let (form, rows, fields) = (self.values.form, &*self.rows, &self.values.fields);
        let range =
            |first: i64, end: i64| range([first, end], [fields[0].is_unsigned, fields[rows.len() - 1].is_unsigned]);
        scratch.clear();
        match (form, rows) {
            (Form::Point | Form::Rect, rows) => rows[0].append(row, values),
            (Form::Range, [firsts, ends]) => {
                firsts.append(row, scratch);
                ends.append(row, scratch);
                let (firsts, ends) = scratch.split_at(scratch.len() / 2);
                values.extend(firsts.iter().zip(ends).flat_map(|(&first, &end)| range(first, end)));
            }
            (Form::Range, rows) => {
                rows[0].append(row, scratch);
                values.extend(scratch.as_chunks().0.iter().flat_map(|&[first, end]| range(first, end)));
            }
            (Form::Offset, rows) => {
                let longer = self.with_next(&row);
                rows[0].append(longer.unwrap_or(row), scratch);
                if longer.is_none() {
                    scratch.extend_from_within(scratch.len() - 1..);
                }
                values.extend(scratch.windows(2).flat_map(|pair| range(pair[0], pair[1])));
            }
        }
    }

    /// A row with the point that follows it, if that is there.
    fn with_next<const D: usize>(&self, row: &Rect<D>) -> Option<Rect<D>> {
        let mut longer = *row;
        longer.hi.0[D - 1] = longer.hi[D - 1].checked_add(1)?;
        self.space().contains(longer.hi.into()).then_some(longer)
    }
}

impl IntegerField for CallColumn<'_> {
    fn for_each_chunk(&self, space: &AnySpace, visit: &mut dyn FnMut(&[i64])) {
        for_dimension!(space, |space| self.read_rows(space, visit));
    }
}
