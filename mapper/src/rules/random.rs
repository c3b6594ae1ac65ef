//! Rules by chance: an adversary for tests.

use fastrand::Rng;
use maniple_realm::layout::{Arrangement, DimensionOrder};
use maniple_realm::machine::{MemoryId, NodeId, ProcessorId};

use super::data::{DataRule, MappingRules, Memory, Order, Processors, Share, Steal, TaskRule};
use super::pattern::Names;
use super::words::Words;
use crate::{Extent, Keep};

/// The names that random rules are about, besides some that nothing has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vocabulary<'a> {
    /// Of tasks.
    pub tasks: &'a [&'a str],
    /// Of variants.
    pub variants: &'a [&'a str],
    /// Of regions.
    pub regions: &'a [&'a str],
    /// Of partitions.
    pub partitions: &'a [&'a str],
    /// Of fields.
    pub fields: &'a [&'a str],
}

impl MappingRules {
    /// Rules that follow from a seed: each key of a mapping file with any value that it may have. Whatever they say,
    /// programs must give the same results.
    #[must_use]
    pub fn random(seed: u64, vocabulary: &Vocabulary<'_>) -> Self {
        let mut draw = Draw(Rng::with_seed(seed));
        let many = |draw: &mut Draw| draw.0.usize(..5);
        let (tasks, data) = (many(&mut draw), many(&mut draw));
        let tunables = (0..draw.0.usize(..3)).map(|_| (draw.name(&["pieces", "a \"b\" \\ c"]), draw.0.i64(..)));
        let tunables = tunables.collect();
        Self {
            tasks: (0..tasks).map(|_| draw.task(vocabulary)).collect(),
            data: (0..data).map(|_| draw.data(vocabulary)).collect(),
            copies_from: if draw.0.bool() { draw.memories() } else { Vec::new() },
            at_once: draw.sometimes(|draw| draw.0.u64(1..=4)),
            tunables,
        }
    }
}

struct Draw(Rng);

impl Draw {
    fn sometimes<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.0.usize(..4) == 0).then(|| draw(self))
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.0.usize(..all.len())].clone()
    }

    fn word<T: Words>(&mut self) -> T {
        T::ALL[self.0.usize(..T::ALL.len())].1.clone()
    }

    /// A name that something has, nothing has, or that is a pattern.
    fn name(&mut self, known: &[&str]) -> String {
        let name = if known.is_empty() || self.0.usize(..8) == 0 { "nothing has this" } else { self.one_of(known) };
        let cut = name.char_indices().map(|(at, _)| at).nth(self.0.usize(..4)).unwrap_or(0);
        match self.0.usize(..6) {
            0 => "*".to_owned(),
            1 => format!("{}*", &name[..cut]),
            2 => format!("*{}", &name[cut..]),
            _ => name.to_owned(),
        }
    }

    fn names(&mut self, known: &[&str]) -> Names {
        let count = if self.0.bool() { 0 } else { self.0.usize(1..=2) };
        Names::of((0..count).map(|_| self.name(known)).collect())
    }

    /// Nodes, mostly of those that there are.
    fn some_nodes(&mut self) -> Vec<NodeId> {
        (0..self.0.usize(1..=3)).map(|_| NodeId(self.0.u16(..4))).collect()
    }

    fn memories(&mut self) -> Vec<Memory> {
        let one = |draw: &mut Self| match draw.0.bool() {
            true => Memory::Kind(draw.word()),
            false => Memory::This(MemoryId(draw.0.u32(..4))),
        };
        (0..self.0.usize(1..=3)).map(|_| one(self)).collect()
    }

    /// `but` is what the key does not say.
    fn share(&mut self, but: &Share) -> Share {
        loop {
            let share = if self.0.bool() { Share::Nodes(self.some_nodes()) } else { self.word() };
            if share != *but {
                return share;
            }
        }
    }

    fn task(&mut self, vocabulary: &Vocabulary<'_>) -> TaskRule {
        loop {
            let tag = self.sometimes(|draw| draw.0.u64(..3));
            let nodes = self.sometimes(Self::some_nodes).unwrap_or_default();
            let holds_everywhere = nodes.is_empty();
            let rule = TaskRule {
                names: self.names(vocabulary.tasks),
                tag,
                nodes,
                processors: self.sometimes(|draw| match draw.0.bool() {
                    true => Processors::Kind(draw.word()),
                    false => {
                        let count = draw.0.usize(1..=3);
                        Processors::These((0..count).map(|_| ProcessorId(draw.0.u32(..5))).collect())
                    }
                }),
                deal: self.sometimes(Self::word),
                variant: self.sometimes(|draw| draw.name(vocabulary.variants)),
                pinned: self.sometimes(|draw| draw.0.bool()),
                priority: self.sometimes(|draw| draw.0.i32(-2..=2)),
                copy_priority: self.sometimes(|draw| draw.0.i32(-2..=2)),
                window: self.sometimes(|draw| draw.0.u64(1..=4)),
                validity: self.sometimes(Self::word),
                is_virtual: self.sometimes(|draw| draw.0.bool()),
                slice: self.sometimes(|draw| draw.0.u64(1..=4)),
                sharding: self.sometimes(|draw| draw.share(&Share::Stay)).filter(|_| holds_everywhere),
                spread: self.sometimes(|draw| draw.share(&Share::Cycles)),
                migrate: self.sometimes(|draw| draw.share(&Share::Nodes(Vec::new()))),
                steal: self
                    .sometimes(|draw| match draw.0.usize(..3) {
                        0 => Steal::Never,
                        1 => Steal::Always,
                        _ => Steal::UpTo(draw.0.u64(..1 << 20)),
                    })
                    .filter(|_| tag.is_none()),
            };
            if !rule.decides_nothing() {
                return rule;
            }
        }
    }

    fn data(&mut self, vocabulary: &Vocabulary<'_>) -> DataRule {
        loop {
            let rule = DataRule {
                tasks: self.names(vocabulary.tasks),
                nodes: self.sometimes(Self::some_nodes).unwrap_or_default(),
                processor: self.sometimes(Self::word),
                regions: self.names(vocabulary.regions),
                partitions: self.names(vocabulary.partitions),
                fields: self.names(vocabulary.fields),
                requirement: self.sometimes(|draw| draw.0.u64(..3)),
                privilege: self.sometimes(Self::word),
                min_bytes: self.sometimes(|draw| draw.0.u64(..512)),
                max_bytes: self.sometimes(|draw| draw.0.u64(..4096)),
                memories: self.sometimes(Self::memories).unwrap_or_default(),
                extent: self.sometimes(|draw| match draw.0.bool() {
                    true => draw.word(),
                    false => Extent::Ancestor(draw.0.usize(..4)),
                }),
                reuse: self.sometimes(Self::word),
                columns: self.sometimes(Self::word),
                arrangement: self.sometimes(|draw| match draw.0.usize(..3) {
                    0 => Arrangement::StructOfArrays,
                    1 => Arrangement::ArrayOfStructs,
                    _ => Arrangement::Blocked(1 << draw.0.u32(..6)),
                }),
                order: self.sometimes(|draw| match draw.0.usize(..3) {
                    0 => Order::RowMajor,
                    1 => Order::ColumnMajor,
                    _ => {
                        let mut dimensions: Vec<usize> = (0..draw.0.usize(1..=4)).collect();
                        draw.0.shuffle(&mut dimensions);
                        let drawn = DimensionOrder::new(&dimensions);
                        Order::Dimensions(drawn.unwrap_or_else(|_| DimensionOrder::row_major(1)))
                    }
                }),
                align: self.sometimes(|draw| 1 << draw.0.u32(..10)),
                reduction: self.sometimes(Self::word),
                keep: self.sometimes(|draw| match draw.0.bool() {
                    true => Keep::Rank(draw.0.i32(-2..=2)),
                    false => Keep::WhileUsed,
                }),
            };
            if !rule.decides_nothing() {
                return rule;
            }
        }
    }
}
