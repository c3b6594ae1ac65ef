//! Physical analysis: which instances hold current data, what must be copied, and what must be waited for.
//!
//! The state of a region ([`state`]) groups fields that were used alike ([`group`]); of each group, points that share one history form an
//! equivalence set ([`set`]), which says which instances ([`instance`]) are valid and who uses them ([`uses`]). [`selection`] turns a mapper's choices
//! into instances, found in a [`table`] or made; [`analysis`] finds the [`places`] of the data, lists what must move ([`movement`], [`application`]) and orders
//! operations.
//!
//! Everything here happens under the lock of one region state and touches no thread.

pub(crate) mod analysis;
pub(crate) mod application;
pub(crate) mod cover;
pub(crate) mod group;
pub(crate) mod instance;
pub(crate) mod movement;
pub(crate) mod places;
pub(crate) mod selection;
pub(crate) mod set;
mod set_index;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod uses;
