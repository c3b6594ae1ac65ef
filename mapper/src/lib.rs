//! # Policy: where tasks run and where data lives
//!
//! The runtime asks a [`Mapper`]; whatever it answers, results are the same. In reading order:
//!
//! - [`Mapper`]: the questions, each with a sound default;
//! - [`TaskInfo`], [`RequirementInfo`], [`InstanceInfo`], [`MappingContext`]: what a mapper is told and may look up;
//! - [`Mail`]: messages to the mappers of other processors and nodes;
//! - [`TaskMapping`], [`InstanceChoice`], [`Slice`], [`NodeSlice`], [`Sharding`]: what it answers;
//! - [`DefaultMapper`], [`ShardingMapper`] (another one, with shardings of one's own), [`RandomMapper`] (an adversary
//!   for tests), [`LoggingMapper`] (tells what another decides), [`RuleMapper`] (obeys a file, [`MappingRules`]).
//!
//! ```
//! use maniple_mapper::{Mapper, ReadyOperation};
//!
//! /// Lets at most four operations be mapped at a time.
//! struct Careful;
//!
//! impl Mapper for Careful {
//!     fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
//!         (0..ready.len().min(4)).collect()
//!     }
//! }
//! assert_eq!(Careful.name(), "mapper");
//! ```

// What is in `clippy.toml`: the outside world enters through `realm` alone.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod decision;
mod default_mapper;
mod info;
mod logging_mapper;
mod mail;
#[allow(clippy::module_inception, reason = "the trait's file is named after it, and the crate after the trait")]
mod mapper;
mod random_mapper;
mod rules;
mod sharding;
mod sharding_mapper;

pub use decision::{
    Columns, Extent, InstanceChoice, Keep, NodeSlice, ReductionPlace, RequirementMapping, Reuse, Slice, TaskMapping,
    Validity,
};
pub use default_mapper::DefaultMapper;
pub use info::{
    InstanceId, InstanceInfo, MappedInstance, MappedTask, MappingContext, MappingFailure, RECEIVE, RequirementInfo,
    TaskInfo, TaskProfile, Tunable, VariantInfo,
};
pub use logging_mapper::LoggingMapper;
pub use mail::{LONGEST_MESSAGE, MOST_ANSWERS, MOST_UNHEARD, Mail, MailError, MapperAddress};
pub use mapper::{Mapper, ReadyOperation};
pub use random_mapper::RandomMapper;
pub use rules::{
    DataRule, Deal, Explained, MappingFileError, MappingRules, Memory, Mistake, Names, Order, PrivilegeKind,
    Processors, ReuseKind, RuleMapper, RulesInUse, Share, Steal, TaskRule, Vocabulary, nearest,
};
pub use sharding::{Sharding, ShardingFunction};
pub use sharding_mapper::ShardingMapper;
