//! A tree of bounding boxes that changes one box at a time.

use smallvec::SmallVec;

use crate::Rect;

/// No node.
const NONE: u32 = u32::MAX;

/// By how much the heights of two siblings may differ. Rotations for height make worse boxes than
/// rotations for size, so they only keep the tree from degenerating.
const MOST_IMBALANCE: u32 = 6;

/// Rectangles with 32-bit keys that can be inserted, removed and asked for overlaps.
///
/// A binary tree of bounding boxes. A new box goes down where it enlarges the others least (the
/// surface area heuristic, with the sum of the extents for the area, which also tells flat boxes
/// apart). On the way back, a node is exchanged with one on the other side of its parent if that
/// makes boxes smaller, and rotations bound the height: the dynamic tree of Box2D (Erin Catto,
/// *Dynamic Bounding Volume Hierarchies*, GDC 2019). Insertion and removal take `O(log n)`; a
/// query visits `O(log n + k)` nodes for `k` results when boxes overlap little.
///
/// ```
/// use maniple_space::{DynamicBoxTree, Rect};
/// let mut tree = DynamicBoxTree::new();
/// let a = tree.insert(Rect::from(0..10), 7);
/// tree.insert(Rect::from(5..20), 8);
/// assert_eq!(tree.remove(a), Some(7));
/// let mut found = Vec::new();
/// tree.query(&Rect::from(0..100), |key| found.push(key));
/// assert_eq!(found, [8]);
/// ```
#[derive(Clone, Debug)]
pub struct DynamicBoxTree<const D: usize> {
    nodes: Vec<DynamicTreeNode<D>>,
    root: u32,
    /// Slots of removed nodes.
    free: Vec<u32>,
    len: usize,
}

/// Names a box in a [`DynamicBoxTree`] until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BoxHandle {
    node: u32,
    generation: u32,
}

#[derive(Clone, Debug)]
struct DynamicTreeNode<const D: usize> {
    bounds: Rect<D>,
    parent: u32,
    /// Both `NONE` in a leaf.
    children: [u32; 2],
    /// 0 for a leaf, else one more than the higher child.
    height: u32,
    key: u32,
    /// Counts the uses of this slot, so that old handles are recognised.
    generation: u32,
}

impl<const D: usize> DynamicTreeNode<D> {
    fn is_leaf(&self) -> bool {
        self.height == 0
    }
}

/// The price of a box: a query meets it in proportion to its size.
fn price<const D: usize>(bounds: &Rect<D>) -> f64 {
    (0..D).map(|d| bounds.extent(d) as f64).sum()
}

impl<const D: usize> DynamicBoxTree<D> {
    /// The tree without boxes.
    pub const fn new() -> Self {
        Self { nodes: Vec::new(), root: NONE, free: Vec::new(), len: 0 }
    }

    /// The number of boxes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no boxes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a box. Keys need not be distinct. An empty rectangle is kept but never found.
    pub fn insert(&mut self, rect: Rect<D>, key: u32) -> BoxHandle {
        let leaf = self.allocate(rect, key);
        self.len += 1;
        if self.root == NONE {
            self.root = leaf;
        } else {
            let sibling = self.best_sibling(&rect);
            let parent = self.allocate(rect, 0);
            self.replace_child(self.nodes[sibling as usize].parent, sibling, parent);
            self.nodes[parent as usize].children = [sibling, leaf];
            self.nodes[sibling as usize].parent = parent;
            self.nodes[leaf as usize].parent = parent;
            self.restore_upwards(parent);
        }
        BoxHandle { node: leaf, generation: self.nodes[leaf as usize].generation }
    }

    /// Removes a box and returns its key; `None` if it was removed before.
    pub fn remove(&mut self, handle: BoxHandle) -> Option<u32> {
        let leaf = self.nodes.get(handle.node as usize)?;
        if leaf.generation != handle.generation || !leaf.is_leaf() {
            return None;
        }
        let (key, parent) = (leaf.key, leaf.parent);
        self.len -= 1;
        self.release(handle.node);
        if parent == NONE {
            self.root = NONE;
            return Some(key);
        }
        let [left, right] = self.nodes[parent as usize].children;
        let sibling = if left == handle.node { right } else { left };
        let grandparent = self.nodes[parent as usize].parent;
        self.replace_child(grandparent, parent, sibling);
        self.release(parent);
        self.restore_upwards(grandparent);
        Some(key)
    }

    /// Calls `visit` with the key of each box that overlaps `rect`, in no special order.
    #[inline]
    pub fn query(&self, rect: &Rect<D>, mut visit: impl FnMut(u32)) {
        let mut pending: SmallVec<[u32; 64]> = SmallVec::new();
        pending.extend((self.root != NONE).then_some(self.root));
        while let Some(at) = pending.pop() {
            let node = &self.nodes[at as usize];
            if !node.bounds.overlaps(rect) {
                continue;
            }
            if node.is_leaf() {
                visit(node.key);
            } else {
                pending.extend(node.children);
            }
        }
    }

    fn allocate(&mut self, bounds: Rect<D>, key: u32) -> u32 {
        let node = DynamicTreeNode { bounds, parent: NONE, children: [NONE; 2], height: 0, key, generation: 0 };
        if let Some(slot) = self.free.pop() {
            let generation = self.nodes[slot as usize].generation;
            self.nodes[slot as usize] = DynamicTreeNode { generation, ..node };
            return slot;
        }
        let slot = self.nodes.len();
        assert!(slot < NONE as usize, "a tree holds at most 2^31 boxes");
        self.nodes.push(node);
        slot as u32
    }

    fn release(&mut self, slot: u32) {
        let generation = &mut self.nodes[slot as usize].generation;
        *generation = generation.wrapping_add(1);
        self.free.push(slot);
    }

    /// The node next to which a box enlarges the boxes of the tree least, by a greedy descent.
    fn best_sibling(&self, rect: &Rect<D>) -> u32 {
        let mut at = self.root;
        loop {
            let node = &self.nodes[at as usize];
            if node.is_leaf() {
                return at;
            }
            let enlarged = price(&node.bounds.hull(rect));
            let beside = 2.0 * enlarged;
            let inherited = 2.0 * (enlarged - price(&node.bounds));
            let below = node.children.map(|child| {
                let child = &self.nodes[child as usize];
                let enlarged = price(&child.bounds.hull(rect));
                inherited + if child.is_leaf() { enlarged } else { enlarged - price(&child.bounds) }
            });
            if beside < below[0] && beside < below[1] {
                return at;
            }
            at = node.children[usize::from(below[1] < below[0])];
        }
    }

    /// Puts a node in another's place below `parent`, or at the root.
    fn replace_child(&mut self, parent: u32, old: u32, new: u32) {
        self.nodes[new as usize].parent = parent;
        if parent == NONE {
            self.root = new;
        } else {
            let children = &mut self.nodes[parent as usize].children;
            children[usize::from(children[1] == old)] = new;
        }
    }

    /// Brings bounds, heights, prices and balance in order from a node up to the root.
    fn restore_upwards(&mut self, mut at: u32) {
        while at != NONE {
            self.refit(at);
            self.exchange(at);
            at = self.balance(at);
            at = self.nodes[at as usize].parent;
        }
    }

    /// Exchanges a child of a node with a grandchild on the other side, if that makes the boxes
    /// between them smaller.
    fn exchange(&mut self, at: u32) {
        let children = self.nodes[at as usize].children;
        let swaps = [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().filter_map(|(side, below)| {
            let other = &self.nodes[children[1 - side] as usize];
            let child = &self.nodes[children[side] as usize].bounds;
            let stays = *other.children.get(1 - below).filter(|&&node| node != NONE)?;
            let joined = child.hull(&self.nodes[stays as usize].bounds);
            Some((side, below, price(&other.bounds) - price(&joined)))
        });
        let best = swaps.max_by(|a, b| a.2.total_cmp(&b.2));
        if let Some((side, below, saved)) = best
            && saved > 0.0
        {
            let (child, other) = (children[side], children[1 - side]);
            let grandchild = self.nodes[other as usize].children[below];
            self.nodes[at as usize].children[side] = grandchild;
            self.nodes[grandchild as usize].parent = at;
            self.nodes[other as usize].children[below] = child;
            self.nodes[child as usize].parent = other;
            self.refit(other);
            self.refit(at);
        }
    }

    /// Computes a node's bounds and height from its children's.
    fn refit(&mut self, at: u32) {
        let [left, right] = self.nodes[at as usize].children.map(|c| &self.nodes[c as usize]);
        let bounds = left.bounds.hull(&right.bounds);
        let height = 1 + left.height.max(right.height);
        let node = &mut self.nodes[at as usize];
        (node.bounds, node.height) = (bounds, height);
    }

    /// Rotates a node whose children differ in height by more than [`MOST_IMBALANCE`]; returns what
    /// took its place.
    fn balance(&mut self, at: u32) -> u32 {
        let [left, right] = self.nodes[at as usize].children.map(|child| self.nodes[child as usize].height);
        if left.abs_diff(right) <= MOST_IMBALANCE {
            return at;
        }
        let heavy_side = usize::from(right > left);
        let heavy = self.nodes[at as usize].children[heavy_side];
        let [a, b] = self.nodes[heavy as usize].children;
        let a_is_taller = self.nodes[a as usize].height > self.nodes[b as usize].height;
        let (taller, shorter) = if a_is_taller { (a, b) } else { (b, a) };

        // The heavy child rises, keeps its taller child, and gives the shorter one away.
        self.replace_child(self.nodes[at as usize].parent, at, heavy);
        self.nodes[heavy as usize].children = [at, taller];
        self.nodes[at as usize].parent = heavy;
        self.nodes[at as usize].children[heavy_side] = shorter;
        self.nodes[shorter as usize].parent = at;
        self.refit(at);
        self.refit(heavy);
        heavy
    }
}

impl<const D: usize> Default for DynamicBoxTree<D> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Panics unless parents, heights, bounds and balance are what they should be.
    fn check<const D: usize>(tree: &DynamicBoxTree<D>, at: u32, parent: u32) -> usize {
        let node = &tree.nodes[at as usize];
        assert_eq!(node.parent, parent);
        if node.is_leaf() {
            return 1;
        }
        let [a, b] = node.children.map(|child| &tree.nodes[child as usize]);
        assert_eq!(node.height, 1 + a.height.max(b.height));
        assert_eq!(node.bounds, a.bounds.hull(&b.bounds));
        node.children.iter().map(|&child| check(tree, child, at)).sum()
    }

    #[test]
    fn a_sorted_insertion_keeps_the_tree_logarithmic() {
        let mut tree = DynamicBoxTree::new();
        let handles: Vec<_> = (0..4096).map(|i| tree.insert(Rect::from(i..i + 1), i as u32)).collect();
        assert_eq!(check(&tree, tree.root, NONE), 4096);
        assert!(tree.nodes[tree.root as usize].height <= 18);
        for handle in &handles[..4000] {
            assert!(tree.remove(*handle).is_some());
        }
        assert_eq!(check(&tree, tree.root, NONE), 96);
        assert!(tree.nodes[tree.root as usize].height <= 10);
    }

    #[test]
    fn slots_are_used_again_and_old_handles_name_nothing() {
        let mut tree = DynamicBoxTree::new();
        let old = tree.insert(Rect::from(0..1), 1);
        assert_eq!(tree.remove(old), Some(1));
        let new = tree.insert(Rect::from(0..1), 2);
        assert_eq!(tree.nodes.len(), 1);
        assert_eq!(tree.remove(old), None);
        assert_eq!(tree.remove(new), Some(2));
        assert!(tree.is_empty());
    }

    proptest! {
        #[test]
        fn links_bounds_and_heights_hold_after_every_change(
            steps in vec((prop::array::uniform2(0i64..60), prop::array::uniform2(0i64..9), 0..3), 1..120),
        ) {
            let mut tree = DynamicBoxTree::new();
            let mut held = Vec::new();
            for (lo, extent, kind) in steps {
                if kind == 0 && !held.is_empty() {
                    let removed = held.swap_remove(lo[0] as usize % held.len());
                    prop_assert!(tree.remove(removed).is_some());
                } else {
                    held.push(tree.insert(Rect::new(lo, [lo[0] + extent[0], lo[1] + extent[1]]), 0));
                }
                let leaves = if tree.root == NONE { 0 } else { check(&tree, tree.root, NONE) };
                prop_assert_eq!(leaves, held.len());
            }
        }
    }
}
