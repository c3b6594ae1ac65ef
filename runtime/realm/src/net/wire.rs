//! How frames look on a wire.
//!
//! A frame begins with 12 bytes (kind, flags, handler, bytes of the body, bytes of the head), then come up to four
//! words of 8 bytes, head, body; all little-endian. Nothing is believed about lengths: a decoder refuses what is beyond
//! the bounds before it makes room for anything.

use std::ops::Range;

use smallvec::SmallVec;

use super::frame::{Header, MAX_BODY, MAX_HEADER, Outcome, Violation};
use super::message::HandlerId;

/// The bytes of a frame before its words.
pub(crate) const PREFIX: usize = 12;

/// The most bytes of prefix and words.
pub(crate) const MAX_PREFIX: usize = PREFIX + 4 * 8;

impl Violation {
    fn field(kind: u8, field: &'static str, found: u64) -> Self {
        Self::BadField { kind, field, found }
    }
}

const COUNTED: u8 = 1;
const ASK: u8 = 2;
const NOTIFY: u8 = 1;

/// A frame's header with its place on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoded {
    bytes: [u8; MAX_PREFIX],
    length: usize,
}

impl Encoded {
    /// Its bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The decoded beginning of a frame, before head and body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The header of the frame.
    pub header: Header,
    /// The range of its head, counted from the frame's first byte.
    pub head: Range<usize>,
    /// The range of its body, counted likewise.
    pub body: Range<usize>,
}

impl Header {
    /// Kind, flags, handler and words.
    fn fields(&self) -> (u8, u8, u16, SmallVec<[u64; 4]>) {
        let words = SmallVec::from_slice;
        match *self {
            Self::Message { handler, payload, counted, ask } => {
                (1, (u8::from(counted) * COUNTED) | (u8::from(ask) * ASK), handler.0, words(&[payload]))
            }
            Self::Part => (2, 0, 0, words(&[])),
            Self::Credit { bytes } => (3, 0, 0, words(&[bytes])),
            Self::PutChunk { transfer, segment, offset } => (4, 0, 0, words(&[transfer, segment, offset])),
            Self::PutEnd { transfer, notify } => {
                let handler = notify.map_or(0, |handler| handler.0);
                (5, u8::from(notify.is_some()) * NOTIFY, handler, words(&[transfer]))
            }
            Self::Ended { transfer, outcome } => (6, outcome as u8, 0, words(&[transfer])),
            Self::GetAsk { transfer, segment, offset, length } => {
                (7, 0, 0, words(&[transfer, segment, offset, length]))
            }
            Self::GetChunk { transfer, offset } => (8, 0, 0, words(&[transfer, offset])),
            Self::Barrier { generation, round } => (9, 0, 0, words(&[generation, u64::from(round)])),
            Self::Probe { wave } => (10, 0, 0, words(&[wave])),
            Self::Report { wave, sent, handled, activations } => (11, 0, 0, words(&[wave, sent, handled, activations])),
            Self::Quiet { wave } => (12, 0, 0, words(&[wave])),
            Self::Heartbeat => (13, 0, 0, words(&[])),
            Self::Goodbye => (14, 0, 0, words(&[])),
            Self::Abort => (15, 0, 0, words(&[])),
            Self::Offer => (16, 0, 0, words(&[])),
            Self::Switch => (17, 0, 0, words(&[])),
            Self::Decline => (18, 0, 0, words(&[])),
            Self::Bell => (19, 0, 0, words(&[])),
            Self::Lent { handler, counted, ask, block, length } => {
                let flags = (u8::from(counted) * COUNTED) | (u8::from(ask) * ASK);
                (20, flags, handler.0, words(&[block, length]))
            }
        }
    }

    /// Encodes the beginning of a frame, before a head and a body of these lengths.
    #[must_use]
    pub fn encode(&self, head: usize, body: usize) -> Encoded {
        debug_assert!(head <= MAX_HEADER && body <= MAX_BODY);
        let (kind, flags, handler, words) = self.fields();
        let mut bytes = [0; MAX_PREFIX];
        bytes[0] = kind;
        bytes[1] = flags;
        bytes[2..4].copy_from_slice(&handler.to_le_bytes());
        bytes[4..8].copy_from_slice(&(body as u32).to_le_bytes());
        bytes[8..12].copy_from_slice(&(head as u32).to_le_bytes());
        for (place, word) in bytes[PREFIX..].chunks_exact_mut(8).zip(&words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Encoded { bytes, length: PREFIX + 8 * words.len() }
    }

    /// Reads what stands before head and body; `None` if more bytes are needed for that.
    ///
    /// # Errors
    ///
    /// If it is nothing that a node sends.
    pub fn decode(bytes: &[u8]) -> Result<Option<Decoded>, Violation> {
        let Some(prefix) = bytes.first_chunk::<PREFIX>() else { return Ok(None) };
        let [kind, flags, h0, h1, b0, b1, b2, b3, n0, n1, n2, n3] = *prefix;
        let (handler, body) = (u16::from_le_bytes([h0, h1]), u32::from_le_bytes([b0, b1, b2, b3]) as usize);
        let head = u32::from_le_bytes([n0, n1, n2, n3]) as usize;
        let words = match kind {
            2 | 13..=19 => 0,
            1 | 3 | 5 | 6 | 10 | 12 => 1,
            8 | 9 | 20 => 2,
            4 => 3,
            7 | 11 => 4,
            _ => return Err(Violation::UnknownKind(kind)),
        };
        if head > MAX_HEADER {
            return Err(Violation::TooLong { part: "head", found: head as u64, limit: MAX_HEADER as u64 });
        }
        if body > MAX_BODY {
            return Err(Violation::TooLong { part: "body", found: body as u64, limit: MAX_BODY as u64 });
        }
        let start = PREFIX + 8 * words;
        let Some(rest) = bytes.get(PREFIX..start) else { return Ok(None) };
        let mut word = [0; 4];
        for (value, bytes) in word.iter_mut().zip(rest.as_chunks().0) {
            *value = u64::from_le_bytes(*bytes);
        }
        let header = Self::from_fields(kind, flags, HandlerId(handler), word)?;
        let has_head =
            matches!(header, Self::Message { .. } | Self::Lent { .. } | Self::PutEnd { notify: Some(_), .. });
        if head > 0 && !has_head {
            return Err(Violation::field(kind, "head's length", head as u64));
        }
        let has_body =
            header.is_placed() || matches!(header, Self::Message { .. } | Self::Part | Self::Abort | Self::Offer);
        if body > 0 && !has_body {
            return Err(Violation::field(kind, "body's length", body as u64));
        }
        Ok(Some(Decoded { header, head: start..start + head, body: start + head..start + head + body }))
    }

    fn from_fields(kind: u8, flags: u8, handler: HandlerId, word: [u64; 4]) -> Result<Self, Violation> {
        let [first, second, third, fourth] = word;
        let allowed = match kind {
            1 | 20 => COUNTED | ASK,
            5 => NOTIFY,
            6 => 3,
            _ => 0,
        };
        if flags & !allowed != 0 {
            return Err(Violation::field(kind, "flags", u64::from(flags)));
        }
        let has_handler = matches!(kind, 1 | 20) || (kind == 5 && flags & NOTIFY != 0);
        if handler.0 != 0 && !has_handler {
            return Err(Violation::field(kind, "handler", u64::from(handler.0)));
        }
        Ok(match kind {
            1 => Self::Message { handler, payload: first, counted: flags & COUNTED != 0, ask: flags & ASK != 0 },
            2 => Self::Part,
            3 => Self::Credit { bytes: first },
            4 => Self::PutChunk { transfer: first, segment: second, offset: third },
            5 => Self::PutEnd { transfer: first, notify: has_handler.then_some(handler) },
            6 => Self::Ended { transfer: first, outcome: outcome(kind, flags)? },
            7 => Self::GetAsk { transfer: first, segment: second, offset: third, length: fourth },
            8 => Self::GetChunk { transfer: first, offset: second },
            9 => {
                let round = u32::try_from(second).map_err(|_| Violation::field(kind, "round", second))?;
                Self::Barrier { generation: first, round }
            }
            10 => Self::Probe { wave: first },
            11 => Self::Report { wave: first, sent: second, handled: third, activations: fourth },
            12 => Self::Quiet { wave: first },
            13 => Self::Heartbeat,
            14 => Self::Goodbye,
            15 => Self::Abort,
            16 => Self::Offer,
            17 => Self::Switch,
            18 => Self::Decline,
            19 => Self::Bell,
            20 => Self::Lent {
                handler,
                counted: flags & COUNTED != 0,
                ask: flags & ASK != 0,
                block: first,
                length: second,
            },
            _ => return Err(Violation::UnknownKind(kind)),
        })
    }
}

fn outcome(kind: u8, flags: u8) -> Result<Outcome, Violation> {
    match flags {
        0 => Ok(Outcome::Done),
        1 => Ok(Outcome::NoSegment),
        2 => Ok(Outcome::OutOfRange),
        other => Err(Violation::field(kind, "outcome", u64::from(other))),
    }
}

/// As much of a text as so many bytes hold.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers() -> impl Strategy<Value = Header> {
        let handler = any::<u16>().prop_map(HandlerId);
        let outcome = prop_oneof![Just(Outcome::Done), Just(Outcome::NoSegment), Just(Outcome::OutOfRange)];
        let numbers = any::<(u64, u64, u64, u64)>();
        prop_oneof![
            (handler.clone(), any::<(u64, bool, bool)>())
                .prop_map(|(handler, (payload, counted, ask))| Header::Message { handler, payload, counted, ask }),
            (handler.clone(), any::<(u64, u64, bool, bool)>()).prop_map(|(handler, (block, length, counted, ask))| {
                Header::Lent { handler, counted, ask, block, length }
            }),
            (any::<u64>(), proptest::option::of(handler))
                .prop_map(|(transfer, notify)| Header::PutEnd { transfer, notify }),
            (any::<u64>(), outcome).prop_map(|(transfer, outcome)| Header::Ended { transfer, outcome }),
            (any::<u64>(), any::<u32>()).prop_map(|(generation, round)| Header::Barrier { generation, round }),
            (0..10_u8, numbers).prop_map(|(kind, (a, b, c, d))| match kind {
                0 => Header::Part,
                1 => Header::Credit { bytes: a },
                2 => Header::PutChunk { transfer: a, segment: b, offset: c },
                3 => Header::GetAsk { transfer: a, segment: b, offset: c, length: d },
                4 => Header::GetChunk { transfer: a, offset: b },
                5 => Header::Probe { wave: a },
                6 => Header::Report { wave: a, sent: b, handled: c, activations: d },
                7 => Header::Quiet { wave: a },
                8 => Header::Heartbeat,
                _ => Header::Goodbye,
            }),
            Just(Header::Abort),
        ]
    }

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(header in headers()) {
            let encoded = header.encode(0, 0);
            let decoded = Header::decode(encoded.as_slice()).unwrap().unwrap();
            prop_assert_eq!(decoded.header, header);
            prop_assert_eq!(decoded.body, encoded.as_slice().len()..encoded.as_slice().len());
        }

        #[test]
        fn a_part_of_a_header_asks_for_more(header in headers(), cut in 0..MAX_PREFIX) {
            let encoded = header.encode(0, 0);
            let part = &encoded.as_slice()[..cut.min(encoded.length - 1)];
            prop_assert_eq!(Header::decode(part).unwrap(), None);
        }

        #[test]
        fn random_bytes_are_refused_or_are_the_encoding_of_what_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some(decoded)) = Header::decode(&bytes) {
                let encoded = decoded.header.encode(decoded.head.len(), decoded.body.len());
                prop_assert_eq!(encoded.as_slice(), &bytes[..decoded.head.start]);
            }
        }
    }

    #[test]
    fn lengths_beyond_the_bounds_are_refused_before_anything_else_is_read() {
        let mut prefix = *Header::Part.encode(0, 0).bytes.first_chunk::<PREFIX>().unwrap();
        prefix[4..8].copy_from_slice(&(MAX_BODY as u32 + 1).to_le_bytes());
        assert!(matches!(Header::decode(&prefix), Err(Violation::TooLong { part: "body", .. })));
        let mut prefix = *Header::Part.encode(0, 0).bytes.first_chunk::<PREFIX>().unwrap();
        prefix[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(Header::decode(&prefix), Err(Violation::TooLong { part: "head", .. })));
    }

    #[test]
    fn a_frame_that_has_no_body_is_refused_with_one() {
        let encoded = Header::Heartbeat.encode(0, 1);
        assert!(matches!(Header::decode(encoded.as_slice()), Err(Violation::BadField { field: "body's length", .. })));
    }
}
