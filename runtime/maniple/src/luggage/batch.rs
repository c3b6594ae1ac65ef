//! Leaf tasks of one slice of a launch, which go to another node together with their data.
//!
//! Each is mapped here, and comes when its data is there. When all have come they leave in one message; or as many as are there when this node has nothing better to do, since one may have
//! to wait for another's end, or for its memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use maniple_mapper::NodeSlice;
use maniple_realm::Spawn;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use serde::{Deserialize, Serialize};

use super::description::{Description, Points};
use super::homecoming::{Answer, Departed};
use crate::core::RuntimeCore;

/// What tasks know of those with which they leave. By what it can do: a [`Batch`] consists of tasks, which know it, and to see that all this may be sent from thread to thread the compiler would have to
/// look deeper than it likes to, in the crates of users too.
pub(crate) trait Company: Send + Sync {
    /// Where they go.
    fn node(&self) -> NodeId;

    /// One more is ready to leave.
    fn join(self: Arc<Self>, core: &Arc<RuntimeCore>, member: Member);
}

/// The tasks of a slice that are about to leave for its node.
struct Batch {
    node: NodeId,
    said: SliceOfBatch,
    /// So many have not come yet. Some never may: those that fail before, or that stay.
    missing: AtomicUsize,
    gathered: Mutex<Vec<Member>>,
}

/// One of them.
pub(crate) struct Member {
    pub(super) departed: Departed,
    pub(super) description: Description,
    pub(super) values: Vec<u8>,
}

/// The tasks of a slice of a launch with this tag.
pub(crate) fn batch(NodeSlice { domain, node, recurse }: NodeSlice, tag: u64) -> Arc<dyn Company> {
    let said = SliceOfBatch { points: Points::of_rect(domain), tag, recurse, hops: 1 };
    Arc::new(Batch { node, said, missing: AtomicUsize::new(domain.volume() as usize), gathered: Mutex::default() })
}

impl Company for Batch {
    fn node(&self) -> NodeId {
        self.node
    }

    fn join(self: Arc<Self>, core: &Arc<RuntimeCore>, member: Member) {
        let is_first = {
            let mut gathered = self.gathered.lock();
            gathered.push(member);
            gathered.len() == 1
        };
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.leave(core);
        } else if is_first {
            let part = Part(Some(self));
            let (again, spawn) = (Arc::clone(core), Spawn { priority: i32::MIN, ..Spawn::ANYWHERE });
            core.spawn_own("sending a part of a slice", spawn, move || part.leave(&again));
        }
    }
}

impl Batch {
    /// Those that have come leave.
    fn leave(&self, core: &Arc<RuntimeCore>) {
        let members = std::mem::take(&mut *self.gathered.lock());
        let Some(node) = core.node().filter(|_| !members.is_empty()) else { return };
        let (description, values, departed) = pack(members, &self.said);
        core.store.counters.slices_sent.add(1);
        if let Some(stay) = node.send_batch(self.node, (&description, values), departed) {
            stay.into_iter().for_each(|departed| departed.come_back(Answer::too_late(), || {}));
        }
    }
}

/// The tasks that have come and not left, for the work that is to send them. Should the machine break down before that runs, they are dropped with it: each holds the batch, which
/// holds them. Once it has run, those that come later have work of their own.
struct Part(Option<Arc<Batch>>);

impl Part {
    fn leave(mut self, core: &Arc<RuntimeCore>) {
        if let Some(batch) = self.0.take() {
            batch.leave(core);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(batch) = &self.0 {
            let left = std::mem::take(&mut *batch.gathered.lock());
            drop(left);
        }
    }
}

/// What is said of a batch.
#[derive(Serialize, Deserialize)]
pub(crate) struct BatchDescription {
    pub(super) path: String,
    domain: Points,
    arguments: Vec<u8>,
    pub(super) slice: SliceOfBatch,
    pub(super) tasks: Vec<TaskOfBatch>,
}

/// What is said of the slice whose tasks they are, all or some.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SliceOfBatch {
    pub(super) points: Points,
    /// The launch's.
    pub(super) tag: u64,
    /// Whether it is to be sliced again where it comes to.
    pub(super) recurse: bool,
    /// How often it, or what it is a part of, was sent.
    pub(super) hops: u32,
}

/// What is said of one task of it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct TaskOfBatch {
    variant: usize,
    priority: i32,
    pub(super) point: Vec<i64>,
    regions: Vec<Points>,
    /// So many bytes of the values are its.
    pub(super) bytes: usize,
}

fn pack(members: Vec<Member>, slice: &SliceOfBatch) -> (BatchDescription, Vec<u8>, Vec<Departed>) {
    let (mut said, mut all, mut away) = (None, Vec::new(), Vec::with_capacity(members.len()));
    for Member { departed, description, mut values } in members {
        let Description { path, variant, point, domain, is_index_launch: _, priority, arguments, regions } =
            description;
        let slice = || slice.clone();
        let batch =
            said.get_or_insert_with(|| BatchDescription { path, domain, arguments, slice: slice(), tasks: Vec::new() });
        batch.tasks.push(TaskOfBatch { variant, priority, point, regions, bytes: values.len() });
        all.append(&mut values);
        away.push(departed);
    }
    (said.expect("there is one"), all, away)
}

impl BatchDescription {
    /// The tasks, each with its values. None if that makes no sense.
    pub(crate) fn unpack(self, mut values: Bytes) -> Option<Vec<(Description, Bytes)>> {
        let Self { path, domain, arguments, tasks, .. } = self;
        let one = |TaskOfBatch { variant, priority, point, regions, bytes }: TaskOfBatch| {
            let (path, domain, arguments) = (path.clone(), domain.clone(), arguments.clone());
            let description =
                Description { path, variant, point, domain, is_index_launch: true, priority, arguments, regions };
            (bytes <= values.len()).then(|| (description, values.split_to(bytes)))
        };
        tasks.into_iter().map(one).collect()
    }

    /// The path of the task.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// How many tasks there are.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Whether the slice is to be sliced again.
    pub(crate) fn is_to_be_sliced(&self) -> bool {
        self.slice.recurse
    }

    /// What is said of another slice of the same launch, before it has tasks.
    pub(super) fn of_slice(&self, slice: SliceOfBatch) -> Self {
        let Self { path, domain, arguments, .. } = self;
        let (path, domain, arguments) = (path.clone(), domain.clone(), arguments.clone());
        Self { path, domain, arguments, slice, tasks: Vec::new() }
    }
}
