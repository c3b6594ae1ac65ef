//! Explanations of rules and their decisions, in words.

use std::fmt;

use super::data::{
    DataRule, Deal, MappingRules, Memory, Order, PrivilegeKind, Processors, ReuseKind, Share, Steal, TaskRule,
};
use crate::{Columns, Extent, Keep, ReductionPlace, Validity};

/// One rule in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The place of the rule: `[[task]] 2`.
    pub rule: String,
    /// The subject of the rule: ``tasks `update` on node 1``.
    pub about: String,
    /// The decisions of the rule.
    pub decides: Vec<String>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.about, self.decides.join("; "))
    }
}

impl MappingRules {
    /// Each rule in words, in the order of the file.
    #[must_use]
    pub fn explain(&self) -> Vec<Explained> {
        let mut all = Vec::new();
        for (number, rule) in self.tasks.iter().enumerate() {
            all.push(Explained {
                rule: format!("[[task]] {}", number + 1),
                about: rule.about(),
                decides: rule.decides(),
            });
        }
        for (number, rule) in self.data.iter().enumerate() {
            all.push(Explained {
                rule: format!("[[data]] {}", number + 1),
                about: rule.about(),
                decides: rule.decides(),
            });
        }
        let mut general = |rule: &str, about: &str, decides: Vec<String>| {
            all.push(Explained { rule: rule.to_owned(), about: about.to_owned(), decides });
        };
        if !self.copies_from.is_empty() {
            general("[copies]", "copies", vec![format!("come from {} first", memories(&self.copies_from))]);
        }
        if let Some(at_once) = self.at_once {
            general(
                "[operations]",
                "operations that are ready",
                vec![format!("at most {at_once} are mapped at a time")],
            );
        }
        if !self.tunables.is_empty() {
            let each = self.tunables.iter().map(|(name, value)| format!("`{name}` is {value}"));
            general("[tunables]", "numbers that the program asks for", each.collect());
        }
        all
    }
}

/// `a node`, `nodes 0 and 1`.
fn numbered<T>(kind: &str, all: &[T], number: impl Fn(&T) -> u32) -> String {
    let numbers: Vec<String> = all.iter().map(|one| number(one).to_string()).collect();
    match numbers.split_last() {
        Some((only, [])) => format!("{kind} {only}"),
        Some((last, others)) => format!("{kind}s {} and {last}", others.join(", ")),
        None => String::new(),
    }
}

fn nodes(all: &[maniple_realm::machine::NodeId]) -> String {
    numbered("node", all, |node| node.0.into())
}

fn memories(all: &[Memory]) -> String {
    let one = |memory: &Memory| match memory {
        Memory::Kind(kind) => format!("{kind} memory"),
        Memory::This(id) => id.to_string(),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", then ")
}

fn dealt(share: &Share) -> String {
    match share {
        Share::Stay => "stay where they are".to_owned(),
        Share::Blocks => "are dealt to all nodes in blocks".to_owned(),
        Share::Cycles => "go around the nodes one by one".to_owned(),
        Share::Nodes(all) if all.len() == 1 => format!("go to {}", nodes(all)),
        Share::Nodes(all) => format!("are dealt to {} in blocks", nodes(all)),
    }
}

impl TaskRule {
    fn about(&self) -> String {
        let mut about = match self.names.is_all() {
            true => "all tasks".to_owned(),
            false => format!("tasks {}", self.names),
        };
        if let Some(tag) = self.tag {
            about += &format!(" with tag {tag}");
        }
        if !self.nodes.is_empty() {
            about += &format!(" on {}", nodes(&self.nodes));
        }
        about
    }

    fn decides(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.processors.as_ref().map(|processors| match processors {
            Processors::Kind(kind) => format!("run on {kind} processors"),
            Processors::These(all) => format!("run on {}", numbered("processor", all, |id| id.0)),
        }));
        words.extend(self.deal.map(|deal| match deal {
            Deal::Blocks => "points are dealt to processors in blocks".to_owned(),
            Deal::Cycles => "points go around the processors one by one".to_owned(),
            Deal::FirstFree => "each on the first of the processors that is free".to_owned(),
        }));
        words.extend(self.variant.as_ref().map(|variant| format!("by the variant `{variant}`")));
        words.extend(self.pinned.map(|pinned| match pinned {
            true => "no other processor takes them".to_owned(),
            false => "idle processors may take them".to_owned(),
        }));
        words.extend(self.priority.map(|priority| format!("priority {priority}")));
        words.extend(self.copy_priority.map(|priority| format!("copies for them at priority {priority}")));
        words.extend(self.window.map(|window| format!("at most {window} operations of one in flight")));
        words.extend(self.validity.map(|validity| match validity {
            Validity::Once => "the mapper is asked each time".to_owned(),
            Validity::WhileUnchanged => "decisions hold while the same is launched".to_owned(),
        }));
        words.extend(self.is_virtual.map(|is_virtual| match is_virtual {
            true => "mapped virtually, if they launch".to_owned(),
            false => "never mapped virtually".to_owned(),
        }));
        words.extend(self.slice.map(|points| format!("at most {points} points are mapped together")));
        words.extend(self.sharding.as_ref().map(|share| format!("points that the program launches {}", dealt(share))));
        words.extend(self.spread.as_ref().map(|share| format!("slices of what other tasks launch {}", dealt(share))));
        words.extend(self.migrate.as_ref().map(|share| format!("leaf tasks that other tasks launch {}", dealt(share))));
        words.extend(self.steal.map(|steal| match steal {
            Steal::Never => "no idle node takes them".to_owned(),
            Steal::Always => "idle nodes may take them".to_owned(),
            Steal::UpTo(bytes) => format!("idle nodes may take them with at most {bytes} bytes"),
        }));
        words
    }
}

impl DataRule {
    fn about(&self) -> String {
        let mut about = "data".to_owned();
        let mut named = |what: &str, names: &super::Names| {
            if !names.is_all() {
                about += &format!(" {what} {names}");
            }
        };
        named("of region", &self.regions);
        named("in pieces of partition", &self.partitions);
        named("with field", &self.fields);
        named("of task", &self.tasks);
        if let Some(number) = self.requirement {
            about += &format!(" at requirement {number}");
        }
        if let Some(privilege) = self.privilege {
            about += match privilege {
                PrivilegeKind::Reads => " that is read",
                PrivilegeKind::Writes => " that is written",
                PrivilegeKind::Discards => " that is overwritten",
                PrivilegeKind::Reduces => " that is contributed to",
            };
        }
        if let Some(bytes) = self.min_bytes {
            about += &format!(" of at least {bytes} bytes");
        }
        if let Some(bytes) = self.max_bytes {
            about += &format!(" of at most {bytes} bytes");
        }
        if let Some(kind) = self.processor {
            about += &format!(" on {kind} processors");
        }
        if !self.nodes.is_empty() {
            about += &format!(" on {}", nodes(&self.nodes));
        }
        if about == "data" { "all data".to_owned() } else { about }
    }

    fn decides(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.memories.is_empty() {
            words.push(format!("in {}", memories(&self.memories)));
        }
        words.extend(self.extent.map(|extent| match extent {
            Extent::Region => "an instance for each piece".to_owned(),
            Extent::Root => "one instance for the whole region".to_owned(),
            Extent::Ancestor(levels) => format!("an instance for what is {levels} partitions above"),
        }));
        words.extend(self.reuse.map(|reuse| match reuse {
            ReuseKind::Any => "any instance that exists will do".to_owned(),
            ReuseKind::Exact => "only an instance that was made for it will do".to_owned(),
            ReuseKind::Never => "always in a new instance".to_owned(),
        }));
        words.extend(self.columns.map(|columns| match columns {
            Columns::Requirement => "with the fields that are used".to_owned(),
            Columns::Separate => "each field in an instance of its own".to_owned(),
            Columns::All => "with all fields".to_owned(),
        }));
        words.extend(self.arrangement.map(|arrangement| format!("as {arrangement}")));
        words.extend(self.order.map(|order| match order {
            Order::RowMajor => "the last dimension fastest".to_owned(),
            Order::ColumnMajor => "the first dimension fastest".to_owned(),
            Order::Dimensions(order) => format!("dimensions in the order {order:?}, the slowest first"),
        }));
        words.extend(self.align.map(|align| format!("the first value of each field at a multiple of {align} bytes")));
        words.extend(self.reduction.map(|reduction| match reduction {
            ReductionPlace::Buffer => "contributions in buffers".to_owned(),
            ReductionPlace::InPlace => "contributions in place".to_owned(),
        }));
        words.extend(self.keep.map(|keep| match keep {
            Keep::Rank(rank) => format!("copies go after those below rank {rank} when a memory is full"),
            Keep::WhileUsed => "copies go when they are not used any more".to_owned(),
        }));
        words
    }
}
