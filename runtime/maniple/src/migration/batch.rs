//! Leaf tasks that migrate to one node in one packet.
//!
//! Each is mapped here, and joins the others when its data is there. The packet leaves when all have joined; or with as
//! many as have, when this node has nothing better to do, since a task may have to wait for another's end, or for its
//! memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_mapper::NodeSlice;
use maniple_realm::Spawn;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_space::AnyRect;

use super::messages::Migration;
use super::packet::{Points, Reason, TaskPacket};
use super::remote::Remote;
use super::result::TaskResult;

/// The tasks of a slice that are about to leave for its node.
pub(crate) struct Batch {
    node: NodeId,
    points: Points,
    reason: Reason,
    /// So many have not joined yet. Some never may: those that fail before, or that stay.
    missing: AtomicUsize,
    gathered: Mutex<Vec<Member>>,
    migration: Arc<Migration>,
}

/// A task that leaves with a batch: a packet of its own, until it joins the others.
pub(crate) struct Member {
    pub(crate) remote: Box<dyn Remote>,
    pub(crate) packet: TaskPacket,
    pub(crate) values: Vec<u8>,
}

impl Batch {
    /// The tasks of a slice.
    pub(crate) fn of_slice(migration: &Arc<Migration>, NodeSlice { domain, node, recurse }: NodeSlice) -> Arc<Self> {
        Arc::new(Self {
            node,
            points: Points::of_rect(domain),
            reason: Reason::Sliced { recurse },
            missing: AtomicUsize::new(domain.volume() as usize),
            gathered: Mutex::default(),
            migration: Arc::clone(migration),
        })
    }

    /// So many tasks of a launch with these points, for a thief.
    pub(super) fn of_share(migration: &Arc<Migration>, thief: NodeId, points: AnyRect, share: usize) -> Arc<Self> {
        Arc::new(Self {
            node: thief,
            points: Points::of_rect(points),
            reason: Reason::Stolen,
            missing: AtomicUsize::new(share),
            gathered: Mutex::default(),
            migration: Arc::clone(migration),
        })
    }

    /// So many of those that are missing will not join.
    pub(crate) fn expect_fewer(&self, tasks: usize) {
        if self.missing.fetch_sub(tasks, Ordering::AcqRel) == tasks && !self.leave() && self.reason == Reason::Stolen {
            // It may have been given nothing, and does not ask again by itself.
            self.migration.put_back_thief(self.node);
        }
    }

    /// The node to which the tasks go.
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// One more task is ready to leave.
    pub(crate) fn join(self: Arc<Self>, member: Member) {
        let is_first = {
            let mut gathered = self.gathered.lock();
            gathered.push(member);
            gathered.len() == 1
        };
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.leave();
        } else if is_first {
            let (migration, spawn) = (Arc::clone(&self.migration), Spawn { priority: i32::MIN, ..Spawn::ANYWHERE });
            let incomplete = Incomplete(Some(self));
            migration.spawn("sending a part of a slice", spawn, move || incomplete.leave());
        }
    }

    /// Sends the tasks that have joined. Returns whether there are any.
    fn leave(&self) -> bool {
        let members = std::mem::take(&mut *self.gathered.lock());
        let (mut packet, mut all, mut remotes) = (None::<TaskPacket>, Vec::new(), Vec::with_capacity(members.len()));
        for Member { remote, packet: mut own, mut values } in members {
            all.append(&mut values);
            remotes.push(remote);
            match &mut packet {
                Some(packet) => packet.leaves.append(&mut own.leaves),
                None => packet = Some(TaskPacket { points: self.points.clone(), reason: self.reason, ..own }),
            }
        }
        if let Some(packet) = &packet {
            self.migration.send(self.node, packet, all, Box::new(Members(remotes)));
        }
        packet.is_some()
    }
}

/// A batch that is not complete, for the work that is to send what has joined. Should the machine break down before
/// that runs, the tasks are dropped with it: each holds the batch, which holds them. Once it has run, those that come
/// later have work of their own.
struct Incomplete(Option<Arc<Batch>>);

impl Incomplete {
    fn leave(mut self) {
        if let Some(batch) = self.0.take() {
            batch.leave();
        }
    }
}

impl Drop for Incomplete {
    fn drop(&mut self) {
        if let Some(batch) = &self.0 {
            let left = std::mem::take(&mut *batch.gathered.lock());
            drop(left);
        }
    }
}

/// The tasks of a batch that has left.
struct Members(Vec<Box<dyn Remote>>);

impl Remote for Members {
    fn complete(self: Box<Self>, results: Vec<TaskResult>) {
        self.0.into_iter().zip(results).for_each(|(remote, result)| remote.complete(vec![result]));
    }
}
