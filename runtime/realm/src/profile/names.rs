//! Names, each given a number once.

use std::collections::HashMap;

use crate::locks::Mutex;

use super::format::RecordNames;
use super::header::Thread;
use super::label::{Kind, Label, LabelId};
use super::record::{Graph, GraphId};

/// Labels that every profile has.
pub mod common {
    use super::LabelId;

    /// A task that says no more of itself.
    pub const TASK: LabelId = LabelId(0);
    /// Work of the runtime that says no more of itself.
    pub const RUNTIME: LabelId = LabelId(1);
    /// A worker without work.
    pub const ASLEEP: LabelId = LabelId(2);
    /// A body that waits.
    pub const WAITING: LabelId = LabelId(3);
    /// A copy.
    pub const COPY: LabelId = LabelId(4);
    /// A copy through pointers.
    pub const INDIRECT: LabelId = LabelId(5);
    /// A fill.
    pub const FILL: LabelId = LabelId(6);
    /// A reduction.
    pub const REDUCTION: LabelId = LabelId(7);
    /// Giving memory back.
    pub const RELEASE: LabelId = LabelId(8);
    /// Mapping, of nothing in particular.
    pub const MAPPING: LabelId = LabelId(9);
    /// Writing the profile itself.
    pub const PROFILE: LabelId = LabelId(10);
    /// A share of a task's loop that another worker has run.
    pub const SHARE: LabelId = LabelId(11);
}

const COMMON: [(Kind, &str); 12] = [
    (Kind::Task, "task"),
    (Kind::Runtime, "runtime"),
    (Kind::Asleep, "asleep"),
    (Kind::Waiting, "waiting"),
    (Kind::Copy, "copy"),
    (Kind::Copy, "gather or scatter"),
    (Kind::Fill, "fill"),
    (Kind::Reduction, "reduction"),
    (Kind::Runtime, "release memory"),
    (Kind::Mapping, "mapping"),
    (Kind::Runtime, "write profile"),
    (Kind::Task, "part of a loop"),
];

/// The names of a profile, and which of them have not been written.
pub(super) struct NameTable(Mutex<NumberedNames>);

#[derive(Default)]
struct NumberedNames {
    labels: HashMap<Label, LabelId>,
    threads: u32,
    graphs: u32,
    news: RecordNames,
}

impl NumberedNames {
    fn label(&mut self, label: Label) -> LabelId {
        if let Some(&id) = self.labels.get(&label) {
            return id;
        }
        let id = LabelId(self.labels.len() as u32);
        self.news.labels.push(label.clone());
        self.labels.insert(label, id);
        id
    }
}

impl NameTable {
    pub(super) fn new() -> Self {
        let mut table = NumberedNames::default();
        for (kind, name) in COMMON {
            table.label(Label::new(kind, name));
        }
        Self(Mutex::new(table))
    }

    pub(super) fn label(&self, label: Label) -> LabelId {
        self.0.lock().label(label)
    }

    pub(super) fn thread(&self, thread: Thread) -> u32 {
        let mut table = self.0.lock();
        table.news.threads.push(thread);
        table.threads += 1;
        table.threads - 1
    }

    pub(super) fn graph(&self, graph: Graph) -> GraphId {
        let mut table = self.0.lock();
        table.news.graphs.push(graph);
        table.graphs += 1;
        GraphId(table.graphs - 1)
    }

    /// The names that have not been given out by this before.
    pub(super) fn take_news(&self) -> Option<RecordNames> {
        let news = std::mem::take(&mut self.0.lock().news);
        (!news.is_empty()).then_some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_labels_have_the_numbers_that_they_are_known_by() {
        let table = NameTable::new();
        let number_of = |index: usize| table.label(Label::new(COMMON[index].0, COMMON[index].1));
        assert!((0..COMMON.len()).all(|index| number_of(index) == LabelId(index as u32)));
        assert_eq!(COMMON[common::ASLEEP.0 as usize], (Kind::Asleep, "asleep"));
        assert_eq!(COMMON[common::PROFILE.0 as usize], (Kind::Runtime, "write profile"));
    }

    #[test]
    fn a_name_has_one_number_and_is_news_once() {
        let table = NameTable::new();
        let fresh = |name: &str| table.label(Label::new(Kind::Task, name));
        let (a, b) = (fresh("a"), fresh("b"));
        assert_eq!((fresh("a"), a == b), (a, false));
        assert_eq!(table.take_news().map(|news| news.labels.len()), Some(COMMON.len() + 2));
        assert_eq!(table.take_news(), None);
        fresh("c");
        assert_eq!(table.take_news().map(|news| news.labels), Some(vec![Label::new(Kind::Task, "c")]));
    }
}
