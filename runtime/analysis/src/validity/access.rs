//! The data that an operation uses, and where in a state that is.

use std::sync::Arc;

use maniple_region::{FieldMask, LogicalRegion, OperatorId, Privilege, ShapeTable};

use super::cover::Cover;
use super::group::Touched;
use super::instance::Instance;
use super::set::{EquivalenceSet, Order};

/// One requirement of one operation, or a part of it, with the instances chosen for it.
#[derive(Debug)]
pub struct Access<'a, I> {
    /// The number of the requirement, and of the part: no other access of the operation has both.
    pub number: (usize, usize),
    /// The points.
    pub region: &'a LogicalRegion,
    /// How they are used.
    pub mode: Mode,
    /// Instances that together hold the fields.
    pub instances: &'a [(FieldMask, Arc<I>)],
    /// For a reduction in buffers: where contributions by other operators can be applied before, if no instance holds
    /// those values yet.
    pub homes: &'a [(FieldMask, Arc<I>)],
    /// The operation's place in program order.
    pub order: Order,
}

/// How an access treats the data that it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It reads values.
    Read,
    /// It reads values and writes some or all.
    Write,
    /// It writes all values and reads none.
    Discard,
    /// It contributes to the values themselves.
    ReduceInPlace(OperatorId),
    /// It contributes to buffers.
    ReduceInBuffer(OperatorId),
}

/// The sets of one group of fields that an access touches in one instance: right as long as no set of the group changes
/// its points.
#[derive(Debug)]
pub struct AccessPlace {
    /// The [number](Access::number) of the access.
    pub(super) access: (usize, usize),
    /// The instance's position in it.
    pub(super) instance: usize,
    pub(super) group: usize,
    /// [`FieldGroup::changes`](super::group::FieldGroup::changes) when the sets were looked up.
    pub(super) changes: u64,
    pub(super) touched: Touched,
}

/// The places of all accesses of one operation, in their order; none of those that are not known.
pub type Places = Vec<AccessPlace>;

impl<I: Instance> Access<'_, I> {
    /// Returns the instance in which values are brought up to date for an instance of the access: the same one, unless
    /// it is a buffer.
    pub(super) fn home<'a>(&'a self, fields: &FieldMask, instance: &'a Arc<I>) -> &'a Arc<I> {
        let home = self.homes.iter().find(|(held, _)| held.overlaps(fields));
        home.map_or(instance, |(_, home)| home)
    }
}

impl Mode {
    /// Of a privilege. A reduction is done on the values themselves, in place, or in buffers.
    #[must_use]
    #[inline]
    pub fn of(privilege: Privilege, in_place: bool) -> Self {
        match privilege {
            Privilege::Read => Self::Read,
            Privilege::ReadWrite => Self::Write,
            Privilege::Discard => Self::Discard,
            Privilege::Reduce(operator) if in_place => Self::ReduceInPlace(operator),
            Privilege::Reduce(operator) => Self::ReduceInBuffer(operator),
        }
    }

    /// Whether an access looks at values, or leaves some as they are.
    #[inline]
    pub(super) fn needs_values(self) -> bool {
        match self {
            Self::Read | Self::Write | Self::ReduceInPlace(_) => true,
            Self::Discard | Self::ReduceInBuffer(_) => false,
        }
    }

    /// The operator of contributions.
    #[inline]
    pub(super) fn operator(self) -> Option<OperatorId> {
        match self {
            Self::ReduceInPlace(operator) | Self::ReduceInBuffer(operator) => Some(operator),
            Self::Read | Self::Write | Self::Discard => None,
        }
    }

    /// Whether an access to part of a set can only begin when the set's pending reductions have been applied.
    #[inline]
    pub(super) fn settles<I: Instance>(self, set: &EquivalenceSet<I>, cover: &Cover, shapes: &ShapeTable) -> bool {
        match self {
            Self::Discard => false,
            Self::Read | Self::Write => set.has_pending(cover, shapes),
            Self::ReduceInPlace(operator) | Self::ReduceInBuffer(operator) => {
                set.has_pending_besides(operator, cover, shapes)
            }
        }
    }
}
