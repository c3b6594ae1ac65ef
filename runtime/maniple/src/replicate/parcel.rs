//! What a parcel is called, and how that goes with it.

/// Which parcel: what the nodes that know of it call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ParcelName {
    /// The operation of the program for which it is sent.
    pub(crate) operation: u64,
    /// The exchange before that operation.
    pub(crate) exchange: u32,
    /// Its number among those of the exchange from the same node to the same other one.
    pub(crate) number: u32,
}

/// What comes with a parcel: its name, and whether it brings values. Of fixed length, as there are more of them than of all other messages.
pub(super) type ParcelHeader = [u8; 17];

impl ParcelName {
    /// The header, and whether the parcel brings values.
    pub(super) fn encode(self, is_good: bool) -> ParcelHeader {
        let Self { operation, exchange, number } = self;
        let mut header = [0; 17];
        header[..8].copy_from_slice(&operation.to_le_bytes());
        header[8..12].copy_from_slice(&exchange.to_le_bytes());
        header[12..16].copy_from_slice(&number.to_le_bytes());
        header[16] = u8::from(is_good);
        header
    }

    /// What a header says, if it is one.
    pub(super) fn decode(header: &[u8]) -> Option<(Self, bool)> {
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
