//! How the machine carries transfers out.

use maniple_realm::profile::Tag;

/// How the machine carries transfers out.
#[derive(Clone, Copy, Default)]
pub(crate) struct Manner {
    /// Among all transfers, if there are more than workers.
    pub(crate) priority: i32,
    /// What a profile says of them.
    pub(crate) tag: Tag,
}
