//! How values become bytes.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use smallvec::SmallVec;

/// An encoded header. All are short, so that they need no memory of their own.
pub(crate) type Head = SmallVec<[u8; 32]>;

/// The bytes of a value.
///
/// # Panics
/// If the value's type refuses to be serialised; those that derive `Serialize` do not.
#[must_use]
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("plain data has an encoding, and memory for it is there")
}

pub(crate) fn encode_head<T: Serialize>(value: &T) -> Head {
    let mut place = [0; 32];
    // Writing byte by byte into a vector that grows takes longer than all the rest.
    match postcard::to_slice(value, &mut place) {
        Ok(head) => Head::from_slice(head),
        Err(_) => {
            postcard::to_extend(value, Head::new()).expect("plain data has an encoding, and memory for it is there")
        }
    }
}

/// The value that [`encode`] was given; none if these are not the bytes of one.
#[must_use]
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

/// Bytes with their length before them, so that several can follow each other.
pub(crate) fn frame(bytes: &[u8]) -> Bytes {
    [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat().into()
}

/// Returns the bytes that [`frame`] was given, one frame after the other.
pub(crate) fn frames(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        let (frame, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        bytes = rest;
        Some(frame)
    })
}

/// Parts that are kept apart, one after the other.
pub(crate) fn concatenate(parts: Vec<Bytes>) -> Bytes {
    match <[Bytes; 1]>::try_from(parts) {
        Ok([one]) => one,
        Err(parts) => parts.concat().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_each_other_and_broken_ones_end_the_list() {
        let all = concatenate(vec![frame(b"one"), frame(b""), frame(b"three")]);
        assert_eq!(frames(&all).collect::<Vec<_>>(), [&b"one"[..], b"", b"three"]);
        assert_eq!(frames(&all[..all.len() - 1]).count(), 2);
        assert_eq!(frames(&[0xff; 12]).count(), 0, "longer than there are bytes");
    }
}
