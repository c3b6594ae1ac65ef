//! Which node runs which points of a launch.

use maniple_space::AnyRect;

use super::layout::Rank;

/// The points of each node, as rectangles: blocks of about the same volume, in the order of nodes. Two launches over one domain are split alike.
pub(crate) fn blocked(domain: &AnyRect, nodes: usize) -> Vec<Vec<AnyRect>> {
    let blocks = if domain.is_empty() { Vec::new() } else { domain.split(nodes) };
    let mut shares = vec![Vec::new(); nodes];
    let count = blocks.len();
    for (number, block) in blocks.into_iter().enumerate() {
        // Fewer blocks than nodes are spread over all of them.
        shares[number * nodes / count].push(block);
    }
    shares
}

/// All points on one node.
pub(crate) fn on_one(domain: &AnyRect, nodes: usize, node: Rank) -> Vec<Vec<AnyRect>> {
    let mut shares = vec![Vec::new(); nodes];
    if !domain.is_empty() {
        shares[node].push(*domain);
    }
    shares
}

#[cfg(test)]
mod tests {
    use maniple_space::{AnyPoint, Rect};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_point_is_on_one_node_and_nodes_have_about_as_many(
            lo in prop::array::uniform2(-50..50_i64), extent in prop::array::uniform2(0..20_i64), nodes in 1..9_usize
        ) {
            let domain: AnyRect = Rect::<2>::new(lo, [lo[0] + extent[0] - 1, lo[1] + extent[1] - 1]).into();
            let shares = blocked(&domain, nodes);
            prop_assert_eq!(shares.len(), nodes);
            let mut points: Vec<AnyPoint> = shares.iter().flatten().flat_map(|block| block.points()).collect();
            points.sort_unstable();
            let mut all: Vec<AnyPoint> = domain.points().collect();
            all.sort_unstable();
            prop_assert_eq!(points, all);
            let volumes = shares.iter().map(|blocks| blocks.iter().map(|block| block.volume()).sum::<u64>());
            let most = volumes.max().unwrap_or(0);
            // Blocks are cut along whole rows and columns.
            prop_assert!(most <= 2 * domain.volume().div_ceil(nodes as u64), "{shares:?}");
        }
    }
}
