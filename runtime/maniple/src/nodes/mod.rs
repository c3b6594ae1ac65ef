//! Several nodes: one program on all of them, and packets of other nodes that are executed here.

pub(crate) mod remote;
pub(crate) mod replication;
