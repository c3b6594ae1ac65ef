//! Results whose elements the loops give their first values, so that nothing has to be stored there before.
//!
//! An element is stored where it is computed if all loops around are over variables of the result, and visit all of
//! their values. An element that is reduced into starts with the identity right before the loops that reduce: while it
//! is near.

use super::leaf::{Lowering, kind};
use super::storage::Storage;
use crate::concrete::{Loop, StatementNode};
use crate::loops::Statement as Step;
use crate::notation::{Access, IndexVariable, TensorVariable};

impl Lowering<'_> {
    pub(super) fn is_result(&self, tensor: &TensorVariable) -> bool {
        tensor == self.statement.result()
    }

    /// Whether a node changes the result.
    pub(super) fn changes_result(&self, node: &StatementNode) -> bool {
        node.sites().iter().any(|site| self.is_result(&site.target.tensor))
    }

    /// The loop, with what it reduces into initialised before, if it reduces into the result, of which no element has a
    /// value so far.
    pub(super) fn initialised(&mut self, outer: &Loop, body: &StatementNode) -> Option<Step> {
        let sites = body.sites();
        let target = sites.iter().find(|site| self.is_result(&site.target.tensor))?.target;
        if self.statement.ancestors(&outer.variable).iter().all(|ancestor| target.variables.contains(ancestor)) {
            return None;
        }
        let Some(initial) = self.initial(target) else {
            self.needs_initial = true;
            return None;
        };
        // Where threads are at work, by threads.
        let initial = if self.around.is_empty() { initial.with_kind(kind(outer)) } else { initial };
        self.is_unset = false;
        let step = self.node(&StatementNode::Forall(outer.clone(), Box::new(body.clone())));
        self.is_unset = true;
        Some(Step::Sequence(vec![initial, step]))
    }

    /// Stores what elements are at first, in all dimensions whose variables are not known. None if a part of a variable
    /// is known: others would be stored to several times.
    fn initial(&mut self, target: &Access) -> Option<Step> {
        let Some(Storage::Buffer(buffer)) = self.storage.get(target.tensor.name()).cloned() else { return None };
        let initial = self.statement.initial()?;
        let is_known = |variable: &IndexVariable| self.known.contains_key(variable);
        let mut bounds = Vec::new();
        for (dimension, variable) in target.variables.iter().enumerate() {
            match self.recovered(variable) {
                Some(value) => bounds.push((value.clone(), value + 1)),
                None if self.statement.dependencies(variable).iter().any(is_known) => return None,
                None => bounds.push((buffer.low(dimension), buffer.high(dimension))),
            }
        }
        Some(self.fill(&buffer, bounds, initial.into()))
    }
}
