//! The collectives that are not over.

use bytes::Bytes;
use maniple_realm::locks::Mutex;
use rustc_hash::FxHashMap;

use crate::names::{CollectiveName, Rank};
use crate::tree::{Collective, CollectiveStep, Combine, Done};

/// See the [module](self).
pub(crate) struct Collectives {
    /// The node.
    rank: Rank,
    /// The number of nodes.
    nodes: usize,
    open: Mutex<FxHashMap<CollectiveName, Collective>>,
}

impl Collectives {
    pub(crate) fn new(rank: Rank, nodes: usize) -> Self {
        Self { rank, nodes, open: Mutex::default() }
    }

    /// This node's contribution. None if nothing arrives any more.
    pub(crate) fn contribute(
        &self,
        name: CollectiveName,
        contribution: (Bytes, Combine, Done),
        is_closed: impl FnOnce() -> bool,
    ) -> Option<CollectiveStep> {
        let mut open = self.open.lock();
        // Looked at under the lock: the thread that closes takes what is there afterwards.
        if is_closed() {
            return None;
        }
        let collective = open.entry(name).or_insert_with(|| Collective::new(self.rank, self.nodes));
        Some(collective.contribute(self.rank, self.nodes, contribution))
    }

    /// The contribution of another node. None if it makes no sense.
    pub(crate) fn receive(&self, name: CollectiveName, from: Rank, contribution: Bytes) -> Option<CollectiveStep> {
        let mut open = self.open.lock();
        let collective = open.entry(name).or_insert_with(|| Collective::new(self.rank, self.nodes));
        collective.receive(self.rank, self.nodes, from, contribution)
    }

    /// The outcome has come down: the callback that is given it. None if the outcome makes no sense.
    pub(crate) fn take_done(&self, name: &CollectiveName) -> Option<Done> {
        self.open.lock().remove(name)?.finish()
    }

    /// The outcome is there.
    pub(crate) fn remove(&self, name: &CollectiveName) {
        self.open.lock().remove(name);
    }

    /// Forgets the collectives that will not be over: all for which `is_kept` is false.
    pub(crate) fn retain(&self, is_kept: impl Fn(&CollectiveName) -> bool) {
        self.open.lock().retain(|name, _| is_kept(name));
    }

    /// Nothing arrives any more.
    pub(crate) fn clear(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        drop(open);
    }

    /// How many there are.
    pub(crate) fn open(&self) -> usize {
        self.open.lock().len()
    }
}
