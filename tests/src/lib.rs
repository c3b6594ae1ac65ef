//! Tests across crates: random programs against a sequential oracle.
pub mod environment;
pub mod execute;
pub mod generate;
pub mod oracle;
pub mod program;
pub mod shrink;
pub mod trial;
pub mod value;
