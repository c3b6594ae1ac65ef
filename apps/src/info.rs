//! The machine as the runtime sees it.

use std::fmt;

use clap::Args;
use maniple::Machine;
use maniple::machine::Reachable;

use crate::options::{self, MEMORY_HELP, WORKERS_HELP, default_from_command_line, memory_size, worker_count};
use crate::report::{Columns, bytes};

/// What `maniple info` teaches.
pub const ABOUT: &str = "\
Show the machine as the runtime and its mappers see it.

Processors run tasks; each sees some memories, best first by nominal bandwidth and latency. Memories hold the data of regions, up to their \
capacity: three quarters of what the system lets this process use, unless --memory says otherwise. A mapper chooses among these, and \
nothing that it chooses changes a result.";

/// What `maniple info` gives as examples.
pub const EXAMPLES: &str = "\
Examples:
  maniple info                            this machine
  maniple info --workers 4 --memory 1GiB  what simulations then run on";

/// Which machine to show: what [`RuntimeOptions`](options::RuntimeOptions) say of machines, and nothing else.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Worker threads.
    #[arg(long, value_name = "N", value_parser = worker_count, allow_hyphen_values = true, help = WORKERS_HELP)]
    pub workers: Option<usize>,

    /// Bytes of system memory.
    #[arg(long, value_name = "SIZE", value_parser = memory_size, allow_hyphen_values = true, help = MEMORY_HELP)]
    pub memory: Option<u64>,
}

default_from_command_line!(Options);

/// A machine, printed as tables.
#[derive(Clone, Debug)]
pub struct Report {
    machine: Machine,
}

/// The machine that a simulation with these options would run on.
#[must_use]
pub fn run(options: &Options) -> Report {
    Report { machine: options::machine(options.workers, options.memory) }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        let mut processors = Columns::new(["processor", "kind", "node", "NUMA domain", "sees"]);
        for processor in machine.processors() {
            let sees = reachable(machine.memories_visible_from(processor.id));
            let (kind, node) = (processor.kind.to_string(), processor.node.0.to_string());
            processors.row([processor.id.0.to_string(), kind, node, processor.numa_domain.to_string(), sees]);
        }
        let mut memories = Columns::new(["memory", "kind", "node", "NUMA domain", "capacity", "copies to"]);
        for memory in machine.memories() {
            let (kind, node) = (memory.kind.to_string(), memory.node.0.to_string());
            let (domain, capacity) = (memory.numa_domain.to_string(), bytes(memory.capacity));
            let copies = reachable(machine.memories_copied_from(memory.id));
            memories.row([memory.id.0.to_string(), kind, node, domain, capacity, copies]);
        }
        write!(f, "{processors}\n{memories}")
    }
}

fn reachable(memories: &[Reachable]) -> String {
    let one = |reachable: &Reachable| {
        let Reachable { memory, affinity } = reachable;
        format!("{memory} ({} GB/s, {} ns)", f64::from(affinity.bandwidth_mb_s) / 1000.0, affinity.latency_ns)
    };
    memories.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_and_memory_has_a_line() {
        let report = Report { machine: Machine::uniform(2, 3 << 30) };
        let expected = "\
processor  kind  node  NUMA domain  sees
0          cpu   0     0            memory 0 (20 GB/s, 100 ns)
1          cpu   0     0            memory 0 (20 GB/s, 100 ns)

memory  kind    node  NUMA domain  capacity  copies to
0       system  0     0            3.0 GiB   memory 0 (20 GB/s, 100 ns)
";
        assert_eq!(report.to_string(), expected);
    }
}
