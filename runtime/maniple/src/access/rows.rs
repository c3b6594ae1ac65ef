//! The values of a field in rows, for code that knows neither their type nor the region's dimension.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use maniple_realm::instance::Instance;
use maniple_region::{FieldId, FieldType, FieldValue};
use maniple_space::{AnySpace, Rect};

use super::{Column, ColumnPlace};

/// Reads a field of a type that is known at run time, a row at a time.
pub(crate) struct Rows<'a> {
    place: ColumnPlace,
    ty: FieldType,
    space: &'a AnySpace,
}

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
        (field, ty): (FieldId, FieldType),
        space: &'a AnySpace,
    ) -> Option<Self> {
        Some(Self { place: ColumnPlace::new(instance, (field, ty), false)?, ty, space })
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
        assert_eq!(self.ty, FieldType::of::<V>(), "values are read as what the field holds");
        let (first, stride) = (self.first.cast::<V>(), self.stride);
        // SAFETY: a valid value of the field's type, which is this one, lies there. `Rows`, which lent these values for
        // `'a`, vouches that nothing changes them.
        (0..self.len).map(move |number| unsafe { first.byte_offset(number as isize * stride).read() })
    }
}
