//! The regions of a point's requirements.

use std::ops::Index;

use maniple_mapper::RequirementInfo;
use maniple_region::LogicalRegion;

use crate::instances::placement::PhysicalRegion;

/// The region of each requirement of one point, wherever it is kept: there is one copy, as references to it are counted
/// on all cores.
#[derive(Clone, Copy)]
pub(crate) enum Regions<'a> {
    /// Of a point that a mapper is asked about.
    Asked(&'a [RequirementInfo]),
    /// Of one that is mapped.
    Mapped(&'a [PhysicalRegion]),
}

impl Regions<'_> {
    pub(crate) fn get(&self, requirement: usize) -> Option<&LogicalRegion> {
        match self {
            Self::Asked(requirements) => Some(&requirements.get(requirement)?.region),
            Self::Mapped(regions) => Some(&regions.get(requirement)?.region),
        }
    }
}

impl Index<usize> for Regions<'_> {
    type Output = LogicalRegion;

    #[inline]
    fn index(&self, requirement: usize) -> &LogicalRegion {
        match self {
            Self::Asked(requirements) => &requirements[requirement].region,
            Self::Mapped(regions) => &regions[requirement].region,
        }
    }
}
