//! The shares of thieves in the leaf tasks of a launch that are about to run here: an equal share of the tasks that
//! have not ended goes in one packet.

use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_space::AnyRect;

use super::batch::Batch;
use super::messages::Migration;

/// How a leaf task goes to another node.
pub(crate) enum Route {
    Alone(NodeId),
    With(Arc<Batch>),
}

/// The share of a launch that a thief is being given, if one is.
#[derive(Default)]
pub(crate) struct Share(Mutex<Option<Open>>);

/// A batch that tasks join as they come to a worker here.
struct Open {
    batch: Arc<Batch>,
    migration: Arc<Migration>,
    /// So many more are to join.
    room: usize,
    /// The bytes that go and come back for those that have.
    bytes: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.migration.thieves.close_batch();
        if self.room > 0 {
            self.batch.expect_fewer(self.room);
        }
    }
}

impl Share {
    /// Gives a thief a task of a launch, of whose points so many have not ended. `permits` says whether a thief may
    /// have tasks for which so many bytes go and come back.
    #[cold]
    pub(crate) fn give(
        &self,
        migration: &Arc<Migration>,
        points: AnyRect,
        unfinished: usize,
        bytes: u64,
        permits: impl Fn(NodeId, u64) -> bool,
    ) -> Option<Route> {
        // Dropped after the lock: then its tasks leave.
        let mut _closed = None;
        let mut open = self.0.lock();
        if let Some(share) = &mut *open {
            if permits(share.batch.node(), share.bytes + bytes) {
                let batch = Arc::clone(&share.batch);
                share.bytes += bytes;
                share.room -= 1;
                if share.room == 0 {
                    _closed = open.take();
                }
                return Some(Route::With(batch));
            }
            // As much as the mapper permits.
            _closed = open.take();
        }
        let share = unfinished / migration.nodes();
        let thief = migration.take_thief(share > 1, |thief| permits(thief, bytes))?;
        if share < 2 {
            return Some(Route::Alone(thief));
        }
        let batch = Batch::of_share(migration, thief, points, share);
        migration.thieves.open_batch();
        *open = Some(Open { batch: Arc::clone(&batch), migration: Arc::clone(migration), room: share - 1, bytes });
        Some(Route::With(batch))
    }

    /// Nothing else could begin here: what has joined leaves.
    #[cold]
    pub(crate) fn close(&self) {
        let open = self.0.lock().take();
        drop(open);
    }

    /// Whether a thief may get a task of the launch.
    #[cold]
    pub(crate) fn may_give(&self, migration: &Migration) -> bool {
        self.0.lock().is_some() || migration.thieves.want_leaves()
    }
}
