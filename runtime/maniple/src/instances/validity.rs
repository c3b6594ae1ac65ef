//! The analysis of validity for this machine's instances and events.

use maniple_analysis::validity;
use maniple_realm::{After, Event};

use super::instance::PhysicalInstance;
use crate::support::fill::FillValue;

pub(crate) type Access<'a> = validity::Access<'a, PhysicalInstance>;
pub(crate) type Application = validity::Application<PhysicalInstance>;
pub(crate) type Beginning = validity::Beginning<PhysicalInstance>;
pub(crate) type Effect<'a> = validity::Effect<'a, PhysicalInstance>;
pub(crate) type EquivalenceSet = validity::EquivalenceSet<PhysicalInstance>;
pub(crate) type Fill = validity::Fill<FillValue, Event>;
pub(crate) type Instances = validity::Instances<PhysicalInstance>;
pub(crate) type Movement = validity::Movement<PhysicalInstance>;
pub(crate) type Preconditions = validity::Preconditions<Event>;
pub(crate) type Preparation = validity::Preparation<PhysicalInstance>;
pub(crate) type State = validity::ValidityState<PhysicalInstance>;

/// Preconditions, for the machine.
#[inline]
pub(crate) fn after(preconditions: &Preconditions) -> After<'_> {
    After { needs: &preconditions.needs, follows: &preconditions.follows }
}
