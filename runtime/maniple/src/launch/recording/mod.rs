//! Recordings of what the analysis of a stretch of launches does, of which [traces](crate::trace) are made.
//!
//! - [`recording`]: what is done, noted down as it happens; [`content`]: what is known of a set, to compare what a
//!   recording rests on with what is;
//! - [`problem`]: why a recording is of no use.

pub(crate) mod content;
mod problem;
#[allow(clippy::module_inception)] // the file is about the type of this name
pub(crate) mod recording;

pub(crate) use problem::RecordingProblem;
pub(crate) use recording::{PointRecorder, Recording};
