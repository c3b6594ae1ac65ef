//! The workers that may help a leaf.

use std::fmt;

use maniple_realm::Realm;

/// The workers of the node that runs a leaf: those that have nothing else to do help with a loop of its body.
///
/// A leaf cannot launch or wait, and this does not change it: a loop is begun and ended within the body, and iterations
/// are plain calls.
///
/// ```
/// use maniple::prelude::*;
/// use maniple::task::{TaskDefinition, TaskOptions, Value};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let sum = TaskDefinition::new("sum").leaf(TaskOptions::default(), |call| {
///     let (workers, sum) = (call.workers(), AtomicU64::new(0));
///     let share = 1000 / workers.count() as u64;
///     workers.for_each(workers.count(), |part| {
///         let part = part as u64 * share..(part as u64 + 1) * share;
///         sum.fetch_add(part.sum(), Ordering::Relaxed);
///     });
///     Ok(Value::new(sum.into_inner()))
/// });
/// let runtime = Runtime::builder().workers(2).build()?;
/// let result = runtime.run(async |cx| cx.launch(TaskLauncher::new(&Arc::new(sum)).typed::<u64>()).await)?;
/// assert_eq!(result, 499_500);
/// # Ok::<(), maniple::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Workers<'a> {
    realm: &'a Realm,
}

impl<'a> Workers<'a> {
    pub(crate) fn of(realm: &'a Realm) -> Self {
        Self { realm }
    }

    /// How many there are, this one included, busy or not: the same in every call on a node.
    #[must_use]
    pub fn count(self) -> usize {
        self.realm.processors().len()
    }

    /// Calls `body` with 0, 1, ..., `count` - 1, each once, and returns when all calls have. Workers that have nothing
    /// else to do take part: calls begin in this order, but may be at the same time, and on other threads. With one
    /// worker they are made one after the other.
    ///
    /// The calling thread makes all calls that no other worker begins, so it takes no longer than on one thread, even
    /// if no other worker ever comes; then it costs an allocation and two atomic additions a call. `body` may itself do
    /// this.
    ///
    /// # Panics
    /// If a call does, which then is the task's failure, as any panic of its body. Calls that have not begun are then
    /// not made, and those that have are waited for. Of several that panic the panic is that of the lowest number, as
    /// if the calls had been made one after the other.
    pub fn for_each(self, count: usize, body: impl Fn(usize) + Sync) {
        self.realm.for_each(count, body);
    }
}

impl fmt::Debug for Workers<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Workers").field("count", &self.count()).finish()
    }
}
