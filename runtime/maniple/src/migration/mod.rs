//! Migration: tasks that run on another node, with their inputs, and whose results come back.
//!
//! `README.md` has the states, the messages and the races. In reading order:
//!
//! - [`packet`]: what is sent to another node of tasks; [`result`]: what it answers; [`encoding`]: the bytes of both;
//! - [`remote`]: the two sides of the program that migration works for: tasks that run elsewhere, and what runs others'
//!   tasks here;
//! - [`in_flight`]: the table of the packets that have been sent;
//! - [`steal`]: the policy of stealing: which node is asked for work, and which node gets some;
//! - [`messages`]: steal requests, packets and results, sent and received;
//! - [`batch`]: leaf tasks that leave in one packet; [`share`]: what a thief gets of the leaf tasks of a
//!   launch; [`forward`]: parts of a packet that are sent on.

mod batch;
mod encoding;
mod forward;
mod in_flight;
mod messages;
mod packet;
mod remote;
mod result;
mod share;
mod steal;

pub(crate) use batch::{Batch, Member};
pub(crate) use forward::{Gathered, PacketPart, split};
pub(crate) use messages::Migration;
pub(crate) use packet::{LeafPoint, Points, Reason, TaskPacket};
pub(crate) use remote::{Done, Executor, Letter, MigrationMessage, Network, Remote};
pub(crate) use result::TaskResult;
pub(crate) use share::{Route, Share};
