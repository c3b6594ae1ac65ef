//! The machine's side of validity: instances are chosen, made and reused; copies, fills and contributions are carried
//! out.
//!
//! Which instances hold current data is known to the analysis of [validity], of which a [`state`] has one, beside a
//! [`table`] of its instances. [`selection`] turns a mapper's choices into instances, found in the table or made in the
//! [`store`]. What the analysis finds due is told to the machine by [`effects`], as the [`issuing`] of the point wants:
//! at once, noted for a replay, or not at all, as a replay has done it; in which `manner`, the mapper says. It is
//! counted and [recorded](record). [`loads`] has how many tasks each processor has, and [`spares`] what can be given up
//! in each memory.
//!
//! Everything here happens under the lock of one region state and touches no thread. Nothing here knows of tasks,
//! launches or mappers: a requirement comes [bound] to the states of its data.

pub(crate) mod bound;
pub(crate) mod effects;
pub(crate) mod instance;
pub(crate) mod issuing;
pub(crate) mod loads;
mod manner;
pub(crate) mod placement;
pub(crate) mod places;
mod record;
mod recordings;
pub(crate) mod selection;
pub(crate) mod spares;
pub(crate) mod state;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod validity;
