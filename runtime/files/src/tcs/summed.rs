//! Checksums of parts of an array, joined to that of the whole.

use crc32fast::Hasher;

use super::check::check_sum;
use super::header::TcsHeader;
use super::layout::TcsPart;
use crate::error::ReadError;

/// The summary of a part of an array, from which the checksum of the whole array is found: the CRC-32 of the part's
/// bytes, and their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summed {
    /// The CRC-32.
    pub checksum: u32,
    /// The number of bytes.
    pub bytes: u64,
}

impl Summed {
    /// The checksum of parts that follow each other.
    pub fn join(parts: impl IntoIterator<Item = Self>) -> u32 {
        let mut all = Hasher::new();
        parts.into_iter().for_each(|part| all.combine(&Hasher::new_with_initial_len(part.checksum, part.bytes)));
        all.finalize()
    }

    /// Refuses an array whose parts, one after the other, have another checksum than the header says.
    ///
    /// # Errors
    /// [`Problem::Malformed`](crate::Problem::Malformed), as of [`check`](super::check()).
    pub fn check(header: &TcsHeader, part: TcsPart, parts: impl IntoIterator<Item = Self>) -> Result<(), ReadError> {
        check_sum(header, part, Self::join(parts))
    }
}

/// Bytes that are summed one after the other.
#[derive(Default)]
pub(super) struct Summing {
    hasher: Hasher,
    bytes: u64,
}

impl Summing {
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(super) fn finish(self) -> Summed {
        Summed { checksum: self.hasher.finalize(), bytes: self.bytes }
    }
}
