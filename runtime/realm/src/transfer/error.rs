//! Errors of transfers.

use maniple_space::{AnyPoint, AnyRect};
use thiserror::Error;

use crate::fault::Fault;
use crate::instance::InstanceId;
use crate::layout::FieldId;
use crate::reduction::RawReduction;

/// A transfer that makes no sense, or met a pointer that does not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// A field that the instance does not store.
    #[error("{instance} does not store {field}: it stores {stored:?}")]
    NoSuchField {
        /// The instance.
        instance: InstanceId,
        /// The field.
        field: FieldId,
        /// The fields that it stores.
        stored: Vec<FieldId>,
    },
    /// Points of another number of dimensions than the instance's.
    #[error("{instance} stores points of {found} dimensions, but the transfer has points of {expected}")]
    OtherDimension {
        /// The instance.
        instance: InstanceId,
        /// The dimensions of the points to transfer.
        expected: usize,
        /// The dimensions of the instance.
        found: usize,
    },
    /// Points that the instance does not store.
    #[error("{instance} stores points within {bounds}, but not all of the transfer, which are within {points}")]
    OutsideBounds {
        /// The instance.
        instance: InstanceId,
        /// The bounds of the points that it stores.
        bounds: Box<AnyRect>,
        /// The bounds of the points to transfer.
        points: Box<AnyRect>,
    },
    /// Values of another size than those they come from, or go to.
    #[error("{field} of {instance} has values of {found} bytes, expected {expected}")]
    OtherSize {
        /// The instance.
        instance: InstanceId,
        /// The field.
        field: FieldId,
        /// The bytes of a value that the transfer needs.
        expected: usize,
        /// The bytes of a value of the field.
        found: usize,
    },
    /// Packed values that are fewer than the points.
    #[error(
        "the points have values of {expected} bytes, but only {found} were packed: both ends must name the same points and fields"
    )]
    TooFewBytes {
        /// The bytes of the values.
        expected: usize,
        /// The bytes that there are.
        found: usize,
    },
    /// A reduction operator panicked. What it had combined before that stays.
    #[error("reduction operator {operator} panicked{}: {message}", .location.as_ref().map_or_else(String::new, |place| format!(" at {place}")))]
    OperatorPanicked {
        /// The operator.
        operator: &'static str,
        /// The message of the panic.
        message: String,
        /// File, line and column.
        location: Option<String>,
    },
    /// Values that an operator cannot access where they lie.
    #[error("{field} of {instance} is aligned to {found} bytes, but {operator} needs {expected}")]
    Misaligned {
        /// The instance.
        instance: InstanceId,
        /// The field.
        field: FieldId,
        /// The operator.
        operator: &'static str,
        /// The alignment that it needs.
        expected: usize,
        /// The alignment of the field.
        found: usize,
    },
    /// A field reduced into itself.
    #[error("{field} of {instance} cannot be reduced into itself: name another instance or field")]
    IntoItself {
        /// The instance.
        instance: InstanceId,
        /// The field.
        field: FieldId,
    },
    /// A field of pointers that would be written while it is followed.
    #[error("{field} of {instance} holds the pointers and cannot be written as they are followed: name another field")]
    OverwritesPointers {
        /// The instance.
        instance: InstanceId,
        /// The field.
        field: FieldId,
    },
    /// An instance whose bytes are not there.
    #[error(
        "{instance} has no bytes, not yet or not any more: order the transfer after it is ready and before its release"
    )]
    NoBytes {
        /// The instance.
        instance: InstanceId,
    },
    /// A pointer to a point that is not among the targets.
    #[error(
        "{field} of {instance} points from {point} to {pointer}, which is not in the target space, within {targets}"
    )]
    DanglingPointer {
        /// The instance that holds the pointers.
        instance: InstanceId,
        /// The field that holds them.
        field: FieldId,
        /// The first point, in row-major order, whose pointer dangles.
        point: AnyPoint,
        /// The point that the pointer names.
        pointer: AnyPoint,
        /// The bounds of the targets.
        targets: Box<AnyRect>,
    },
}

impl TransferError {
    pub(super) fn operator_panicked(operator: &RawReduction, fault: &Fault) -> Self {
        let message = fault.panic().map_or_else(|| fault.to_string(), |panic| panic.message.clone());
        let location = fault.panic().and_then(|panic| panic.location.clone());
        Self::OperatorPanicked { operator: operator.name(), message, location }
    }
}
