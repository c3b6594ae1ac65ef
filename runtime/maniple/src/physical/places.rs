//! Where in a region's state the data of an access is: found out once, for as long as no set changes its points.

use crossbeam_utils::atomic::AtomicCell;

use super::group::Touched;

/// The sets of one group of fields that an access touches in one instance.
pub(crate) struct Place {
    /// The [place](super::selection::Selection::place) of the access's selection.
    pub(crate) selection: (usize, usize),
    /// The instance's position in it.
    pub(crate) instance: usize,
    pub(crate) group: usize,
    /// [`FieldGroup::changes`](super::group::FieldGroup::changes) when the sets were looked up.
    pub(crate) changes: u64,
    pub(crate) touched: Touched,
}

/// The places of all accesses of one point, in the order of its selections; none of those that are not known.
pub(crate) type Places = Vec<Place>;

/// Remembers the places of a point that is mapped again and again with the same instances.
///
/// Nobody waits for them: who finds that another has taken them finds them out anew, of which the last to put them back is remembered. That hardly happens:
/// whoever looks has locked the states that they are about.
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
