//! The mapper that is used unless the user says otherwise.

use maniple_realm::machine::ProcessorId;

use crate::{Extent, Mapper, MappingContext, ReductionPlace, RequirementMapping, TaskInfo};

/// A mapper that is right on a laptop: index launches are dealt out in blocks over the processors, and data is kept in
/// one instance a region tree in the nearest memory, so that neighbours read each other's data where it is.
///
/// [`DefaultMapper::piecewise`] gives every piece of data instances of its own instead, as machines with several
/// memories want it; then neighbours' data is copied.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultMapper {
    piecewise: bool,
}

impl DefaultMapper {
    /// One instance a region tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One instance for each piece, and reductions into buffers.
    #[must_use]
    pub fn piecewise() -> Self {
        Self { piecewise: true }
    }
}

/// The trait's defaults, which must not know of any override.
struct Defaults;

impl Mapper for Defaults {}

impl Mapper for DefaultMapper {
    fn name(&self) -> &str {
        if self.piecewise { "piecewise" } else { "default" }
    }

    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        requirement: usize,
        processor: ProcessorId,
        variant: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let mut mapping = Defaults.map_requirement(task, requirement, processor, variant, context);
        if let (true, RequirementMapping::Instance(choices)) = (self.piecewise, &mut mapping) {
            choices.retain(|choice| choice.extent == Extent::Region);
            choices.iter_mut().for_each(|choice| {
                choice.reuse = crate::Reuse::Exact;
                choice.reduction = ReductionPlace::Buffer;
            });
        }
        mapping
    }
}
