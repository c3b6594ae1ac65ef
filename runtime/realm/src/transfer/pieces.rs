//! The properties of transfers that are known before they are executed: names and amounts for a profile, and pieces for
//! several workers.

use maniple_space::{for_dimension, partition};

use super::{Action, Transfer};
use crate::machine::MemoryId;
use crate::profile::{LabelId, common};

/// A transfer is cut for several workers if each gets at least so many bytes: below, waking a worker costs more than it
/// gains.
pub(crate) const BYTES_WORTH_A_WORKER: u64 = 1 << 20;

/// The memories read and written, and the bytes written, by transfers that go together.
#[cold]
#[must_use]
pub fn channel(transfers: &[Transfer]) -> (u32, u32, u64) {
    let (from, to) = transfers.first().map_or((MemoryId(0), MemoryId(0)), Transfer::channel);
    (from.0, to.0, transfers.iter().map(Transfer::bytes).sum())
}

impl Transfer {
    /// The label of the transfer in a profile.
    #[must_use]
    pub fn label(&self) -> LabelId {
        match &self.action {
            Action::Copy { .. } => common::COPY,
            Action::Fill { .. } => common::FILL,
            Action::Reduce { .. } => common::REDUCTION,
            Action::Indirect(_) => common::INDIRECT,
        }
    }

    /// The memories read and written; for a fill, the one written twice.
    fn channel(&self) -> (MemoryId, MemoryId) {
        match &self.action {
            Action::Copy { from, to } | Action::Reduce { from, to, .. } => {
                (from.instance.memory(), to.instance.memory())
            }
            Action::Fill { to, .. } => (to.instance.memory(), to.instance.memory()),
            Action::Indirect(indirection) => indirection.channel(),
        }
    }

    /// Pieces of equal volume, at most so many, each worth a worker; `None` if that is one, or if the order of points
    /// matters.
    pub(crate) fn cut(&self, workers: usize) -> Option<Vec<Self>> {
        let pieces = (self.bytes() / BYTES_WORTH_A_WORKER).min(workers as u64) as usize;
        let ordered = matches!(&self.action, Action::Indirect(indirection) if indirection.is_ordered());
        if pieces < 2 || ordered {
            return None;
        }
        for_dimension!(&self.space, |space| {
            let spaces = partition::equal(space, pieces).ok()?.into_iter();
            Some(spaces.map(|space| Self { space: space.into(), action: self.action.clone() }).collect())
        })
    }
}
