//! The groups of processors that mappers have named.

use maniple_mapper::TaskMapping;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::ProcessorId;
use maniple_realm::{GroupId, Target};
use rustc_hash::FxHashMap;

use super::RuntimeCore;
use crate::support::error::{Error, Result};

/// Groups by their members, in the order of their numbers. The machine keeps each for good.
#[derive(Default)]
pub(super) struct Groups(Mutex<FxHashMap<Box<[ProcessorId]>, GroupId>>);

/// So many there are at most: workers that look for work look into the queues of all of theirs.
const MOST: usize = 256;

impl RuntimeCore {
    /// The processors on which a task with this mapping runs, and whether only some workers may take it.
    pub(crate) fn target_of(&self, task: &str, mapping: &TaskMapping) -> Result<(Target, bool)> {
        if mapping.group.is_empty() {
            let (processor, pinned) = (mapping.processor, mapping.pinned);
            return Ok((if pinned { Target::On(processor) } else { Target::Near(processor) }, pinned));
        }
        let mut members = mapping.group.clone();
        members.sort_unstable();
        let is_bound = members.len() < self.realm().processors().len();
        let mut known = self.groups.0.lock();
        if let Some(group) = known.get(&members[..]) {
            return Ok((Target::Group(*group), is_bound));
        }
        let wrong = |problem: String| Error::mapper("map_task", format!("for `{task}` {problem}"));
        if known.len() == MOST {
            return Err(wrong(format!(
                "names one group of processors more than the {MOST} that a runtime knows; name the same groups again"
            )));
        }
        let group = self.realm().processor_group(&members).map_err(|error| {
            let there = self.realm().processors().len();
            wrong(format!("names a group of processors: {error}; name some of the {there} that have workers"))
        })?;
        known.insert(members.into(), group);
        Ok((Target::Group(group), is_bound))
    }
}
