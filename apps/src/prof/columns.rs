//! Numbers packed for the page: columns of variable-length integers, in one string.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

/// Columns of numbers. Each number is written as LEB128, the difference to the one before it in zigzag form: neighbours
/// are alike, so most take one or two bytes. `page/data.js` reads them.
#[derive(Debug, Default)]
pub struct Columns {
    directory: Vec<Column>,
    bytes: Vec<u8>,
}

#[derive(Debug, Serialize)]
struct Column {
    name: &'static str,
    count: usize,
}

/// Columns as they are put in a page.
#[derive(Debug, Serialize)]
pub struct Packed {
    directory: Vec<Column>,
    bytes: String,
}

impl Columns {
    /// Adds a column. Numbers of 2^53 or more lose their last digits when the page reads them.
    pub fn add(&mut self, name: &'static str, numbers: impl IntoIterator<Item = u64>) {
        let (mut count, mut before) = (0, 0u64);
        for number in numbers {
            let difference = number.wrapping_sub(before) as i64;
            self.push(((difference << 1) ^ (difference >> 63)) as u64);
            before = number;
            count += 1;
        }
        self.directory.push(Column { name, count });
    }

    fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// As a string.
    #[must_use]
    pub fn pack(self) -> Packed {
        Packed { directory: self.directory, bytes: BASE64_STANDARD.encode(self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Unpacks columns as the page does.
    fn unpack(packed: &Packed) -> Vec<(&'static str, Vec<u64>)> {
        let bytes = BASE64_STANDARD.decode(&packed.bytes).expect("it was encoded");
        let mut bytes = bytes.into_iter();
        let mut number = || {
            let (mut number, mut shift) = (0u64, 0);
            loop {
                let byte = bytes.next().expect("numbers end");
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    return (number >> 1) as i64 ^ -((number & 1) as i64);
                }
            }
        };
        let mut column = |&Column { name, count }: &Column| {
            let mut before = 0u64;
            let numbers = (0..count).map(|_| {
                before = before.wrapping_add(number() as u64);
                before
            });
            (name, numbers.collect())
        };
        packed.directory.iter().map(&mut column).collect()
    }

    proptest! {
        #[test]
        fn columns_are_unpacked_as_they_were(a in prop::collection::vec(any::<u64>(), 0..50), b in prop::collection::vec(0..1000u64, 0..50)) {
            let mut columns = Columns::default();
            columns.add("a", a.iter().copied());
            columns.add("b", b.iter().copied());
            prop_assert_eq!(unpack(&columns.pack()), vec![("a", a), ("b", b)]);
        }
    }
}
