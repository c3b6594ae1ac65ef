//! The machine as the runtime sees it: processors, memories, and which processor reaches which memory.
//!
//! A [`Machine`] is plain data. The detected one comes from [`crate::topology`]; tests and simulations make their own
//! with a [`MachineBuilder`]: several small memories, processors that see only some of them, many nodes.
//!
//! ```
//! use maniple_realm::machine::{Affinity, Machine, MemoryKind, ProcessorKind};
//!
//! let near = Affinity { bandwidth_mb_s: 20_000, latency_ns: 90 };
//! let far = Affinity { bandwidth_mb_s: 5_000, latency_ns: 900 };
//! let mut builder = Machine::builder();
//! let cpu = builder.processor(ProcessorKind::Cpu);
//! let big = builder.memory(MemoryKind::System, 1 << 30);
//! let small = builder.memory(MemoryKind::Socket, 1 << 20);
//! builder.sees(cpu, big, far).sees(cpu, small, near);
//! let machine = builder.build()?;
//!
//! let ranked: Vec<_> = machine.memories_visible_from(cpu).iter().map(|visible| visible.memory).collect();
//! assert_eq!(ranked, [small, big]);
//! # Ok::<(), maniple_realm::machine::MachineError>(())
//! ```

use std::fmt;

use thiserror::Error;

/// Names a processor of a machine: its index in [`Machine::processors`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessorId(pub u32);

/// Names a memory of a machine: its index in [`Machine::memories`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryId(pub u32);

/// Names a node: processors and memories that share an address space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl fmt::Display for ProcessorId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "processor {}", self.0)
    }
}

impl fmt::Display for MemoryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "memory {}", self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "node {}", self.0)
    }
}

/// The kind of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ProcessorKind {
    /// One core of a host processor.
    Cpu,
    /// One graphics processor. Machines can be described with some; there are no workers for them yet.
    Gpu,
}

impl fmt::Display for ProcessorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        })
    }
}

/// The kind of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MemoryKind {
    /// The host memory of a node, or of one NUMA domain where the node has several.
    System,
    /// Host memory set apart for one socket.
    Socket,
    /// A graphics processor's own memory. Machines can be described with some; its instances are in host memory as yet.
    Framebuffer,
    /// Host memory that a graphics processor may read and write by itself. As yet it is like any other.
    ZeroCopy,
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::System => "system",
            Self::Socket => "socket",
            Self::Framebuffer => "framebuffer",
            Self::ZeroCopy => "zero-copy",
        })
    }
}

/// One processor of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessorInfo {
    /// Its name, which is also its index.
    pub id: ProcessorId,
    /// Its kind.
    pub kind: ProcessorKind,
    /// The node that it belongs to.
    pub node: NodeId,
    /// The NUMA domain, within its node, that it belongs to.
    pub numa_domain: u32,
}

/// One memory of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemoryInfo {
    /// Its name, which is also its index.
    pub id: MemoryId,
    /// Its kind.
    pub kind: MemoryKind,
    /// The node that it belongs to.
    pub node: NodeId,
    /// The NUMA domain, within its node, that it belongs to.
    pub numa_domain: u32,
    /// The bytes that instances may occupy in it.
    pub capacity: u64,
    /// The bytes of the pages by which parts of instances count as used, if they are not those of the system.
    pub page: Option<u64>,
}

/// How well one place reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Affinity {
    /// Sustained bandwidth, in megabytes (10^6 bytes) a second.
    pub bandwidth_mb_s: u32,
    /// Latency of one access, in nanoseconds.
    pub latency_ns: u32,
}

/// A memory that is reached from somewhere, and how well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reachable {
    /// The memory.
    pub memory: MemoryId,
    /// How well it is reached.
    pub affinity: Affinity,
}

/// Processors, memories and their affinities, of all nodes. Plain data: it never changes once built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    processors: Vec<ProcessorInfo>,
    memories: Vec<MemoryInfo>,
    /// For each processor, the memories it loads from and stores to, best first.
    visible: Vec<Vec<Reachable>>,
    /// For each memory, the memories that data is copied to directly, best first.
    copied: Vec<Vec<Reachable>>,
}

impl Machine {
    /// Starts the description of a machine.
    pub fn builder() -> MachineBuilder {
        MachineBuilder::default()
    }

    /// The same, whose memories of the system have so many bytes together at most on each node. Of several on a node,
    /// one for each domain of processors, each has an equal share.
    #[must_use]
    pub fn with_system_memory(mut self, bytes: u64) -> Self {
        let nodes: Vec<NodeId> = self.memories_of(MemoryKind::System).map(|memory| memory.node).collect();
        for memory in self.memories.iter_mut().filter(|memory| memory.kind == MemoryKind::System) {
            let together = nodes.iter().filter(|node| **node == memory.node).count() as u64;
            memory.capacity = memory.capacity.min(bytes / together);
        }
        self
    }

    /// One node with `cpus` processors that all see one system memory of `capacity` bytes.
    ///
    /// # Panics
    ///
    /// If `cpus` is zero.
    pub fn uniform(cpus: u32, capacity: u64) -> Self {
        let mut builder = Self::builder();
        for _ in 0..cpus {
            builder.processor(ProcessorKind::Cpu);
        }
        builder.memory(MemoryKind::System, capacity);
        builder.connect_nodes(Affinity { bandwidth_mb_s: 20_000, latency_ns: 100 });
        builder.build().expect("a machine with a processor and connected by construction")
    }

    /// Every processor, in the order of its id.
    pub fn processors(&self) -> &[ProcessorInfo] {
        &self.processors
    }

    /// Every memory, in the order of its id.
    pub fn memories(&self) -> &[MemoryInfo] {
        &self.memories
    }

    /// The description of one processor.
    ///
    /// # Panics
    ///
    /// If the processor is not of this machine.
    pub fn processor(&self, id: ProcessorId) -> &ProcessorInfo {
        &self.processors[id.0 as usize]
    }

    /// The description of one memory.
    ///
    /// # Panics
    ///
    /// If the memory is not of this machine.
    pub fn memory(&self, id: MemoryId) -> &MemoryInfo {
        &self.memories[id.0 as usize]
    }

    /// The processors of one kind, in the order of their ids.
    pub fn processors_of(&self, kind: ProcessorKind) -> impl Iterator<Item = &ProcessorInfo> {
        self.processors.iter().filter(move |processor| processor.kind == kind)
    }

    /// The memories of one kind, in the order of their ids.
    pub fn memories_of(&self, kind: MemoryKind) -> impl Iterator<Item = &MemoryInfo> {
        self.memories.iter().filter(move |memory| memory.kind == kind)
    }

    /// The memories that a processor loads from and stores to, best first: by bandwidth, then latency, then capacity,
    /// then id.
    pub fn memories_visible_from(&self, processor: ProcessorId) -> &[Reachable] {
        &self.visible[processor.0 as usize]
    }

    /// The memories that data of `memory` is copied to directly, best first as in
    /// [`memories_visible_from`](Self::memories_visible_from).
    pub fn memories_copied_from(&self, memory: MemoryId) -> &[Reachable] {
        &self.copied[memory.0 as usize]
    }

    /// The processors that load from and store to a memory, in the order of their ids.
    pub fn processors_seeing(&self, memory: MemoryId) -> impl Iterator<Item = &ProcessorInfo> {
        self.processors.iter().filter(move |processor| self.affinity(processor.id, memory).is_some())
    }

    /// How well a processor reaches a memory by loads and stores; `None` if it does not see it.
    pub fn affinity(&self, processor: ProcessorId, memory: MemoryId) -> Option<Affinity> {
        find(self.memories_visible_from(processor), memory)
    }

    /// How well data moves from one memory to another; `None` if there is no direct path.
    pub fn memory_affinity(&self, from: MemoryId, to: MemoryId) -> Option<Affinity> {
        find(self.memories_copied_from(from), to)
    }

    /// Checks that processors may share one queue, and gives them as a group.
    ///
    /// # Errors
    ///
    /// If the group is empty, names a processor twice or one that is not of this machine, or mixes nodes or kinds.
    pub fn group(&self, members: &[ProcessorId]) -> Result<ProcessorGroup, MachineError> {
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        let first = *sorted.first().ok_or(MachineError::EmptyGroup)?;
        for &member in &sorted {
            if member.0 as usize >= self.processors.len() {
                return Err(MachineError::NoSuchProcessor { processor: member, count: self.processors.len() });
            }
        }
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(MachineError::RepeatedMember { processor: pair[0] });
        }
        let alike = |id: ProcessorId| {
            let info = self.processor(id);
            (info.node, info.kind)
        };
        if let Some(&other) = sorted.iter().find(|&&member| alike(member) != alike(first)) {
            return Err(MachineError::MixedGroup { first, other });
        }
        Ok(ProcessorGroup { members: sorted })
    }

    /// The memories that every member of a group sees, best first for the worst-placed member.
    pub fn memories_visible_from_group(&self, group: &ProcessorGroup) -> Vec<Reachable> {
        let mut common: Vec<Reachable> = self
            .memories_visible_from(group.members[0])
            .iter()
            .filter_map(|candidate| {
                let affinities = group.members.iter().map(|&member| self.affinity(member, candidate.memory));
                let worst = affinities.collect::<Option<Vec<_>>>()?.into_iter().min_by_key(quality)?;
                Some(Reachable { memory: candidate.memory, affinity: worst })
            })
            .collect();
        self.rank(&mut common);
        common
    }

    fn rank(&self, reachable: &mut [Reachable]) {
        rank(&self.memories, reachable);
    }
}

/// Processors of one node and one kind that share a queue, in the order of their ids. Made by [`Machine::group`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProcessorGroup {
    members: Vec<ProcessorId>,
}

impl ProcessorGroup {
    /// The members; never empty.
    pub fn members(&self) -> &[ProcessorId] {
        &self.members
    }
}

fn find(reachable: &[Reachable], memory: MemoryId) -> Option<Affinity> {
    reachable.iter().find(|candidate| candidate.memory == memory).map(|candidate| candidate.affinity)
}

/// Greater is better.
fn quality(affinity: &Affinity) -> (u32, std::cmp::Reverse<u32>) {
    (affinity.bandwidth_mb_s, std::cmp::Reverse(affinity.latency_ns))
}

fn rank(memories: &[MemoryInfo], reachable: &mut [Reachable]) {
    use std::cmp::Reverse;
    reachable.sort_unstable_by_key(|candidate| {
        let capacity = memories[candidate.memory.0 as usize].capacity;
        (Reverse(quality(&candidate.affinity)), Reverse(capacity), candidate.memory)
    });
}

/// Describes a machine piece by piece.
///
/// Processors and memories are placed where [`place`](Self::place) last said: node 0, domain 0 at first. A processor
/// sees only the memories stated by [`sees`](Self::sees) or [`connect_nodes`](Self::connect_nodes).
#[derive(Clone, Debug, Default)]
pub struct MachineBuilder {
    node: NodeId,
    numa_domain: u32,
    processors: Vec<ProcessorInfo>,
    memories: Vec<MemoryInfo>,
    sees: Vec<(ProcessorId, Reachable)>,
    copies: Vec<(MemoryId, Reachable)>,
}

impl MachineBuilder {
    /// Places what is added from now on.
    pub fn place(&mut self, node: NodeId, numa_domain: u32) -> &mut Self {
        self.node = node;
        self.numa_domain = numa_domain;
        self
    }

    /// Adds a processor.
    pub fn processor(&mut self, kind: ProcessorKind) -> ProcessorId {
        let id = ProcessorId(self.processors.len() as u32);
        self.processors.push(ProcessorInfo { id, kind, node: self.node, numa_domain: self.numa_domain });
        id
    }

    /// Adds a memory of `capacity` bytes.
    pub fn memory(&mut self, kind: MemoryKind, capacity: u64) -> MemoryId {
        let id = MemoryId(self.memories.len() as u32);
        let (node, numa_domain) = (self.node, self.numa_domain);
        self.memories.push(MemoryInfo { id, kind, node, numa_domain, capacity, page: None });
        id
    }

    /// Has parts of instances in a memory count as used by pages of so many bytes: a small number shows with little
    /// data what else takes much. What the system makes of it is its own affair.
    pub fn pages(&mut self, memory: MemoryId, bytes: u64) -> &mut Self {
        if let Some(memory) = self.memories.get_mut(memory.0 as usize) {
            memory.page = Some(bytes.max(1));
        }
        self
    }

    /// States that a processor loads from and stores to a memory. A later statement on the same pair replaces it.
    pub fn sees(&mut self, processor: ProcessorId, memory: MemoryId, affinity: Affinity) -> &mut Self {
        self.sees.retain(|(from, to)| (*from, to.memory) != (processor, memory));
        self.sees.push((processor, Reachable { memory, affinity }));
        self
    }

    /// States that data is copied directly between two memories, both ways. A later statement on the same pair replaces
    /// it.
    pub fn copies(&mut self, a: MemoryId, b: MemoryId, affinity: Affinity) -> &mut Self {
        self.copies.retain(|(from, to)| (*from, to.memory) != (a, b) && (*from, to.memory) != (b, a));
        self.copies.push((a, Reachable { memory: b, affinity }));
        if a != b {
            self.copies.push((b, Reachable { memory: a, affinity }));
        }
        self
    }

    /// States that, within each node, every processor sees and every memory reaches every memory with this affinity,
    /// except for the pairs already stated.
    pub fn connect_nodes(&mut self, affinity: Affinity) -> &mut Self {
        for memory in &self.memories {
            let reachable = Reachable { memory: memory.id, affinity };
            for processor in self.processors.iter().filter(|processor| processor.node == memory.node) {
                if !self.sees.iter().any(|(from, to)| (*from, to.memory) == (processor.id, memory.id)) {
                    self.sees.push((processor.id, reachable));
                }
            }
            for from in self.memories.iter().filter(|from| from.node == memory.node) {
                if !self.copies.iter().any(|(known, to)| (*known, to.memory) == (from.id, memory.id)) {
                    self.copies.push((from.id, reachable));
                }
            }
        }
        self
    }

    /// Gives the machine.
    ///
    /// # Errors
    ///
    /// If there is no processor, or an affinity names a processor or memory that was not added.
    pub fn build(self) -> Result<Machine, MachineError> {
        if self.processors.is_empty() {
            return Err(MachineError::NoProcessor);
        }
        let (processors, memories) = (self.processors.len(), self.memories.len());
        let no_memory = |memory: MemoryId| MachineError::NoSuchMemory { memory, count: memories };
        let mut visible = vec![Vec::new(); processors];
        for (processor, reachable) in self.sees {
            if reachable.memory.0 as usize >= memories {
                return Err(no_memory(reachable.memory));
            }
            let no_processor = MachineError::NoSuchProcessor { processor, count: processors };
            visible.get_mut(processor.0 as usize).ok_or(no_processor)?.push(reachable);
        }
        let mut copied = vec![Vec::new(); memories];
        for (memory, reachable) in self.copies {
            if reachable.memory.0 as usize >= memories {
                return Err(no_memory(reachable.memory));
            }
            copied.get_mut(memory.0 as usize).ok_or(no_memory(memory))?.push(reachable);
        }
        for reachable in visible.iter_mut().chain(&mut copied) {
            rank(&self.memories, reachable);
        }
        Ok(Machine { processors: self.processors, memories: self.memories, visible, copied })
    }
}

/// A machine that makes no sense, or a question about it that does not.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// The machine would run nothing.
    #[error("a machine needs at least one processor, found none: add one with `MachineBuilder::processor`")]
    NoProcessor,
    /// A processor that the machine does not have.
    #[error("{processor} is not of this machine, which has {count} processors, numbered from 0")]
    NoSuchProcessor {
        /// The processor named.
        processor: ProcessorId,
        /// How many processors there are.
        count: usize,
    },
    /// A memory that the machine does not have.
    #[error("{memory} is not of this machine, which has {count} memories, numbered from 0")]
    NoSuchMemory {
        /// The memory named.
        memory: MemoryId,
        /// How many memories there are.
        count: usize,
    },
    /// A group of no processor.
    #[error("a processor group needs at least one member, found none")]
    EmptyGroup,
    /// A group that names a processor twice.
    #[error("{processor} is named twice in one processor group: name each member once")]
    RepeatedMember {
        /// The processor named twice.
        processor: ProcessorId,
    },
    /// A group across nodes or kinds.
    #[error(
        "{first} and {other} differ in node or kind: the members of a group share one queue, so they must agree in both"
    )]
    MixedGroup {
        /// The first member.
        first: ProcessorId,
        /// A member that differs from it.
        other: ProcessorId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affinity(bandwidth_mb_s: u32, latency_ns: u32) -> Affinity {
        Affinity { bandwidth_mb_s, latency_ns }
    }

    #[test]
    fn memories_of_the_system_share_a_limit() {
        let mut builder = Machine::builder();
        builder.processor(ProcessorKind::Cpu);
        for (kind, capacity) in [(MemoryKind::System, 100), (MemoryKind::System, 10), (MemoryKind::Framebuffer, 100)] {
            builder.memory(kind, capacity);
        }
        builder.connect_nodes(Affinity { bandwidth_mb_s: 1, latency_ns: 1 });
        let machine = builder.build().unwrap().with_system_memory(80);
        let capacities: Vec<u64> = machine.memories().iter().map(|memory| memory.capacity).collect();
        assert_eq!(capacities, [40, 10, 100]);
    }

    #[test]
    fn visible_memories_come_best_first_by_bandwidth_then_latency_then_capacity() {
        let mut builder = Machine::builder();
        let cpu = builder.processor(ProcessorKind::Cpu);
        let [slow, lagging, small, large] =
            [100, 100, 10, 20].map(|capacity| builder.memory(MemoryKind::System, capacity));
        builder.sees(cpu, slow, affinity(1, 1)).sees(cpu, lagging, affinity(9, 50));
        builder.sees(cpu, small, affinity(9, 5)).sees(cpu, large, affinity(9, 5));
        let machine = builder.build().unwrap();
        let ranked: Vec<_> = machine.memories_visible_from(cpu).iter().map(|reachable| reachable.memory).collect();
        assert_eq!(ranked, [large, small, lagging, slow]);
    }

    #[test]
    fn a_processor_sees_only_what_was_stated() {
        let mut builder = Machine::builder();
        let [left, right] = [(); 2].map(|()| builder.processor(ProcessorKind::Cpu));
        let memory = builder.memory(MemoryKind::System, 64);
        builder.sees(left, memory, affinity(7, 3));
        let machine = builder.build().unwrap();
        assert_eq!(machine.affinity(left, memory), Some(affinity(7, 3)));
        assert_eq!(machine.affinity(right, memory), None);
        assert_eq!(machine.processors_seeing(memory).map(|info| info.id).collect::<Vec<_>>(), [left]);
    }

    #[test]
    fn connecting_nodes_joins_no_two_nodes_and_keeps_what_was_stated() {
        let mut builder = Machine::builder();
        let here = builder.processor(ProcessorKind::Cpu);
        let home = builder.memory(MemoryKind::System, 64);
        builder.place(NodeId(1), 0);
        let there = builder.processor(ProcessorKind::Cpu);
        let away = builder.memory(MemoryKind::System, 64);
        builder.sees(here, home, affinity(1, 1)).copies(home, away, affinity(2, 2)).connect_nodes(affinity(9, 9));
        let machine = builder.build().unwrap();
        assert_eq!(machine.affinity(here, home), Some(affinity(1, 1)));
        assert_eq!(machine.affinity(here, away), None);
        assert_eq!(machine.affinity(there, away), Some(affinity(9, 9)));
        assert_eq!(machine.memory_affinity(away, home), Some(affinity(2, 2)));
        assert_eq!(machine.memory_affinity(away, away), Some(affinity(9, 9)));
    }

    #[test]
    fn a_group_is_of_one_node_and_one_kind() {
        let mut builder = Machine::builder();
        let first = builder.processor(ProcessorKind::Cpu);
        let second = builder.processor(ProcessorKind::Cpu);
        let gpu = builder.processor(ProcessorKind::Gpu);
        builder.place(NodeId(1), 0);
        let away = builder.processor(ProcessorKind::Cpu);
        let machine = builder.build().unwrap();
        assert_eq!(machine.group(&[second, first]).unwrap().members(), [first, second]);
        assert_eq!(machine.group(&[]), Err(MachineError::EmptyGroup));
        assert_eq!(machine.group(&[first, gpu]), Err(MachineError::MixedGroup { first, other: gpu }));
        assert_eq!(machine.group(&[first, away]), Err(MachineError::MixedGroup { first, other: away }));
        assert_eq!(machine.group(&[first, first]), Err(MachineError::RepeatedMember { processor: first }));
        let stranger = ProcessorId(9);
        let unknown = MachineError::NoSuchProcessor { processor: stranger, count: 4 };
        assert_eq!(machine.group(&[stranger]), Err(unknown));
    }

    #[test]
    fn a_group_sees_what_all_its_members_see_as_well_as_the_worst_of_them() {
        let mut builder = Machine::builder();
        let cpus = [(); 2].map(|()| builder.processor(ProcessorKind::Cpu));
        let shared = builder.memory(MemoryKind::System, 64);
        let own = builder.memory(MemoryKind::Socket, 64);
        builder.sees(cpus[0], shared, affinity(5, 1)).sees(cpus[1], shared, affinity(3, 1));
        builder.sees(cpus[0], own, affinity(9, 1));
        let machine = builder.build().unwrap();
        let group = machine.group(&cpus).unwrap();
        let expected = [Reachable { memory: shared, affinity: affinity(3, 1) }];
        assert_eq!(machine.memories_visible_from_group(&group), expected);
    }

    #[test]
    fn a_machine_without_processors_or_with_dangling_affinities_is_refused() {
        assert_eq!(Machine::builder().build(), Err(MachineError::NoProcessor));
        let mut builder = Machine::builder();
        let cpu = builder.processor(ProcessorKind::Cpu);
        builder.sees(cpu, MemoryId(3), affinity(1, 1));
        assert_eq!(builder.build(), Err(MachineError::NoSuchMemory { memory: MemoryId(3), count: 0 }));
    }
}
