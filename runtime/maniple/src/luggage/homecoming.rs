//! What is done when a task that was sent away comes home.

use std::sync::Arc;

use bytes::Bytes;
use maniple_mapper::TaskProfile;
use maniple_realm::{Class, Spawn, Target, UserEvent};

use super::departure::MobileTask;
use super::values;
use crate::core::RuntimeCore;
use crate::error::{Error, Result};
use crate::point_task::{LeafTask, PointTask};
use crate::task::Value;

/// What a node answers to whose task it was sent.
pub(crate) enum Answer {
    /// The task has ended well: its value, and what it has made of its data.
    Ended { value: Vec<u8>, values: Bytes },
    /// It has failed there.
    Failed(Error),
    /// It was not run there, for want of memory, say.
    Refused(String),
}

impl Answer {
    /// That of a node that could not be asked, as the job is over.
    pub(crate) fn too_late() -> Self {
        Self::Refused("nothing is received any more".to_owned())
    }
}

/// A task that is away.
pub(crate) struct Departed {
    task: LeafTask,
    done: UserEvent,
    /// When it left.
    left: u64,
}

impl Departed {
    pub(super) fn new(task: LeafTask, done: UserEvent) -> Self {
        let left = task.core().now_ns();
        Self { task, done, left }
    }

    pub(crate) fn core(&self) -> &Arc<RuntimeCore> {
        self.task.core()
    }

    /// It does not go, after all. What comes before its body is done.
    pub(super) fn stay(self) -> MobileTask {
        MobileTask { task: self.task, done: self.done, stays: true }
    }

    /// The other node has answered. A worker does the rest, which may be much: the thread that calls may be the network's.
    pub(crate) fn come_back(self, answer: Answer, then: impl FnOnce() + Send + 'static) {
        let core = self.task.core().clone();
        let spawn = Spawn { class: Class::Runtime, ..Spawn::ANYWHERE };
        core.spawn_own("the return of a task", spawn, move || {
            self.settle(answer);
            then();
        });
    }

    /// Nobody will answer: the job has ended.
    pub(crate) fn give_up(self, error: Error) {
        self.settle(Answer::Failed(error));
    }

    fn settle(self, answer: Answer) {
        let (PointTask { state, mapped, .. }, core) = (self.task.point_task(), self.task.core());
        let value = match answer {
            Answer::Refused(why) => return self.run_here(&why),
            Answer::Failed(error) => Err(error),
            Answer::Ended { value, values } => self.take_in(&value, &values),
        };
        if mapped.mapping.profile {
            let (processor, ended) = (mapped.mapping.processor, core.now_ns());
            state.report(&TaskProfile { processor, started: self.left, ended });
        }
        state.ran_elsewhere();
        let value = value.map_err(|error| state.blame(error, mapped.point));
        conclude(self.task, self.done, value);
    }

    /// Puts what the task has made where it would have made it. Gives its value.
    fn take_in(&self, value: &[u8], values: &[u8]) -> Result<Value> {
        let PointTask { state, mapped, .. } = self.task.point_task();
        let codec = state.site.definition.result_codec();
        let value = codec.and_then(|codec| codec.decode(value));
        let value = value.ok_or_else(|| Error::NotSendable { task: state.name().to_owned() })?;
        // SAFETY: the task has not ended, so what it may use is still its own. The other node, which runs the same program, was told which task it is.
        unsafe { values::unpack_made(&mapped.physical, values) }?;
        Ok(value)
    }

    /// The other node would not have it.
    fn run_here(self, why: &str) {
        let PointTask { state, mapped, .. } = self.task.point_task();
        tracing::warn!(task = state.name(), point = %mapped.point, why, "a task was not run on another node, and runs here");
        let mapping = &mapped.mapping;
        let target = if mapping.pinned { Target::On(mapping.processor) } else { Target::Near(mapping.processor) };
        let spawn = Spawn { target, priority: mapping.priority, tag: self.task.point_task().tag(), ..Spawn::ANYWHERE };
        let realm = self.task.core().realm().clone();
        realm.spawn(spawn, self.stay());
    }
}

/// A task has ended, here or elsewhere.
pub(super) fn conclude(task: LeafTask, done: UserEvent, value: Result<Value>) {
    let realm = task.core().realm().clone();
    let failure = value.as_ref().err().cloned();
    task.end(value);
    match failure {
        None => realm.trigger(done),
        Some(error) => realm.poison(done, error),
    }
}
