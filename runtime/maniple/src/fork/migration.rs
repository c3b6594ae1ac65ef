//! Forked tasks that migrate to a thief.
//!
//! A fork that waits in a queue is its arguments, if it waits for no other task. The thread that takes it out of the
//! queue has the right to run it, and the right is kept until the value comes back.

use maniple_realm::machine::NodeId;
use maniple_space::{AnyRect, Rect};

use super::cell::{Fork, Phase};
use super::running::{By, JOB, abandon, end, queue};
use crate::core::RuntimeCore;
use crate::migration::{Points, Reason, Remote, TaskPacket, TaskResult};
use crate::support::error::Error;

/// The oldest task that waits in the queues of a runtime, if so many wait, it can migrate, and the mapper permits that.
pub(crate) fn steal(core: &RuntimeCore, thief: NodeId, at_least: usize) -> Option<(TaskPacket, Box<dyn Remote>)> {
    let realm = core.realm();
    if realm.queued_jobs() < at_least {
        return None;
    }
    let head = realm.steal_job(&JOB)?;
    // SAFETY: the job's reference is this one's now, and with it the right to run the task.
    let fork = unsafe { Fork::from_raw(head.cast()) };
    match describe(core, &fork, thief) {
        Some(packet) => Some((packet, Box::new(RemoteFork(Some(fork))))),
        None => {
            queue(fork);
            None
        }
    }
}

/// The packet for the thief, of a task that can migrate, and may. The caller has the right to run it.
fn describe(core: &RuntimeCore, fork: &Fork, thief: NodeId) -> Option<TaskPacket> {
    // SAFETY: as the caller says.
    let (head, progress, body) = unsafe { fork.inside() };
    let definition = head.definition();
    definition.result_codec()?;
    let (path, migratable) = definition.migratable()?;
    let is_ready = matches!(progress.phase, Phase::Waiting) && progress.sources.is_empty();
    let (parent, _) = progress.parent.as_ref().filter(|_| is_ready)?;
    let arguments = migratable.encode(body.arguments()?)?;
    let only = Points::of_rect(AnyRect::from(Rect::<1>::from(0..1)));
    core.permits_steal(head.name(), parent.processor, thief).then(|| TaskPacket {
        path: path.to_owned(),
        domain: only.clone(),
        points: only,
        is_index_launch: false,
        tag: 0,
        mapper: 0,
        arguments,
        reason: Reason::Stolen,
        hops: 1,
        leaves: Vec::new(),
    })
}

/// A fork that was taken out of its queue, and runs on another node. There until it is completed.
struct RemoteFork(Option<Fork>);

impl Drop for RemoteFork {
    /// The machine has ended before the results were taken in: the fork ends as a failure, as one in a queue does.
    fn drop(&mut self) {
        if let Some(fork) = self.0.take() {
            abandon(fork);
        }
    }
}

impl Remote for RemoteFork {
    fn complete(mut self: Box<Self>, results: Vec<TaskResult>) {
        let Some(fork) = self.0.take() else { return };
        let Some(value) = results.into_iter().next() else { return queue(fork) };
        if matches!(value, TaskResult::Refused(_)) {
            return queue(fork);
        }
        fork.head().schedule.run();
        let codec = fork.head().definition().result_codec();
        // SAFETY: the right to run the task was never given up.
        let (head, _, body) = unsafe { fork.inside() };
        let not_sendable = || Error::NotSendable { task: head.name().to_owned() };
        let outcome = value.value(|_| not_sendable()).and_then(|bytes| {
            let value = codec.and_then(|codec| codec.decode(&bytes));
            let is_set = value.is_some_and(|value| body.set_value(value));
            is_set.then_some(()).ok_or_else(not_sendable)
        });
        end(fork, outcome.map_err(Box::new), By::OtherNode);
    }
}
