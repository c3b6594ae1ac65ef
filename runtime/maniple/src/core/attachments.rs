//! Claims on the data to which tasks have attached memory, also of tasks that ended without detaching it.

use std::sync::{Arc, Weak};

use maniple_realm::locks::Mutex;
use maniple_region::{FieldId, LogicalRegion, Shape};

/// The data that memory is attached to, for as long as its handle is there.
pub(crate) struct Claim {
    pub(crate) region: LogicalRegion,
    pub(crate) field: FieldId,
    pub(crate) points: Shape,
    /// By what its task is known.
    pub(crate) owner: Weak<Claims>,
    /// Its task has made the region, which is its launcher's when it has ended.
    pub(crate) is_of_made: bool,
}

impl Claim {
    pub(crate) fn field_name(&self) -> String {
        self.region.fields().name_of(self.field)
    }
}

/// The claims of one task, or the claims that tasks have left behind when they ended, in the order in which they were
/// made.
#[derive(Default)]
pub(crate) struct Claims(Mutex<Vec<Weak<Claim>>>);

impl Claims {
    pub(crate) fn add(&self, claim: &Arc<Claim>) {
        let mut claims = self.0.lock();
        if claims.len() >= FEW && claims.len().is_power_of_two() {
            claims.retain(|claim| claim.strong_count() > 0);
        }
        claims.push(Arc::downgrade(claim));
    }

    /// The claims whose handles are still there.
    pub(crate) fn all(&self) -> Vec<Arc<Claim>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Takes them out.
    pub(crate) fn take(&self) -> Vec<Arc<Claim>> {
        std::mem::take(&mut *self.0.lock()).iter().filter_map(Weak::upgrade).collect()
    }
}

/// So few are not swept.
const FEW: usize = 16;
