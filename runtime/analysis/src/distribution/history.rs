//! The history of a field: what happened to its values last, on which nodes.

use std::sync::Arc;

use maniple_region::{FieldMask, OperatorId, Shape, ShapeTable};

use super::layout::Layout;

/// The histories of all fields. Fields that were used alike share one.
pub(super) type Histories = Vec<(FieldMask, History)>;

/// The history of a field, the newest entry last.
pub(super) type History = Vec<HistoryEntry>;

/// One thing that happened to a field.
#[derive(Clone)]
pub(super) enum HistoryEntry {
    /// Every node has the values of these points.
    Everywhere(Shape),
    /// Each node has the values of its area, and no other has.
    At(Arc<Layout>),
    /// Each node has copies of the values of its area, as they were then.
    Copied(Arc<Layout>),
    /// Each node has contributed to its area. Outside of its home it has contributions there, and no values.
    Reduced(OperatorId, Arc<Layout>),
}

/// A history as a key: what follows from a history is remembered.
pub(super) type Key = Vec<(u8, u64)>;

impl HistoryEntry {
    pub(super) fn key(&self) -> (u8, u64) {
        match self {
            Self::Everywhere(shape) => (0, shape.id()),
            Self::At(layout) => (1, layout.id()),
            Self::Copied(layout) => (2, layout.id()),
            Self::Reduced(_, layout) => (3, layout.id()),
        }
    }

    /// The points that it is about.
    pub(super) fn points(&self) -> &Shape {
        match self {
            Self::Everywhere(shape) => shape,
            Self::At(layout) | Self::Copied(layout) | Self::Reduced(_, layout) => layout.union(),
        }
    }

    /// Whether older values of its points are no values any more.
    pub(super) fn hides(&self) -> bool {
        matches!(self, Self::Everywhere(_) | Self::At(_))
    }
}

pub(super) fn key(history: &[HistoryEntry]) -> Key {
    history.iter().map(HistoryEntry::key).collect()
}

/// Adds an entry, and drops entries that it hides.
pub(super) fn push(history: &mut History, entry: HistoryEntry, shapes: &ShapeTable) {
    if entry.points().is_empty() {
        return;
    }
    if let HistoryEntry::Copied(layout) = &entry {
        history.retain(|older| !matches!(older, HistoryEntry::Copied(copied) if copied.id() == layout.id()));
    }
    let hides = entry.hides();
    history.push(entry);
    if hides {
        forget_hidden(history, shapes);
    }
}

/// Forgets what is hidden by all that came later together. Otherwise a loop that writes a region in parts would make
/// its history longer and longer, and never come back to a state.
pub(super) fn forget_hidden(history: &mut History, shapes: &ShapeTable) {
    let mut hidden: Option<Shape> = None;
    // Newest first.
    for place in (0..history.len()).rev() {
        let (points, hides) = (history[place].points(), history[place].hides());
        hidden = match hidden {
            Some(hidden) if shapes.is_subset(points, &hidden) => {
                history.remove(place);
                Some(hidden)
            }
            Some(hidden) if hides => Some(shapes.union(&hidden, points)),
            None if hides => Some(points.clone()),
            hidden => hidden,
        };
    }
}
