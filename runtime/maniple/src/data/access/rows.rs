//! The values of a field in rows, for code that knows neither their type nor the region's dimension.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use maniple_realm::instance::Instance;
use maniple_region::{FieldId, FieldType, FieldValue};
use maniple_space::{AnySpace, Rect, for_dimension};

use super::{Column, ColumnPlace};

/// Reads a field of a type that is known at run time, a row at a time.
pub(crate) struct Rows<'a> {
    place: ColumnPlace,
    ty: FieldType,
    space: &'a AnySpace,
}

/// Reads and writes a field of a type that is known at run time, a row at a time.
pub(crate) struct RowsMut<'a>(Rows<'a>);

/// Values of a type that is known at run time, at equal distances in an instance.
pub(crate) struct ErasedValues<'a> {
    first: NonNull<u8>,
    len: usize,
    /// The bytes from a value to the next.
    stride: isize,
    ty: FieldType,
    marker: PhantomData<&'a u8>,
}

impl<'a> Rows<'a> {
    /// The rows of a field for the points of `space`. None if the instance does not store the field.
    ///
    /// # Safety
    /// The instance holds valid values of the type in the field at all points of `space`; for `'a`, the bytes stay
    /// there, and nothing changes them.
    pub(crate) unsafe fn new(
        instance: &'a Instance,
        field: FieldId,
        ty: FieldType,
        space: &'a AnySpace,
    ) -> Option<Self> {
        Some(Self { place: ColumnPlace::new(instance, field, ty, false)?, ty, space })
    }

    /// The points that can be read.
    pub(crate) fn space(&self) -> &'a AnySpace {
        self.space
    }

    /// Calls `visit` with the values of a row in order, with as many at once as lie at equal distances.
    ///
    /// # Panics
    /// If the rectangle is no row, or the region lacks one of its points or has another dimension.
    pub(crate) fn visit<const D: usize>(&self, row: Rect<D>, visit: &mut dyn FnMut(ErasedValues<'_>)) {
        let space = self.space.typed().expect("rows are asked for in the dimension of the region");
        // SAFETY: the place is of the instance that `new` was given, and any bytes are valid as these.
        let column: Column<'_, MaybeUninit<u8>, D> = unsafe { Column::at(&self.place, space) };
        let ty = self.ty;
        column.for_each_stretch(&row, |first, len, stride| {
            visit(ErasedValues { first: first.cast(), len, stride, ty, marker: PhantomData });
        });
    }

    /// Calls `visit` with all values in the row-major order of their points, with as many at once as lie at equal
    /// distances in a row, and the coordinates of the first.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&[i64], ErasedValues<'_>)) {
        for_dimension!(self.space.dim(), D => {
            let rows = self.space.typed::<D>().into_iter().flat_map(|space| space.rows());
            for row in rows {
                let mut first = row.lo.0;
                self.visit(row, &mut |values| {
                    let count = values.len() as i64;
                    visit(&first, values);
                    first[D - 1] += count;
                });
            }
        });
    }

    /// How many values there are.
    pub(crate) fn count(&self) -> usize {
        self.space.volume() as usize
    }
}

impl<'a> RowsMut<'a> {
    /// The rows of a field that may be changed.
    ///
    /// # Safety
    /// As for [`Rows::new`]; and for `'a`, nothing but this touches the values.
    pub(crate) unsafe fn new(
        instance: &'a Instance,
        field: FieldId,
        ty: FieldType,
        space: &'a AnySpace,
    ) -> Option<Self> {
        // SAFETY: promised by the caller.
        unsafe { Rows::new(instance, field, ty, space) }.map(Self)
    }

    /// Calls `visit` with all values, as [`Rows::for_each`] does: with copies, which are written back, where values do
    /// not lie side by side.
    ///
    /// # Panics
    /// If the values have another type.
    pub(crate) fn for_each<V: FieldValue>(&mut self, visit: &mut dyn FnMut(&[i64], &mut [V])) {
        let mut copies = Vec::new();
        self.0.for_each(&mut |first, values| {
            if values.is_slice() {
                let all = std::ptr::slice_from_raw_parts_mut(values.place::<V>(), values.len);
                // SAFETY: so many valid values lie side by side there, and nothing but this accessor, which is
                // borrowed mutably, touches them.
                return visit(first, unsafe { &mut *all });
            }
            copies.clear();
            copies.extend(values.typed::<V>());
            visit(first, &mut copies);
            for (number, value) in copies.iter().enumerate() {
                // SAFETY: as above; the value was read from there.
                unsafe { values.place::<V>().byte_offset(number as isize * values.stride).write(*value) };
            }
        });
    }
}

impl<'a> ErasedValues<'a> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The values.
    ///
    /// # Panics
    /// If they have another type.
    pub(crate) fn typed<V: FieldValue>(&self) -> impl ExactSizeIterator<Item = V> + use<'a, V> {
        let (first, stride) = (self.place::<V>(), self.stride);
        // SAFETY: a valid value of the field's type, which is this one, lies there. `Rows`, which lent these values for
        // `'a`, vouches that nothing changes them.
        (0..self.len).map(move |number| unsafe { first.byte_offset(number as isize * stride).read() })
    }

    /// The values, if they lie side by side.
    ///
    /// # Panics
    /// If they have another type.
    pub(crate) fn as_slice<V: FieldValue>(&self) -> Option<&'a [V]> {
        // SAFETY: as in `typed`, with one value behind the other.
        self.is_slice().then(|| unsafe { std::slice::from_raw_parts(self.place::<V>(), self.len) })
    }

    fn is_slice(&self) -> bool {
        self.len <= 1 || self.stride == self.ty.size as isize
    }

    /// The place of the first value.
    ///
    /// # Panics
    /// If it has another type.
    fn place<V: FieldValue>(&self) -> *mut V {
        assert_eq!(self.ty, FieldType::of::<V>(), "values are read as what the field holds");
        self.first.cast::<V>().as_ptr()
    }
}
