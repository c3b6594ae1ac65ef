//! Launches on their way into a trace.

use std::sync::Arc;

use maniple_realm::UserEvent;
use maniple_record::LaunchNumber;

use crate::launch::{LaunchSite, TaskLauncher};
use crate::results::Results;

/// A launch that was found to be allowed and has its results, and is to be analysed or replayed.
pub(crate) struct Staged {
    pub(crate) site: Arc<LaunchSite>,
    pub(crate) launcher: TaskLauncher,
    /// Its place among the launches of its context.
    pub(crate) number: u64,
    pub(crate) results: Arc<Results>,
    pub(crate) completion: UserEvent,
    /// Its number, while a record is kept.
    pub(crate) recorded: Option<LaunchNumber>,
}
