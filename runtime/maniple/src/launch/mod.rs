//! Launching tasks.
//!
//! [`TaskLauncher`] is the dynamic way: a task, requirements, arguments. `#[task]` builds on it and gives a typed
//! [`Launch`]. [`check`] refuses launches whose requirements or points would get in each other's way.

mod check;
mod fill;
mod launcher;
pub(crate) mod recording;
mod requirements;
mod site;
mod sites;
mod strict;
mod whole;

pub(crate) use check::{CheckContext, Everywhere, Sharing, View, check, check_point};
pub(crate) use fill::{FillSite, Filling};
pub(crate) use launcher::Described;
pub use launcher::{Launch, TaskLauncher};
pub(crate) use site::{LaunchSite, Launching, TaskLaunch};
pub(crate) use strict::{Findings, StrictLaunch};
pub(crate) use whole::{LaunchPart, WholeNumber};
