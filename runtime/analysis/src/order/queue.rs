//! The in-order mapping queue of a program that several nodes run.

use super::OrderedOperation;

/// Keeps operations that wait for other nodes in program order.
///
/// An operation that waits for another node must not make that node wait: an earlier operation that is mapped later may
/// be made to wait for it, and the other node for that operation. So an operation that waits for another node is mapped
/// after all operations that precede it in the program. Then all operations that an operation waits for precede it in
/// the program, on whichever node, and no cycle of waits can form.
pub struct InOrderQueue<O> {
    /// The last operation that waits for another node.
    last: Option<O>,
    /// The operations after the last one.
    later: Vec<O>,
    sweep_at: usize,
}

impl<O> Default for InOrderQueue<O> {
    fn default() -> Self {
        Self { last: None, later: Vec::new(), sweep_at: 0 }
    }
}

impl<O: OrderedOperation + Clone> InOrderQueue<O> {
    /// Adds an operation. Returns those that it must be mapped after.
    pub fn push(&mut self, operation: &O, waits_for_others: bool) -> impl Iterator<Item = O> + use<O> {
        let mut earlier = Vec::new();
        if waits_for_others {
            earlier = std::mem::take(&mut self.later);
            earlier.extend(self.last.replace(operation.clone()));
        } else {
            self.later.push(operation.clone());
            if self.later.len() > self.sweep_at {
                self.later.retain(|operation| !operation.is_mapped());
                self.sweep_at = 64.max(2 * self.later.len());
            }
        }
        earlier.into_iter()
    }
}
