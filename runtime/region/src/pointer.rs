//! Fields named by type: how a struct's members become fields, and points that know what they point at.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use bytemuck::Zeroable;
use maniple_space::Point;

use crate::{FieldDescriptor, FieldId};

/// A struct whose members are the fields of a region. Derive it with `#[derive(Fields)]`.
///
/// Member `i` is field `i` of every region made for the type; each member also becomes a constant of its name
/// (`Node::voltage`).
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not derive `Fields`",
    label = "expected a struct that derives `Fields`",
    note = "the fields of a region are the members of a struct that derives `Fields`"
)]
pub trait Fields: 'static {
    /// The fields in the order of the members.
    fn descriptors() -> Vec<FieldDescriptor>;
}

/// Tells a member's type from a hash of its name, for `#[task]`. Implemented by `#[derive(Fields)]`.
pub trait FieldNamed<const NAME: u64> {
    /// The member's type. That it is plain data is checked once, where [`Fields::descriptors`] names it.
    type Type;
    /// The member's number.
    const ID: FieldId;
}

/// The struct `F`, for `#[task]`: `CHECKED` is `true`, or a constant that the compiler refuses because a name is no
/// field's. In the second case it reports nothing more about types that are found through this one.
pub struct Checked<F, const CHECKED: bool>(PhantomData<fn() -> F>);

impl<F: FieldNamed<NAME>, const NAME: u64> FieldNamed<NAME> for Checked<F, true> {
    type Type = F::Type;
    const ID: FieldId = F::ID;
}

/// The fields by name, for `#[task]`. Implemented by `#[derive(Fields)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not derive `Fields`",
    label = "expected a struct that derives `Fields`",
    note = "the fields of a region are the members of a struct that derives `Fields`"
)]
pub trait NamedFields: Fields {
    /// A struct with a member of type [`Field`] for each field: of another name the compiler says that there is no such
    /// field, and which one is like it.
    type Names;
    /// The fields.
    const NAMES: Self::Names;
}

/// A field of the regions of `F` with values of type `T`: `Node::voltage` is a `Field<Node, f32>`.
pub struct Field<F, T> {
    id: FieldId,
    marker: PhantomData<fn() -> (F, T)>,
}

impl<F, T> Field<F, T> {
    /// The field with this id. The runtime checks the type when the field is used.
    #[must_use]
    pub const fn new(id: FieldId) -> Self {
        Self { id, marker: PhantomData }
    }

    /// The field's number.
    #[must_use]
    pub const fn id(self) -> FieldId {
        self.id
    }
}

impl<F, T> From<Field<F, T>> for FieldId {
    fn from(field: Field<F, T>) -> Self {
        field.id
    }
}

impl<F, T> Clone for Field<F, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, T> Copy for Field<F, T> {}

impl<F, T> fmt::Debug for Field<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field({}: {})", self.id.0, std::any::type_name::<T>())
    }
}

/// A point of a region of `F`, stored in a field of another (or the same) region: valid wherever the data is, unlike an
/// address.
///
/// Layout: a [`Point`]. All zeros is the point at the origin.
#[repr(transparent)]
pub struct Ptr<F, const D: usize = 1> {
    point: Point<D>,
    marker: PhantomData<fn() -> F>,
}

impl<F, const D: usize> Ptr<F, D> {
    /// A pointer to a point.
    #[must_use]
    pub const fn new(point: Point<D>) -> Self {
        Self { point, marker: PhantomData }
    }

    /// The point.
    #[must_use]
    #[inline]
    pub const fn point(self) -> Point<D> {
        self.point
    }
}

impl<F> Ptr<F, 1> {
    /// A pointer to a row by its number.
    #[must_use]
    pub const fn row(row: i64) -> Self {
        Self::new(Point([row]))
    }
}

impl<F, const D: usize> From<Point<D>> for Ptr<F, D> {
    fn from(point: Point<D>) -> Self {
        Self::new(point)
    }
}

impl<F, const D: usize> From<Ptr<F, D>> for Point<D> {
    fn from(pointer: Ptr<F, D>) -> Self {
        pointer.point
    }
}

impl<F, const D: usize> Clone for Ptr<F, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, const D: usize> Copy for Ptr<F, D> {}

impl<F, const D: usize> PartialEq for Ptr<F, D> {
    fn eq(&self, other: &Self) -> bool {
        self.point == other.point
    }
}

impl<F, const D: usize> Eq for Ptr<F, D> {}

impl<F, const D: usize> PartialOrd for Ptr<F, D> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<F, const D: usize> Ord for Ptr<F, D> {
    /// In row-major order.
    fn cmp(&self, other: &Self) -> Ordering {
        self.point.cmp(&other.point)
    }
}

impl<F, const D: usize> Hash for Ptr<F, D> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.point.hash(state);
    }
}

impl<F, const D: usize> fmt::Debug for Ptr<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "->{:?}", self.point)
    }
}

// SAFETY: transparent over `Point`, an array of i64, of which all zeros is a value; the marker has no bytes.
unsafe impl<F, const D: usize> Zeroable for Ptr<F, D> {}
