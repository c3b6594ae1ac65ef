//! A few values of one field whose places are found out once: what goes from machine to machine again and again, and
//! takes longer to find than to copy.

use std::sync::Arc;

use maniple_space::{AnySpace, for_dimension};
use smallvec::SmallVec;

use super::pack::{each_run, length};
use super::{InstanceField, Side, TransferError, kernels};
use crate::instance::Instance;

/// The places of a field's values at the points of a space in an instance, in the order of [`pack`](super::pack()).
#[derive(Clone, Debug)]
pub struct FewValues {
    instance: Arc<Instance>,
    /// From where in the instance, how far apart, how many.
    runs: SmallVec<[(usize, isize, usize); 2]>,
    /// The bytes of a value.
    size: usize,
    bytes: usize,
}

impl FewValues {
    /// None if they are more than `most` bytes.
    ///
    /// # Errors
    ///
    /// If the instance does not store the field or the points.
    pub fn at(space: &AnySpace, place: impl Into<InstanceField>, most: usize) -> Result<Option<Self>, TransferError> {
        let side = Side::of(place.into(), space)?;
        let size = side.layout.size();
        let bytes = length(space, size)?;
        if bytes > most {
            return Ok(None);
        }
        let mut runs = SmallVec::new();
        if bytes > 0 {
            for_dimension!(space, |space| each_run(space, &side, |offset, stride, count| {
                runs.push((offset, stride, count));
            }));
        }
        Ok(Some(Self { instance: side.instance, runs, size, bytes }))
    }

    /// How many bytes they are.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies the values out. As [`pack`](super::pack()), into as many bytes as there are.
    ///
    /// # Errors
    ///
    /// If the place has another length, or the instance has no bytes any more.
    ///
    /// # Safety
    ///
    /// As for [`pack`](super::pack()).
    pub unsafe fn pack(&self, mut into: &mut [u8]) -> Result<(), TransferError> {
        let base = self.base(into.len())?;
        for &(offset, stride, count) in &self.runs {
            let values = into.split_off_mut(..count * self.size).ok_or_else(|| self.other_length(0))?;
            // SAFETY: the run lies inside the instance that the space was checked against, and there is room for as
            // many values.
            unsafe {
                let (values, from) = (values.as_mut_ptr(), base.add(offset));
                kernels::copy_run(values, self.size as isize, from, stride, count, self.size);
            }
        }
        Ok(())
    }

    /// Copies values in. As [`unpack`](super::unpack), from as many bytes as there are.
    ///
    /// # Errors
    ///
    /// If the bytes are more or fewer, or the instance has none any more.
    ///
    /// # Safety
    ///
    /// As for [`unpack`](super::unpack).
    pub unsafe fn unpack(&self, mut from: &[u8]) -> Result<(), TransferError> {
        let base = self.base(from.len())?;
        for &(offset, stride, count) in &self.runs {
            let values = from.split_off(..count * self.size).ok_or_else(|| self.other_length(0))?;
            // SAFETY: the run lies inside the instance that the space was checked against, and there are as many
            // values.
            unsafe {
                let to = base.add(offset);
                kernels::copy_run(to, stride, values.as_ptr(), self.size as isize, count, self.size);
            }
        }
        Ok(())
    }

    /// The instance's first byte, if that many bytes are as many as the values'.
    #[inline]
    fn base(&self, length: usize) -> Result<*mut u8, TransferError> {
        if length != self.bytes {
            return Err(self.other_length(length));
        }
        let base = self.instance.base().ok_or(TransferError::NoBytes { instance: self.instance.id() })?;
        Ok(base.as_ptr())
    }

    #[cold]
    fn other_length(&self, found: usize) -> TransferError {
        TransferError::TooFewBytes { expected: self.bytes, found }
    }
}
