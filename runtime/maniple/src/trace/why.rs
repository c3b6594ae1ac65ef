//! Why a session ends what it is doing.

use std::fmt;

use crate::launch::{FillSite, LaunchSite};

/// Why a phase ends.
pub(super) enum Why<'a> {
    /// Another launch has come.
    Other(&'a LaunchSite),
    /// Another fill has come.
    OtherFill(&'a FillSite),
    Renewed,
    EndOfRun,
    EndOfTrace,
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(site) => write!(f, "task `{}`", site.name()),
            Self::OtherFill(site) => f.write_str(&site.shown()),
            Self::Renewed => f.write_str("new fields in the place of freed ones"),
            Self::EndOfRun => f.write_str("the end of the run"),
            Self::EndOfTrace => f.write_str("something that is no launch of this trace"),
        }
    }
}
