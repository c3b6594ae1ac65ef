//! Parts of a packet that go different ways, and the results of all of them.

use std::sync::Arc;

use bytes::Bytes;
use maniple_mapper::NodeSlice;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_space::AnyPoint;

use super::packet::{Points, Reason, TaskPacket};
use super::remote::{Done, Remote};
use super::result::TaskResult;

/// Some leaf tasks of a packet, and where they are to run.
pub(crate) struct PacketPart {
    pub(crate) to: NodeId,
    pub(crate) packet: TaskPacket,
    pub(crate) values: Vec<u8>,
    /// Which tasks of the whole packet they are.
    pub(crate) tasks: Vec<usize>,
}

/// The tasks of each slice. None if a task is in none, or has no values.
pub(crate) fn split(packet: &TaskPacket, values: &Bytes, slices: &[NodeSlice]) -> Option<Vec<PacketPart>> {
    let part = |slice: &NodeSlice| {
        let TaskPacket { path, domain, is_index_launch, tag, mapper, arguments, hops, .. } = packet;
        let packet = TaskPacket {
            path: path.clone(),
            domain: domain.clone(),
            points: Points::of_rect(slice.domain),
            is_index_launch: *is_index_launch,
            tag: *tag,
            mapper: *mapper,
            arguments: arguments.clone(),
            reason: Reason::Sliced { recurse: slice.recurse },
            hops: hops.saturating_add(1),
            leaves: Vec::new(),
        };
        PacketPart { to: slice.node, packet, values: Vec::new(), tasks: Vec::new() }
    };
    let mut parts: Vec<PacketPart> = slices.iter().map(part).collect();
    for (task, (leaf, values)) in packet.leaf_values(values.clone())?.into_iter().enumerate() {
        let point = AnyPoint::new(&leaf.point).ok()?;
        let part = &mut parts[slices.iter().position(|slice| slice.domain.contains(point))?];
        part.values.extend_from_slice(&values);
        part.packet.leaves.push(leaf.clone());
        part.tasks.push(task);
    }
    parts.retain(|part| !part.tasks.is_empty());
    Some(parts)
}

/// The results so far of the tasks of a packet that was split.
pub(crate) struct Gathered(Mutex<Gathering>);

struct Gathering {
    results: Vec<Option<TaskResult>>,
    missing: usize,
    done: Option<Done>,
}

impl Gathered {
    /// None yet of so many. `done` is called with all.
    pub(crate) fn new(tasks: usize, done: Done) -> Arc<Self> {
        let results = (0..tasks).map(|_| None).collect();
        Arc::new(Self(Mutex::new(Gathering { results, missing: tasks, done: Some(done) })))
    }

    /// A task has ended.
    pub(crate) fn end(&self, task: usize, result: TaskResult) {
        let mut gathering = self.0.lock();
        gathering.results[task] = Some(result);
        gathering.missing -= 1;
        if gathering.missing > 0 {
            return;
        }
        let results = gathering.results.drain(..).flatten().collect();
        let done = gathering.done.take();
        drop(gathering);
        if let Some(done) = done {
            done(results);
        }
    }

    /// Tasks that are forwarded.
    pub(crate) fn forwarded(self: &Arc<Self>, tasks: Vec<usize>) -> Box<dyn Remote> {
        Box::new(Forwarded { whole: Arc::clone(self), tasks })
    }
}

/// Tasks of another node that were forwarded to a third one.
struct Forwarded {
    whole: Arc<Gathered>,
    tasks: Vec<usize>,
}

impl Remote for Forwarded {
    fn complete(self: Box<Self>, results: Vec<TaskResult>) {
        self.tasks.into_iter().zip(results).for_each(|(task, result)| self.whole.end(task, result));
    }
}
