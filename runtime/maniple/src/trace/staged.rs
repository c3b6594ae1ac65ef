//! Launches on their way into a trace.

use std::sync::Arc;

use maniple_realm::UserEvent;
use maniple_record::LaunchNumber;

use crate::context::Promised;
use crate::launch::{FillSite, TaskLaunch};
use crate::results::Results;

/// A launch that was found to be allowed and has its results, and is to be analysed or replayed.
pub(crate) struct Staged {
    pub(crate) launch: TaskLaunch,
    pub(crate) results: Arc<Results>,
    pub(crate) completion: UserEvent,
    /// Its number, while a record is kept.
    pub(crate) recorded: Option<LaunchNumber>,
}

/// A fill that was found to be allowed, and is to be analysed or replayed.
pub(crate) struct StagedFill {
    pub(crate) site: Arc<FillSite>,
    pub(crate) promised: Promised,
}
