//! The walk over one region tree.

use std::sync::Arc;

use maniple_region::{FieldMask, IndexSpaceNode, NodeId, Partitioning, Privilege, Requirement, Target};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Operation;
use super::epoch::Epochs;

/// So few nodes are not swept; in tests they are, to show that no use is forgotten that matters.
const FEW_NODES: usize = if cfg!(test) { 2 } else { 64 };

/// The logical state of one region tree in one context.
pub(super) struct TreeState<O> {
    nodes: FxHashMap<NodeId, Node<O>>,
    /// Nodes without uses are dropped when there are this many.
    sweep_at: usize,
    /// Nodes that the requirement being registered has visited.
    visits: u64,
}

struct Node<O> {
    epochs: Epochs<O>,
    /// Children in or below which there are uses.
    open: FxHashMap<NodeId, OpenChild>,
}

/// A child in or below which there are uses, with what they do.
#[derive(Clone)]
struct OpenChild {
    place: Place,
    uses: SmallVec<[(Privilege, FieldMask); 2]>,
}

/// A node of the region tree.
#[derive(Clone)]
enum Place {
    Space(IndexSpaceNode),
    Partition(Arc<Partitioning>),
}

impl<O> Default for TreeState<O> {
    fn default() -> Self {
        Self { nodes: FxHashMap::default(), sweep_at: FEW_NODES, visits: 0 }
    }
}

impl<O> Default for Node<O> {
    fn default() -> Self {
        Self { epochs: Epochs::default(), open: FxHashMap::default() }
    }
}

impl<O: Operation + Clone> TreeState<O> {
    /// See [`ProgramOrder::register`](super::ProgramOrder::register).
    pub(super) fn register(&mut self, operation: &O, requirement: &Requirement, depend: &mut impl FnMut(&O)) -> u64 {
        self.visits = 0;
        let path = path_to(&requirement.target);
        if self.nodes.len() >= self.sweep_at {
            self.sweep(path[0].id());
            self.sweep_at = FEW_NODES.max(2 * self.nodes.len());
        }
        let (fields, privilege) = (&requirement.fields, requirement.privilege);
        let mut depend = |other: &O| {
            if !other.is_same(operation) {
                depend(other);
            }
        };
        for (level, place) in path.iter().enumerate() {
            let next = path.get(level + 1);
            let taken = self.conflicting_children(place, next, requirement);
            for child in &taken {
                self.take_over(child, fields, &mut depend);
            }
            self.visits += 1;
            let node = self.nodes.entry(place.id()).or_default();
            let took_over = !taken.is_empty();
            if took_over {
                node.close_children(&taken, fields);
                // Later uses of this node depend on this operation alone, so it must come after all that are recorded here.
                node.epochs.take_over(fields, &mut depend);
                node.epochs.record(operation, fields, Privilege::ReadWrite, &FieldMask::new());
            } else {
                let dominated = node.epochs.check(fields, privilege, &mut depend);
                if next.is_none() {
                    node.epochs.record(operation, fields, privilege, &dominated);
                }
            }
            if let Some(next) = next {
                node.open_child(next, privilege, fields);
            }
        }
        self.visits
    }

    /// Open children of `place` with uses that interfere with the requirement and that may share points with the next node of its path.
    fn conflicting_children(&mut self, place: &Place, next: Option<&Place>, requirement: &Requirement) -> Vec<Place> {
        let Some(node) = self.nodes.get_mut(&place.id()) else { return Vec::new() };
        if node.open.is_empty() {
            return Vec::new();
        }
        // Pieces of a disjoint partition share nothing: only the one that the path enters matters, and that is entered anyway.
        if let (Place::Partition(partition), Some(_)) = (place, next)
            && partition.is_surely_disjoint()
        {
            return Vec::new();
        }
        self.visits += node.open.len() as u64;
        let (fields, privilege) = (&requirement.fields, requirement.privilege);
        let mut found: Vec<Place> = (node.open.values())
            .filter(|child| child.conflicts(fields, privilege))
            .filter(|child| next.is_none_or(|next| next.id() != child.place.id() && next.overlaps(&child.place)))
            .map(|child| child.place.clone())
            .collect();
        found.sort_unstable_by_key(Place::id);
        found
    }

    /// The number of nodes that the analysis keeps.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Drops nodes without uses that an operation may have to wait for, in and below a node. Returns whether the node is still there.
    fn sweep(&mut self, id: NodeId) -> bool {
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        node.epochs.sweep();
        let children: Vec<NodeId> = node.open.keys().copied().collect();
        let gone: Vec<NodeId> = children.into_iter().filter(|&child| !self.sweep(child)).collect();
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        gone.iter().for_each(|child| drop(node.open.remove(child)));
        let in_use = !node.open.is_empty() || !node.epochs.is_empty();
        if !in_use {
            self.nodes.remove(&id);
        }
        in_use
    }

    /// Removes all uses of `fields` in and below `place`.
    fn take_over(&mut self, place: &Place, fields: &FieldMask, depend: &mut impl FnMut(&O)) {
        self.visits += 1;
        let Some(node) = self.nodes.get_mut(&place.id()) else { return };
        node.epochs.take_over(fields, depend);
        let below: Vec<Place> = node.open.values().map(|child| child.place.clone()).collect();
        node.open.values_mut().for_each(|child| child.close(fields));
        node.open.retain(|_, child| !child.uses.is_empty());
        let forget = node.open.is_empty() && node.epochs.is_empty();
        for child in &below {
            self.take_over(child, fields, depend);
        }
        if forget {
            self.nodes.remove(&place.id());
        }
    }
}

impl<O> Node<O> {
    fn open_child(&mut self, place: &Place, privilege: Privilege, fields: &FieldMask) {
        let open =
            self.open.entry(place.id()).or_insert_with(|| OpenChild { place: place.clone(), uses: SmallVec::new() });
        match open.uses.iter_mut().find(|(known, _)| *known == privilege) {
            Some((_, known)) if fields.is_subset_of(known) => {}
            Some((_, known)) => *known = known.union(fields),
            None => open.uses.push((privilege, fields.clone())),
        }
    }

    /// Notes that `fields` are not used in these children any more.
    fn close_children(&mut self, children: &[Place], fields: &FieldMask) {
        for place in children {
            if let Some(child) = self.open.get_mut(&place.id()) {
                child.close(fields);
                if child.uses.is_empty() {
                    self.open.remove(&place.id());
                }
            }
        }
    }
}

impl OpenChild {
    fn conflicts(&self, fields: &FieldMask, privilege: Privilege) -> bool {
        self.uses.iter().any(|(used, common)| used.interferes_with(privilege) && common.overlaps(fields))
    }

    fn close(&mut self, fields: &FieldMask) {
        self.uses.iter_mut().for_each(|(_, used)| *used = used.difference(fields));
        self.uses.retain(|(_, used)| !used.is_empty());
    }
}

impl Place {
    fn id(&self) -> NodeId {
        match self {
            Self::Space(space) => space.id(),
            Self::Partition(partition) => partition.id(),
        }
    }

    /// Whether two children of one node may share points.
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Space(a), Self::Space(b)) => a.overlaps(b),
            (Self::Partition(a), Self::Partition(b)) => a.parent().forest().shapes().overlaps(a.bound(), b.bound()),
            // Levels alternate, so the children of one node are all of one kind.
            (Self::Space(_), Self::Partition(_)) | (Self::Partition(_), Self::Space(_)) => true,
        }
    }
}

/// The nodes from the root of the region tree to a requirement's.
fn path_to(target: &Target) -> SmallVec<[Place; 8]> {
    let mut path = SmallVec::new();
    let space = match target {
        Target::Region(region, _) => region.space().clone(),
        Target::Partition(partition, _) => {
            path.push(Place::Partition(Arc::clone(partition.partitioning())));
            partition.partitioning().parent().clone()
        }
    };
    let mut next = Some(space);
    while let Some(space) = next {
        next = space.partition().map(|partition| {
            path.push(Place::Space(space.clone()));
            path.push(Place::Partition(Arc::clone(partition)));
            partition.parent().clone()
        });
        if next.is_none() {
            path.push(Place::Space(space));
        }
    }
    path.reverse();
    path
}
