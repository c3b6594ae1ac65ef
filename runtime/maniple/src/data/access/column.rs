//! One field of one instance, seen through one region.

use std::any::TypeId;
use std::marker::PhantomData;
use std::ptr::NonNull;

use bytemuck::Zeroable;
use maniple_realm::instance::Instance;
use maniple_realm::layout::{FieldAddress, FieldId, FieldLayout};
use maniple_region::FieldType;
use maniple_space::{IndexSpace, MAX_DIMENSIONS, Membership, Point, Rect};

/// The values of type `T` of a field at the points of a region.
///
/// The constructor's caller vouches for type, bounds and ordering; every method then stays within the region's points.
pub(crate) struct Column<'a, T, const D: usize> {
    /// The address at which the origin of coordinates would lie; or the address of the instance's first byte, if values
    /// have no strides.
    base: *mut u8,
    /// How many bytes apart neighbours are.
    strides: [isize; D],
    /// The layout of the values in an instance in blocks or of several rectangles, in which values have no strides.
    scattered: Option<&'a FieldLayout>,
    members: &'a Membership<D>,
    space: &'a IndexSpace<D>,
    marker: PhantomData<&'a T>,
}

/// The place of one field in one instance.
#[derive(Clone, Debug)]
pub(crate) struct ColumnPlace {
    pub(crate) field: FieldId,
    /// The type that the field is declared with.
    pub(crate) ty: TypeId,
    /// The instance holds contributions to the field.
    pub(crate) is_buffer: bool,
    /// As in the columns.
    base: *mut u8,
    strides: [isize; MAX_DIMENSIONS],
    scattered: Option<FieldLayout>,
}

// SAFETY: it is an address; the code that makes a column of it vouches for what is there.
unsafe impl Send for ColumnPlace {}
// SAFETY: as above.
unsafe impl Sync for ColumnPlace {}

impl ColumnPlace {
    /// None if the instance does not store the field.
    pub(crate) fn new(instance: &Instance, field: FieldId, ty: FieldType, is_buffer: bool) -> Option<Self> {
        let (base, strides, scattered) = values_of(instance, field)?;
        Some(Self { field, ty: ty.type_id, is_buffer, base, strides, scattered: scattered.cloned() })
    }
}

/// Of a field's values: the base, the strides and, if they have none, the layout for its [column](Column).
fn values_of(instance: &Instance, field: FieldId) -> Option<(*mut u8, [isize; MAX_DIMENSIONS], Option<&FieldLayout>)> {
    let (layout, base) = (instance.layout().field(field)?, instance.base()?.as_ptr());
    Some(match layout.single().and_then(FieldAddress::affine) {
        Some(affine) => (base.wrapping_offset(affine.bias), affine.strides, None),
        None => (base, [0; MAX_DIMENSIONS], Some(layout)),
    })
}

/// The offset of a point's value in an instance of several rectangles.
#[inline(never)]
fn find<const D: usize>(layout: &FieldLayout, point: Point<D>) -> usize {
    layout.offset(point)
}

impl<'a, T, const D: usize> Column<'a, T, D> {
    /// The column of a field for the points of `space`. None if the instance does not store the field.
    ///
    /// # Safety
    /// The instance holds valid `T`s in the field at all points of `space`; for `'a`, the bytes stay there, and
    /// nothing else changes them, or, if the column is used to write, touches them.
    pub(crate) unsafe fn new(instance: &'a Instance, field: FieldId, space: &'a IndexSpace<D>) -> Option<Self> {
        let (base, strides, scattered) = values_of(instance, field)?;
        let strides = std::array::from_fn(|d| strides[d]);
        Some(Self { base, strides, scattered, members: space.membership(), space, marker: PhantomData })
    }

    /// The same from what was found out before.
    ///
    /// # Safety
    /// As for [`new`](Self::new), with the instance that the place was made from.
    #[inline(always)]
    pub(crate) unsafe fn at(place: &'a ColumnPlace, space: &'a IndexSpace<D>) -> Self {
        let strides = std::array::from_fn(|d| place.strides[d]);
        let (base, scattered) = (place.base, place.scattered.as_ref());
        Self { base, strides, scattered, members: space.membership(), space, marker: PhantomData }
    }

    pub(crate) fn space(&self) -> &'a IndexSpace<D> {
        self.space
    }

    #[inline(always)]
    pub(crate) fn contains(&self, point: Point<D>) -> bool {
        self.members.contains(point)
    }

    /// The address of a point's value, if the region has the point.
    #[inline(always)]
    pub(crate) fn place(&self, point: Point<D>) -> Option<NonNull<T>> {
        // SAFETY: the region has the point.
        self.contains(point).then(|| unsafe { self.place_unchecked(point) })
    }

    /// The address of a point's value.
    ///
    /// # Panics
    /// If the region does not have the point.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn place_or_panic(&self, point: Point<D>) -> NonNull<T> {
        match self.place(point) {
            Some(place) => place,
            None => self.outside(point),
        }
    }

    /// # Safety
    /// The region has the point.
    #[inline(always)]
    unsafe fn place_unchecked(&self, point: Point<D>) -> NonNull<T> {
        let place = match self.scattered {
            None => (0..D)
                .fold(self.base, |place, d| place.wrapping_offset((point.0[d] as isize).wrapping_mul(self.strides[d]))),
            Some(layout) => self.base.wrapping_add(match layout.single() {
                Some(address) => address.offset(point),
                None => find(layout, point),
            }),
        };
        // SAFETY: the point is stored, so this is within the instance's bytes.
        unsafe { NonNull::new_unchecked(place).cast() }
    }

    /// Makes the values zero at all points but those of a rectangle.
    ///
    /// # Safety
    /// Nothing else uses the values at these points.
    pub(crate) unsafe fn begin_around(&self, own: &Rect<D>)
    where
        T: Zeroable,
    {
        for row in self.space.rows() {
            let (mut before, mut after) = (row, Rect::EMPTY);
            if (0..D - 1).all(|d| (own.lo[d]..=own.hi[d]).contains(&row.lo[d])) {
                (before, _) = row.split_at(D - 1, own.lo[D - 1]);
                if let Some(next) = own.hi[D - 1].checked_add(1) {
                    (_, after) = row.split_at(D - 1, next);
                }
            }
            for place in before.points().chain(after.points()).filter_map(|point| self.place(point)) {
                // SAFETY: the place is of a value of this type; the rest is promised by the caller.
                unsafe { place.write(T::zeroed()) };
            }
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn outside(&self, point: Point<D>) -> ! {
        panic!("point {point} is outside the region, whose points lie within {}", self.space.bounds());
    }

    /// The address of the first value of a row, and whether the others follow it directly.
    ///
    /// # Panics
    /// If the row is more than one point wide in another than the last dimension, or the region lacks one of its
    /// points.
    #[inline]
    #[track_caller]
    pub(crate) fn row(&self, row: &Rect<D>) -> (NonNull<T>, bool) {
        self.row_of(row, size_of::<T>())
    }

    /// The same for values of so many bytes, of whatever type.
    #[inline]
    #[track_caller]
    pub(crate) fn row_of(&self, row: &Rect<D>, size: usize) -> (NonNull<T>, bool) {
        if (0..D - 1).any(|d| row.lo[d] != row.hi[d]) {
            not_a_row(row);
        }
        if row.is_empty() {
            return (NonNull::dangling(), true);
        }
        if !self.contains_rect(row) {
            self.row_outside(row);
        }
        match self.scattered {
            // SAFETY: the region has the row's points, checked above.
            None => (unsafe { self.place_unchecked(row.lo) }, self.strides[D - 1] == size as isize),
            // SAFETY: as above.
            Some(layout) => unsafe { self.scattered_row(layout, row) },
        }
    }

    /// Calls `visit` with the values of a row in order, of as many as lie at equal distances: the place of the first,
    /// how many there are, and the bytes from one to the next.
    ///
    /// # Panics
    /// As [`row_of`](Self::row_of).
    pub(crate) fn for_each_stretch(&self, row: &Rect<D>, mut visit: impl FnMut(NonNull<T>, usize, isize)) {
        let (first, _) = self.row_of(row, 0);
        let Some(layout) = self.scattered else { return visit(first, row.volume() as usize, self.strides[D - 1]) };
        // SAFETY: `row_of` has found that the region has the row's points, so this is within the instance's bytes.
        let at = |offset: usize| unsafe { NonNull::new_unchecked(self.base.wrapping_add(offset)).cast() };
        layout.for_each_part(*row, |part, address| match address.affine() {
            Some(affine) => visit(at(address.offset(part.lo)), part.volume() as usize, affine.strides[D - 1]),
            None => part.points().for_each(|point| visit(at(address.offset(point)), 1, 0)),
        });
    }

    /// [`row`](Self::row) where values have no strides.
    ///
    /// # Safety
    /// The region has the row's points.
    #[inline(never)]
    unsafe fn scattered_row(&self, layout: &FieldLayout, row: &Rect<D>) -> (NonNull<T>, bool) {
        // SAFETY: promised by the caller.
        (unsafe { self.place_unchecked(row.lo) }, layout.is_slice(row))
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn row_outside(&self, row: &Rect<D>) -> ! {
        panic!("the row {row} is not all in the region, whose points lie within {}", self.space.bounds());
    }

    #[inline]
    fn contains_rect(&self, rect: &Rect<D>) -> bool {
        let dense = self.members.is_dense();
        self.members.bounds().contains_rect(rect) && (dense || self.space.contains_rect(rect))
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn not_a_row<const D: usize>(row: &Rect<D>) -> ! {
    panic!("a span is a row along the last dimension, but {row} is wider in another");
}

// A column is a reference in disguise. The accessors built on it are `Send` and `Sync` as `&T` or `&mut T` are, by
// their own fields. SAFETY: as `&'a T`: the column alone only gives addresses; reading through a shared one gives `&T`.
unsafe impl<T: Sync, const D: usize> Sync for Column<'_, T, D> {}
// SAFETY: as above; and sending it gives up nothing that is bound to the thread.
unsafe impl<T: Send + Sync, const D: usize> Send for Column<'_, T, D> {}
