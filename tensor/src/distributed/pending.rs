//! Futures of this crate, which are compiled here and nowhere else.

use std::pin::Pin;

use super::DistributedError;

/// A value to come, or an error. Its type is erased: code that awaits it does not compile once more what gives it.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, DistributedError>> + Send + 'a>>;
