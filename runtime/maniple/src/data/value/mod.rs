//! Results of tasks, whatever their types: [`Value`]; and how they go to other nodes: [`Codec`].

mod codec;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod value;

pub use codec::Codec;
pub use value::Value;
