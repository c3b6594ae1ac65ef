//! The program order of a task: how its operations enter it, and what they wait for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use maniple_analysis::order::{Contributions, InOrderQueue, ProgramOrder};
use maniple_realm::locks::MutexGuard;
use maniple_realm::{Event, Realm, UserEvent};
use maniple_record::{Because, LaunchNumber, OperationNumber};
use maniple_region::TreeId;

use super::ContextState;
use super::inline_uses::InlineUses;
use crate::instances::bound::Bound;
use crate::instances::store::Store;
use crate::operation::lifecycle::{self, Mappable, Operation, Scope};
use crate::results::Producers;
use crate::support::error::Result;
use crate::support::profiling;

/// The program order of a context.
#[derive(Default)]
pub(crate) struct Stream {
    sequence: u64,
    order: ProgramOrder<Arc<Operation>>,
    /// The last mapping fence.
    fence: Option<Arc<Operation>>,
    /// The event after which every later operation executes: the last execution fence.
    pub(crate) barrier: Event,
    /// Operations since the last fence, with that, that may not have been mapped, or not have ended.
    recent: Vec<Arc<Operation>>,
    sweep_at: usize,
    /// Operations before the last fence, which have been mapped before it, that may not have ended.
    earlier: Vec<Arc<Operation>>,
    /// So many of those have ended before an operation that is not among them.
    timed: usize,
    sweep_earlier_at: usize,
    in_order: InOrderQueue<Arc<Operation>>,
    pub(crate) inline: InlineUses,
}

/// An operation's place in the stream.
pub(crate) struct Submission {
    pub(crate) sequence: u64,
    pub(crate) barrier: Event,
    pub(crate) completion: UserEvent,
}

/// The reach of a fence: the operations that it waits for, and those that wait for it, besides being mapped: it is
/// mapped after all earlier operations and before all later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It waits for nothing.
    Mapping,
    /// It ends after all earlier operations.
    Ends,
    /// It ends after all earlier operations, and later ones begin after it.
    Execution,
}

/// The promises made of an operation before it is submitted.
pub(crate) struct Promised {
    /// Its end.
    pub(crate) completion: UserEvent,
    /// Its number, if it is on record already.
    pub(crate) recorded: Option<LaunchNumber>,
}

/// Operations in one session have numbers between that of the session and the next one's.
const ROOM_FOR_A_SESSION: u64 = 1 << 32;

impl Stream {
    /// No operation uses the region any more.
    pub(super) fn forget_tree(&mut self, tree: TreeId) {
        self.order.forget(tree);
    }

    /// Operations that may not have ended.
    pub(crate) fn unended(&self) -> impl Iterator<Item = &Arc<Operation>> {
        self.earlier.iter().chain(&self.recent)
    }

    /// The ends that a fence waits for, which is about to be launched: of those that the task holds none, as they may
    /// come after it.
    fn ends_before_fence(&self, reach: Reach) -> Vec<Event> {
        let holds = self.inline.in_use() > 0;
        let earlier = match reach {
            Reach::Mapping => return Vec::new(),
            Reach::Ends => &self.earlier[self.timed..],
            Reach::Execution => &self.earlier,
        };
        let waited_for = earlier.iter().chain(&self.recent).filter(|operation| !(holds && operation.is_held));
        waited_for.map(|operation| operation.completion.event()).chain([self.barrier]).collect()
    }

    /// A fence has been launched: the operations before it need not be looked at again by those after it, but for their
    /// ends.
    fn add_fence(&mut self, fence: &Arc<Operation>, reach: Reach, realm: &Realm) {
        let is_recorded = fence.recorded.is_some();
        self.earlier.append(&mut self.recent);
        match reach {
            Reach::Execution => {
                self.barrier = fence.completion.event();
                self.earlier.clear();
                self.timed = 0;
            }
            // The record knows no such fences.
            Reach::Ends if is_recorded => self.timed = self.earlier.len(),
            // Its end stands for theirs.
            Reach::Ends => self.earlier.retain(|operation| operation.is_held),
            Reach::Mapping => {}
        }
        if self.earlier.len() > self.sweep_earlier_at && !is_recorded {
            self.earlier.retain(|operation| !realm.has_triggered(operation.completion.event()));
            self.sweep_earlier_at = 64.max(2 * self.earlier.len());
        }
        self.recent.push(Arc::clone(fence));
    }

    /// The number of the next operation.
    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        self.sequence = sequence;
    }

    pub(super) fn remember(&mut self, operation: &Arc<Operation>, realm: &Realm) {
        self.recent.push(Arc::clone(operation));
        // The record shows also what a fence need not wait for any more.
        if self.recent.len() > self.sweep_at && operation.recorded.is_none() {
            self.recent.retain(|operation| !realm.has_triggered(operation.completion.event()));
            self.sweep_at = 64.max(2 * self.recent.len());
        }
    }
}

impl ContextState {
    pub(crate) fn mappings_in_use(&self) -> usize {
        self.stream.get().map_or(0, |stream| stream.lock().inline.in_use())
    }

    /// Launches an operation: gives it its place in program order and finds what must be mapped before it.
    pub(crate) fn submit(
        self: &Arc<Self>,
        requirements: &[Bound],
        body: impl FnOnce(&mut Stream, &Submission) -> Arc<dyn Mappable>,
    ) -> Result<Arc<Operation>> {
        self.interrupt("an inline mapping");
        self.submit_here(requirements, body)
    }

    /// As [`submit`](Self::submit), when the session under way has been left.
    pub(crate) fn submit_here(
        self: &Arc<Self>,
        requirements: &[Bound],
        body: impl FnOnce(&mut Stream, &Submission) -> Arc<dyn Mappable>,
    ) -> Result<Arc<Operation>> {
        let submit = || self.submit_after(requirements, &Producers::default(), body);
        profiling::analysing(self.core.profiler(), "fill, copy or mapping", submit)
    }

    /// As [`submit`](Self::submit), for an operation that also waits for results of others. It is mapped after them:
    /// else an operation between them that does not interfere with it could be mapped behind it and made to wait for
    /// it, in a circle.
    pub(crate) fn submit_after(
        self: &Arc<Self>,
        requirements: &[Bound],
        producers: &Producers,
        body: impl FnOnce(&mut Stream, &Submission) -> Arc<dyn Mappable>,
    ) -> Result<Arc<Operation>> {
        let mut stream = self.enter()?;
        let completion = self.core.realm().user_event();
        let promised = Promised { completion, recorded: None };
        let operation = self.submit_to(&mut stream, requirements, producers, promised, body);
        drop(stream);
        operation.release();
        Ok(operation)
    }

    /// Gives an operation its place in a stream and finds what must be mapped before it. It is to be released.
    pub(crate) fn submit_to(
        self: &Arc<Self>,
        stream: &mut Stream,
        requirements: &[Bound],
        producers: &Producers,
        promised: Promised,
        body: impl FnOnce(&mut Stream, &Submission) -> Arc<dyn Mappable>,
    ) -> Arc<Operation> {
        let (sequence, barrier, completion) = (stream.sequence, stream.barrier, promised.completion);
        stream.sequence += 1;
        let body = body(stream, &Submission { sequence, barrier, completion });
        self.order(stream, sequence, requirements, producers, promised, body)
    }

    /// Orders an operation, whose place in a stream is given, after what must be mapped before it.
    fn order(
        self: &Arc<Self>,
        stream: &mut Stream,
        sequence: u64,
        requirements: &[Bound],
        producers: &Producers,
        Promised { completion, recorded }: Promised,
        body: Arc<dyn Mappable>,
    ) -> Arc<Operation> {
        self.core.store.counters.launches.add(1);
        if body.may_wait() {
            self.note_waiter();
        }
        let launch = |parent| lifecycle::recorded(parent, &*body, requirements);
        let recorded = recorded.or_else(|| self.core.store.record_launch(self.recorded, completion.event(), launch));
        let operation = Operation::new(self.scope(), sequence, completion, recorded, body);
        let map_after = |earlier: &Arc<Operation>, because: Because| {
            operation.map_after(earlier);
            self.core.store.record_dependence(recorded, earlier.recorded, because);
        };
        if let Some(fence) = &stream.fence {
            map_after(fence, Because::Fence);
        }
        producers.here.iter().for_each(|producer| map_after(producer, Because::Future));
        if self.is_replicated() {
            stream.in_order.push(&operation, producers.are_afar).for_each(|earlier| map_after(&earlier, Because::Held));
        }
        if operation.is_held || operation.takes_room {
            // Nothing launched before may find its instances, or its room, in use by what this task holds, and wait for
            // that.
            stream.recent.iter().for_each(|earlier| map_after(earlier, Because::Held));
        }
        let contributions = if self.has_waiters() { Contributions::InOrder } else { Contributions::Commute };
        let mut visits = 0;
        for (number, bound) in requirements.iter().enumerate() {
            let mut depend = |earlier: &Arc<Operation>| map_after(earlier, Because::Data(number));
            visits += stream.order.register(&operation, &bound.requirement, contributions, &mut depend);
        }
        stream.remember(&operation, self.core.realm());
        self.core.store.counters.logical_visits.add(visits);
        operation
    }

    /// Counts one more operation, and locks the stream for it.
    pub(crate) fn enter(self: &Arc<Self>) -> Result<MutexGuard<'_, Stream>> {
        self.core.realm().take_turn();
        self.throttle()?;
        self.enter_at_once()
    }

    /// As [`enter`](Self::enter), however many operations are in flight.
    pub(super) fn enter_at_once(self: &Arc<Self>) -> Result<MutexGuard<'_, Stream>> {
        // Counted first: a thread that closes the stream and then waits for what was counted misses no operation.
        self.operation_begins();
        if self.in_flight.is_closed() {
            self.operation_retired();
            return Err(self.ended());
        }
        Ok(self.stream.lock())
    }

    /// Launches an operation that comes after all earlier ones and before all later ones: in mapping, and as far as it
    /// reaches, in execution. The body is made from the completions that it waits for.
    pub(crate) fn submit_fence(
        self: &Arc<Self>,
        reach: Reach,
        completion: UserEvent,
        body: impl FnOnce(Vec<Event>) -> Arc<dyn Mappable>,
    ) -> Result<Arc<Operation>> {
        self.interrupt("a fence");
        let mut stream = self.enter()?;
        self.core.store.counters.launches.add(1);
        let forks = if reach == Reach::Mapping { Event::NONE } else { self.no_forks() };
        let body = |mut earlier: Vec<Event>| {
            earlier.push(forks);
            body(earlier)
        };
        let operation = self.fence_in(&mut stream, reach, completion, body);
        if reach == Reach::Execution {
            self.fence.store(completion.event().to_bits(), Ordering::Relaxed);
        }
        drop(stream);
        operation.release();
        Ok(operation)
    }

    /// Submits the operation that stands for a session, and leaves room for what is launched in it: in program order,
    /// that comes after the operation's. It counts as in flight only when the session is closed. None if the task has
    /// ended, or holds data mapped, of which a session knows nothing.
    pub(crate) fn submit_session(
        self: &Arc<Self>,
        completion: UserEvent,
        body: impl FnOnce(Vec<Event>) -> Arc<dyn Mappable>,
    ) -> Option<Arc<Operation>> {
        // Without a limit: the launch that begins the session counts already, and would wait for itself.
        let mut stream = self.enter_at_once().ok()?;
        if stream.inline.in_use() > 0 {
            drop(stream);
            self.operation_retired();
            return None;
        }
        let operation = self.fence_in(&mut stream, Reach::Execution, completion, body);
        stream.sequence += ROOM_FOR_A_SESSION;
        drop(stream);
        self.operation_retired();
        operation.release();
        Some(operation)
    }

    pub(super) fn fence_in(
        self: &Arc<Self>,
        stream: &mut Stream,
        reach: Reach,
        completion: UserEvent,
        body: impl FnOnce(Vec<Event>) -> Arc<dyn Mappable>,
    ) -> Arc<Operation> {
        let sequence = stream.sequence;
        stream.sequence += 1;
        let ends = stream.ends_before_fence(reach);
        self.core.store.counters.logical_visits.add((ends.len() + stream.recent.len()) as u64);
        let body = body(ends);
        let launch = |parent| lifecycle::recorded(parent, &*body, &[]);
        let recorded = self.core.store.record_launch(self.recorded, completion.event(), launch);
        let operation = Operation::new(self.scope(), sequence, completion, recorded, body);
        let fence = stream.fence.replace(Arc::clone(&operation));
        for earlier in stream.recent.iter().chain(fence.as_ref()) {
            operation.map_after(earlier);
            self.core.store.record_dependence(recorded, earlier.recorded, Because::Fence);
        }
        // Later operations are mapped after the fence, and it after all earlier ones: none of them needs to look behind
        // it.
        stream.order.clear();
        stream.add_fence(&operation, reach, self.core.realm());
        operation
    }

    pub(crate) fn with_stream<R>(&self, body: impl FnOnce(&mut Stream) -> R) -> R {
        body(&mut self.stream.lock())
    }

    pub(super) fn scope(self: &Arc<Self>) -> Arc<dyn Scope> {
        Arc::<Self>::clone(self)
    }
}

impl Scope for ContextState {
    fn store(&self) -> &Store {
        &self.core.store
    }

    fn recorded(&self) -> Option<OperationNumber> {
        self.recorded
    }

    fn gave_up(&self, tree: TreeId) {
        self.parts.iter().for_each(|part| part.gave_up(tree));
    }

    /// Tells the mapper of this task's processor.
    fn ready_to_map(&self, operation: &Arc<Operation>) {
        self.core.enqueue(self.processor, Arc::clone(operation));
    }

    fn operation_retired(&self) {
        self.operations_retired(1);
    }
}
