//! Rows of values as slices.

use std::ops::{Deref, DerefMut};

/// The values of a row: a slice of the instance where the layout allows it, else a copy.
#[derive(Debug)]
pub enum Span<'a, T> {
    /// The instance's own memory.
    Direct(&'a [T]),
    /// A copy, since the layout keeps the values apart.
    Gathered(Vec<T>),
}

impl<T> Deref for Span<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Direct(values) => values,
            Self::Gathered(values) => values,
        }
    }
}

/// The values of a row, to be changed: a slice of the instance where the layout allows it, else a copy that is written
/// back when dropped.
pub struct SpanMut<'a, T: Copy> {
    place: ValuePlace<'a, T>,
}

/// Puts changed values back where they came from.
type WriteBack<'a, T> = Box<dyn FnMut(&[T]) + 'a>;

enum ValuePlace<'a, T: Copy> {
    Direct(&'a mut [T]),
    Staged { values: Vec<T>, write_back: WriteBack<'a, T> },
}

impl<'a, T: Copy> SpanMut<'a, T> {
    pub(super) fn direct(values: &'a mut [T]) -> Self {
        Self { place: ValuePlace::Direct(values) }
    }

    pub(super) fn staged(values: Vec<T>, write_back: impl FnMut(&[T]) + 'a) -> Self {
        Self { place: ValuePlace::Staged { values, write_back: Box::new(write_back) } }
    }
}

impl<T: Copy> Deref for SpanMut<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.place {
            ValuePlace::Direct(values) => values,
            ValuePlace::Staged { values, .. } => values,
        }
    }
}

impl<T: Copy> DerefMut for SpanMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.place {
            ValuePlace::Direct(values) => values,
            ValuePlace::Staged { values, .. } => values,
        }
    }
}

impl<T: Copy> Drop for SpanMut<'_, T> {
    fn drop(&mut self) {
        match &mut self.place {
            ValuePlace::Direct(_) => {}
            ValuePlace::Staged { values, write_back } => write_back(values),
        }
    }
}
