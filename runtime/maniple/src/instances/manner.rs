//! How the machine carries transfers out.

use maniple_realm::profile::Tag;

/// How the machine carries transfers out.
#[derive(Clone, Copy, Default)]
pub(crate) struct Manner {
    /// Among all transfers, if there are more than workers.
    pub(crate) priority: i32,
    /// The tag of the transfers in a profile.
    pub(crate) tag: Tag,
}
