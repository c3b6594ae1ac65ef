//! The values that a partition depends on, many at a time, whatever types they are made of.

use std::cell::RefCell;
use std::sync::Arc;

use maniple_region::{FieldId, FieldMask, FieldValue};
use maniple_space::partition::FieldRead;
use maniple_space::{IndexSpace, Point, Rect};
use smallvec::{SmallVec, smallvec};

use crate::access::Read;
use crate::error::Result;
use crate::task::LeafCall;

/// How a task reads the values that a partition depends on: of one field, or of several.
pub(super) struct Values<N, const S: usize> {
    /// Where the first is, the values are looked at.
    fields: SmallVec<[FieldId; 2]>,
    uses_next: bool,
    are_unsigned: bool,
    open: Open<N, S>,
}

impl<N, const S: usize> Clone for Values<N, S> {
    fn clone(&self) -> Self {
        let Self { fields, uses_next, are_unsigned, open } = self;
        Self { fields: fields.clone(), uses_next: *uses_next, are_unsigned: *are_unsigned, open: Arc::clone(open) }
    }
}

type Open<N, const S: usize> = Arc<dyn for<'a> Fn(&LeafCall<'a>) -> Result<Boxed<'a, N, S>> + Send + Sync>;
type Boxed<'a, N, const S: usize> = Box<dyn Rows<N, S> + 'a>;

/// Values along the last dimension.
trait Rows<N, const S: usize> {
    /// Appends the values of `len` points, at least one, from `start` on. The region has these points.
    fn append(&self, start: Point<S>, len: usize, values: &mut Vec<N>);
}

impl<N: 'static, const S: usize> Values<N, S> {
    /// What a function makes of each value of the first requirement's field.
    pub(super) fn of<V: FieldValue>(field: FieldId, map: impl Fn(V) -> N + Copy + Send + Sync + 'static) -> Self {
        let open = opens(move |call| Ok(Box::new(Mapped { read: call.read::<V, S>(0, field)?, map })));
        Self { fields: smallvec![field], uses_next: false, are_unsigned: false, open }
    }

    /// The fields.
    pub(super) fn mask(&self) -> FieldMask {
        self.fields.iter().copied().collect()
    }

    /// The field whose place decides where the values are looked at.
    pub(super) fn first_field(&self) -> FieldId {
        self.fields[0]
    }

    /// Whether the value of a point depends on the next point too.
    pub(super) fn uses_next(&self) -> bool {
        self.uses_next
    }

    /// Whether negative numbers stand for those that are too large for an `i64`, and name nothing.
    pub(super) fn are_unsigned(&self) -> bool {
        self.are_unsigned
    }

    pub(super) fn with_unsigned(self, are_unsigned: bool) -> Self {
        Self { are_unsigned, ..self }
    }

    /// The values in a call, at the points of its first requirement.
    pub(super) fn column<'a>(&self, call: &LeafCall<'a>) -> Result<Column<'a, N, S>> {
        self.column_within(call, call.piece::<(), S>(0)?.space())
    }

    /// The values of some of these points.
    pub(super) fn column_within<'a>(&self, call: &LeafCall<'a>, space: &'a IndexSpace<S>) -> Result<Column<'a, N, S>> {
        Ok(Column { rows: (self.open)(call)?, space })
    }
}

impl<A: Copy + 'static, const S: usize> Values<A, S> {
    /// What a function makes of each value.
    pub(super) fn map<N: 'static>(self, map: impl Fn(A) -> N + Copy + Send + Sync + 'static) -> Values<N, S> {
        let Self { fields, uses_next, are_unsigned, open } = self;
        let open = opens(move |call| {
            Ok(Box::new(Combined {
                rows: [open(call)?],
                scratch: RefCell::default(),
                combine: move |[a]: [A; 1]| map(a),
            }))
        });
        Values { fields, uses_next, are_unsigned, open }
    }

    /// What a function makes of each value and of another of the same point.
    pub(super) fn zip<N: 'static>(
        mut self,
        other: Self,
        map: impl Fn(A, A) -> N + Copy + Send + Sync + 'static,
    ) -> Values<N, S> {
        self.fields.extend(other.fields);
        let opened = [self.open, other.open];
        let open = opens(move |call| {
            let rows = [opened[0](call)?, opened[1](call)?];
            let combine = move |[a, b]: [A; 2]| map(a, b);
            Ok(Box::new(Combined { rows, scratch: RefCell::default(), combine }))
        });
        Values { fields: self.fields, uses_next: false, are_unsigned: false, open }
    }

    /// What a function makes of each value and of the next point's along the last dimension; `last` for a point whose next is not there.
    pub(super) fn with_next<N: Copy + Send + Sync + 'static>(
        self,
        map: impl Fn(A, A) -> N + Copy + Send + Sync + 'static,
        last: N,
    ) -> Values<N, S> {
        let Self { fields, open, .. } = self;
        let open = opens(move |call| {
            let space = call.piece::<(), S>(0)?.space();
            Ok(Box::new(WithNext { rows: open(call)?, space, scratch: RefCell::default(), map, last }))
        });
        Values { fields, uses_next: true, are_unsigned: false, open }
    }
}

/// Says for which lifetimes a function is called.
fn opens<N, const S: usize>(
    open: impl for<'a> Fn(&LeafCall<'a>) -> Result<Boxed<'a, N, S>> + Send + Sync + 'static,
) -> Open<N, S> {
    Arc::new(open)
}

/// Values as the partitioning functions read them.
pub(super) struct Column<'a, N, const S: usize> {
    rows: Boxed<'a, N, S>,
    space: &'a IndexSpace<S>,
}

impl<N, const S: usize> Column<'_, N, S> {
    /// The points that have values.
    pub(super) fn space(&self) -> &IndexSpace<S> {
        self.space
    }
}

impl<N: Copy, const S: usize> FieldRead<N, S> for Column<'_, N, S> {
    fn read(&self, at: Point<S>) -> N {
        let mut value = Vec::with_capacity(1);
        self.rows.append(at, 1, &mut value);
        value[0]
    }

    fn append_row(&self, start: Point<S>, len: usize, values: &mut Vec<N>) {
        self.rows.append(start, len, values);
    }
}

/// So many points, at least one, from a point on along the last dimension.
fn row<const S: usize>(start: Point<S>, len: usize) -> Rect<S> {
    let mut last = start;
    last.0[S - 1] += len as i64 - 1;
    Rect::new(start, last)
}

/// The values of a field with a function applied.
struct Mapped<'a, V, M, const S: usize> {
    read: Read<'a, V, S>,
    map: M,
}

impl<V: FieldValue, N, M: Fn(V) -> N, const S: usize> Rows<N, S> for Mapped<'_, V, M, S> {
    fn append(&self, start: Point<S>, len: usize, values: &mut Vec<N>) {
        values.extend(self.read.span(row(start, len)).iter().map(|&value| (self.map)(value)));
    }
}

/// A function of values of one point.
struct Combined<'a, A, C, const S: usize, const K: usize> {
    rows: [Boxed<'a, A, S>; K],
    scratch: RefCell<Scratch<A, K>>,
    combine: C,
}

/// Buffers for a value of each.
struct Scratch<A, const K: usize>([Vec<A>; K]);

impl<A, const K: usize> Default for Scratch<A, K> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Vec::new()))
    }
}

impl<A: Copy, N, C: Fn([A; K]) -> N, const S: usize, const K: usize> Rows<N, S> for Combined<'_, A, C, S, K> {
    fn append(&self, start: Point<S>, len: usize, values: &mut Vec<N>) {
        let Scratch(read) = &mut *self.scratch.borrow_mut();
        for (rows, read) in self.rows.iter().zip(&mut *read) {
            read.clear();
            rows.append(start, len, read);
        }
        values.extend((0..len).map(|at| (self.combine)(std::array::from_fn(|number| read[number][at]))));
    }
}

/// A function of the values of a point and of the next.
struct WithNext<'a, A, M, N, const S: usize> {
    rows: Boxed<'a, A, S>,
    space: &'a IndexSpace<S>,
    scratch: RefCell<Vec<A>>,
    map: M,
    last: N,
}

impl<A: Copy, N: Copy, M: Fn(A, A) -> N, const S: usize> Rows<N, S> for WithNext<'_, A, M, N, S> {
    fn append(&self, start: Point<S>, len: usize, values: &mut Vec<N>) {
        let mut next = row(start, len).hi;
        let after = next[S - 1].checked_add(1);
        let has_next = after.is_some_and(|after| {
            next.0[S - 1] = after;
            self.space.contains(next)
        });
        let read = &mut *self.scratch.borrow_mut();
        read.clear();
        self.rows.append(start, len + usize::from(has_next), read);
        values.extend(read.windows(2).map(|pair| (self.map)(pair[0], pair[1])));
        if !has_next {
            values.push(self.last);
        }
    }
}
