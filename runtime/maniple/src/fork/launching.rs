//! When a launch may be a fork, and how it becomes one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use maniple_realm::profile::{Kind, OperationId, Record, Tag};
use maniple_realm::{Event, Job};

use super::forked::{Fork, ForkCall, Forked, Head, Launched};
use crate::context::ContextState;
use crate::error::Result;
use crate::future::Source;
use crate::task::TaskDefinition;

/// A launch of a task without regions, to be forked if it may.
pub(crate) fn describe<A, F, V>(
    definition: &'static Arc<TaskDefinition>,
    (arguments, is_plain): (A, bool),
    sources: Vec<Source>,
    body: impl Fn(ForkCall, A) -> F + Copy + Send + Sync + 'static,
) -> Arc<dyn Fork>
where
    A: Clone + Send + Sync + 'static,
    F: Future<Output = Result<V>> + Send + 'static,
    V: Send + Sync + 'static,
{
    Arc::new(Forked::new(definition, (arguments, is_plain), (0, sources), body))
}

impl ContextState {
    /// Forks a task, if it may be; the context's task goes on with the launch otherwise.
    pub(crate) fn fork(self: &Arc<Self>, fork: &mut Arc<dyn Fork>) -> bool {
        let described = Arc::get_mut(fork).expect("nobody else knows a task before its launch");
        if !self.may_fork(described) {
            return false;
        }
        self.throttle();
        if !self.in_flight.begin_fork() {
            self.fork_ended();
            return false;
        }
        let recorded = self.record_fork(described);
        described.launch(Launched { parent: Arc::clone(self), number: self.number_launch(), recorded });
        match self.core.realm().current_worker() {
            Some(worker) => self.core.forks.launched(worker),
            None => self.core.counters.launches.add(1),
        }
        self.core.realm().queue_job(Arc::clone(fork) as Arc<dyn Job>);
        true
    }

    fn may_fork(&self, fork: &mut dyn Fork) -> bool {
        let is_mine = |source: &Source| source.is_of(self.core.realm());
        let Head { tag: 0, definition, .. } = *fork.head() else { return false };
        self.core.is_forking()
            && !self.is_fenced()
            && !self.is_in_trace()
            && fork.sources().iter().all(is_mine)
            && self.core.seat(self.processor).lets_fork(&self.core, definition, (self.processor, self.depth + 1))
    }

    /// Whether an execution fence is still to come that what is launched now has to wait for.
    fn is_fenced(&self) -> bool {
        let fence = self.fence.load(Ordering::Relaxed);
        if fence != 0 && self.core.realm().has_triggered(Event::from_bits(fence)) {
            self.fence.store(0, Ordering::Relaxed);
            return false;
        }
        fence != 0
    }

    /// What a profile calls a task that is forked now.
    fn record_fork(&self, fork: &dyn Fork) -> (OperationId, Tag) {
        let Some(profiler) = self.core.profiler() else { return (OperationId::NONE, Tag::NONE) };
        let tag = Tag::of(profiler.label(Kind::Task, fork.head().definition.name(), None));
        let operation = profiler.new_operations(1);
        profiler.record(Record::Launched { operation, by: profiler.current(), time: profiler.now_ns() });
        (operation, tag)
    }
}
