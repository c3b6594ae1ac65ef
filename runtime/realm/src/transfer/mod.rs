//! Transfers: moving values between instances.
//!
//! A [`Transfer`] copies, fills, reduces, gathers or scatters one field over a space of points, which may be sparse,
//! between instances whose points, arrangements and orders of dimensions may differ. It is checked when made, so that
//! executing it can only fail on what is in the data: a dangling pointer. Execution is a plain function;
//! [`Realm::transfer`](crate::Realm::transfer) makes a list of transfers one operation.
//!
//! In reading order: `runs` turns points into runs of bytes, `kernels` copies and fills runs, `indirect` goes through
//! pointers, `pack` makes bytes of values that go to another machine, `few` of those that go there again and again.
//!
//! ```
//! # use std::sync::Arc;
//! use maniple_realm::instance::Instance;
//! use maniple_realm::layout::{DimensionOrder, FieldId, FieldSpec, LayoutSpec};
//! # use maniple_realm::machine::MemoryId;
//! # use maniple_realm::memory::MemoryPool;
//! use maniple_realm::transfer::Transfer;
//! use maniple_space::Rect;
//!
//! let pool = MemoryPool::new(MemoryId(0), 0);
//! let field = FieldId(0);
//! let spec = LayoutSpec::new(Rect::<2>::from_shape([2, 3]).into(), vec![FieldSpec::of::<u32>(field)]);
//! let rows = Instance::attach_vec(&pool, spec.clone().build()?, vec![1u32, 2, 3, 4, 5, 6])?;
//! let columns = spec.ordered(DimensionOrder::column_major(2)).build()?;
//! let columns = Instance::attach_vec(&pool, columns, vec![0u32; 6])?;
//!
//! let inner = Rect::<2>::new([0, 1], [1, 2]).into();
//! let transfer = Transfer::copy(inner, (&rows, field), (&columns, field))?;
//! // SAFETY: nothing else uses the two instances.
//! let owner = unsafe {
//!     transfer.execute()?;
//!     columns.release().expect("an attached instance has an owner")
//! };
//! assert_eq!(*owner.downcast::<Vec<u32>>().unwrap(), [0, 0, 2, 5, 3, 6]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod few;
mod indirect;
mod kernels;
mod pack;
pub(crate) mod pieces;
mod runs;

use std::mem::MaybeUninit;
use std::sync::Arc;

use maniple_space::{AnySpace, IndexSpace, for_dimension};
use smallvec::SmallVec;

use crate::fault;
use crate::instance::Instance;
use crate::layout::{FieldId, FieldLayout};
use crate::memory::{Block, SystemRefused};
use crate::reduction::RawReduction;

pub use error::TransferError;
pub use few::FewValues;
pub use indirect::Dangling;
pub use pack::{pack, pack_into, unpack, unpack_and_apply, unpack_and_fold};
pub use pieces::channel;

/// A field of an instance.
#[derive(Clone, Debug)]
pub struct InstanceField {
    /// The instance.
    pub instance: Arc<Instance>,
    /// The field.
    pub field: FieldId,
}

impl From<(Arc<Instance>, FieldId)> for InstanceField {
    fn from(pair: (Arc<Instance>, FieldId)) -> Self {
        let (instance, field) = pair;
        Self { instance, field }
    }
}

impl From<(&Arc<Instance>, FieldId)> for InstanceField {
    fn from(pair: (&Arc<Instance>, FieldId)) -> Self {
        let (instance, field) = pair;
        Self { instance: instance.clone(), field }
    }
}

/// A value to fill with: opaque bytes, up to 32 of them without allocating.
#[derive(Clone)]
pub struct FillValue(SmallVec<[MaybeUninit<u8>; 32]>);

impl FillValue {
    /// The bytes of a value.
    #[must_use]
    pub fn of<T: Copy + Send + Sync + 'static>(value: T) -> Self {
        let bytes: *const MaybeUninit<u8> = (&raw const value).cast();
        // SAFETY: the value has this many bytes, and padding among them may stay uninitialised.
        Self(SmallVec::from_slice(unsafe { std::slice::from_raw_parts(bytes, size_of::<T>()) }))
    }

    /// Given bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.iter().map(|&byte| MaybeUninit::new(byte)).collect())
    }

    /// The contribution that changes nothing.
    ///
    /// # Errors
    ///
    /// If the system has no room for one contribution.
    pub fn identity_of(operator: &RawReduction) -> Result<Self, SystemRefused> {
        let block = Block::zeroed(operator.rhs_size(), operator.rhs_align())?;
        let bytes: *mut MaybeUninit<u8> = block.base().as_ptr().cast();
        // SAFETY: the block is ours, has the size and alignment of a contribution, and stays until its bytes are
        // copied.
        let identity = unsafe {
            operator.write_identity(bytes.cast(), 0, 1);
            std::slice::from_raw_parts(bytes, operator.rhs_size())
        };
        Ok(Self(SmallVec::from_slice(identity)))
    }

    /// How many bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.len()
    }
}

impl std::fmt::Debug for FillValue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "FillValue({} bytes)", self.size())
    }
}

/// The effect of a reduction on its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionMode {
    /// Contributions are applied to values.
    Apply,
    /// Contributions are folded into contributions: the destination is itself a reduction instance.
    Fold,
}

/// One field moved over a space of points. Checked when made.
#[derive(Clone, Debug)]
pub struct Transfer {
    space: AnySpace,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    Copy { from: Side, to: Side },
    Fill { to: Side, value: FillValue },
    Reduce { from: Side, to: Side, operator: RawReduction, mode: ReductionMode },
    Indirect(indirect::Indirection),
}

impl Transfer {
    /// Copies a field. Copying a field onto itself does nothing.
    ///
    /// # Errors
    ///
    /// If an instance does not store the field or the points, or the two have values of different sizes.
    pub fn copy(
        space: AnySpace,
        from: impl Into<InstanceField>,
        to: impl Into<InstanceField>,
    ) -> Result<Self, TransferError> {
        let (from, to) = (Side::of(from.into(), &space)?, Side::of(to.into(), &space)?);
        to.expect_size(from.layout.size())?;
        Ok(Self { space, action: Action::Copy { from, to } })
    }

    /// Writes one value at every point.
    ///
    /// # Errors
    ///
    /// If the instance does not store the field or the points, or its values are of another size.
    pub fn fill(space: AnySpace, to: impl Into<InstanceField>, value: FillValue) -> Result<Self, TransferError> {
        let to = Side::of(to.into(), &space)?;
        to.expect_size(value.size())?;
        Ok(Self { space, action: Action::Fill { to, value } })
    }

    /// Applies or folds the contributions of a field at every point into another field.
    ///
    /// # Errors
    ///
    /// If an instance does not store the field or the points, the values do not have the sizes and alignments of the
    /// operator's types, or the two fields are one.
    pub fn reduce(
        space: AnySpace,
        from: impl Into<InstanceField>,
        to: impl Into<InstanceField>,
        operator: RawReduction,
        mode: ReductionMode,
    ) -> Result<Self, TransferError> {
        let (from, to) = (Side::of(from.into(), &space)?, Side::of(to.into(), &space)?);
        from.expect_values(&operator, operator.rhs_size(), operator.rhs_align())?;
        match mode {
            ReductionMode::Apply => to.expect_values(&operator, operator.lhs_size(), operator.lhs_align())?,
            ReductionMode::Fold => to.expect_values(&operator, operator.rhs_size(), operator.rhs_align())?,
        }
        if from.is(&to) {
            return Err(TransferError::IntoItself { instance: to.instance.id(), field: to.field });
        }
        Ok(Self { space, action: Action::Reduce { from, to, operator, mode } })
    }

    /// Copies to each point the value from where the point's pointer points: `to[p] = from[pointers[p]]`.
    ///
    /// Pointers are points of the targets' dimension, as `[i64; n]`. What happens to those that are not among the
    /// targets, `dangling` says. A field gathered from itself is read and written in row-major order of the points.
    ///
    /// # Errors
    ///
    /// If `pointers` or `to` does not store the points, `from` does not store the targets, one of them does not store
    /// its field, or sizes do not fit.
    pub fn gather(
        space: AnySpace,
        pointers: impl Into<InstanceField>,
        from: impl Into<InstanceField>,
        to: impl Into<InstanceField>,
        targets: AnySpace,
        dangling: Dangling,
    ) -> Result<Self, TransferError> {
        let near = Side::of(to.into(), &space)?;
        let indirection = indirect::Indirection::gather(&space, pointers.into(), from.into(), near, targets, dangling)?;
        Ok(Self { space, action: Action::Indirect(indirection) })
    }

    /// Copies the value of each point to where the point's pointer points: `to[pointers[p]] = from[p]`.
    ///
    /// Of several points that point to one target, the last in row-major order wins. Otherwise as
    /// [`gather`](Self::gather).
    ///
    /// # Errors
    ///
    /// If `pointers` or `from` does not store the points, `to` does not store the targets, one of them does not store
    /// its field, or sizes do not fit.
    pub fn scatter(
        space: AnySpace,
        pointers: impl Into<InstanceField>,
        from: impl Into<InstanceField>,
        to: impl Into<InstanceField>,
        targets: AnySpace,
        dangling: Dangling,
    ) -> Result<Self, TransferError> {
        let near = Side::of(from.into(), &space)?;
        let indirection = indirect::Indirection::scatter(&space, pointers.into(), near, to.into(), targets, dangling)?;
        Ok(Self { space, action: Action::Indirect(indirection) })
    }

    /// The points transferred.
    #[must_use]
    pub fn space(&self) -> &AnySpace {
        &self.space
    }

    /// The bytes written, pointers not counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let size = match &self.action {
            Action::Copy { to, .. } | Action::Fill { to, .. } | Action::Reduce { to, .. } => to.layout.size(),
            Action::Indirect(indirection) => indirection.value_size(),
        };
        self.space.volume().saturating_mul(size as u64)
    }

    /// Moves the values, on this thread.
    ///
    /// # Errors
    ///
    /// If the bytes of an instance are not there, or a pointer dangles that should not. In the latter case some of the
    /// destination is written, unless the whole transfer dangles.
    ///
    /// # Safety
    ///
    /// Until it returns, nothing else writes what is read or touches what is written: the named fields at the points
    /// (and at the targets, if there are pointers). Different instances share no bytes. For a reduction, both sides
    /// hold valid values of the operator's types.
    pub unsafe fn execute(&self) -> Result<(), TransferError> {
        if self.space.is_empty() {
            return Ok(());
        }
        // SAFETY: each is promised by the caller what it asks for; the sides were checked against the space.
        unsafe {
            for_dimension!(&self.space, |space| match &self.action {
                Action::Copy { from, to } => copy(space, from, to),
                Action::Fill { to, value } => fill(space, to, value),
                Action::Reduce { from, to, operator, mode } => reduce(space, from, to, operator, *mode),
                Action::Indirect(indirection) => indirection.execute(space),
            })
        }
    }
}

/// Executes transfers one after the other, up to the first that fails.
///
/// # Errors
///
/// As [`Transfer::execute`].
///
/// # Safety
///
/// As [`Transfer::execute`], for each while it runs.
pub unsafe fn execute_all(transfers: &[Transfer]) -> Result<(), TransferError> {
    // SAFETY: the caller promises it for each.
    transfers.iter().try_for_each(|transfer| unsafe { transfer.execute() })
}

/// # Safety
///
/// As [`Transfer::execute`]; both sides store the space, in values of one size.
unsafe fn copy<const D: usize>(space: &IndexSpace<D>, from: &Side, to: &Side) -> Result<(), TransferError> {
    let (source, destination) = (from.base()?, to.base()?);
    if from.is(to) || to.is_without_bytes() {
        return Ok(());
    }
    let size = to.layout.size();
    runs::for_each_run(space.rects().iter().copied(), [&from.layout, &to.layout], |run| {
        let [from_stride, to_stride] = run.strides;
        // SAFETY: a run lies inside the instances that the space was checked against; different fields or instances
        // share no bytes.
        unsafe {
            let (source, destination) = (source.add(run.offsets[0]), destination.add(run.offsets[1]));
            kernels::copy_run(destination, to_stride, source, from_stride, run.count, size);
        }
    });
    Ok(())
}

/// # Safety
///
/// As [`Transfer::execute`]; the side stores the space, in values of this size.
unsafe fn fill<const D: usize>(space: &IndexSpace<D>, to: &Side, value: &FillValue) -> Result<(), TransferError> {
    let destination = to.base()?;
    if to.is_without_bytes() {
        return Ok(());
    }
    runs::for_each_run(space.rects().iter().copied(), [&to.layout], |run| {
        // SAFETY: a run lies inside the instance that the space was checked against.
        unsafe { kernels::fill_run(destination.add(run.offsets[0]), run.strides[0], run.count, &value.0) };
    });
    Ok(())
}

/// # Safety
///
/// As [`Transfer::execute`]; both sides store the space, in values of the operator's types, and are not the same field.
unsafe fn reduce<const D: usize>(
    space: &IndexSpace<D>,
    from: &Side,
    to: &Side,
    operator: &RawReduction,
    mode: ReductionMode,
) -> Result<(), TransferError> {
    let (source, destination) = (from.base()?, to.base()?);
    if to.is_without_bytes() {
        return Ok(());
    }
    let reduce = || {
        runs::for_each_run(space.rects().iter().copied(), [&from.layout, &to.layout], |run| {
            let [from_stride, to_stride] = run.strides;
            // SAFETY: a run lies inside the instances that the space was checked against, its values are aligned as the
            // sides' fields are, and different fields or instances share no bytes.
            unsafe {
                let (source, destination) = (source.add(run.offsets[0]), destination.add(run.offsets[1]));
                match mode {
                    ReductionMode::Apply => operator.apply(destination, to_stride, source, from_stride, run.count),
                    ReductionMode::Fold => operator.fold(destination, to_stride, source, from_stride, run.count),
                }
            }
        })
    };
    // The operator may be the program's own.
    fault::catch(reduce).map_err(|fault| TransferError::operator_panicked(operator, &fault))
}

/// A field of an instance that is known to store it.
#[derive(Clone, Debug)]
struct Side {
    instance: Arc<Instance>,
    field: FieldId,
    layout: FieldLayout,
}

impl Side {
    /// Checks that the instance stores the field at all points of the space.
    fn of(place: InstanceField, space: &AnySpace) -> Result<Self, TransferError> {
        let InstanceField { instance, field } = place;
        let (layout, id) = (instance.layout(), instance.id());
        let Some(field_layout) = layout.field(field) else {
            let stored = layout.fields().map(|(field, _)| field).collect();
            return Err(TransferError::NoSuchField { instance: id, field, stored });
        };
        if layout.dim() != space.dim() {
            return Err(TransferError::OtherDimension { instance: id, expected: space.dim(), found: layout.dim() });
        }
        if !space.is_subset_of(layout.points()).unwrap_or(false) {
            let (bounds, points) = (Box::new(layout.bounds()), Box::new(space.bounds()));
            return Err(TransferError::OutsideBounds { instance: id, bounds, points });
        }
        let layout = field_layout.clone();
        Ok(Self { instance, field, layout })
    }

    fn expect_size(&self, expected: usize) -> Result<(), TransferError> {
        let found = self.layout.size();
        if found == expected {
            return Ok(());
        }
        Err(TransferError::OtherSize { instance: self.instance.id(), field: self.field, expected, found })
    }

    fn expect_values(&self, operator: &RawReduction, size: usize, align: usize) -> Result<(), TransferError> {
        self.expect_size(size)?;
        let found = self.instance.layout().field_spec(self.field).map_or(1, |spec| spec.align);
        if found.is_multiple_of(align) {
            return Ok(());
        }
        let (instance, operator) = (self.instance.id(), operator.name());
        Err(TransferError::Misaligned { instance, field: self.field, operator, expected: align, found })
    }

    /// Whether there is nothing to be moved, at however many points: a field without bytes may be laid out over all
    /// that exist.
    fn is_without_bytes(&self) -> bool {
        self.layout.size() == 0
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.instance, &other.instance) && self.field == other.field
    }

    fn base(&self) -> Result<*mut u8, TransferError> {
        let base = self.instance.base().ok_or(TransferError::NoBytes { instance: self.instance.id() })?;
        Ok(base.as_ptr())
    }
}

#[cfg(test)]
mod tests;
