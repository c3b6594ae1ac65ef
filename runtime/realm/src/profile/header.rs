//! Whose profile it is: the program, the machine, the threads.

use serde::{Deserialize, Serialize};

use crate::machine::{Machine, NodeId, ProcessorId};

/// The process that recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The program's command line.
    pub program: String,
    /// When the profile began: nanoseconds since 1970.
    pub began: u64,
    /// The machine's processors.
    pub processors: Vec<Processor>,
    /// The machine's memories.
    pub memories: Vec<Memory>,
}

/// A processor of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// Its number.
    pub id: u32,
    /// The kind of the processor, such as `cpu`.
    pub kind: String,
    /// The node that it is in.
    pub node: u16,
}

/// A memory of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Its number.
    pub id: u32,
    /// The kind of the memory, such as `system`.
    pub kind: String,
    /// The node that it is in.
    pub node: u16,
    /// Bytes that it can hold.
    pub capacity: u64,
}

impl Header {
    /// This process, on a machine, which is one node of a job if it says so.
    pub(crate) fn of(machine: &Machine, node: Option<NodeId>, began: u64) -> Self {
        let node = |of_machine: NodeId| node.unwrap_or(of_machine).0;
        let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
        let processors = machine.processors().iter();
        let memories = machine.memories().iter();
        Self {
            program: arguments.collect::<Vec<_>>().join(" "),
            began,
            processors: processors
                .map(|found| Processor { id: found.id.0, kind: found.kind.to_string(), node: node(found.node) })
                .collect(),
            memories: memories
                .map(|found| Memory {
                    id: found.id.0,
                    kind: found.kind.to_string(),
                    node: node(found.node),
                    capacity: found.capacity,
                })
                .collect(),
        }
    }
}

/// A thread that recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// The processor, if the thread is a worker.
    pub processor: Option<u32>,
}

impl Thread {
    /// A worker's thread.
    pub(crate) fn worker(processor: ProcessorId) -> Self {
        Self { name: processor.to_string(), processor: Some(processor.0) }
    }

    /// This thread, which is no worker.
    pub(super) fn outside() -> Self {
        let thread = std::thread::current();
        let name = thread.name().map_or_else(|| "a thread without a name".to_owned(), |name| format!("thread {name}"));
        Self { name, processor: None }
    }
}
