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
pub(super) const VERSION: u32 = 1;

/// No chunk is larger; a length beyond is damage.
pub(super) const LARGEST_CHUNK: u32 = 1 << 28;

/// A part of a file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Chunk<'a> {
    /// The first.
    Header(Header),
    /// Names that later chunks use. They count on from those before.
    Names(Names),
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

/// What numbers in records stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Names {
    pub(super) labels: Vec<Label>,
    pub(super) threads: Vec<Thread>,
    pub(super) graphs: Vec<Graph>,
}

impl Names {
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.threads.is_empty() && self.graphs.is_empty()
    }
}

const FRAME_BYTES: usize = 8;

/// Appends a chunk to `bytes`, framed.
pub(super) fn append(chunk: &Chunk<'_>, bytes: Vec<u8>) -> Vec<u8> {
    let start = bytes.len();
    let mut bytes = bytes;
    bytes.extend_from_slice(&[0; FRAME_BYTES]);
    let mut bytes = postcard::to_extend(chunk, bytes).expect("records are plain values, which postcard can write");
    let (length, checksum) = (bytes.len() - start - FRAME_BYTES, crc32fast::hash(&bytes[start + FRAME_BYTES..]));
    bytes[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
    bytes[start + 4..start + FRAME_BYTES].copy_from_slice(&checksum.to_le_bytes());
    bytes
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
