//! Contributions on their way from a buffer into values.

use std::sync::Arc;

use maniple_realm::instance::InstanceKind;
use maniple_realm::transfer::{ReductionMode, Transfer, TransferError};
use maniple_region::{FieldMask, Shape};

use super::instance::PhysicalInstance;
use super::set::{EquivalenceSet, PendingReduction};

/// Contributions to be applied to values, or folded into another buffer.
pub(crate) struct Application {
    points: Shape,
    fields: FieldMask,
    from: Arc<PhysicalInstance>,
    into: Arc<PhysicalInstance>,
}

impl Application {
    /// Of contributions to fields of a set.
    pub(crate) fn of(
        reduction: &PendingReduction,
        set: &EquivalenceSet,
        (fields, into): (&FieldMask, &Arc<PhysicalInstance>),
    ) -> Option<Self> {
        let points = reduction.cover.shape(&set.shape)?.clone();
        let (fields, from) = (fields.intersection(reduction.buffer.fields()), Arc::clone(reduction.buffer.arc()));
        Some(Self { points, fields, from, into: Arc::clone(into) })
    }

    /// What the machine is asked to do: one transfer a field.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = Result<Transfer, TransferError>> {
        let mode = if self.into.reduction().is_some() { ReductionMode::Fold } else { ReductionMode::Apply };
        self.fields.iter().filter_map(move |field| {
            let (from, to) = (self.from.storage(), self.into.storage());
            let InstanceKind::Reduction(operator) = from.kind() else { return None };
            Some(Transfer::reduce(self.points.space().clone(), (from, field), (to, field), operator, mode))
        })
    }
}
