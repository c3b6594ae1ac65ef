//! Data that must move before an operation can run.

use std::sync::Arc;

use maniple_mapper::InstanceId;
use maniple_realm::Event;
use maniple_realm::layout::FieldLayout;
use maniple_realm::transfer::{Transfer, TransferError};
use maniple_region::{FieldMask, Shape};
use smallvec::SmallVec;

use super::cover::Cover;
use super::instance::PhysicalInstance;
use super::set_index::SetId;
use super::uses::add;
use crate::fill::FillValue;

/// Where current values come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Instance(Arc<PhysicalInstance>),
    Fill(FillValue),
}

/// Current values of part of an equivalence set, to be put into an instance.
#[derive(Clone, Debug)]
pub(crate) struct Movement {
    pub(crate) group: usize,
    pub(crate) set: SetId,
    pub(crate) fields: FieldMask,
    pub(crate) cover: Cover,
    pub(crate) shape: Shape,
    pub(crate) source: Source,
    pub(crate) destination: Arc<PhysicalInstance>,
}

/// Events that an operation comes after: `needs` pass their failures on, `follows` only their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preconditions {
    pub(crate) needs: SmallVec<[Event; 8]>,
    pub(crate) follows: SmallVec<[Event; 8]>,
}

impl Movement {
    /// Movements with equal keys go together as one operation of the machine.
    pub(crate) fn route(&self) -> (u64, u64) {
        let source = match &self.source {
            Source::Instance(instance) => instance.id().0,
            Source::Fill(_) => u64::MAX,
        };
        (source, self.destination.id().0)
    }

    /// The instances that it reads and writes.
    pub(crate) fn instances(&self) -> impl Iterator<Item = InstanceId> {
        let source = match &self.source {
            Source::Instance(instance) => Some(instance.id()),
            Source::Fill(_) => None,
        };
        source.into_iter().chain([self.destination.id()])
    }

    /// What the machine is asked to do: one transfer a field.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = Result<Transfer, TransferError>> {
        let (space, to) = (self.shape.space(), self.destination.storage());
        self.fields.iter().map(move |field| match &self.source {
            Source::Instance(from) => Transfer::copy(space.clone(), (from.storage(), field), (to, field)),
            Source::Fill(value) => {
                let size = to.layout().field(field).map_or(0, FieldLayout::size);
                Transfer::fill(space.clone(), (to, field), value.bytes(size))
            }
        })
    }

    /// Bytes moved from one instance to another; a fill moves none.
    pub(crate) fn bytes(&self) -> u64 {
        let Source::Instance(from) = &self.source else { return 0 };
        let sizes = self.fields.iter().filter_map(|field| from.storage().layout().field(field));
        self.shape.space().volume() * sizes.map(|layout| layout.size() as u64).sum::<u64>()
    }
}

impl Preconditions {
    pub(crate) fn need(&mut self, event: Event) {
        add(&mut self.needs, event);
    }

    pub(crate) fn follow(&mut self, event: Event) {
        add(&mut self.follows, event);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.needs.is_empty() && self.follows.is_empty()
    }

    /// How many there are of each kind.
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.needs.len(), self.follows.len())
    }

    /// Forgets those that were added since there were so many.
    pub(crate) fn truncate(&mut self, (needs, follows): (usize, usize)) {
        self.needs.truncate(needs);
        self.follows.truncate(follows);
    }

    pub(crate) fn after(&self) -> maniple_realm::After<'_> {
        maniple_realm::After { needs: &self.needs, follows: &self.follows }
    }

    /// Many as one.
    pub(crate) fn all(many: &[Self]) -> Self {
        many.iter().fold(Self::default(), Self::and)
    }

    /// These and others.
    pub(crate) fn and(mut self, others: &Self) -> Self {
        if self.is_empty() {
            return others.clone();
        }
        self.add_all(others);
        self
    }

    /// Adds others.
    pub(crate) fn add_all(&mut self, others: &Self) {
        others.needs.iter().for_each(|&event| self.need(event));
        others.follows.iter().for_each(|&event| self.follow(event));
    }
}
