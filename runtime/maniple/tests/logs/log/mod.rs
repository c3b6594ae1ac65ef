//! The log of the runtime, kept to be looked at.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span, subscriber};

/// The lines logged by any thread of the process, one for each event.
static LINES: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());

/// Held by the test whose lines are kept.
static TURN: Mutex<()> = Mutex::new(());

/// Keeps lines down to the level `DEBUG`.
struct Log;

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!("{}: {value:?}; ", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.target().starts_with("maniple")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.lock().unwrap_or_else(PoisonError::into_inner).push((*event.metadata().level(), line.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The log of one test: no other test of the process runs while it exists.
pub struct Lines {
    level: Level,
    _turn: MutexGuard<'static, ()>,
}

/// Waits for the tests that log, and keeps the lines of this level and of worse ones from then on.
pub fn keep(level: Level) -> Lines {
    static BEGUN: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    BEGUN.call_once(|| subscriber::set_global_default(Log).unwrap());
    let lines = Lines { level, _turn: turn };
    lines.take();
    lines
}

impl Lines {
    /// The lines since the last call.
    pub fn take(&self) -> Vec<String> {
        let lines = std::mem::take(&mut *LINES.lock().unwrap_or_else(PoisonError::into_inner));
        lines.into_iter().filter(|(level, _)| *level <= self.level).map(|(_, line)| line).collect()
    }
}
