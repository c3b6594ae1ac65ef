//! The headings that options have in help.

/// Under which options of the runtime are listed.
pub(crate) const RUNTIME_HEADING: &str = "Runtime";

/// Under which options about its record are listed.
pub(crate) const RECORD_HEADING: &str = "Record";
