//! The inline mappings that a task holds, and what they exclude.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use maniple_region::{Requirement, Shape, Target};

use super::ContextState;
use crate::context::mapped::Hold;
use crate::instances::bound::Bound;
use crate::support::error::{Error, Result};

/// Mappings that a task holds.
#[derive(Default)]
pub(crate) struct InlineUses(Vec<(Weak<Hold>, Requirement)>);

impl InlineUses {
    /// How many mappings the task holds.
    pub(crate) fn in_use(&self) -> usize {
        self.0.iter().filter(|(hold, _)| hold.strong_count() > 0).count()
    }

    /// The task holds another mapping.
    pub(crate) fn add(&mut self, hold: &Arc<Hold>, requirement: Requirement) {
        self.0.push((Arc::downgrade(hold), requirement));
    }

    /// The points of mappings in use that interfere with a requirement, if they have some in common.
    fn conflicts(&mut self, requirement: &Requirement) -> Vec<Shape> {
        if self.0.is_empty() {
            return Vec::new();
        }
        self.0.retain(|(hold, _)| hold.strong_count() > 0);
        let conflicts = self.0.iter().filter(|(_, held)| {
            held.target.tree().id() == requirement.target.tree().id()
                && held.fields.overlaps(&requirement.fields)
                && held.privilege.interferes_with(requirement.privilege)
        });
        conflicts.map(|(_, held)| held.target.bound().space().shape().clone()).collect()
    }
}

/// All points that an operation may use.
fn reach(requirement: &Requirement) -> Shape {
    match &requirement.target {
        Target::Region(region, _) => region.space().shape().clone(),
        Target::Partition(partition, _) => partition.partitioning().union().clone(),
    }
}

impl ContextState {
    /// Refuses an operation that interferes with what the task itself has mapped.
    pub(crate) fn check_inline(&self, operation: &str, bounds: &[Bound]) -> Result<()> {
        if !self.has_mapped.load(Ordering::Relaxed) {
            return Ok(());
        }
        for Bound { requirement, .. } in bounds {
            let held = self.with_stream(|stream| stream.inline.conflicts(requirement));
            // Not with the stream locked: pieces may be elsewhere.
            let shapes = requirement.target.tree().root().forest().shapes();
            if !held.is_empty() && held.iter().any(|held| shapes.overlaps(held, &reach(requirement))) {
                return Err(Error::MappedByParent {
                    operation: operation.to_owned(),
                    parent: self.name().to_owned(),
                    region: requirement.target.to_string(),
                    fields: requirement.field_names(),
                    wanted: requirement.privilege.to_string(),
                    launched: None,
                });
            }
        }
        Ok(())
    }
}
