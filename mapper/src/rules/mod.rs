//! Mappings that are written down: rules in a file instead of code.
//!
//! - [`data`]: what a file says, as plain data; [`pattern`]: names with stars; [`words`]: the words for choices;
//! - [`parse`], over [`reader`]: from a text, with every mistake and its place in [`error`]; [`print`](mod@print): back
//!   to a text;
//! - [`explain`]: what it decides, in words; [`check`]: what does not fit a machine or a program;
//! - [`matching`]: which rules a task meets; [`choice`]: what they make of another mapper's choices; [`usage`]: which
//!   of them met anything;
//! - [`rule_mapper`]: the mapper that obeys; [`random`]: rules by chance, for tests.

mod check;
mod choice;
mod data;
mod error;
mod explain;
mod matching;
mod parse;
mod pattern;
mod print;
mod random;
mod reader;
mod rule_mapper;
mod usage;
mod words;

pub use data::{
    DataRule, Deal, MappingRules, Memory, Order, PrivilegeKind, Processors, ReuseKind, Share, Steal, TaskRule,
};
pub use error::{MappingFileError, Mistake};
pub use explain::Explained;
pub use pattern::{Names, nearest};
pub use random::Vocabulary;
pub use rule_mapper::RuleMapper;
pub use usage::RulesInUse;
