//! Which instances hold current data, what must be copied, filled or applied, and after what (Bauer 2014, chapter 5;
//! Bauer et al., PPoPP 2023).
//!
//! A [`ValidityState`] is what is known of one region tree. It groups fields that were used alike (`group`); of each
//! group, points that share one history form an [`EquivalenceSet`] (`set`), which says which instances are valid and
//! which operations use them (`uses`), for all of its points or for a part ([`Cover`]). The [`Analysis`] finds the
//! [`AccessPlace`]s of an operation's data, has done what is due before, gathers what the operation comes after
//! ([`Preparation`]), and when the operation has a name makes it part of the history.
//!
//! The caller provides the rest: an [`Instance`] is a name with a list of the uses left behind in it, an [`Event`] is a
//! name for the end of an operation, and [`Effects`] carries out the effects that are due. The calls of
//! [`Effects::carry_out`] are a plan in the order in which it is found: each effect comes after events that have names
//! already.

mod access;
mod analysis;
mod copies;
mod cover;
mod effects;
mod events;
mod group;
mod instance;
mod preparation;
mod queries;
mod set;
mod set_index;
mod settling;
mod state;
mod uses;

pub use access::{Access, AccessPlace, Mode, Places};
pub use analysis::Analysis;
pub use cover::Cover;
pub use effects::{Application, Effect, Effects, Movement, Source};
pub use events::{Event, Events, Preconditions};
pub use instance::{Held, Instance, InstancePart, Instances};
pub use preparation::{Beginning, Preparation};
pub use set::{EquivalenceSet, Fill, Forgotten, Order, PendingReduction, Role, View};
pub use state::ValidityState;

#[cfg(test)]
mod tests;
