//! Values on their way: out of instances, and into them. Both nodes go through requirements, and the fields of each, in
//! the same order.

use maniple_realm::reduction::RawReduction;
use maniple_realm::transfer::{InstanceField, pack, unpack, unpack_and_apply, unpack_and_fold};
use maniple_region::{FieldId, OperatorId, Privilege};

use super::PhysicalRegion;
use crate::support::error::{Error, Result};

/// Whether the other node needs the values that are there.
fn goes(privilege: Privilege) -> bool {
    matches!(privilege, Privilege::Read | Privilege::ReadWrite)
}

/// How many bytes go, and come back.
pub(crate) fn bytes(regions: &[PhysicalRegion]) -> u64 {
    regions
        .iter()
        .map(|region| region.bytes() * (u64::from(goes(region.privilege)) + u64::from(region.privilege.changes_data())))
        .sum()
}

/// The values that a task uses.
///
/// # Safety
/// The task's data is there, and nothing writes it meanwhile.
pub(crate) unsafe fn pack_used(regions: &[PhysicalRegion]) -> Result<Vec<u8>> {
    // SAFETY: promised by the caller.
    unsafe { pack_where(regions, goes) }
}

/// The values that a task has written, and its contributions.
///
/// # Safety
/// The task has run, and nothing else touches its data.
pub(crate) unsafe fn pack_made(regions: &[PhysicalRegion]) -> Result<Vec<u8>> {
    // SAFETY: promised by the caller.
    unsafe { pack_where(regions, Privilege::changes_data) }
}

/// # Safety
/// Nothing writes the data meanwhile.
unsafe fn pack_where(regions: &[PhysicalRegion], is_wanted: impl Fn(Privilege) -> bool) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for region in regions.iter().filter(|region| is_wanted(region.privilege)) {
        for field in region.fields.iter() {
            // SAFETY: promised by the caller. Instances are initialised when they are made.
            let packed = unsafe { pack(region.space(), place(region, field)?, &mut bytes) };
            packed.map_err(|error| Error::of_transfer(&error))?;
        }
    }
    Ok(bytes)
}

/// Puts the values that a task uses into instances that were made for it.
///
/// # Safety
/// Nothing else uses the instances. The bytes are from [`pack_used`] for the same requirements, by the same program.
pub(crate) unsafe fn unpack_used(regions: &[PhysicalRegion], mut bytes: &[u8]) -> Result<()> {
    for region in regions.iter().filter(|region| goes(region.privilege)) {
        // SAFETY: promised by the caller.
        unsafe { unpack_values(region, &mut bytes) }?;
    }
    all_taken(bytes)
}

/// Puts what a task has made on another node where it would have made it.
///
/// # Safety
/// The task, which has not ended, may use the instances, and nothing else uses what it writes. The bytes are from
/// [`pack_made`] for the same requirements, by the same program.
pub(crate) unsafe fn unpack_made(regions: &[PhysicalRegion], mut bytes: &[u8]) -> Result<()> {
    for region in regions {
        match region.privilege {
            Privilege::Read => {}
            // SAFETY: promised by the caller.
            Privilege::ReadWrite | Privilege::Discard => unsafe { unpack_values(region, &mut bytes) }?,
            // SAFETY: promised by the caller.
            Privilege::Reduce(operator) => unsafe { unpack_contributions(region, operator, &mut bytes) }?,
        }
    }
    all_taken(bytes)
}

/// # Safety
/// Nothing else uses the data, and the bytes begin with valid values of each field.
unsafe fn unpack_values(region: &PhysicalRegion, bytes: &mut &[u8]) -> Result<()> {
    region.fields.iter().try_for_each(|field| {
        // SAFETY: promised by the caller.
        let unpacked = unsafe { unpack(region.space(), bytes, place(region, field)?) };
        unpacked.map_err(|error| Error::of_transfer(&error))
    })
}

/// # Safety
/// Nothing else uses the data, and the bytes begin with valid contributions to each field by the operator.
unsafe fn unpack_contributions(region: &PhysicalRegion, operator: OperatorId, bytes: &mut &[u8]) -> Result<()> {
    region.fields.iter().try_for_each(|field| {
        let (place, reduction) = (place(region, field)?, reduction(region, operator, field)?);
        // SAFETY: promised by the caller. A buffer holds contributions by the operator, other instances values of the
        // field's type.
        let unpacked = unsafe {
            match region.is_buffered(field) {
                true => unpack_and_fold(region.space(), bytes, place, reduction),
                false => unpack_and_apply(region.space(), bytes, place, reduction),
            }
        };
        unpacked.map_err(|error| Error::of_transfer(&error))
    })
}

fn place(region: &PhysicalRegion, field: FieldId) -> Result<InstanceField> {
    let instance = region.instance(field).ok_or_else(|| Error::internal(NotMapped))?;
    Ok((instance.storage(), field).into())
}

fn reduction(region: &PhysicalRegion, operator: OperatorId, field: FieldId) -> Result<&'static RawReduction> {
    let known = operator.reduction_on(region.region.fields().type_of(field)?);
    known.ok_or_else(|| Error::no_reduction(operator, &region.region, field))
}

fn all_taken(rest: &[u8]) -> Result<()> {
    match rest.len() {
        0 => Ok(()),
        bytes => Err(Error::internal(TooManyBytes { bytes })),
    }
}

/// A leaf task's requirement has no instance.
#[derive(Debug, thiserror::Error)]
#[error("a leaf task is mapped to instances")]
struct NotMapped;

/// Two nodes do not mean the same task.
#[derive(Debug, thiserror::Error)]
#[error("another node has sent {bytes} bytes more than the task has values: start the same program on all nodes")]
struct TooManyBytes {
    bytes: usize,
}
