//! Counting what the runtime does.

use std::sync::atomic::{AtomicU64, Ordering};

use maniple_realm::machine::MemoryId;

/// Counts of a runtime's operations since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Operations launched: tasks and index launches, copies, fills, inline mappings, fences.
    pub launches: u64,
    /// Task bodies run here: one for a single launch, one a point for an index launch. What nodes do to exchange data
    /// is not counted.
    pub tasks: u64,
    /// Bodies of leaf tasks with their data that other nodes have run for this one.
    pub tasks_sent: u64,
    /// Bodies of leaf tasks with their data that were run here for other nodes.
    pub tasks_received: u64,
    /// Slices of index launches that other nodes were sent by this one: one message each, whatever the number of
    /// points. Their tasks are counted where they run.
    pub slices_sent: u64,
    /// Slices of index launches that came from other nodes.
    pub slices_received: u64,
    /// Nodes of region trees visited by the logical analysis, and operations that fences looked at.
    pub logical_visits: u64,
    /// Copies between instances.
    pub copies: u64,
    /// Bytes that those copied.
    pub bytes_copied: u64,
    /// Pieces of data sent to other nodes.
    pub parcels_sent: u64,
    /// Bytes of elements in those.
    pub parcel_bytes_sent: u64,
    /// Pieces of data that came from other nodes.
    pub parcels_received: u64,
    /// Bytes of elements in those.
    pub parcel_bytes_received: u64,
    /// Instances filled with a value.
    pub fills: u64,
    /// Reduction buffers applied.
    pub reductions: u64,
    /// Instances made.
    pub instances: u64,
    /// Instances, and parts of their data, that were looked at to find something that can be given up in a full memory.
    pub room_visits: u64,
    /// Calls of mappers.
    pub mapper_calls: u64,
    /// Times that a task could not be mapped for want of memory and was tried again.
    pub mapping_retries: u64,
    /// Runs of traces that were recorded, to be replayed.
    pub recordings: u64,
    /// Runs of traces that were replayed.
    pub replays: u64,
    /// Runs of traces of which a part was replayed, when other launches came than recorded, or none.
    pub replays_given_up: u64,
    /// Launches of a program on several nodes that were replayed at once with all that comes before them on this node,
    /// such as exchanges.
    pub replayed_at_once: u64,
    /// Exchanges of this node with others that are not over now: parcels that are awaited, or have come and were not
    /// taken, values that nodes tell each other, messages for which there is no room, tasks of this node that are
    /// elsewhere. When a program has ended this is soon 0: more means that something is kept for ever.
    pub open_exchanges: u64,
    /// The most operations and events that were pending at a time, or some dozens more for each thread. What is given
    /// up before it is known stays: if this grows with the length of a program whose window does not, something is
    /// waited for that will never come.
    pub most_pending: u64,
}

impl Statistics {
    /// With what was exchanged with each node.
    pub(crate) fn with_parcels(mut self, peers: &[PeerStatistics]) -> Self {
        for peer in peers {
            self.parcels_sent += peer.parcels_sent;
            self.parcel_bytes_sent += peer.parcel_bytes_sent;
            self.parcels_received += peer.parcels_received;
            self.parcel_bytes_received += peer.parcel_bytes_received;
        }
        self
    }
}

/// Counts of the exchanges of a node with another one since it started: see [`Runtime::peers`](crate::Runtime::peers).
/// Everything is counted where a program decides on it, before it is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerStatistics {
    /// Pieces of data sent to the other node.
    pub parcels_sent: u64,
    /// Bytes of elements in those.
    pub parcel_bytes_sent: u64,
    /// Pieces of data that came from the other node.
    pub parcels_received: u64,
    /// Bytes of elements in those.
    pub parcel_bytes_received: u64,
}

/// How much of a memory is used: see [`Runtime::memories`](crate::Runtime::memories).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStatistics {
    /// The memory.
    pub memory: MemoryId,
    /// Bytes of instances in it now. Of one that is for more than the regions of the tasks that were given it, those of
    /// the pages in which values of these regions lie: the system makes no others.
    pub used: u64,
    /// The most bytes of instances that were in it at a time, since the runtime started or
    /// [`Runtime::reset_peaks`](crate::Runtime::reset_peaks) was last called.
    pub peak: u64,
    /// Bytes that it can hold.
    pub capacity: u64,
}

/// A number that many threads add to. Adding is relaxed: it orders nothing.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Declares the counters behind a struct of numbers, by the same names.
macro_rules! counters {
    ($(#[$attribute:meta])* $counters:ident => $numbers:ident: $($name:ident),* $(,)?) => {
        $(#[$attribute])*
        #[derive(Debug, Default)]
        pub(crate) struct $counters {
            $(pub(crate) $name: Counter,)*
        }

        impl $counters {
            pub(crate) fn read(&self) -> $numbers {
                #[allow(clippy::needless_update, reason = "some numbers are not counted here")]
                $numbers { $($name: self.$name.get(),)* ..$numbers::default() }
            }
        }
    };
}

counters! {
    /// The counters behind [`Statistics`]. Each is touched once an operation or copy, never once an element.
    Counters => Statistics:
    launches, tasks, tasks_sent, tasks_received, slices_sent, slices_received, logical_visits, copies, bytes_copied, fills, reductions, instances, room_visits, mapper_calls, mapping_retries,
    recordings, replays, replays_given_up, replayed_at_once,
}

counters! {
    /// The counters behind [`PeerStatistics`]. Each is touched once a parcel.
    PeerCounters => PeerStatistics: parcels_sent, parcel_bytes_sent, parcels_received, parcel_bytes_received,
}
