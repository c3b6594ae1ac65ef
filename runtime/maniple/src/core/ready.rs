//! Operations that may be mapped, until the mapper chooses them.

use std::sync::Arc;

use maniple_mapper::ReadyOperation;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::ProcessorId;
use maniple_realm::{Class, Spawn};

use super::{Chance, RuntimeCore};
use crate::operation::Operation;
use crate::profiling::MAPPING;

/// Operations of the tasks of one processor that may be mapped.
#[derive(Default)]
pub(super) struct ReadyQueue(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    ready: Vec<Arc<Operation>>,
    /// Somebody is asking the mapper, or will.
    is_attended: bool,
}

impl ReadyQueue {
    /// Nothing is mapped any more.
    pub(super) fn forget(&self) {
        let ready = std::mem::take(&mut self.0.lock().ready);
        drop(ready);
    }

    /// Adds an operation. Whether nobody attends the queue yet: then the caller is to.
    fn push(&self, operation: Arc<Operation>) -> bool {
        let mut queue = self.0.lock();
        queue.ready.push(operation);
        !std::mem::replace(&mut queue.is_attended, true)
    }

    /// All operations; none if there are none, and the queue is attended no more.
    fn take(&self) -> Option<Vec<Arc<Operation>>> {
        let mut queue = self.0.lock();
        queue.is_attended = !queue.ready.is_empty();
        queue.is_attended.then(|| std::mem::take(&mut queue.ready))
    }

    /// Puts operations back before those that have come meanwhile.
    fn put_back(&self, mut left: Vec<Arc<Operation>>) {
        let mut queue = self.0.lock();
        left.append(&mut queue.ready);
        queue.ready = left;
    }
}

impl RuntimeCore {
    /// An operation of a task on this processor may be mapped: it joins the queue, and the mapper is asked soon.
    pub(crate) fn enqueue(self: &Arc<Self>, processor: ProcessorId, operation: Arc<Operation>) {
        if self.of(processor).ready.push(operation) {
            let (core, spawn) = (Arc::clone(self), Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE });
            self.spawn_own("choosing what to map", spawn, move || core.attend(processor, Chance::Another));
        }
    }

    /// Asks the mapper which operations to map now, until none is left or all that are left shall wait.
    fn attend(self: &Arc<Self>, processor: ProcessorId, mut chance: Chance) {
        let queue = &self.of(processor).ready;
        while let Some(ready) = queue.take() {
            let (mut chosen, mut left) = self.select(processor, ready);
            if chosen.is_empty() && chance == Chance::Last {
                // The mapper wants to wait, but there is nothing to wait for: it has to take the oldest.
                chosen.push(left.remove(0));
            }
            if !left.is_empty() {
                queue.put_back(left);
            }
            if chosen.is_empty() {
                let core = Arc::clone(self);
                self.starve(Box::new(move |chance| core.attend(processor, chance)));
                return;
            }
            chance = Chance::Another;
            self.map_all(chosen);
        }
    }

    /// Splits operations, oldest first, into those that the mapper wants mapped now, in its order, and the others.
    fn select(
        &self,
        processor: ProcessorId,
        mut ready: Vec<Arc<Operation>>,
    ) -> (Vec<Arc<Operation>>, Vec<Arc<Operation>>) {
        ready.sort_by_key(|operation| operation.sequence);
        let ready: Vec<_> = ready.into_iter().filter_map(|operation| Some((operation.body()?, operation))).collect();
        let infos: Vec<_> = (ready.iter())
            .map(|(body, operation)| ReadyOperation {
                name: body.name(),
                sequence: operation.sequence,
                points: body.points(),
            })
            .collect();
        const NAME: &str = "select_operations_to_map";
        let seat = self.seat(processor);
        let answer = seat.try_call(&self.store, NAME, |mapper| mapper.select_operations_to_map(&infos));
        // A mapper that panics here can't be asked what it wants: everything is mapped.
        let order = answer.unwrap_or_else(|| (0..ready.len()).collect());
        let mut slots: Vec<Option<Arc<Operation>>> = ready.into_iter().map(|(_, operation)| Some(operation)).collect();
        let chosen: Vec<_> = order.iter().filter_map(|&index| slots.get_mut(index).and_then(Option::take)).collect();
        if chosen.len() < order.len() {
            seat.check_indices(NAME, &order, slots.len());
        }
        (chosen, slots.into_iter().flatten().collect())
    }

    /// Maps operations: the last here, the others wherever a worker is free.
    fn map_all(self: &Arc<Self>, mut operations: Vec<Arc<Operation>>) {
        let last = operations.pop();
        for operation in operations {
            let (core, spawn) = (Arc::clone(self), Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE });
            self.spawn_own("mapping", spawn, move || core.map_one(&operation));
        }
        if let Some(operation) = last {
            self.map_one(&operation);
        }
    }

    fn map_one(&self, operation: &Arc<Operation>) {
        let Some(body) = operation.body() else { return };
        let during = || format!("mapping `{}`", body.name());
        self.realm().unheard(during, || body.map(operation));
    }
}
