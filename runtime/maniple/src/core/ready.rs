//! Operations that may be mapped, until the mapper chooses them.

use std::sync::Arc;

use maniple_mapper::ReadyOperation;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::ProcessorId;
use maniple_realm::{Class, Spawn};
use smallvec::SmallVec;

use super::{Chance, RuntimeCore};
use crate::mapping::Whom;
use crate::operation::lifecycle::{Mappable, Operation};
use crate::support::profiling::MAPPING;

/// Operations of the tasks of one processor that one mapper may have mapped.
#[derive(Default)]
pub(super) struct ReadyQueue(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    ready: Vec<Arc<Operation>>,
    /// A call of `attend` is asking the mapper, or will.
    is_attended: bool,
}

/// Operations with what is to be mapped of them.
type Ready = SmallVec<[(Arc<dyn Mappable>, Arc<Operation>); 2]>;

impl ReadyQueue {
    /// Nothing is mapped any more.
    pub(super) fn forget(&self) {
        let ready = std::mem::take(&mut self.0.lock().ready);
        drop(ready);
    }

    /// Adds an operation. Whether nothing attends the queue yet: then the caller is to.
    fn push(&self, operation: Arc<Operation>) -> bool {
        let mut queue = self.0.lock();
        queue.ready.push(operation);
        !std::mem::replace(&mut queue.is_attended, true)
    }

    /// Swaps all operations for an empty list. If there are none, the queue is attended no more, and it is false.
    fn take(&self, ready: &mut Vec<Arc<Operation>>) -> bool {
        debug_assert!(ready.is_empty());
        let mut queue = self.0.lock();
        queue.is_attended = !queue.ready.is_empty();
        std::mem::swap(&mut queue.ready, ready);
        queue.is_attended
    }

    /// Puts operations back before those that have come meanwhile.
    fn put_back(&self, left: impl Iterator<Item = Arc<Operation>>) {
        self.0.lock().ready.splice(..0, left);
    }
}

impl RuntimeCore {
    /// An operation of a task on this processor may be mapped: it joins the queue of its mapper, which is asked soon.
    pub(crate) fn enqueue(self: &Arc<Self>, processor: ProcessorId, operation: Arc<Operation>) {
        let whom = Whom { processor, mapper: operation.mapper };
        if self.desk(whom).ready.push(operation) {
            let (core, spawn) = (Arc::clone(self), Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE });
            self.spawn_own("choosing what to map", spawn, move || core.attend(whom, Chance::Another));
        }
    }

    /// Asks the mapper which operations to map now, until none is left or all that are left shall wait.
    fn attend(self: &Arc<Self>, whom: Whom, mut chance: Chance) {
        let queue = &self.desk(whom).ready;
        let mut ready = Vec::new();
        while queue.take(&mut ready) {
            let (mut chosen, mut left) = self.select(whom, &mut ready);
            if chosen.is_empty() && chance == Chance::Last {
                // The mapper wants to wait, but there is nothing to wait for: it has to take the oldest.
                chosen.push(left.remove(0));
            }
            if !left.is_empty() {
                queue.put_back(left.into_iter().map(|(_, operation)| operation));
            }
            if chosen.is_empty() {
                let core = Arc::clone(self);
                self.starve(Box::new(move |chance| core.attend(whom, chance)));
                return;
            }
            chance = Chance::Another;
            self.map_all(chosen);
        }
    }

    /// Splits operations into those that the mapper wants mapped now, in its order, and the others, oldest first.
    fn select(&self, whom: Whom, ready: &mut Vec<Arc<Operation>>) -> (Ready, Ready) {
        ready.sort_unstable_by_key(|operation| operation.sequence);
        let mut operations = Ready::new();
        for operation in ready.drain(..) {
            if let Some(body) = operation.body() {
                operations.push((body, operation));
            }
        }
        const NAME: &str = "select_operations_to_map";
        let seat = self.seat(whom);
        let answer = {
            let mut infos = SmallVec::<[_; 2]>::new();
            for (body, operation) in &operations {
                let (name, points) = (body.name(), body.points());
                infos.push(ReadyOperation { name, sequence: operation.sequence, points });
            }
            seat.try_call(&self.store, NAME, |mapper| mapper.select_operations_to_map(&infos))
        };
        // A mapper that panics here can't be asked what it wants: everything is mapped.
        let Some(order) = answer.filter(|order| !order.iter().copied().eq(0..operations.len())) else {
            return (operations, Ready::new());
        };
        let mut slots: Vec<_> = operations.into_iter().map(Some).collect();
        let chosen: Ready = order.iter().filter_map(|&index| slots.get_mut(index).and_then(Option::take)).collect();
        if chosen.len() < order.len() {
            seat.check_indices(NAME, &order, slots.len());
        }
        (chosen, slots.into_iter().flatten().collect())
    }

    /// Maps operations: the last here, the others wherever a worker is free.
    fn map_all(self: &Arc<Self>, mut operations: Ready) {
        let last = operations.pop();
        for (body, operation) in operations {
            let (core, spawn) = (Arc::clone(self), Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE });
            self.spawn_own("mapping", spawn, move || core.map_one(body, &operation));
        }
        if let Some((body, operation)) = last {
            self.map_one(body, &operation);
        }
    }

    fn map_one(&self, body: Arc<dyn Mappable>, operation: &Arc<Operation>) {
        let name = Arc::clone(&body);
        self.realm().unheard(|| format!("mapping `{}`", name.name()), || body.map(operation));
    }
}
