//! Whether runtimes have gone, with all that knew them: their mappers, which they own, tell.

use std::sync::Arc;

use maniple::mapper::{LoggingMapper, Mapper};

/// How long a runtime is in memory: as long as its mappers, which hold clones of this.
#[derive(Clone, Debug, Default)]
pub struct Lifetime(Arc<()>);

impl Lifetime {
    /// The mapper, holding on to this.
    pub fn of<M: Mapper + 'static>(&self, mapper: M) -> impl Mapper + use<M> {
        let held = self.clone();
        LoggingMapper::with_sink(mapper, move |_| held.hold())
    }

    /// Makes a closure that calls this hold on to a clone.
    pub(crate) fn hold(&self) {}

    /// Whether this is the only clone left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}
