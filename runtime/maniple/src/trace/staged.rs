//! Launches on their way into a trace.

use std::sync::Arc;

use maniple_realm::UserEvent;
use maniple_record::LaunchNumber;

use crate::launch::TaskLaunch;
use crate::results::Results;

/// A launch that was found to be allowed and has its results, and is to be analysed or replayed.
pub(crate) struct Staged {
    pub(crate) launch: TaskLaunch,
    pub(crate) results: Arc<Results>,
    pub(crate) completion: UserEvent,
    /// Its number, while a record is kept.
    pub(crate) recorded: Option<LaunchNumber>,
}
