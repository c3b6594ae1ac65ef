//! Readers give what writers wrote, and refuse files that are wrong.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

mod array_text;
mod entry_arrays;
mod entry_text;
mod matrix_market;
mod npy;
mod npz;
mod parts;
mod scipy;
mod tcs;
mod tns;
mod unpack;
mod whole;

use proptest::prelude::*;

/// Extents of an array with few elements.
fn shapes(dimensions: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(1..5_u64, dimensions)
}

/// Elements for an array of this shape.
fn elements<T: Arbitrary>(shape: &[u64]) -> impl Strategy<Value = Vec<T>> + use<T> {
    proptest::collection::vec(any::<T>(), shape.iter().product::<u64>() as usize)
}

/// A file with a few bytes changed, or cut off.
fn damaged(file: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (changes, 0..=file.len()).prop_map(move |(changes, length)| {
        let mut file = file.clone();
        changes.into_iter().for_each(|(place, byte)| *place.get_mut(&mut file) = byte);
        file.truncate(length.max(file.len() / 2));
        file
    })
}
