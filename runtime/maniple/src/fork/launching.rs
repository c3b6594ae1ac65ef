//! When a launch may be a fork, and how it becomes one.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use maniple_realm::Event;
use maniple_realm::profile::{Kind, OperationId, Profiler, Record, Tag};

use super::asking::lets_fork;
use super::body::{ForkCall, Free, FreeResult};
use super::cell::Fork;
use super::parent::Parent;
use super::running::JOB;
use super::sources::{ResultSource, Sources};
use crate::context::ContextState;
use crate::task::TaskDefinition;
use crate::task::arguments::Own;

/// A launch of a task without regions, to be forked if it may.
#[inline]
pub(crate) fn describe<B, C, F>(
    definition: &'static Arc<TaskDefinition>,
    arguments: B::Arguments,
    own: Own,
    sources: Sources,
    call: C,
) -> Fork
where
    B: Free,
    C: Fn(ForkCall, B::Arguments) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = FreeResult<B::Value>> + Send + 'static,
{
    Fork::new::<B, C, F>(&JOB, definition, arguments, own, sources, call)
}

impl ContextState {
    /// Forks a task, if it may be; the launch is to go on in the ordinary way otherwise.
    #[inline]
    pub(crate) fn fork(self: &Arc<Self>, fork: &mut Fork, launched: &'static Location<'static>) -> bool {
        if !self.may_fork(fork) {
            return false;
        }
        // After a breakdown the ordinary way says why.
        if self.throttle().is_err() {
            return false;
        }
        if !self.in_flight.begin_fork() {
            self.fork_ended();
            return false;
        }
        if fork.head().definition().may_wait() {
            self.note_waiter();
        }
        let realm = self.core.realm();
        let recorded = self.record_fork(fork);
        let parent = (Parent::of_counted(self), self.number_launch());
        let job = fork.launch(parent, &self.core, recorded, launched);
        match realm.current_worker() {
            Some(worker) => self.core.forks.launched(worker),
            None => self.core.store.counters.launches.add(1),
        }
        realm.queue_job(job);
        if let Some(migration) = self.core.migration()
            && migration.has_thieves()
        {
            migration.give_spare();
        }
        true
    }

    #[inline]
    fn may_fork(&self, fork: &mut Fork) -> bool {
        let is_mine = |source: &dyn ResultSource| source.is_of(self.core.realm());
        self.core.is_forking()
            && !self.is_fenced()
            && !self.is_in_trace.load(Ordering::Relaxed)
            && (fork.sources().is_empty() || fork.sources().iter().all(is_mine))
            && lets_fork(&self.core, fork.head().definition(), self.processor, self.depth + 1)
    }

    /// Whether an execution fence is still to come that what is launched now has to wait for.
    fn is_fenced(&self) -> bool {
        let fence = self.fence.load(Ordering::Relaxed);
        if fence != 0 && self.core.realm().has_triggered(Event::from_bits(fence)) {
            // Another thread may have set another one meanwhile.
            let forgotten = self.fence.compare_exchange(fence, 0, Ordering::Relaxed, Ordering::Relaxed);
            return forgotten.is_err();
        }
        fence != 0
    }

    /// The operation and tag by which a profile knows a task that is forked now.
    #[inline]
    fn record_fork(&self, fork: &Fork) -> (OperationId, Tag) {
        match self.core.profiler() {
            None => (OperationId::NONE, Tag::NONE),
            Some(profiler) => record(profiler, fork),
        }
    }
}

#[cold]
fn record(profiler: &Profiler, fork: &Fork) -> (OperationId, Tag) {
    let tag = Tag::of(profiler.label(Kind::Task, fork.head().name(), None));
    let operation = profiler.new_operations(1);
    profiler.record(Record::Launched { operation, by: profiler.current(), time: profiler.now_ns() });
    (operation, tag)
}
