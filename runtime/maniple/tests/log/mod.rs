//! What the runtime logs, kept to be looked at.

use std::sync::{Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span, subscriber};

/// What was logged, by any thread of the process, a line each.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps lines of this level and of worse ones.
struct Log(Level);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!("{}: {value:?}; ", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.0 && metadata.target().starts_with("maniple")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The lines since the last call; the first call begins to keep them, and says down to which level.
pub fn take(level: Level) -> Vec<String> {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| subscriber::set_global_default(Log(level)).unwrap());
    std::mem::take(&mut *LINES.lock().unwrap_or_else(PoisonError::into_inner))
}
