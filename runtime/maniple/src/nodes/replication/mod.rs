//! Programs that run on several nodes: every node runs the whole program, and of each launch the points that are its.
//!
//! `README.md` here describes the whole. In reading order: [`sharding`] says which node runs which points;
//! `maniple_analysis::distribution` what nodes must send each other before; [`launching`] turns an operation of the
//! program into launches here, for each kind of launch by a [`plan`], which [`planning`] makes; [`replica`] has what is
//! known of the program so far, such as the [`knowledge`] of region trees, and [`predictor`] predicts which one comes
//! next; the launches before it are its [`preparation`], and [`exchange`] has the tasks in it, which send and receive.
//! [`shared_results`] brings results to all nodes, [`reduction`] their sum, and [`scan`] sums of those before each;
//! [`sharing`] is what results know of all that. What this node has of its job is its [`node`]; [`failure`] has the
//! errors that go from node to node, [`agreement`] what has come of something on all, [`operations`] what nodes
//! compare, [`directory`] the pieces that they ask each other for. [`network`] connects [`migration`](crate::migration)
//! to the job.

mod agreement;
pub(crate) mod dependent;
mod directory;
pub(crate) mod distributed;
mod exchange;
mod failure;
mod knowledge;
mod launching;
mod network;
pub(crate) mod node;
mod operations;
mod plan;
mod planning;
mod predictor;
mod preparation;
mod reduction;
pub(crate) mod replica;
mod scan;
mod sharding;
pub(crate) mod shared_results;
mod sharing;

pub(crate) use launching::PER_NODE;
pub(crate) use node::JobNode;
pub(crate) use replica::Replica;
