//! Results on their way to other nodes.

use std::any::Any;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Value;

/// How values of one type become bytes, and bytes values. All nodes run the same program, so they agree on it.
#[derive(Clone, Copy)]
pub struct Codec {
    encode: fn(&dyn Any) -> Option<Vec<u8>>,
    decode: fn(&[u8]) -> Option<Value>,
}

impl Codec {
    /// That of a type that serde knows.
    #[must_use]
    pub fn of<T: Serialize + DeserializeOwned + Send + Sync + 'static>() -> Self {
        Self {
            encode: |value| postcard::to_stdvec(value.downcast_ref::<T>()?).ok(),
            decode: |bytes| Some(Box::new(postcard::from_bytes::<T>(bytes).ok()?)),
        }
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
