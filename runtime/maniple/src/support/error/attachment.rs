//! Errors of memory that is attached to data.

/// Why memory was not attached to the values of a field, or not detached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttachmentError {
    /// There are fewer values than points.
    #[error(
        "cannot attach memory to field `{field}` of {region}, which has {points} points: there are {found} values; attach memory of at least \
         {points}"
    )]
    TooShort {
        /// The field.
        field: String,
        /// The region.
        region: String,
        /// How many values are needed.
        points: u64,
        /// How many there are.
        found: usize,
    },
    /// The address of the memory does not suit the type of the values.
    #[error(
        "cannot attach memory at address {address:#x} to field `{field}` of {region}: values of `{ty}` are aligned to {align} bytes; \
         attach memory that was allocated for this type"
    )]
    Misaligned {
        /// The field.
        field: String,
        /// The region.
        region: String,
        /// The type of the values.
        ty: &'static str,
        /// The alignment that they need.
        align: usize,
        /// The address of the memory.
        address: usize,
    },
    /// The region is no rectangle.
    #[error(
        "cannot attach memory to {region}: its points are scattered, and memory holds those of a rectangle; attach memory to each of its \
         rectangles (`Region::part`)"
    )]
    Scattered {
        /// The region.
        region: String,
    },
    /// Other memory is attached to some of the values.
    #[error(
        "cannot attach memory to field `{field}` of {region}: other memory is attached to some of its points; detach that first"
    )]
    AlreadyAttached {
        /// The field.
        field: String,
        /// The region.
        region: String,
    },
    /// The memory, or a part of it, is attached to something else.
    #[error(
        "cannot attach memory to field `{field}` of {region}: some of it, at address {address:#x}, is attached already; await its detachment \
         first"
    )]
    MemoryInUse {
        /// The field.
        field: String,
        /// The region.
        region: String,
        /// The first address that is attached already.
        address: usize,
    },
    /// Pieces have points in common.
    #[error(
        "cannot attach memory to the pieces of {partition}: some of them have points in common; use a partition that is disjoint"
    )]
    Aliased {
        /// The partition.
        partition: String,
    },
    /// Columns of a task's output have different lengths.
    #[error(
        "the output of {rows} rows has {found} values of field `{field}`: push whole rows, or adopt columns of one length"
    )]
    Ragged {
        /// The field.
        field: String,
        /// The length of the longest column.
        rows: usize,
        /// The length of this one.
        found: usize,
    },
    /// An output was collected before.
    #[error("the output was collected already: collect the outputs of a launch once")]
    Collected,
    /// A region was to be destroyed, or a field freed, whose values are in memory of the program's.
    #[error(
        "cannot destroy {region} or free field `{field}`, to which memory is attached; detach it first, or drop its handle to leave it to the region"
    )]
    StillAttached {
        /// The field.
        field: String,
        /// The region.
        region: String,
    },
    /// Memory was to be detached by another task than the one that attached it.
    #[error(
        "`{task}` cannot detach memory from field `{field}` of {region}: another task has attached it; that one has to detach it before it \
         ends, or its launcher to attach it"
    )]
    AttachedElsewhere {
        /// The task that was to detach it.
        task: String,
        /// The field.
        field: String,
        /// The region.
        region: String,
    },
}
