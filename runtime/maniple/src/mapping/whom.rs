//! Which mapper is asked.

use maniple_realm::machine::ProcessorId;

use crate::operation::lifecycle::MapperNumber;

/// The mapper to ask about operations that a task on a processor launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whom {
    pub(crate) processor: ProcessorId,
    pub(crate) mapper: MapperNumber,
}

impl From<ProcessorId> for Whom {
    fn from(processor: ProcessorId) -> Self {
        Self { processor, mapper: MapperNumber::USUAL }
    }
}
