//! What errors that tell of the same event have in common.

use std::error::Error as StdError;
use std::sync::Weak;

/// What errors share that tell of one event, for as long as there are any.
pub(crate) enum Cause {
    /// What a panic said.
    Panic(Weak<str>),
    /// What went wrong.
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
