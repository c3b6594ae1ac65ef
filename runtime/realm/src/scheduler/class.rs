//! Whose work something is, how urgent, and which group of processors may do it.

/// Names a group of processors: see [`Realm::processor_group`](crate::Realm::processor_group).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId {
    /// The realm that made it, and that alone knows it.
    pub(crate) realm: u32,
    pub(crate) number: u32,
}

/// Whose work it is. Workers prefer the runtime's, since tasks wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// The user's.
    #[default]
    Task,
    /// The runtime's own: analysis, mapping, copies.
    Runtime,
}

/// How urgent an operation is: its class first, then its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(pub(super) i64);

impl Rank {
    pub(crate) const RUNTIME: Rank = Rank::new(Class::Runtime, 0);
    pub(crate) const TASK: Rank = Rank::new(Class::Task, 0);
    pub(super) const NOTHING: Rank = Rank(i64::MIN);

    pub(crate) const fn new(class: Class, priority: i32) -> Self {
        Self(((class as i64) << 40) + priority as i64)
    }
}
