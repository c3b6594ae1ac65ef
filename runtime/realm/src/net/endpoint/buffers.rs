//! Memory for long payloads, used again: the system takes longer to give a process new memory than the process takes to
//! fill it.

use std::sync::Arc;

use bytes::Bytes;

use crate::locks::Mutex;
use crate::net::transport::{Lent, Loan};

/// Shorter buffers are cheap to make.
const LONG: usize = 1 << 20;

/// So many bytes at most are kept for later.
const KEPT: usize = 256 << 20;

/// Buffers that are not in use.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// The smallest buffer that is long enough, if it is not much longer: the holder of the bytes may keep it for long.
    /// Or a new and empty one.
    fn take(&self, length: usize) -> Vec<u8> {
        if length < LONG {
            return Vec::new();
        }
        let mut kept = self.0.lock();
        let fit = kept.iter().enumerate().filter(|(_, buffer)| (length..=2 * length).contains(&buffer.len()));
        let smallest = fit.min_by_key(|(_, buffer)| buffer.len()).map(|(place, _)| place);
        smallest.map_or_else(Vec::new, |place| kept.remove(place))
    }

    /// Keeps a buffer, in the place of others that were not used for longer, if need be.
    fn keep(&self, buffer: Vec<u8>) {
        if !(LONG..=KEPT).contains(&buffer.len()) {
            return;
        }
        let mut kept = self.0.lock();
        kept.push(buffer);
        while kept.iter().map(Vec::len).sum::<usize>() > KEPT {
            let oldest = kept.remove(0);
            drop(oldest);
        }
    }
}

/// Bytes in a buffer that is given back when its last handle is dropped.
pub(super) struct Buffer {
    /// The memory of the buffer. Bytes beyond `filled` are of an earlier use.
    bytes: Vec<u8>,
    filled: usize,
    home: Arc<Buffers>,
}

impl Buffer {
    /// Without bytes. Room for as many as are expected is there only if it was before.
    pub(super) fn expecting(length: usize, home: &Arc<Buffers>) -> Self {
        Self { bytes: home.take(length), filled: 0, home: Arc::clone(home) }
    }

    /// With so many bytes, whatever they are.
    pub(super) fn loan(length: usize, home: &Arc<Buffers>) -> Loan {
        let mut buffer = Self::expecting(length, home);
        if buffer.bytes.len() < length {
            buffer.bytes = vec![0; length];
        }
        buffer.filled = length;
        Loan::new(buffer)
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        let over = self.bytes.len().saturating_sub(self.filled).min(bytes.len());
        let (known, new) = bytes.split_at(over);
        self.bytes[self.filled..self.filled + over].copy_from_slice(known);
        self.bytes.extend_from_slice(new);
        self.filled += bytes.len();
    }

    pub(super) fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.filled]
    }
}

impl Lent for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.home.keep(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(buffers: &Buffers) -> Vec<usize> {
        buffers.0.lock().iter().map(Vec::len).collect()
    }

    #[test]
    fn bytes_come_out_as_they_went_in_whatever_the_buffer_held_before() {
        let buffers = Arc::new(Buffers::default());
        let mut loan = Buffer::loan(2 * LONG, &buffers);
        loan.bytes_mut().fill(7);
        drop(loan.freeze());
        let mut random = fastrand::Rng::with_seed(3);
        for length in [LONG, 2 * LONG, 2 * LONG + 1, 3 * LONG] {
            let expected: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            let mut buffer = Buffer::expecting(length, &buffers);
            expected.chunks(65_537).for_each(|part| buffer.append(part));
            assert_eq!(buffer.freeze(), expected);
        }
        let expected = [2 * LONG, 2 * LONG + 1, 3 * LONG];
        assert_eq!(lengths(&buffers), expected, "the first two fitted into what was there");
    }

    #[test]
    fn long_buffers_are_kept_up_to_a_bound_and_the_latest_stay() {
        let buffers = Arc::new(Buffers::default());
        drop(Buffer::loan(LONG - 1, &buffers));
        drop(Buffer::loan(KEPT + 1, &buffers));
        assert!(lengths(&buffers).is_empty());
        let (first, second) = (Buffer::loan(KEPT / 2, &buffers), Buffer::loan(KEPT / 2 - LONG, &buffers));
        let third = Buffer::loan(2 * LONG, &buffers);
        drop((first, second));
        drop(third);
        assert_eq!(lengths(&buffers), [KEPT / 2 - LONG, 2 * LONG]);
        drop(Buffer::loan(LONG, &buffers));
        assert_eq!(lengths(&buffers), [KEPT / 2 - LONG, 2 * LONG], "the smallest that fits was used");
    }

    #[test]
    fn a_buffer_is_used_for_what_is_about_as_long_and_the_others_stay_in_order() {
        let buffers = Arc::new(Buffers::default());
        drop([6, 9, 1, 4].map(|length| Buffer::loan(length * LONG, &buffers)));
        drop(buffers.take(6 * LONG));
        assert_eq!(lengths(&buffers), [9 * LONG, LONG, 4 * LONG], "the longest was kept first");
        assert!(buffers.take(LONG + 1).is_empty(), "four times as long would be kept as long as its bytes");
        assert_eq!(buffers.take(2 * LONG).len(), 4 * LONG);
    }
}
