//! Names of nodes, parcels and collectives.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The number of a node in its job, from 0.
pub type Rank = usize;

/// The name of a parcel: a message that the receiving node awaits by name. All nodes count operations alike, so that
/// both sides know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParcelName {
    /// The operation of the program for which it is sent.
    pub operation: u64,
    /// The exchange of that operation. [`Rounds`](crate::Rounds) use those from `1 << 31` on.
    pub exchange: u32,
    /// Its number among those of the exchange from the same node to the same other one.
    pub number: u32,
}

/// The header of a parcel: its name, and whether it brings values. Of fixed length, as there are more parcels than all
/// other messages.
pub(crate) type ParcelHeader = [u8; 17];

impl ParcelName {
    /// The header, and whether the parcel brings values.
    pub(crate) fn encode(self, is_good: bool) -> ParcelHeader {
        let Self { operation, exchange, number } = self;
        let mut header = [0; 17];
        header[..8].copy_from_slice(&operation.to_le_bytes());
        header[8..12].copy_from_slice(&exchange.to_le_bytes());
        header[12..16].copy_from_slice(&number.to_le_bytes());
        header[16] = u8::from(is_good);
        header
    }

    /// Decodes the name of a parcel, and whether it brings values. `None` if this is no header.
    pub(crate) fn decode(header: &[u8]) -> Option<(Self, bool)> {
        let header: &ParcelHeader = header.try_into().ok()?;
        let (&operation, rest) = header.split_first_chunk()?;
        let (&exchange, rest) = rest.split_first_chunk()?;
        let (&number, rest) = rest.split_first_chunk()?;
        let is_good = match rest {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let (operation, exchange, number) =
            (u64::from_le_bytes(operation), u32::from_le_bytes(exchange), u32::from_le_bytes(number));
        Some((Self { operation, exchange, number }, is_good))
    }
}

/// The name of a collective, on all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CollectiveName {
    /// The operation of the program, or the number of a comparison.
    pub operation: u64,
    /// Which collective of the operation. 0 is the program's own; [`Rounds`](crate::Rounds) count from 1; the last two
    /// are those of [`DeterminismCheck`](crate::DeterminismCheck).
    pub part: u32,
}

/// The part of comparisons of digests. No thread waits for these.
pub(crate) const COMPARISON: u32 = u32::MAX;

/// The part in which nodes that differ show what they have done.
pub(crate) const EVIDENCE: u32 = COMPARISON - 1;

/// The part of the end of a program. Nodes that differ may have come to it with the number at which others exchange
/// something else.
pub(crate) const END: u32 = EVIDENCE - 1;

/// The name of an operation of the program, for messages to people.
#[derive(Clone)]
pub enum OperationName {
    /// By this word.
    Fixed(&'static str),
    /// By what has a name of its own, such as a task.
    Of(Arc<dyn Named>),
}

/// Something that has a name.
pub trait Named: Send + Sync {
    /// The name.
    fn name(&self) -> &str;
}

impl OperationName {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Fixed(name) => name,
            Self::Of(named) => named.name(),
        }
    }
}

impl From<&'static str> for OperationName {
    fn from(name: &'static str) -> Self {
        Self::Fixed(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_parcel_is_read_as_it_was_written_and_no_other() {
        let name = ParcelName { operation: u64::MAX - 1, exchange: 7, number: u32::MAX };
        for is_good in [false, true] {
            let header = name.encode(is_good);
            assert_eq!(ParcelName::decode(&header), Some((name, is_good)));
            assert_eq!(ParcelName::decode(&header[1..]), None);
            assert_eq!(ParcelName::decode(&[&header[..16], &[2]].concat()), None);
        }
    }
}
