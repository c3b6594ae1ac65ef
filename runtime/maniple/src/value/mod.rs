//! What tasks return, whatever its type: [`Value`]; and how it goes to other nodes: [`Codec`].

mod codec;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod value;

pub use codec::Codec;
pub use value::Value;
