//! The code of variants.

use std::pin::Pin;
use std::sync::Arc;

use super::{ContextCall, LeafCall};
use crate::data::value::Value;
use crate::support::error::Result;

/// The future of a body that may wait.
pub type BoxFuture = Pin<Box<dyn Future<Output = Result<Value>> + Send>>;

/// The code of a variant that launches nothing.
pub type LeafBody = Arc<dyn Fn(&LeafCall<'_>) -> Result<Value> + Send + Sync>;

/// The code of a variant that launches.
pub type ContextBody = Arc<dyn Fn(ContextCall) -> BoxFuture + Send + Sync>;

/// The code of a variant.
#[derive(Clone)]
pub enum Body {
    /// A function that touches data and returns, without launching anything.
    Leaf(LeafBody),
    /// A function that launches, and may wait for what it launched.
    Context(ContextBody),
}

/// One implementation.
#[derive(Clone)]
pub(crate) struct Variant {
    pub(crate) body: Body,
}
