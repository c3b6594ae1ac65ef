//! The contests: what is done, and how this project and its rivals do it.

mod stencil;

use crate::contest::Contest;

/// All contests.
pub static CONTESTS: &[Contest] = &[stencil::CONTEST];
