//! Causes that errors have in common if they tell of the same event.

use std::error::Error as StdError;
use std::sync::Weak;

/// The cause that all errors of one event share, for as long as there are any.
pub(crate) enum Cause {
    /// The message of a panic.
    Panic(Weak<str>),
    /// The error of the event itself.
    Error(Weak<dyn StdError + Send + Sync>),
}

impl Cause {
    /// Unlike that of any other cause, as long as this one is held.
    pub(crate) fn address(&self) -> usize {
        match self {
            Self::Panic(message) => message.as_ptr().addr(),
            Self::Error(source) => source.as_ptr().cast::<()>().addr(),
        }
    }

    /// Whether no error with this cause is left.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Panic(message) => message.strong_count() == 0,
            Self::Error(source) => source.strong_count() == 0,
        }
    }
}
