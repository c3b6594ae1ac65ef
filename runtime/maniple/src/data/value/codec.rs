//! Results on their way to other nodes.

use std::any::{Any, TypeId};
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Value;

/// How values of one type become bytes, and bytes values. All nodes run the same program, so they agree on it.
#[derive(Clone, Copy)]
pub struct Codec {
    encode: fn(&dyn Any) -> Option<Vec<u8>>,
    decode: fn(&[u8]) -> Option<Value>,
    is_of_nothing: fn() -> bool,
}

impl Codec {
    /// That of a type that serde knows.
    #[must_use]
    pub fn of<T: Serialize + DeserializeOwned + Send + Sync + 'static>() -> Self {
        Self {
            encode: |value| postcard::to_stdvec(value.downcast_ref::<T>()?).ok(),
            decode: |bytes| Some(Value::new(postcard::from_bytes::<T>(bytes).ok()?)),
            is_of_nothing: || TypeId::of::<T>() == TypeId::of::<()>(),
        }
    }

    /// Whether the values are all `()`.
    pub(crate) fn is_of_nothing(self) -> bool {
        (self.is_of_nothing)()
    }

    /// None if the value has another type, or refuses.
    pub(crate) fn encode(self, value: &dyn Any) -> Option<Vec<u8>> {
        (self.encode)(value)
    }

    pub(crate) fn decode(self, bytes: &[u8]) -> Option<Value> {
        (self.decode)(bytes)
    }
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Codec")
    }
}
