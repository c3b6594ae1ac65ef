//! How many tasks mappers have put on each processor that have not ended, for mappers that balance loads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use maniple_realm::machine::{Machine, ProcessorId};

/// The tasks of each processor.
pub(crate) struct Loads(Arc<[AtomicUsize]>);

/// A task that counts, until this is dropped.
pub(crate) struct Counted {
    loads: Arc<[AtomicUsize]>,
    processor: usize,
}

impl Loads {
    pub(crate) fn new(machine: &Machine) -> Self {
        Self(machine.processors().iter().map(|_| AtomicUsize::new(0)).collect())
    }

    /// A task more of a processor.
    pub(crate) fn count(&self, ProcessorId(processor): ProcessorId) -> Option<Counted> {
        let processor = processor as usize;
        self.0.get(processor)?.fetch_add(1, Ordering::Relaxed);
        Some(Counted { loads: Arc::clone(&self.0), processor })
    }

    /// How many tasks of a processor count.
    pub(crate) fn of(&self, processor: ProcessorId) -> usize {
        self.0.get(processor.0 as usize).map_or(0, |load| load.load(Ordering::Relaxed))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.loads[self.processor].fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_counts_until_it_is_dropped() {
        let loads = Loads::new(&Machine::uniform(2, 1));
        let (first, second) = (ProcessorId(0), ProcessorId(1));
        let counted = [loads.count(second), loads.count(second), loads.count(first), loads.count(ProcessorId(9))];
        assert_eq!((loads.of(first), loads.of(second), loads.of(ProcessorId(9))), (1, 2, 0));
        drop(counted);
        assert_eq!((loads.of(first), loads.of(second)), (0, 0));
    }
}
