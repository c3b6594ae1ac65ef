//! Rules as the text of a mapping file.

use std::fmt;

use maniple_realm::layout::Arrangement;

use super::data::{DataRule, MappingRules, Memory, Order, Processors, Share, Steal, TaskRule};
use super::pattern::Names;
use super::words::Words;
use crate::{Extent, Keep};

/// A key with its value, as it stands in a file.
pub(super) type Entry = (&'static str, String);

impl fmt::Display for MappingRules {
    /// The text of a mapping file that says this.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut table = |f: &mut fmt::Formatter<'_>, name: &str, entries: Vec<(String, String)>| {
            writeln!(f, "{separator}{name}")?;
            separator = "\n";
            entries.into_iter().try_for_each(|(key, value)| writeln!(f, "{key} = {value}"))
        };
        let owned = |entries: Vec<Entry>| entries.into_iter().map(|(key, value)| (key.to_owned(), value));
        for rule in &self.tasks {
            table(f, "[[task]]", owned(rule.conditions()).chain(owned(rule.decisions())).collect())?;
        }
        for rule in &self.data {
            table(f, "[[data]]", owned(rule.conditions()).chain(owned(rule.decisions())).collect())?;
        }
        if !self.copies_from.is_empty() {
            table(f, "[copies]", vec![("from".to_owned(), memories(&self.copies_from))])?;
        }
        if let Some(at_once) = self.at_once {
            table(f, "[operations]", vec![("at_once".to_owned(), at_once.to_string())])?;
        }
        if !self.tunables.is_empty() {
            let entries = self.tunables.iter().map(|(name, value)| (quoted(name), value.to_string()));
            table(f, "[tunables]", entries.collect())?;
        }
        Ok(())
    }
}

impl TaskRule {
    /// Returns the entries for the conditions of the rule.
    pub(super) fn conditions(&self) -> Vec<Entry> {
        let mut entries = TableEntries::default();
        entries.add("name", names(&self.names));
        entries.add("tag", self.tag.map(|tag| tag.to_string()));
        entries.add("node", some(&self.nodes, |node| node.0.to_string()));
        entries.0
    }

    /// Returns the entries for the decisions of the rule.
    pub(super) fn decisions(&self) -> Vec<Entry> {
        let mut entries = TableEntries::default();
        entries.add("processors", self.processors.as_ref().map(processors));
        entries.add("deal", self.deal.map(word));
        entries.add("variant", self.variant.as_deref().map(quoted));
        entries.add("pinned", self.pinned.map(|pinned| pinned.to_string()));
        entries.add("priority", self.priority.map(|priority| priority.to_string()));
        entries.add("copy_priority", self.copy_priority.map(|priority| priority.to_string()));
        entries.add("window", self.window.map(|window| window.to_string()));
        entries.add("validity", self.validity.map(word));
        entries.add("virtual", self.is_virtual.map(|is_virtual| is_virtual.to_string()));
        entries.add("slice", self.slice.map(|points| points.to_string()));
        entries.add("sharding", self.sharding.as_ref().map(share));
        entries.add("spread", self.spread.as_ref().map(share));
        entries.add("migrate", self.migrate.as_ref().map(share));
        entries.add(
            "steal",
            self.steal.map(|steal| match steal {
                Steal::Never => "false".to_owned(),
                Steal::Always => "true".to_owned(),
                Steal::UpTo(bytes) => bytes.to_string(),
            }),
        );
        entries.0
    }
}

impl DataRule {
    /// Returns the entries for the conditions of the rule.
    pub(super) fn conditions(&self) -> Vec<Entry> {
        let mut entries = TableEntries::default();
        entries.add("task", names(&self.tasks));
        entries.add("node", some(&self.nodes, |node| node.0.to_string()));
        entries.add("processor", self.processor.map(word));
        entries.add("region", names(&self.regions));
        entries.add("partition", names(&self.partitions));
        entries.add("field", names(&self.fields));
        entries.add("requirement", self.requirement.map(|number| number.to_string()));
        entries.add("privilege", self.privilege.map(word));
        entries.add("min_bytes", self.min_bytes.map(|bytes| bytes.to_string()));
        entries.add("max_bytes", self.max_bytes.map(|bytes| bytes.to_string()));
        entries.0
    }

    /// Returns the entries for the decisions of the rule.
    pub(super) fn decisions(&self) -> Vec<Entry> {
        let mut entries = TableEntries::default();
        entries.add("memory", (!self.memories.is_empty()).then(|| memories(&self.memories)));
        entries.add(
            "extent",
            self.extent.map(|extent| match extent {
                Extent::Ancestor(levels) => levels.to_string(),
                other => word(other),
            }),
        );
        entries.add("reuse", self.reuse.map(word));
        entries.add("columns", self.columns.map(word));
        entries.add(
            "arrangement",
            self.arrangement.map(|arrangement| match arrangement {
                Arrangement::StructOfArrays => quoted("struct-of-arrays"),
                Arrangement::ArrayOfStructs => quoted("array-of-structs"),
                Arrangement::Blocked(points) => points.to_string(),
            }),
        );
        entries.add(
            "order",
            self.order.map(|order| match order {
                Order::RowMajor => quoted("row-major"),
                Order::ColumnMajor => quoted("column-major"),
                Order::Dimensions(order) => format!("{order:?}"),
            }),
        );
        entries.add("align", self.align.map(|align| align.to_string()));
        entries.add("reduction", self.reduction.map(word));
        entries.add(
            "keep",
            self.keep.map(|keep| match keep {
                Keep::Rank(rank) => rank.to_string(),
                Keep::WhileUsed => quoted("while-used"),
            }),
        );
        entries.0
    }
}

/// The entries of a table, of those keys that are given.
#[derive(Default)]
struct TableEntries(Vec<Entry>);

impl TableEntries {
    fn add(&mut self, key: &'static str, value: Option<String>) {
        self.0.extend(value.map(|value| (key, value)));
    }
}

/// A choice by its word; nothing that a file could not say is ever in a rule.
fn word<T: Words>(choice: T) -> String {
    quoted(choice.word().unwrap_or_default())
}

/// One element by itself, others as a list; nothing, if there is none.
fn some<T>(elements: &[T], print: impl Fn(&T) -> String) -> Option<String> {
    match elements {
        [] => None,
        [one] => Some(print(one)),
        several => Some(format!("[{}]", several.iter().map(print).collect::<Vec<_>>().join(", "))),
    }
}

fn names(names: &Names) -> Option<String> {
    some(names.patterns(), |name| quoted(name))
}

fn memories(all: &[Memory]) -> String {
    let memory = |memory: &Memory| match memory {
        Memory::Kind(kind) => word(*kind),
        Memory::This(id) => id.0.to_string(),
    };
    some(all, memory).unwrap_or_default()
}

fn processors(processors: &Processors) -> String {
    match processors {
        Processors::Kind(kind) => word(*kind),
        Processors::These(all) => some(all, |processor| processor.0.to_string()).unwrap_or_default(),
    }
}

fn share(share: &Share) -> String {
    match share {
        Share::Nodes(nodes) => some(nodes, |node| node.0.to_string()).unwrap_or_default(),
        other => word(other.clone()),
    }
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted += &format!("\\u{:04X}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}
