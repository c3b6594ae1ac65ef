//! Checks for rules without effect: rules that name things that the machine lacks, or tasks that the program lacks.

use maniple_realm::machine::{Machine, NodeId};

use super::data::{MappingRules, Memory, Processors};
use super::pattern::nearest;

impl MappingRules {
    /// Lists the things that the machine of a node lacks, though a rule that holds there names them. Such rules are
    /// passed over.
    #[must_use]
    pub fn lacks(&self, machine: &Machine, node: NodeId) -> Vec<String> {
        let mut lacks = Vec::new();
        let holds = |nodes: &[NodeId]| nodes.is_empty() || nodes.contains(&node);
        for (number, rule) in self.tasks.iter().enumerate().filter(|(_, rule)| holds(&rule.nodes)) {
            let mut lack = |what: String| lacks.push(format!("[[task]] {}: the machine has no {what}", number + 1));
            match &rule.processors {
                Some(Processors::Kind(kind)) if machine.processors_of(*kind).next().is_none() => {
                    lack(format!("{kind} processor"));
                }
                Some(Processors::These(all)) => {
                    let missing = all.iter().filter(|id| id.0 as usize >= machine.processors().len());
                    missing.for_each(|id| lack(format!("{id}; it has {}", machine.processors().len())));
                }
                _ => {}
            }
        }
        let rules = self.data.iter().enumerate().filter(|(_, rule)| holds(&rule.nodes));
        let places = rules.map(|(number, rule)| (format!("[[data]] {}", number + 1), &rule.memories));
        for (place, memories) in places.chain([("[copies]".to_owned(), &self.copies_from)]) {
            for memory in memories {
                match memory {
                    Memory::Kind(kind) if machine.memories_of(*kind).next().is_none() => {
                        lacks.push(format!("{place}: the machine has no {kind} memory"));
                    }
                    Memory::This(id) if id.0 as usize >= machine.memories().len() => {
                        lacks.push(format!("{place}: the machine has no {id}; it has {}", machine.memories().len()));
                    }
                    _ => {}
                }
            }
        }
        lacks
    }

    /// The tasks that rules name, without a star, and that are not among the known ones; with those that may have been
    /// meant. Tasks may be made while a program runs, so this need not be a mistake.
    #[must_use]
    pub fn unknown_tasks(&self, known: &[&str]) -> Vec<String> {
        let of_tasks =
            self.tasks.iter().enumerate().map(|(number, rule)| (format!("[[task]] {}", number + 1), &rule.names));
        let of_data =
            self.data.iter().enumerate().map(|(number, rule)| (format!("[[data]] {}", number + 1), &rule.tasks));
        let mut unknown = Vec::new();
        for (place, names) in of_tasks.chain(of_data) {
            for name in names.exact().filter(|name| !known.contains(name) && *name != super::rule_mapper::INLINE) {
                let meant = nearest(name, known.iter().copied())
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                unknown.push(format!("{place}: the program declares no task `{name}`{meant}"));
            }
        }
        unknown
    }
}
