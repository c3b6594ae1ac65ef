//! Mapping: asking mappers, and holding their answers to the rules.
//!
//! - [`seat`]: one mapper object, and calls into it; [`waiting`]: what it must not do meanwhile;
//! - [`whom`]: which mapper of several is asked, on which processor;
//! - [`lookup`]: what a mapper may look up while it decides;
//! - [`point`]: mapping one point of a task: instances, copies, preconditions;
//! - [`regions`]: the regions of one point's requirements;
//! - [`answer`]: checking what a mapper says;
//! - [`decisions`]: what it said about the points of a launch, to be used again.

pub(crate) mod answer;
pub(crate) mod decisions;
pub(crate) mod lookup;
pub(crate) mod point;
pub(crate) mod regions;
pub(crate) mod seat;
pub(crate) mod waiting;
pub(crate) mod whom;

pub(crate) use decisions::Decisions;
pub(crate) use seat::MapperSeat;
pub(crate) use whom::Whom;

/// How often a mapper is asked about an operation that finds no room, before that waits for others to end.
pub(crate) const MAPPING_ATTEMPTS: usize = 3;
