//! The order in which operations are mapped of a program that several nodes run.

use std::sync::Arc;

use crate::operation::Operation;

/// What waits for another node must not make the other wait: an earlier operation that is mapped later may be made to wait for it, and the other node for
/// that one. So it is mapped after all that comes before it in the program. Then whatever an operation waits for comes before it in the program, on
/// whichever node, and there is no circle.
#[derive(Default)]
pub(crate) struct InOrder {
    /// The last one that waits for another node.
    last: Option<Arc<Operation>>,
    /// Those after it.
    later: Vec<Arc<Operation>>,
    sweep_at: usize,
}

impl InOrder {
    /// Adds an operation. What it must be mapped after.
    pub(crate) fn push(
        &mut self,
        operation: &Arc<Operation>,
        waits_for_others: bool,
    ) -> impl Iterator<Item = Arc<Operation>> {
        let mut earlier = Vec::new();
        if waits_for_others {
            earlier = std::mem::take(&mut self.later);
            earlier.extend(self.last.replace(Arc::clone(operation)));
        } else {
            self.later.push(Arc::clone(operation));
            if self.later.len() > self.sweep_at {
                self.later.retain(|operation| operation.body().is_some());
                self.sweep_at = 64.max(2 * self.later.len());
            }
        }
        earlier.into_iter()
    }
}
