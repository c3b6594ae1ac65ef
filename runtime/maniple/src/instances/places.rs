//! The places of the data of a point that is mapped again and again.

use crossbeam_utils::atomic::AtomicCell;
use maniple_analysis::validity::Places;

/// Remembers the places of a point that is mapped again and again with the same instances.
///
/// No thread waits for them: a thread that finds that another has taken them finds them out anew, and those that are
/// put back last are remembered. That hardly happens: a thread that looks has locked the states that they are about.
#[derive(Default)]
#[allow(clippy::box_collection, reason = "a pointer is exchanged by one instruction")]
pub(crate) struct KnownPlaces(AtomicCell<Option<Box<Places>>>);

impl KnownPlaces {
    /// Takes out the places that are known.
    #[allow(clippy::box_collection, reason = "as above")]
    pub(crate) fn take(&self) -> Box<Places> {
        self.0.take().unwrap_or_default()
    }

    /// Puts places back, or new ones there.
    #[allow(clippy::box_collection, reason = "as above")]
    pub(crate) fn put_back(&self, places: Box<Places>) {
        self.0.store(Some(places));
    }
}
