//! The file: a magic, a version, and chunks, each with its length and checksum.
//!
//! ```text
//! file   = "MANIPROF" version:u32 frame*
//! frame  = bytes:u32 crc32:u32 chunk                 (little endian; the checksum is the chunk's)
//! chunk  = Header | Names | Records | End            (postcard)
//! ```

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::header::{Header, Thread};
use super::label::Label;
use super::record::{Graph, Record};

pub(super) const MAGIC: &[u8; 8] = b"MANIPROF";

/// Changes whenever old readers would misread.
pub(super) const VERSION: u32 = 3;

/// No chunk is larger; a length beyond is damage.
pub(super) const LARGEST_CHUNK: u32 = 1 << 28;

/// A part of a file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Chunk<'a> {
    /// The first.
    Header(Header),
    /// Names that later chunks use. They count on from those before.
    Names(RecordNames),
    /// Some of a thread's records, in the order in which it made them.
    Records {
        /// The thread's number.
        thread: u32,
        /// The records.
        records: Cow<'a, [Record]>,
    },
    /// The last: the profile was ended, and nothing is missing.
    End,
}

/// The names that numbers in records stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordNames {
    pub(super) labels: Vec<Label>,
    pub(super) threads: Vec<Thread>,
    pub(super) graphs: Vec<Graph>,
}

impl RecordNames {
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.threads.is_empty() && self.graphs.is_empty()
    }
}

const FRAME_BYTES: usize = 8;

/// A chunk, framed.
pub(super) fn framed(chunk: &Chunk<'_>) -> Vec<u8> {
    let bytes = postcard::to_extend(chunk, vec![0; FRAME_BYTES]);
    let mut bytes = bytes.expect("chunks are plain values, which postcard can write");
    put_frame(&mut bytes);
    bytes
}

/// A record is a tag and at most five numbers of 64 bits, each of which takes at most ten bytes; the chunk's own
/// numbers take less than one.
const LONGEST_RECORD: usize = 1 + 5 * 10;

/// A chunk of records, framed, in memory that is used again and again: this is where the time of writing goes.
pub(super) fn frame_records<'a>(thread: u32, records: &[Record], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.resize(scratch.len().max(FRAME_BYTES + (records.len() + 1) * LONGEST_RECORD), 0);
    let chunk = Chunk::Records { thread, records: records.into() };
    let written =
        postcard::to_slice(&chunk, &mut scratch[FRAME_BYTES..]).expect("there is room for the longest records");
    let length = written.len();
    let framed = &mut scratch[..FRAME_BYTES + length];
    put_frame(framed);
    framed
}

/// Fills the frame in, at the beginning of a chunk's bytes.
fn put_frame(bytes: &mut [u8]) {
    let (frame, chunk) = bytes.split_at_mut(FRAME_BYTES);
    frame[..4].copy_from_slice(&(chunk.len() as u32).to_le_bytes());
    frame[4..].copy_from_slice(&crc32fast::hash(chunk).to_le_bytes());
}

/// A frame's length and checksum.
pub(super) fn frame(bytes: [u8; FRAME_BYTES]) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = bytes;
    (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]))
}

/// The chunk in a frame's bytes; nothing if they are none.
pub(super) fn decode(bytes: &[u8], checksum: u32) -> Option<Chunk<'static>> {
    if crc32fast::hash(bytes) != checksum {
        return None;
    }
    let (chunk, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(chunk)
}
