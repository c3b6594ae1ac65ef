//! The state that all handles to a realm share, and the end of the realm.

use std::sync::Arc;

use crate::barrier::Barriers;
use crate::fault::Fault;
use crate::locks::Mutex;
use crate::machine::Machine;
use crate::memory::MemoryPool;
use crate::operation::operations::Operations;
use crate::threads::Thread;
use crate::threads::forked::Origin;
use crate::worker::Workers;

/// The state that all handles to a realm share.
pub(super) struct SharedRealm {
    pub(super) operations: Arc<Operations>,
    pub(super) workers: Arc<Workers>,
    pub(super) machine: Machine,
    pub(super) pools: Vec<Arc<MemoryPool>>,
    pub(super) barriers: Barriers,
    pub(super) origin: Origin,
}

impl SharedRealm {
    pub(super) fn new(machine: Machine, workers: Arc<Workers>) -> Arc<Self> {
        let operations = Arc::clone(&workers.operations);
        let pools = MemoryPool::for_machine(&machine);
        if let Some(profiler) = &operations.profiler {
            pools.iter().for_each(|pool| pool.record_to(profiler.clone()));
        }
        Arc::new(Self { operations, workers, machine, pools, barriers: Barriers::default(), origin: Origin::here() })
    }
}

/// Stops the realm when the last user handle goes away.
pub(super) struct Keeper {
    shared: Arc<SharedRealm>,
    threads: Mutex<Vec<Thread>>,
}

impl Keeper {
    pub(super) fn new(shared: Arc<SharedRealm>) -> Arc<Self> {
        Arc::new(Self { shared, threads: Mutex::default() })
    }

    pub(super) fn add(&self, thread: Thread) {
        self.threads.lock().push(thread);
    }

    /// See [`Realm::shut_down`](crate::Realm::shut_down).
    pub(super) fn shut_down(&self, why: &Arc<Fault>) {
        self.shared.workers.discard_pending(why);
        self.stop();
    }

    /// Has the workers end, and waits for them.
    fn stop(&self) {
        let operations = &self.shared.operations;
        if let Some(profiler) = &operations.profiler {
            profiler.write_thread();
        }
        operations.stop();
        operations.presence.sleep.wake_all();
        operations.presence.seat.call_back();
        if operations.local().is_some() {
            // The last handle was dropped by a body: its worker cannot wait for itself.
            return;
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        threads.into_iter().for_each(Thread::join);
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop();
    }
}
