//! A packed tree of bounding boxes, built once.

use std::ops::ControlFlow;

use crate::Rect;

/// Entries under one leaf: few enough that scanning them costs no more than another level.
const LEAF: usize = 8;

/// A static index of rectangles, each with a 32-bit payload, that answers which of them overlap a
/// given rectangle.
///
/// A bounding volume hierarchy, split at the median of the widest dimension. Building takes
/// `O(n log n)`; a query `O(log n + k)` for `k` results when rectangles overlap little.
///
/// ```
/// use maniple_space::{OverlapIndex, Rect};
/// let index = OverlapIndex::new((0..100).map(|i| (Rect::from(10 * i..10 * i + 10), i as u32)));
/// let mut found = Vec::new();
/// index.query(&Rect::from(25..41), |payload| found.push(payload));
/// found.sort();
/// assert_eq!(found, [2, 3, 4]);
/// ```
#[derive(Clone, Debug)]
pub struct OverlapIndex<const D: usize> {
    /// In preorder: a node, then all of its left subtree, then all of its right.
    nodes: Vec<IndexNode<D>>,
    entries: Vec<(Rect<D>, u32)>,
}

#[derive(Clone, Debug)]
struct IndexNode<const D: usize> {
    bounds: Rect<D>,
    /// The node after this subtree, where a query goes on that misses the bounds.
    skip: u32,
    /// The entries of a leaf; none in an inner node.
    first: u32,
    count: u32,
}

impl<const D: usize> OverlapIndex<D> {
    /// Indexes rectangles with payloads, which need not be distinct. Empty rectangles are dropped.
    ///
    /// # Panics
    /// When there are more than `u32::MAX` rectangles.
    pub fn new(entries: impl IntoIterator<Item = (Rect<D>, u32)>) -> Self {
        let entries: Vec<_> = entries.into_iter().filter(|(rect, _)| !rect.is_empty()).collect();
        assert!(u32::try_from(entries.len()).is_ok(), "an index holds at most 2^32 - 1 rectangles");
        let mut index = Self { nodes: Vec::with_capacity(entries.len() / LEAF * 2 + 1), entries };
        if !index.entries.is_empty() {
            index.build(0, index.entries.len());
        }
        index
    }

    /// Appends the nodes of the tree over a range of entries, which are reordered.
    fn build(&mut self, from: usize, to: usize) {
        let entries = &mut self.entries[from..to];
        let bounds = entries.iter().fold(Rect::EMPTY, |hull, (rect, _)| hull.hull(rect));
        let node = self.nodes.len();
        let is_leaf = entries.len() <= LEAF;
        self.nodes.push(IndexNode {
            bounds,
            skip: 0,
            first: from as u32,
            count: if is_leaf { entries.len() as u32 } else { 0 },
        });
        if !is_leaf {
            let d = widest_spread(entries);
            let half = entries.len() / 2;
            entries.select_nth_unstable_by_key(half, |(rect, _)| center(rect, d));
            self.build(from, from + half);
            self.build(from + half, to);
        }
        self.nodes[node].skip = self.nodes.len() as u32;
    }

    /// The number of rectangles.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no rectangles.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Calls `visit` with the payload of each rectangle that overlaps `rect`, in no special order.
    #[inline]
    pub fn query(&self, rect: &Rect<D>, mut visit: impl FnMut(u32)) {
        let _ = self.try_query(rect, |payload| {
            visit(payload);
            ControlFlow::Continue(())
        });
    }

    /// Like [`query`](Self::query), but stops when `visit` breaks, and tells.
    #[inline]
    pub fn try_query(&self, rect: &Rect<D>, mut visit: impl FnMut(u32) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut at = 0;
        while let Some(node) = self.nodes.get(at) {
            if !node.bounds.overlaps(rect) {
                at = node.skip as usize;
                continue;
            }
            let (first, count) = (node.first as usize, node.count as usize);
            for (entry, payload) in &self.entries[first..first + count] {
                if entry.overlaps(rect) {
                    visit(*payload)?;
                }
            }
            at += 1;
        }
        ControlFlow::Continue(())
    }
}

/// The middle of a rectangle along a dimension, rounded down.
fn center<const D: usize>(rect: &Rect<D>, dimension: usize) -> i64 {
    let (lo, hi) = (rect.lo.0[dimension], rect.hi.0[dimension]);
    (lo >> 1) + (hi >> 1) + (lo & hi & 1)
}

/// The dimension along which the middles of the rectangles lie farthest apart.
fn widest_spread<const D: usize>(entries: &[(Rect<D>, u32)]) -> usize {
    let spread = |d: usize| {
        let (lo, hi) = entries.iter().fold((i64::MAX, i64::MIN), |(lo, hi), (rect, _)| {
            let center = center(rect, d);
            (lo.min(center), hi.max(center))
        });
        hi.wrapping_sub(lo) as u64
    };
    (0..D).max_by_key(|&d| spread(d)).unwrap_or(0)
}
