//! Errors of levels that cannot be stored.

use super::width::Width;

/// Why a level cannot be stored, or is no level. It does not say which level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LevelError {
    /// A number that the chosen width does not hold.
    #[error("its {component} holds numbers up to {greatest}, and {width} only those up to {}: choose a wider type, or none", width.greatest())]
    Narrow {
        /// The component.
        component: &'static str,
        /// The greatest number that it must hold.
        greatest: i64,
        /// The width that was asked for.
        width: Width,
    },
    /// The system does not give the memory.
    #[error("it needs {bytes} bytes, which the system does not give: choose levels that store less")]
    Memory {
        /// How much was needed.
        bytes: u128,
    },
    /// More positions than can be counted, or visited one by one.
    #[error("it has {parents} times {extent} positions, which are too many: choose levels that store less")]
    Large {
        /// The positions of the level above.
        parents: usize,
        /// The positions for each.
        extent: u128,
    },
    /// Two coordinates where there is room for one.
    #[error(
        "it has room for one coordinate at position {parent}, and there are {first} and {second}: let the level above be C~u, or use C"
    )]
    Crowded {
        /// The position in the level above.
        parent: usize,
        /// The coordinate that is there.
        first: i64,
        /// Another one.
        second: i64,
    },
    /// A component that breaks a rule of its level.
    #[error("its {component} must have {expected}, and has {found} at {place}")]
    Broken {
        /// The component.
        component: &'static str,
        /// Which of its numbers.
        place: usize,
        /// The rule, in words.
        expected: String,
        /// The data that break the rule, in words.
        found: String,
    },
}
