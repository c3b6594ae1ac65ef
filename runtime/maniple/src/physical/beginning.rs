//! What a leaf task does with its data before its body: work that is too little for an operation before the task.

use std::sync::Arc;

use maniple_realm::profile::{LabelId, Profiler, Tag, common};
use maniple_realm::transfer::Transfer;
use smallvec::SmallVec;

use super::application::Application;
use super::instance::PhysicalInstance;
use crate::error::{Error, Result};

/// What a leaf task does itself when it begins.
#[derive(Default)]
pub(crate) struct Beginning {
    /// Buffers that it empties.
    pub(super) empties: SmallVec<[Arc<PhysicalInstance>; 2]>,
    /// Contributions that it applies, in this order, to values that nobody else uses.
    pub(super) applications: Vec<Application>,
}

impl Beginning {
    pub(super) fn is_empty(&self) -> bool {
        self.empties.is_empty() && self.applications.is_empty()
    }

    /// Does it, and records that in the profile.
    ///
    /// # Safety
    /// The task comes after all who used the buffers and the values before, and all who use them next come after the task.
    pub(crate) unsafe fn carry_out(&self, profiler: Option<&Profiler>) -> Result<()> {
        for buffer in &self.empties {
            // SAFETY: promised by the caller.
            unsafe { carry_out(buffer.emptying()?, common::FILL, profiler) }?;
        }
        for application in &self.applications {
            for transfer in application.transfers() {
                let transfer = transfer.map_err(|error| Error::of_transfer(&error))?;
                // SAFETY: promised by the caller; buffers hold the operator's contributions, and all values have been filled or written.
                unsafe { carry_out(&transfer, common::REDUCTION, profiler) }?;
            }
        }
        Ok(())
    }
}

/// Carries a transfer out and records that.
///
/// # Safety
/// As [`Transfer::execute`].
unsafe fn carry_out(transfer: &Transfer, label: LabelId, profiler: Option<&Profiler>) -> Result<()> {
    let start = profiler.map(Profiler::now_ns);
    // SAFETY: promised by the caller.
    let outcome = unsafe { transfer.execute() };
    if let (Some(profiler), Some(start)) = (profiler, start) {
        profiler.span(Tag::of(label), profiler.current(), start);
    }
    outcome.map_err(|error| Error::of_transfer(&error))
}
