//! Physical analysis: which instances hold current data, what must be copied, and what must be waited for.
//!
//! The state of a region ([`state`]) groups fields that were used alike ([`group`]); of each group, points that share one history form an
//! equivalence set ([`set`]), which says which instances ([`instance`]) are valid and which operations use them ([`uses`]). [`selection`] turns a mapper's choices
//! into instances, found in a [`table`] or made in the [`store`]; [`analysis`] finds the [`places`] of the data, lists what must move ([`movement`], [`application`]),
//! orders operations, and gathers what comes before each ([`preparation`], of which leaf tasks do a part themselves when they begin: [`beginning`]). What moves is issued to
//! the machine ([`issuing`]), counted and [recorded](record).
//!
//! Everything here happens under the lock of one region state and touches no thread. Nothing here knows of tasks, launches or mappers: a requirement comes
//! [bound] to the states of its data.

pub(crate) mod analysis;
pub(crate) mod application;
pub(crate) mod beginning;
pub(crate) mod bound;
pub(crate) mod cover;
pub(crate) mod group;
pub(crate) mod instance;
pub(crate) mod issuing;
pub(crate) mod movement;
pub(crate) mod places;
pub(crate) mod preparation;
mod record;
mod recordings;
pub(crate) mod selection;
pub(crate) mod set;
pub(crate) mod set_index;
pub(crate) mod state;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod uses;
