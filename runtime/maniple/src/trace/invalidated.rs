//! Values that stay invalidated: what tasks only contribute to, a later run does not write anew.
//!
//! The graph tells a failure to the nodes of the same run and of the next. Where a run writes all values anew that it
//! needs, that is enough. Else the nodes that need them have to know of failures of all earlier runs. These are rare,
//! so they are noted aside, and looked up once there are any.

use std::sync::Arc;

use maniple_realm::Fault;
use maniple_realm::graph::GraphPlace;
use maniple_realm::locks::Mutex;
use rustc_hash::FxHashMap;

/// For each node that has failed, the first run in which it did, and why.
#[derive(Default)]
pub(super) struct Invalidated(Mutex<FxHashMap<u32, (u64, Arc<Fault>)>>);

impl Invalidated {
    /// A node has failed.
    pub(super) fn note(&self, GraphPlace { node, run }: GraphPlace, fault: &Arc<Fault>) {
        let mut failed = self.0.lock();
        let first = failed.entry(node).or_insert_with(|| (run, Arc::clone(fault)));
        if run < first.0 {
            *first = (run, Arc::clone(fault));
        }
    }

    /// Why one of some nodes has failed in a run before this one, if one has. The caller comes after all of them.
    pub(super) fn before(&self, run: u64, nodes: &[u32]) -> Option<Arc<Fault>> {
        let failed = self.0.lock();
        let earlier = nodes.iter().filter_map(|node| failed.get(node)).find(|(first, _)| *first < run);
        earlier.map(|(_, fault)| Arc::clone(fault))
    }
}
