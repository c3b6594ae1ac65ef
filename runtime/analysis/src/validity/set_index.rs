//! Finds equivalence sets by their bounding boxes.

use maniple_space::{AnyRect, BoxHandle, DynamicBoxTree, Rect};

/// The name of an equivalence set within its group.
pub(super) type SetId = usize;

/// A dynamic tree of bounding boxes of one dimension, known from the first box.
#[derive(Clone, Default)]
pub(super) enum SetIndex {
    #[default]
    Empty,
    D1(Boxes<1>),
    D2(Boxes<2>),
    D3(Boxes<3>),
    D4(Boxes<4>),
}

#[derive(Clone)]
pub(super) struct Boxes<const D: usize> {
    tree: DynamicBoxTree<D>,
    handles: Vec<Option<BoxHandle>>,
}

/// Runs an expression on the boxes of whatever dimension.
macro_rules! each_dimension {
    ($index:expr, $boxes:ident => $body:expr, empty => $empty:expr) => {
        match $index {
            SetIndex::Empty => $empty,
            SetIndex::D1($boxes) => $body,
            SetIndex::D2($boxes) => $body,
            SetIndex::D3($boxes) => $body,
            SetIndex::D4($boxes) => $body,
        }
    };
}

impl SetIndex {
    pub(super) fn insert(&mut self, id: SetId, bounds: AnyRect) {
        if let Self::Empty = self {
            *self = match bounds.dim() {
                1 => Self::D1(Boxes::new()),
                2 => Self::D2(Boxes::new()),
                3 => Self::D3(Boxes::new()),
                _ => Self::D4(Boxes::new()),
            };
        }
        each_dimension!(self, boxes => boxes.insert(id, bounds), empty => ());
    }

    pub(super) fn remove(&mut self, id: SetId) {
        each_dimension!(self, boxes => boxes.remove(id), empty => ());
    }

    /// Calls `found` with every set whose box touches `bounds`, in any order.
    pub(super) fn query(&self, bounds: &AnyRect, found: impl FnMut(SetId)) {
        each_dimension!(self, boxes => boxes.query(bounds, found), empty => ());
    }
}

impl<const D: usize> Boxes<D> {
    fn new() -> Self {
        Self { tree: DynamicBoxTree::new(), handles: Vec::new() }
    }

    fn insert(&mut self, id: SetId, bounds: AnyRect) {
        if self.handles.len() <= id {
            self.handles.resize(id + 1, None);
        }
        self.handles[id] = Some(self.tree.insert(typed(&bounds), id as u32));
    }

    fn remove(&mut self, id: SetId) {
        if let Some(handle) = self.handles[id].take() {
            self.tree.remove(handle);
        }
    }

    fn query(&self, bounds: &AnyRect, mut found: impl FnMut(SetId)) {
        self.tree.query(&typed(bounds), |id| found(id as SetId));
    }
}

fn typed<const D: usize>(bounds: &AnyRect) -> Rect<D> {
    bounds.typed().expect("all sets of a region tree have the tree's dimension")
}
