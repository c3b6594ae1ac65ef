//! Errors in a mapping file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::pattern::nearest;

/// A mistake in a mapping file, with its place.
///
/// ```
/// use maniple_mapper::MappingRules;
///
/// let mistake = MappingRules::parse("[[task]]\nprioirty = 2\n").unwrap_err();
/// assert!(mistake.to_string().starts_with("line 2, column 1: there is no key `prioirty` in [[task]]; did you mean `priority`?"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingFileError {
    /// The file, if it is known.
    pub file: Option<PathBuf>,
    /// The line and the column of the mistake, from 1, unless the file could not be read.
    pub place: Option<(usize, usize)>,
    /// The mistake.
    pub mistake: Mistake,
}

/// A mistake in a mapping file, without its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mistake {
    /// The file cannot be read.
    #[error("cannot read the mapping file: {0}")]
    Unreadable(Arc<str>),
    /// The text is no TOML.
    #[error("{0}; a mapping file is written in TOML")]
    Syntax(String),
    /// A key that there is not.
    #[error("there is no key `{key}` in {table}; {}", instead(.key, .known))]
    UnknownKey {
        /// The key.
        key: String,
        /// The table that the key stands in: `[[task]]`.
        table: &'static str,
        /// The keys that there are.
        known: Vec<&'static str>,
    },
    /// A word that stands for nothing.
    #[error("`{word}` is not {what}; {}", instead(.word, .known))]
    UnknownWord {
        /// The word.
        word: String,
        /// The kind of word that was expected: `a kind of processor`.
        what: &'static str,
        /// The words that there are.
        known: Vec<&'static str>,
    },
    /// A value that does not fit.
    #[error("`{key}` is {expected}; found {found}")]
    WrongValue {
        /// The key.
        key: String,
        /// A description of the expected value.
        expected: String,
        /// The value that was found.
        found: String,
    },
    /// A decision that cannot follow from a condition.
    #[error("`{decision}` cannot follow from `{condition}`: {why}; leave one of them out")]
    CannotFollow {
        /// The key of the decision.
        decision: &'static str,
        /// The key of the condition.
        condition: &'static str,
        /// Why.
        why: &'static str,
    },
    /// A rule without a decision.
    #[error("this rule decides nothing: give it one of {}", list(.known))]
    DecidesNothing {
        /// The keys with which it would.
        known: Vec<&'static str>,
    },
}

impl MappingFileError {
    /// A mistake at a byte of a text.
    pub(super) fn at(text: &str, byte: usize, mistake: Mistake) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let place = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
        Self { file: None, place: Some(place), mistake }
    }

    /// The file could not be read.
    pub(super) fn unreadable(file: &Path, error: &std::io::Error) -> Self {
        Self { file: Some(file.to_owned()), place: None, mistake: Mistake::Unreadable(error.to_string().into()) }
    }
}

impl fmt::Display for MappingFileError {
    /// `m.toml, line 2, column 1: ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.place) {
            (Some(file), Some((line, column))) => write!(f, "{}, line {line}, column {column}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, Some((line, column))) => write!(f, "line {line}, column {column}: ")?,
            (None, None) => {}
        }
        self.mistake.fmt(f)
    }
}

impl std::error::Error for MappingFileError {}

/// Suggests words to write in another word's stead.
fn instead(word: &str, known: &[&'static str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? expected {}", list(known)),
        None => format!("expected {}", list(known)),
    }
}

/// `` `a`, `b` or `c` ``.
pub(super) fn list(words: &[&'static str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}
