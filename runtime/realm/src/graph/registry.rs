//! The graphs that workers look at.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::locks::{Mutex, RwLock};
use crossbeam_utils::CachePadded;

use super::active::Active;

/// All graphs that run. Workers keep copies of the list, which the version says are current.
#[derive(Default)]
pub(crate) struct Registry {
    /// How many there are, so that looking costs a load while there are none.
    count: CachePadded<AtomicUsize>,
    version: AtomicU64,
    graphs: RwLock<Vec<Arc<Active>>>,
    /// The last parts (`Active::rest`) of graphs that run no more, of which workers may not have let go. The graphs'
    /// own reference counts are zero before their works have been dropped.
    removed: Mutex<Vec<Weak<()>>>,
}

/// A worker's copy of the list.
pub(crate) struct KnownGraphs {
    version: u64,
    pub(crate) graphs: Vec<Arc<Active>>,
}

impl Default for KnownGraphs {
    /// With room for more graphs than usually run at a time.
    fn default() -> Self {
        Self { version: 0, graphs: Vec::with_capacity(4) }
    }
}

impl Registry {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn add(&self, graph: &Arc<Active>) {
        let mut graphs = self.graphs.write();
        graphs.push(Arc::clone(graph));
        // A worker that sees work in the graph was woken after this, or will look before it sleeps.
        self.count.store(graphs.len(), Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn remove(&self, graph: &Arc<Active>) {
        let mut graphs = self.graphs.write();
        graphs.retain(|known| !Arc::ptr_eq(known, graph));
        let mut removed = self.removed.lock();
        removed.retain(|rest| rest.strong_count() > 0);
        removed.push(Arc::downgrade(&graph.rest));
        drop(removed);
        self.count.store(graphs.len(), Ordering::SeqCst);
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether workers have let go of all graphs that run no more.
    pub(crate) fn are_released(&self) -> bool {
        self.removed.lock().iter().all(|rest| rest.strong_count() == 0)
    }

    /// Whether a copy is up to date.
    #[inline]
    pub(crate) fn is_current(&self, known: &KnownGraphs) -> bool {
        known.version == self.version.load(Ordering::SeqCst)
    }

    /// Brings a copy up to date. Graphs without another reference go with that, and what they hold.
    #[cold]
    pub(crate) fn refresh(&self, known: &mut KnownGraphs) {
        let graphs = self.graphs.read();
        known.version = self.version.load(Ordering::SeqCst);
        known.graphs.clone_from(&graphs);
    }
}

impl KnownGraphs {
    /// Lets go of the graphs: a worker that sleeps must not keep what is gone.
    pub(crate) fn forget(&mut self) {
        self.graphs.clear();
        self.version = 0;
    }
}
