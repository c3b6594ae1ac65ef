//! Where in a region's state the data of an access is: found out once, for as long as no set changes its points.

use parking_lot::{Mutex, MutexGuard};

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
#[derive(Default)]
pub(crate) struct KnownPlaces(Mutex<Places>);

impl KnownPlaces {
    /// The places that are known. Never waits for long: whoever looks has locked the states that they are about.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock()
    }
}
