//! Partitions from partitions, and what is true of them.

use std::ops::ControlFlow;

use super::PartitionError;
use crate::{IndexSpace, OverlapIndex, Rect, overlapping_pairs};

/// Combines the pieces of the same color of two partitions.
fn pairwise<const D: usize>(
    a: &[IndexSpace<D>],
    b: &[IndexSpace<D>],
    combine: impl Fn(&IndexSpace<D>, &IndexSpace<D>) -> IndexSpace<D>,
) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    if a.len() != b.len() {
        return Err(PartitionError::LengthsDiffer { left: a.len(), right: b.len() });
    }
    Ok(a.iter().zip(b).map(|(a, b)| combine(a, b)).collect())
}

/// For each color, the points in the piece of either partition.
///
/// # Errors
/// When the partitions have different numbers of pieces.
pub fn pairwise_union<const D: usize>(
    a: &[IndexSpace<D>],
    b: &[IndexSpace<D>],
) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    pairwise(a, b, IndexSpace::union)
}

/// For each color, the points in the pieces of both partitions.
///
/// # Errors
/// When the partitions have different numbers of pieces.
pub fn pairwise_intersection<const D: usize>(
    a: &[IndexSpace<D>],
    b: &[IndexSpace<D>],
) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    pairwise(a, b, IndexSpace::intersection)
}

/// For each color, the points in the piece of the first partition but not of the second.
///
/// # Errors
/// When the partitions have different numbers of pieces.
pub fn pairwise_difference<const D: usize>(
    a: &[IndexSpace<D>],
    b: &[IndexSpace<D>],
) -> Result<Vec<IndexSpace<D>>, PartitionError> {
    pairwise(a, b, IndexSpace::difference)
}

/// Each piece restricted to one space.
pub fn intersect_each<const D: usize>(pieces: &[IndexSpace<D>], space: &IndexSpace<D>) -> Vec<IndexSpace<D>> {
    pieces.iter().map(|piece| piece.intersection(space)).collect()
}

/// For each piece of `a`, its partition by `b`: space `j` of item `i` is `a[i] ∩ b[j]`.
///
/// Only pairs that overlap cost more than an empty space. Items are made one at a time: all together have as many
/// spaces as there are pairs, overlapping or not.
pub fn cross_product<const D: usize>(
    a: &[IndexSpace<D>],
    b: &[IndexSpace<D>],
) -> impl ExactSizeIterator<Item = Vec<IndexSpace<D>>> {
    let pairs = overlapping_pairs(a, b);
    a.iter().enumerate().map(move |(i, piece)| {
        let mut parts = vec![IndexSpace::empty(); b.len()];
        for &j in pairs.of(i) {
            parts[j as usize] = piece.intersection(&b[j as usize]);
        }
        parts
    })
}

/// Whether no two of the pieces have a point in common. `O(n log n)` in their rectangles.
pub fn is_disjoint<const D: usize>(pieces: &[IndexSpace<D>]) -> bool {
    if let [a, b] = pieces {
        return !a.overlaps(b);
    }
    // The rectangles of one piece are disjoint, so any two that overlap are of different pieces.
    let mut rects: Vec<Rect<D>> = pieces.iter().flat_map(|piece| piece.rects()).copied().collect();
    if D == 1 {
        rects.sort_unstable_by_key(|rect| rect.lo);
        return rects.is_sorted_by(|a, b| a.hi < b.lo);
    }
    let index = OverlapIndex::new(rects.iter().map(|&rect| (rect, 0)));
    rects.iter().all(|rect| {
        let mut found = 0;
        let more_than_itself = index.try_query(rect, |_| {
            found += 1;
            if found > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        more_than_itself.is_continue()
    })
}

/// Whether every point of the parent is in some piece. Near-linear in the rectangles.
pub fn is_complete<const D: usize>(pieces: &[IndexSpace<D>], parent: &IndexSpace<D>) -> bool {
    pieces.iter().any(|piece| parent.is_subset_of(piece)) || parent.is_subset_of(&IndexSpace::union_all(pieces))
}
