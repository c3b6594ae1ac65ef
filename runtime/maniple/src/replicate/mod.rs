//! Programs that run on several nodes: every node runs the whole program, and of each launch the points that are its.
//!
//! `README.md` here describes the whole. In reading order: [`sharding`] says which node runs which points; `maniple_analysis::distribution` what nodes must send each other
//! before; [`replica`] turns a launch of the program into launches here, and [`course`] predicts which one comes next; the launches before it are its
//! [`preparation`], and [`exchange`] has the tasks in it, which send and receive. [`spread`] brings results to all nodes, and [`reduction`] their sum. Below them are what a node knows of the network:
//! [`node`], [`parcel`], [`mailbox`], [`tree`], [`failure`], [`latest`]. [`network`] connects [`migration`](crate::migration) to them.

mod agreement;
mod course;
mod exchange;
mod failure;
pub(crate) mod finding;
pub(crate) mod found;
mod latest;
mod mailbox;
mod meeting;
mod network;
pub(crate) mod node;
mod parcel;
mod plan;
mod preparation;
mod profiled;
mod reduction;
pub(crate) mod replica;
mod sharding;
pub(crate) mod spread;
mod tree;

pub(crate) use mailbox::Awaited;
pub(crate) use node::Node;
pub(crate) use replica::{PER_NODE, Replica};
pub(crate) use spread::{Local, Spread};
