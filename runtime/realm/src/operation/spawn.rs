//! Spawning: filling a slot in and arming it.

use std::any::type_name;
use std::sync::Arc;

use super::body::{OperationBody, store};
use super::error::RealmError;
use super::operations::{BodyTable, Call, Operations};
use super::{Spawn, Target, Work};
use crate::events::precondition::Remaining;
use crate::events::slot::{BodyBytes, SlotKind};
use crate::events::{After, Event};
use crate::fault::{Abandoned, Fault};
use crate::scheduler::destination::Destination;

struct WorkBody<W>(W);

impl<W: Work> OperationBody for WorkBody<W> {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        let context = call.worker.expect("queued bodies are called by workers");
        match call.fault {
            None => self.0.run(context),
            Some(fault) => {
                self.0.poisoned(context, fault);
                Ok(())
            }
        }
    }
}

struct Callback<F>(F);

impl<F: FnOnce(Result<(), &Arc<Fault>>) + Send + 'static> OperationBody for Callback<F> {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        (self.0)(call.fault.map_or(Ok(()), Err));
        Ok(())
    }

    fn abandon(self, fault: &Arc<Fault>) {
        (self.0)(Err(fault));
    }
}

/// A callback whose event is not known outside.
struct Unheard<F>(F);

impl<F: FnOnce(Result<(), &Arc<Fault>>) + Send + 'static> OperationBody for Unheard<F> {
    fn call(self, call: Call<'_>) -> Result<(), Arc<Fault>> {
        let callback = || (self.0)(call.fault.map_or(Ok(()), Err));
        call.operations.unheard(|| format!("a callback of `when`, {},", type_name::<F>()), callback);
        Ok(())
    }

    fn abandon(self, fault: &Arc<Fault>) {
        (self.0)(Err(fault));
    }
}

impl Operations {
    pub(crate) fn spawn<W: Work>(&self, spawn: Spawn<'_>, work: W) -> Event {
        // SAFETY: the body and its table go into one slot.
        self.spawn_body(spawn, |_, storage| unsafe { store(storage, WorkBody(work)) })
    }

    /// Spawns what `put` stores.
    pub(crate) fn spawn_body(
        &self,
        spawn: Spawn<'_>,
        put: impl FnOnce(Event, *mut BodyBytes) -> &'static BodyTable,
    ) -> Event {
        if self.is_stopping() {
            return self.poisoned_event(Fault::new(Abandoned));
        }
        let destination = match self.destination(spawn.target) {
            Ok(destination) => destination,
            Err(error) => return self.poisoned_event(Fault::new(error)),
        };
        let index = self.take_slot();
        let slot = self.table.slot(index);
        let event = slot.pending_event(index);
        slot.target.store(destination.encode(), std::sync::atomic::Ordering::Relaxed);
        // SAFETY: the slot was just taken.
        let header = unsafe { slot.header_mut() };
        header.body = Some(put(event, slot.body()));
        header.tag = spawn.tag;
        header.priority = spawn.priority;
        header.class = spawn.class;
        header.kind = SlotKind::Queued;
        if let Some(profiler) = &self.profiler {
            profiler.launched(event.into(), spawn.after.names());
        }
        if let Some(ready) = self.arm(index, slot, spawn.after) {
            self.dispatch(index, slot, ready.poisoned);
        }
        event
    }

    /// Calls `callback` on the triggering thread after `after`; gives the event of its having returned.
    pub(crate) fn when<F>(&self, after: After<'_>, callback: F) -> Event
    where
        F: FnOnce(Result<(), &Arc<Fault>>) + Send + 'static,
    {
        self.spawn_callback(after, Callback(callback))
    }

    /// As [`when`](Self::when), for a caller that does not want to know how the callback ended.
    pub(crate) fn when_unheard<F>(&self, after: After<'_>, callback: F)
    where
        F: FnOnce(Result<(), &Arc<Fault>>) + Send + 'static,
    {
        self.spawn_callback(after, Unheard(callback));
    }

    fn spawn_callback(&self, after: After<'_>, callback: impl OperationBody) -> Event {
        let event = self.spawn_inline(after, callback);
        if let Some(profiler) = &self.profiler {
            profiler.came_after(event.into(), after.names());
        }
        event
    }

    pub(crate) fn spawn_inline(&self, after: After<'_>, body: impl OperationBody) -> Event {
        self.spawn_inline_remaining(self.remaining(after), body)
    }

    /// [`spawn_inline`](Self::spawn_inline), with the preconditions looked at before.
    pub(crate) fn spawn_inline_remaining(&self, mut remaining: Remaining, body: impl OperationBody) -> Event {
        let index = self.take_slot();
        let slot = self.table.slot(index);
        let event = slot.pending_event(index);
        // SAFETY: the slot was just taken.
        let header = unsafe { slot.header_mut() };
        // SAFETY: the body and its table go into one slot.
        header.body = Some(unsafe { store(slot.body(), body) });
        header.kind = SlotKind::Inline;
        if let Some(ready) = self.arm_remaining(index, slot, &mut remaining) {
            self.dispatch(index, slot, ready.poisoned);
        }
        event
    }

    #[inline]
    fn destination(&self, target: Target) -> Result<Destination, RealmError> {
        let worker_of = |processor| self.presence.worker_of(processor).ok_or(RealmError::UnknownProcessor(processor));
        match target {
            Target::Any => Ok(Destination::Any),
            // What others may steal is not worth a worker without a core.
            Target::Near(processor) => Ok(Destination::Near(self.presence.stand_in_of(worker_of(processor)?))),
            Target::On(processor) => worker_of(processor).map(Destination::On),
            Target::Group(group) => match self.queues.group_index(self.id, group) {
                Some(index) => Ok(Destination::Group(index)),
                None => Err(RealmError::UnknownGroup(group)),
            },
        }
    }
}
