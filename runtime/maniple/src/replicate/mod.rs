//! Programs that run on several nodes: every node runs the whole program, and of each launch the points that are its.
//!
//! `README.md` here tells the whole story. In reading order: [`layout`] says which node uses what, and [`coherence`] what nodes must send each other
//! before: both are pure functions, which every node computes alone. [`sharding`] says who runs what; [`replica`] turns a launch of the program into launches
//! here, and [`course`] guesses which one comes next; those before it are its [`preparation`], of which [`states`] tells when it is the same as before, and [`exchange`] are the tasks in it, which send and receive. [`spread`] brings results to all nodes, and [`reduction`] their sum. Below them are what a node knows of the network:
//! [`node`], [`parcel`], [`mailbox`], [`tree`], [`failure`], [`latest`]. Tasks without regions go where nobody has anything to do: [`guests`]; parts of index launches where the mapper says: [`slices`].

mod agreement;
mod batches;
mod blocks;
pub(crate) mod coherence;
mod course;
mod exchange;
mod failure;
pub(crate) mod finding;
pub(crate) mod found;
mod guests;
mod hunger;
mod latest;
pub(crate) mod layout;
mod luggage;
mod mailbox;
mod meeting;
mod missing;
pub(crate) mod node;
mod parcel;
mod plan;
pub(crate) mod points;
mod preparation;
mod profiled;
mod reduction;
pub(crate) mod replica;
mod sharding;
mod slices;
pub(crate) mod spread;
mod states;
mod tree;

#[cfg(test)]
mod tests;

pub(crate) use exchange::bytes_of_point;
pub(crate) use mailbox::Awaited;
pub(crate) use node::Node;
pub(crate) use replica::{PER_NODE, Replica};
pub(crate) use spread::{Local, Spread};
