//! Reducing.

use std::marker::PhantomData;

use maniple_region::{FieldValue, ReductionOperator};
use maniple_space::{IndexSpace, Point};

use super::Column;

/// Folds contributions into a field with an operator: `charge.fold(point, 0.5)`. The values themselves can't be seen.
pub struct Reduce<'a, Op: ReductionOperator<T>, T: FieldValue, const D: usize = 1> {
    place: ContributionPlace<'a, Op, T, D>,
}

/// The destination of contributions.
enum ContributionPlace<'a, Op: ReductionOperator<T>, T: FieldValue, const D: usize> {
    /// Into a buffer of contributions.
    Buffer(Column<'a, Op::Rhs, D>),
    /// Into the values.
    Values(Column<'a, T, D>, PhantomData<Op>),
}

impl<'a, Op: ReductionOperator<T>, T: FieldValue, const D: usize> Reduce<'a, Op, T, D> {
    /// The column must be the only way to its contributions.
    pub(crate) fn into_buffer(column: Column<'a, Op::Rhs, D>) -> Self {
        Self { place: ContributionPlace::Buffer(column) }
    }

    /// The column must be the only way to its values.
    pub(crate) fn in_place(column: Column<'a, T, D>) -> Self {
        Self { place: ContributionPlace::Values(column, PhantomData) }
    }

    /// The points that can be contributed to.
    #[must_use]
    pub fn space(&self) -> &'a IndexSpace<D> {
        match &self.place {
            ContributionPlace::Buffer(column) => column.space(),
            ContributionPlace::Values(column, _) => column.space(),
        }
    }

    /// Whether the region has a point.
    #[inline]
    #[must_use]
    pub fn contains(&self, point: impl Into<Point<D>>) -> bool {
        match &self.place {
            ContributionPlace::Buffer(column) => column.contains(point.into()),
            ContributionPlace::Values(column, _) => column.contains(point.into()),
        }
    }

    /// Contributes to the value at a point.
    ///
    /// # Panics
    /// If the region does not have the point.
    #[inline]
    #[track_caller]
    pub fn fold(&mut self, point: impl Into<Point<D>>, contribution: Op::Rhs) {
        match &self.place {
            ContributionPlace::Buffer(column) => {
                // SAFETY: the place is in the region, and only this accessor, borrowed mutably, touches it.
                Op::fold(unsafe { column.place_or_panic(point.into()).as_mut() }, contribution)
            }
            ContributionPlace::Values(column, _) => {
                // SAFETY: the place is in the region, and only this accessor, borrowed mutably, touches it.
                Op::apply(unsafe { column.place_or_panic(point.into()).as_mut() }, contribution)
            }
        }
    }

    /// Contributes to the value at a point; false if the region does not have the point.
    #[inline]
    pub fn try_fold(&mut self, point: impl Into<Point<D>>, contribution: Op::Rhs) -> bool {
        // One look at the place for both questions: this is the inner loop of tasks whose points are spread over
        // several regions.
        match &self.place {
            ContributionPlace::Buffer(column) => column.place(point.into()).is_some_and(|mut place| {
                // SAFETY: the place is in the region, and only this accessor, borrowed mutably, touches it.
                Op::fold(unsafe { place.as_mut() }, contribution);
                true
            }),
            ContributionPlace::Values(column, _) => column.place(point.into()).is_some_and(|mut place| {
                // SAFETY: as above.
                Op::apply(unsafe { place.as_mut() }, contribution);
                true
            }),
        }
    }
}
