//! The knowledge of a node about the places of values in region trees.

use std::sync::Arc;

use maniple_analysis::distribution::{Blocks, Coherence, Layout, NodeStep};
use maniple_region::{FieldMask, LogicalRegion, Privilege, Shape, ShapeTable};

/// The known places of the values of a region tree.
pub(super) enum Knowledge {
    /// All, as all nodes know which node uses what.
    Whole(Box<Coherence>),
    /// As far as it is in the own block: the pieces of a partition are not known everywhere.
    InBlocks(Box<Blocks>),
}

impl Knowledge {
    /// Whether a state of before is still remembered: on all nodes or on none.
    pub(super) fn remembers(&self, state: u64) -> bool {
        match self {
            Self::Whole(coherence) => coherence.remembers(state),
            Self::InBlocks(blocks) => blocks.remembers(state),
        }
    }

    /// The layout with these areas, one a node.
    pub(super) fn layout(&mut self, areas: &[Shape], shapes: &ShapeTable) -> Arc<Layout> {
        match self {
            Self::Whole(coherence) => coherence.layout(areas.to_vec(), shapes),
            Self::InBlocks(blocks) => blocks.layout(areas, shapes),
        }
    }

    /// Every node writes the same values.
    pub(super) fn fill(&mut self, fields: &FieldMask, points: &Shape, shapes: &ShapeTable) {
        match self {
            Self::Whole(coherence) => coherence.fill(fields, points, shapes),
            Self::InBlocks(blocks) => blocks.fill(fields, points, shapes),
        }
    }

    /// The same has happened as when it came to this state before, which is [remembered](Self::remembers).
    pub(super) fn go_to(&mut self, state: u64) {
        match self {
            Self::Whole(coherence) => coherence.go_to(state),
            Self::InBlocks(blocks) => blocks.go_to(state),
        }
    }
}

/// A use of a region, each node its area.
pub(super) struct Use<'a> {
    pub(super) root: LogicalRegion,
    pub(super) fields: &'a FieldMask,
    pub(super) privilege: Privilege,
    pub(super) layout: &'a Arc<Layout>,
    pub(super) part: PartOfUse,
}

/// The part of a use for which steps are found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PartOfUse {
    /// The steps before contributions are made: see [`Coherence::settle_for`].
    Settling,
    /// All steps that come before the use.
    All,
    /// The use is the last one of copies: see [`Coherence::forget_copies`].
    Forgetting,
}

impl Use<'_> {
    /// The steps of nodes that come before the use.
    pub(super) fn steps(&self, coherence: &mut Coherence) -> Vec<NodeStep> {
        let Self { fields, layout, .. } = self;
        let shapes = shapes(&self.root);
        match self.privilege {
            privilege if self.part == PartOfUse::Settling => coherence.settle_for(fields, privilege, layout, shapes),
            _ if self.part == PartOfUse::Forgetting => coherence.forget_copies(fields, layout.union(), shapes),
            Privilege::Read => coherence.read(fields, layout, shapes),
            Privilege::ReadWrite => coherence.write(fields, layout, shapes),
            Privilege::Discard => {
                coherence.discard(fields, layout, shapes);
                Vec::new()
            }
            Privilege::Reduce(operator) => coherence.reduce(fields, operator, layout, shapes),
        }
    }
}

pub(super) fn shapes(region: &LogicalRegion) -> &ShapeTable {
    region.space().forest().shapes()
}
