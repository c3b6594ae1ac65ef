//! Operations: their life from launch to retirement, and what is destroyed for which task.

pub(crate) mod deletions;
pub(crate) mod lifecycle;
