//! Where in a region's state the data of an access is: found out once, for as long as no set changes its points.

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::group::Touched;

/// The places of an access that is made again and again with the same instances. A copy starts without any.
#[derive(Default)]
pub(crate) struct Places(Mutex<SmallVec<[Place; 2]>>);

/// The sets of one group of fields that an access touches in one instance.
pub(crate) struct Place {
    /// The instance's position among those of the access.
    pub(crate) instance: usize,
    pub(crate) group: usize,
    /// [`FieldGroup::changes`](super::group::FieldGroup::changes) when the sets were looked up.
    pub(crate) changes: u64,
    pub(crate) touched: Touched,
}

impl Places {
    /// The places that are known. Never waits for long: whoever looks has locked the state that they are about.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SmallVec<[Place; 2]>> {
        self.0.lock()
    }
}

impl Clone for Places {
    fn clone(&self) -> Self {
        Self::default()
    }
}
