//! Dependent partitioning: partitions computed from data (Treichler et al., *Dependent Partitioning*, OOPSLA 2016).
//!
//! Each is a task that reads fields and finds pieces, and a partition made of them. The task is launched by the call,
//! and ordered after the operations that write the fields; the caller awaits it, and other operations go on meanwhile.
//! In a program that runs on several nodes each looks at the values that it has, and what it finds goes to those nodes
//! in whose blocks the points are (see `replication/distributed.rs`): no node knows all pieces.
//!
//! From the ground up: `integers` reads fields of whatever types as integers, and is alone in knowing the types;
//! `values` reads what those of several fields say; `computation` launches the tasks and makes partitions of what they
//! find, by the operators of `maniple_space::partition::dynamic`; `relation` and `logical` are what libraries call that
//! know regions and fields at run time, `typed` is for regions with the types of their fields.

mod computation;
mod integers;
mod logical;
mod relation;
mod typed;
mod values;

pub use self::relation::Relation;
pub use self::typed::Color;
