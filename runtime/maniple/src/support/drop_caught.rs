//! Dropping a value of the program: its destructor may panic, which must not disturb what the runtime is doing.

use std::sync::Arc;

use maniple_realm::{Fault, fault};

/// Drops a value of the program's. A panic of its destructor is logged, as there is no task to which it could be
/// returned.
#[inline]
pub(crate) fn drop_caught<T>(what: &str, of: &str, value: T) {
    if std::mem::needs_drop::<T>()
        && let Err(fault) = fault::catch(|| drop(value))
    {
        tell(what, of, &fault);
    }
}

/// Logs that a destructor panicked: of what, and of which task's.
#[cold]
pub(crate) fn tell(what: &str, of: &str, fault: &Arc<Fault>) {
    tracing::error!(
        task = of,
        fault = format_args!("{fault:#}"),
        "the destructor of {what} panicked; the program goes on without"
    );
}
