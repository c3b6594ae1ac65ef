//! Values on their way to another machine: out of an instance into plain bytes, and from those into another instance.
//!
//! Both ends agree on the points, and nothing else: values follow each other in the order of the space's rows, whatever
//! the layouts.

use std::mem::MaybeUninit;

use maniple_space::{AnySpace, IndexSpace, for_dimension};

use super::{InstanceField, ReductionMode, Side, TransferError, kernels, runs};
use crate::fault;
use crate::reduction::RawReduction;

/// Appends a field's values at the points of a space to some bytes.
///
/// # Errors
///
/// If the instance does not store the field or the points.
///
/// # Safety
///
/// Until it returns, nothing else writes the field at the points; all bytes of the values are initialised.
pub unsafe fn pack(space: &AnySpace, from: impl Into<InstanceField>, bytes: &mut Vec<u8>) -> Result<(), TransferError> {
    let from = Side::of(from.into(), space)?;
    if space.is_empty() {
        return Ok(());
    }
    let (base, length) = (from.base()?, length(space, from.layout.size())?);
    bytes.reserve(length);
    let end = bytes.len();
    // SAFETY: there is room for all values behind the end, and all of it is filled.
    unsafe {
        copy_out(space, &from, base, bytes.as_mut_ptr().add(end));
        bytes.set_len(end + length);
    }
    Ok(())
}

/// As [`pack`], into the front of some bytes, which are left behind.
///
/// # Errors
///
/// As [`pack`]; if the bytes are too few.
///
/// # Safety
///
/// As for [`pack`].
pub unsafe fn pack_into(
    space: &AnySpace,
    from: impl Into<InstanceField>,
    bytes: &mut &mut [u8],
) -> Result<(), TransferError> {
    let from = Side::of(from.into(), space)?;
    let (expected, found) = (length(space, from.layout.size())?, bytes.len());
    let place = bytes.split_off_mut(..expected).ok_or(TransferError::TooFewBytes { expected, found })?;
    if !space.is_empty() {
        // SAFETY: there is room for all values.
        unsafe { copy_out(space, &from, from.base()?, place.as_mut_ptr()) };
    }
    Ok(())
}

/// Copies all values of a space out of an instance.
///
/// # Safety
///
/// The space was checked against the instance, and `to` has room for as many values. Nothing writes them meanwhile.
unsafe fn copy_out(space: &AnySpace, from: &Side, base: *const u8, mut to: *mut u8) {
    let size = from.layout.size();
    for_dimension!(space, |space| each_run(space, from, |offset, stride, count| {
        // SAFETY: the run lies inside the instance, and there is room for it and all that follow.
        unsafe {
            kernels::copy_run(to, size as isize, base.add(offset), stride, count, size);
            to = to.add(count * size);
        }
    }));
}

/// Takes a field's values at the points of a space off the front of what [`pack`] has made.
///
/// # Errors
///
/// If the instance does not store the field or the points, or the bytes are too few.
///
/// # Safety
///
/// Until it returns, nothing else touches the field at the points. The bytes are those of valid values of the field's
/// type.
pub unsafe fn unpack(space: &AnySpace, bytes: &mut &[u8], to: impl Into<InstanceField>) -> Result<(), TransferError> {
    let to = Side::of(to.into(), space)?;
    let size = to.layout.size();
    let mut rest = take(space, bytes, size)?;
    if rest.is_empty() {
        return Ok(());
    }
    let base = to.base()?;
    for_dimension!(space, |space| each_run(space, &to, |offset, stride, count| {
        let (values, others) = rest.split_at(count * size);
        rest = others;
        // SAFETY: the run lies inside the instance that the space was checked against, and there are as many values.
        unsafe { kernels::copy_run(base.add(offset), stride, values.as_ptr(), size as isize, count, size) };
    }));
    Ok(())
}

/// As [`unpack`], but the values are contributions, which are applied to the values that are there.
///
/// # Errors
///
/// As [`unpack`]; if the field's values do not have the size and alignment of the operator's; if the operator panics.
///
/// # Safety
///
/// As for [`unpack`], but the field's values are valid values of the operator's left-hand type, and the bytes those of
/// its right-hand type.
pub unsafe fn unpack_and_apply(
    space: &AnySpace,
    bytes: &mut &[u8],
    to: impl Into<InstanceField>,
    operator: &RawReduction,
) -> Result<(), TransferError> {
    // SAFETY: promised by the caller.
    unsafe { unpack_and_reduce(space, bytes, to.into(), operator, ReductionMode::Apply) }
}

/// As [`unpack_and_apply`], but the contributions are folded into contributions: the field is that of a reduction
/// instance.
///
/// # Errors
///
/// As [`unpack_and_apply`].
///
/// # Safety
///
/// As for [`unpack`], but both the field's values and the bytes are valid values of the operator's right-hand type.
pub unsafe fn unpack_and_fold(
    space: &AnySpace,
    bytes: &mut &[u8],
    to: impl Into<InstanceField>,
    operator: &RawReduction,
) -> Result<(), TransferError> {
    // SAFETY: promised by the caller.
    unsafe { unpack_and_reduce(space, bytes, to.into(), operator, ReductionMode::Fold) }
}

/// # Safety
///
/// As for [`unpack_and_apply`] or [`unpack_and_fold`], as the mode says.
unsafe fn unpack_and_reduce(
    space: &AnySpace,
    bytes: &mut &[u8],
    to: InstanceField,
    operator: &RawReduction,
    mode: ReductionMode,
) -> Result<(), TransferError> {
    let to = Side::of(to, space)?;
    match mode {
        ReductionMode::Apply => to.expect_values(operator, operator.lhs_size(), operator.lhs_align())?,
        ReductionMode::Fold => to.expect_values(operator, operator.rhs_size(), operator.rhs_align())?,
    }
    let size = operator.rhs_size();
    let mut rest = take(space, bytes, size)?;
    if rest.is_empty() {
        return Ok(());
    }
    let base = to.base()?;
    let mut aligned = Aligned::new(size, operator.rhs_align());
    let mut reduce = |offset: usize, stride: isize, count: usize| {
        let (values, others) = rest.split_at(count * size);
        rest = others;
        for (chunk, values) in values.chunks(aligned.room() * size).enumerate() {
            let (contributions, first) =
                (aligned.hold(values), offset as isize + (chunk * aligned.room()) as isize * stride);
            let count = values.len() / size;
            // SAFETY: the run lies inside the instance that the space was checked against; the contributions are valid,
            // as the caller promises, and aligned, as are the instance's values.
            unsafe {
                let into = base.offset(first);
                match mode {
                    ReductionMode::Apply => operator.apply(into, stride, contributions, size as isize, count),
                    ReductionMode::Fold => operator.fold(into, stride, contributions, size as isize, count),
                }
            }
        }
    };
    // The operator may be the program's own.
    let reduced = fault::catch(|| for_dimension!(space, |space| each_run(space, &to, &mut reduce)));
    reduced.map_err(|fault| TransferError::operator_panicked(operator, &fault))
}

/// Takes the bytes of a value for each point.
fn take<'a>(space: &AnySpace, bytes: &mut &'a [u8], size: usize) -> Result<&'a [u8], TransferError> {
    let expected = length(space, size)?;
    match bytes.split_at_checked(expected) {
        Some((values, rest)) => {
            *bytes = rest;
            Ok(values)
        }
        None => Err(TransferError::TooFewBytes { expected, found: bytes.len() }),
    }
}

pub(super) fn length(space: &AnySpace, size: usize) -> Result<usize, TransferError> {
    let length = usize::try_from(space.volume()).ok().and_then(|points| points.checked_mul(size));
    length.ok_or(TransferError::TooFewBytes { expected: usize::MAX, found: 0 })
}

/// Visits the values row by row, each row in the order of its points: where the first lies, the stride, and how many.
pub(super) fn each_run<const D: usize>(space: &IndexSpace<D>, side: &Side, mut visit: impl FnMut(usize, isize, usize)) {
    if side.is_without_bytes() {
        return;
    }
    runs::for_each_run(space.rows(), [&side.layout], |run| visit(run.offsets[0], run.strides[0], run.count));
}

/// A place for a few values at an address that is good for them.
struct Aligned {
    memory: Vec<MaybeUninit<u8>>,
    start: usize,
    room: usize,
}

/// So many bytes of contributions are put in place at a time.
const ALIGNED_BYTES: usize = 1 << 12;

impl Aligned {
    fn new(size: usize, align: usize) -> Self {
        let room = (ALIGNED_BYTES / size.max(1)).max(1);
        let memory: Vec<MaybeUninit<u8>> = vec![MaybeUninit::uninit(); room * size + align];
        let start = memory.as_ptr().addr().next_multiple_of(align) - memory.as_ptr().addr();
        Self { memory, start, room }
    }

    /// How many values.
    fn room(&self) -> usize {
        self.room
    }

    /// The values, in place.
    fn hold(&mut self, values: &[u8]) -> *const u8 {
        let place = &mut self.memory[self.start..][..values.len()];
        for (place, &value) in place.iter_mut().zip(values) {
            place.write(value);
        }
        place.as_ptr().cast()
    }
}
