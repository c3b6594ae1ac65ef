//! The walk over one region tree.

use std::sync::Arc;

use maniple_region::{FieldMask, IndexSpaceNode, NodeId, Partitioning, Privilege, Requirement, Target};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::epoch::Epochs;
use super::{Contributions, OrderedOperation};

/// So few nodes are not swept; in tests they are, to show that no use is forgotten that matters.
const FEW_NODES: usize = if cfg!(test) { 2 } else { 64 };

/// The logical state of one region tree in one context.
pub(super) struct TreeState<O> {
    root: TreeNode<O>,
    /// Nodes that were left when uses were last swept, and those that have been opened since.
    nodes: usize,
    /// Nodes without uses are dropped when there are this many.
    sweep_at: usize,
}

struct TreeNode<O> {
    epochs: Epochs<O>,
    open: FxHashMap<NodeId, OpenChild<O>>,
}

/// A child in or below which there are uses, with what they do.
struct OpenChild<O> {
    place: TreePlace,
    uses: SmallVec<[(Privilege, FieldMask); 2]>,
    node: TreeNode<O>,
}

/// A node of the region tree.
enum TreePlace {
    Space(IndexSpaceNode),
    Partition(Arc<Partitioning>),
}

/// The same, on the path to a requirement's.
#[derive(Clone, Copy)]
enum TreeStep<'a> {
    Space(&'a IndexSpaceNode),
    Partition(&'a Arc<Partitioning>),
}

impl<O> Default for TreeState<O> {
    fn default() -> Self {
        Self { root: TreeNode::default(), nodes: 1, sweep_at: FEW_NODES }
    }
}

impl<O> Default for TreeNode<O> {
    fn default() -> Self {
        Self { epochs: Epochs::default(), open: FxHashMap::default() }
    }
}

/// A requirement on its way from the root of the region tree to its node.
struct Walk<'a, O, D> {
    operation: &'a O,
    requirement: &'a Requirement,
    contributions: Contributions,
    path: Path<'a>,
    /// Told of every operation that must be mapped first.
    depend: D,
    visits: u64,
    /// Nodes that the walk has opened.
    opened: usize,
}

/// The nodes from the root of the region tree to a requirement's.
type Path<'a> = SmallVec<[TreeStep<'a>; 4]>;

impl<O: OrderedOperation + Clone> TreeState<O> {
    /// See [`ProgramOrder::register`](super::ProgramOrder::register).
    pub(super) fn register(
        &mut self,
        operation: &O,
        requirement: &Requirement,
        contributions: Contributions,
        depend: &mut impl FnMut(&O),
    ) -> u64 {
        if self.nodes >= self.sweep_at {
            self.nodes = self.root.sweep();
            self.sweep_at = FEW_NODES.max(2 * self.nodes);
        }
        let depend = |other: &O| {
            if !other.is_same(operation) {
                depend(other);
            }
        };
        let mut walk = Walk { operation, requirement, contributions, path: Path::new(), depend, visits: 0, opened: 0 };
        find_path(&requirement.target, &mut walk.path);
        self.root.register(0, &mut walk);
        self.nodes += walk.opened;
        walk.visits
    }

    /// The number of nodes that the analysis keeps.
    #[cfg(test)]
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }
}

impl<O: OrderedOperation + Clone> TreeNode<O> {
    /// Registers a use at this node, which its path reaches at this level, and below.
    fn register<D: FnMut(&O)>(&mut self, level: usize, walk: &mut Walk<'_, O, D>) {
        let next = walk.path.get(level + 1).copied();
        let (fields, privilege) = (&walk.requirement.fields, walk.requirement.privilege);
        walk.visits += 1;
        if self.take_over_children(walk.path[level], next, walk) {
            // Later uses of this node depend on this operation alone, so it must come after all that are recorded here.
            self.epochs.take_over(fields, &mut walk.depend);
            self.epochs.record(walk.operation, fields, Privilege::ReadWrite, &FieldMask::new());
        } else {
            let dominated = self.epochs.check(fields, privilege, walk.contributions, &mut walk.depend);
            if next.is_none() {
                self.epochs.record(walk.operation, fields, privilege, &dominated);
            }
        }
        let Some(next) = next else { return };
        let id = next.id();
        if let Some(child) = self.open.get_mut(&id) {
            child.add(privilege, fields);
            return child.node.register(level + 1, walk);
        }
        walk.opened += 1;
        let uses = SmallVec::from_iter([(privilege, fields.clone())]);
        let mut child = OpenChild { place: next.place(), uses, node: Self::default() };
        child.node.register(level + 1, walk);
        self.open.insert(id, child);
    }

    /// Takes over open children with uses that interfere with the requirement and that may share points with the next
    /// node of its path. Returns whether there were any.
    fn take_over_children<D: FnMut(&O)>(
        &mut self,
        step: TreeStep<'_>,
        next: Option<TreeStep<'_>>,
        walk: &mut Walk<'_, O, D>,
    ) -> bool {
        // Pieces of a disjoint partition share nothing: only the one that the path enters matters, and that is entered
        // anyway.
        let is_apart =
            || matches!((step, next), (TreeStep::Partition(partition), Some(_)) if partition.is_surely_disjoint());
        if self.open.is_empty() || is_apart() {
            return false;
        }
        walk.visits += self.open.len() as u64;
        let (fields, privilege) = (&walk.requirement.fields, walk.requirement.privilege);
        let mut found: SmallVec<[NodeId; 4]> = SmallVec::new();
        for (&id, child) in &self.open {
            if next.is_none_or(|next| next.id() != id)
                && child.conflicts(fields, privilege, walk.contributions)
                && next.is_none_or(|next| next.overlaps(child.place.step()))
            {
                found.push(id);
            }
        }
        found.sort_unstable();
        for id in &found {
            let child = self.open.get_mut(id);
            if child.is_some_and(|child| !child.take_over(fields, &mut walk.depend, &mut walk.visits)) {
                self.open.remove(id);
            }
        }
        !found.is_empty()
    }

    /// Removes all uses of `fields` in and below the node.
    fn take_over(&mut self, fields: &FieldMask, depend: &mut impl FnMut(&O), visits: &mut u64) {
        self.epochs.take_over(fields, depend);
        self.open.retain(|_, child| child.take_over(fields, depend, visits));
    }

    /// Drops uses that no operation has to wait for, and nodes without uses. Returns how many are left in and below
    /// this one.
    fn sweep(&mut self) -> usize {
        self.epochs.sweep();
        let mut left = 0;
        self.open.retain(|_, child| {
            let below = child.node.sweep();
            left += below;
            below > 0
        });
        if self.open.is_empty() && self.epochs.is_empty() { 0 } else { left + 1 }
    }
}

impl<O: OrderedOperation + Clone> OpenChild<O> {
    fn conflicts(&self, fields: &FieldMask, privilege: Privilege, contributions: Contributions) -> bool {
        self.uses.iter().any(|(used, common)| common.overlaps(fields) && contributions.conflict(*used, privilege))
    }

    fn add(&mut self, privilege: Privilege, fields: &FieldMask) {
        match self.uses.iter_mut().find(|(known, _)| *known == privilege) {
            Some((_, known)) if fields.is_subset_of(known) => {}
            Some((_, known)) => *known = known.union(fields),
            None => self.uses.push((privilege, fields.clone())),
        }
    }

    /// Removes all uses of `fields`. Returns whether there are others.
    fn take_over(&mut self, fields: &FieldMask, depend: &mut impl FnMut(&O), visits: &mut u64) -> bool {
        *visits += 1;
        self.node.take_over(fields, depend, visits);
        self.uses.iter_mut().for_each(|(_, used)| *used = used.difference(fields));
        self.uses.retain(|(_, used)| !used.is_empty());
        !self.uses.is_empty()
    }
}

impl TreePlace {
    fn step(&self) -> TreeStep<'_> {
        match self {
            Self::Space(space) => TreeStep::Space(space),
            Self::Partition(partition) => TreeStep::Partition(partition),
        }
    }
}

impl TreeStep<'_> {
    fn id(self) -> NodeId {
        match self {
            Self::Space(space) => space.id(),
            Self::Partition(partition) => partition.id(),
        }
    }

    fn place(self) -> TreePlace {
        match self {
            Self::Space(space) => TreePlace::Space(space.clone()),
            Self::Partition(partition) => TreePlace::Partition(Arc::clone(partition)),
        }
    }

    /// Whether two children of one node may share points.
    fn overlaps(self, other: TreeStep<'_>) -> bool {
        match (self, other) {
            (Self::Space(a), TreeStep::Space(b)) => a.overlaps(b),
            (Self::Partition(a), TreeStep::Partition(b)) => a.parent().forest().shapes().overlaps(a.bound(), b.bound()),
            // Levels alternate, so the children of one node are all of one kind.
            (Self::Space(_), TreeStep::Partition(_)) | (Self::Partition(_), TreeStep::Space(_)) => true,
        }
    }
}

/// Fills in the nodes from the root of the region tree to that of a requirement.
fn find_path<'a>(target: &'a Target, path: &mut Path<'a>) {
    let mut space = match target {
        Target::Region(region, _) => region.space(),
        Target::Partition(partition, _) => {
            path.push(TreeStep::Partition(partition.partitioning()));
            partition.partitioning().parent()
        }
    };
    path.push(TreeStep::Space(space));
    while let Some(partition) = space.partition() {
        space = partition.parent();
        path.push(TreeStep::Partition(partition));
        path.push(TreeStep::Space(space));
    }
    path.reverse();
}
