//! Reassembly of payloads that are too long for one message.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use maniple_realm::locks::Mutex;
use rustc_hash::FxHashMap;

use crate::names::Rank;

/// The fragments that have arrived of payloads that are not complete, by sender. Between the fragments of one payload
/// and its message nothing else of the sender arrives.
#[derive(Default)]
pub(crate) struct Fragments {
    begun: Mutex<FxHashMap<Rank, Vec<Bytes>>>,
    /// How many payloads there are.
    count: AtomicUsize,
}

impl Fragments {
    pub(crate) fn add(&self, from: Rank, fragment: Bytes) {
        let mut begun = self.begun.lock();
        begun.entry(from).or_default().push(fragment);
        self.count.store(begun.len(), Ordering::Relaxed);
    }

    /// The payload of a message, with the fragments that came before it.
    pub(crate) fn complete(&self, from: Rank, last: Bytes) -> Bytes {
        // Relaxed: messages of a node are handled one after the other, and fragments of others are not waited for here.
        if self.count.load(Ordering::Relaxed) == 0 {
            return last;
        }
        let mut begun = self.begun.lock();
        let fragments = begun.remove(&from);
        self.count.store(begun.len(), Ordering::Relaxed);
        drop(begun);
        match fragments {
            None => last,
            Some(mut fragments) => {
                fragments.push(last);
                fragments.concat().into()
            }
        }
    }

    /// How many payloads are not complete.
    pub(crate) fn open(&self) -> usize {
        self.begun.lock().len()
    }
}
