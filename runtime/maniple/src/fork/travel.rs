//! Forked tasks that go to another node, and come back as values.
//!
//! A task that waits in a queue is its arguments, if it waits for no other. So it can be told to another node by its path and their bytes, as long as serde knows their types and
//! that of the value. Whoever takes it out of the queue has the right to run it, and keeps that until the value comes back.

use std::any::Any;
use std::future::poll_fn;
use std::sync::Arc;

use maniple_realm::After;
use maniple_realm::machine::ProcessorId;
use maniple_space::{AnyRect, Rect};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::body::Free;
use super::cell::{Fork, Phase};
use super::running::{By, JOB, end, queue};
use super::sources::Sources;
use crate::context::{Context, ContextState, Owned};
use crate::core::RuntimeCore;
use crate::error::{Error, Result};
use crate::future::Origin;
use crate::task::arguments::Own;
use crate::task::registry::find;
use crate::task::{Codec, TaskDefinition, Value};

/// How a task of one kind goes to another node.
#[derive(Clone, Copy, Debug)]
pub struct Travel {
    arguments: Codec,
    fork: fn(&'static Arc<TaskDefinition>, Value) -> Option<Fork>,
}

impl Travel {
    /// That of tasks whose arguments serde knows.
    pub(crate) fn of<B: Free>() -> Self
    where
        B::Arguments: Serialize + DeserializeOwned,
    {
        let fork = |definition, arguments: Value| {
            let arguments = arguments.downcast::<B::Arguments>().ok()?;
            let call = |call, arguments| B::start(call, arguments);
            Some(Fork::new::<B, _, _>(definition, (arguments, Own::Values), Sources::default(), call))
        };
        Self { arguments: Codec::of::<B::Arguments>(), fork }
    }
}

/// A task that was taken out of its queue to be run elsewhere.
pub(crate) struct Traveller {
    fork: Fork,
    /// Its path, which all nodes know it by.
    path: &'static str,
    arguments: Vec<u8>,
    /// The processor of the task that launched it.
    origin: ProcessorId,
}

impl Traveller {
    /// The oldest task that waits in the queues of a runtime, if it can travel, and at least so many wait.
    pub(crate) fn take(core: &RuntimeCore, at_least: usize) -> Option<Self> {
        let realm = core.realm();
        if realm.queued_jobs() < at_least {
            return None;
        }
        let head = realm.steal_job(&JOB)?;
        // SAFETY: the job's reference is this one's now, and with it the right to run the task.
        let fork = unsafe { Fork::from_raw(head.cast()) };
        match pack(&fork) {
            Some((path, arguments, origin)) => Some(Self { fork, path, arguments, origin }),
            None => {
                queue(fork);
                None
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.fork.head().name()
    }

    /// The processor of the task that launched it, whose mapper is asked about it.
    pub(crate) fn origin(&self) -> ProcessorId {
        self.origin
    }

    /// What the other node is told: path and arguments.
    pub(crate) fn take_description(&mut self) -> (&'static str, Vec<u8>) {
        (self.path, std::mem::take(&mut self.arguments))
    }

    /// It stays here after all.
    pub(crate) fn stay(self) {
        queue(self.fork);
    }

    /// What it was called for has come back.
    pub(crate) fn come_back(self, outcome: Result<&[u8]>) {
        let fork = self.fork;
        fork.head().schedule.run();
        let codec = fork.head().definition().result_codec();
        // SAFETY: the right to run the task was never given up.
        let (head, _, body) = unsafe { fork.inside() };
        let outcome = outcome.and_then(|bytes| {
            let value = codec.and_then(|codec| codec.decode(bytes));
            let is_set = value.is_some_and(|value| body.set_value(value));
            is_set.then_some(()).ok_or_else(|| Error::NotSendable { task: head.name().to_owned() })
        });
        end(fork, outcome.map_err(Box::new), By::OtherNode);
    }
}

/// The path and arguments of a task that can travel, and the processor of the task that launched it. The caller has the right to run it.
fn pack(fork: &Fork) -> Option<(&'static str, Vec<u8>, ProcessorId)> {
    // SAFETY: as the caller says.
    let (head, course, body) = unsafe { fork.inside() };
    let definition = head.definition();
    definition.result_codec()?;
    let (path, travel) = definition.travel()?;
    let is_ready = matches!(course.phase, Phase::Waiting) && course.sources.is_empty();
    if !is_ready {
        return None;
    }
    let (parent, _) = course.parent.as_ref()?;
    Some((path, travel.arguments.encode(body.arguments()?)?, parent.processor))
}

/// A task of another node is run here: gives an error that has kept it from that, or calls when it has ended, with its value's bytes.
pub(crate) fn host(
    core: &Arc<RuntimeCore>,
    (path, arguments): (&str, &[u8]),
    done: impl FnOnce(Result<Vec<u8>>) + Send + 'static,
) {
    let unknown = || {
        Error::launch(
            path,
            "another node has sent this task, which is not to be found here; start the same program on all nodes",
        )
    };
    let found = find(path).and_then(|definition| {
        let (_, travel) = definition.travel()?;
        (travel.fork)(definition, travel.arguments.decode(arguments)?)
    });
    let Some(mut fork) = found else { return done(Err(unknown())) };
    let core = Arc::clone(core);
    let realm = core.realm().clone();
    realm.spawn_async(After::default(), async move {
        let codec = fork.head().definition().result_codec();
        let origin = (Origin::BuiltIn(GUEST), None, None);
        let processor = core.processor_here();
        let owned = Owned::new(ContextState::new(&core, origin, processor, 0, Vec::new()));
        let context = Context { state: Arc::clone(&owned) };
        let results = match context.state.fork(&mut fork) {
            true => fork.results(),
            false => context.submit_local(fork.into_launcher(), (AnyRect::from(Rect::<1>::from(0..1)), None, false)),
        };
        let closed = context.state.close(Ok(()));
        poll_fn(|cx| context.state.poll_drained(cx.waker())).await;
        let outcome = match results.value(0) {
            Some(Ok(value)) => encode(codec, value, results.task()),
            Some(Err(error)) => Err(error.clone()),
            None => results.error().map_or_else(|| encode(codec, &(), results.task()), Err),
        };
        let unseen = context.state.conclude(closed);
        done(outcome.and_then(|bytes| unseen.map(|()| bytes)));
    });
}

/// What guests are launched by.
const GUEST: &str = "a task for another node";

fn encode(codec: Option<Codec>, value: &dyn Any, task: &str) -> Result<Vec<u8>> {
    codec.and_then(|codec| codec.encode(value)).ok_or_else(|| Error::NotSendable { task: task.to_owned() })
}
