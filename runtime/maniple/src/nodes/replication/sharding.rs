//! Which node runs which points of a launch.

use maniple_analysis::distribution::Rank;
use maniple_mapper::Sharding;
use maniple_space::{AnyPoint, AnyRect, IndexSpace, Point, for_dimension};

/// The points of each node, as rectangles that are apart.
pub(crate) type Shares = Vec<Vec<AnyRect>>;

/// The points of each node. What is wrong, if a point is to run on a node that there is not.
pub(crate) fn shares(sharding: &Sharding, domain: &AnyRect, nodes: usize) -> Result<Shares, String> {
    match sharding {
        Sharding::Blocked => Ok(blocked(domain, nodes)),
        Sharding::OnOne(node) => Ok(on_one(domain, nodes, known(*node, nodes, || format!("all points of {domain}"))?)),
        Sharding::Cyclic | Sharding::ByPoint(_) => {
            by_point(domain, nodes, |point| node_of(sharding, point, domain, nodes))
        }
    }
}

/// The node of one point.
pub(crate) fn node_of(sharding: &Sharding, point: AnyPoint, domain: &AnyRect, nodes: usize) -> Result<Rank, String> {
    let node = match sharding {
        Sharding::Blocked => {
            let holds = |share: &Vec<AnyRect>| share.iter().any(|block| block.contains(point));
            blocked(domain, nodes).iter().position(holds).unwrap_or(0)
        }
        Sharding::Cyclic => (domain.linear(point) % nodes as u64) as Rank,
        Sharding::OnOne(node) => *node,
        Sharding::ByPoint(function) => function.node_of(point, domain, nodes),
    };
    known(node, nodes, || format!("point {point}"))
}

fn known(node: usize, nodes: usize, what: impl FnOnce() -> String) -> Result<Rank, String> {
    match node < nodes {
        true => Ok(node),
        false => Err(format!("gives {} to node {node}, but there are {nodes} nodes, counted from 0", what())),
    }
}

/// Blocks of about the same volume, in the order of nodes. Two launches over one domain are split alike.
fn blocked(domain: &AnyRect, nodes: usize) -> Shares {
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
pub(crate) fn on_one(domain: &AnyRect, nodes: usize, node: Rank) -> Shares {
    let mut shares = vec![Vec::new(); nodes];
    if !domain.is_empty() {
        shares[node].push(*domain);
    }
    shares
}

/// Each point where a function says. Points side by side are one rectangle.
fn by_point(
    domain: &AnyRect,
    nodes: usize,
    mut node_of: impl FnMut(AnyPoint) -> Result<Rank, String>,
) -> Result<Shares, String> {
    for_dimension!(domain.dim(), D => {
        let mut points: Vec<Vec<Point<D>>> = vec![Vec::new(); nodes];
        for point in domain.points() {
            points[node_of(point)?].push(point.typed().map_err(|error| error.to_string())?);
        }
        let rects = |points| IndexSpace::<D>::from_points(points).rects().iter().map(|&rect| rect.into()).collect();
        Ok(points.into_iter().map(rects).collect())
    })
}

/// Which points each node has, for messages: as many as fit in a line.
pub(crate) fn shown(shares: &Shares) -> String {
    const MOST: usize = 12;
    let blocks = shares.iter().enumerate().flat_map(|(node, share)| share.iter().map(move |block| (node, block)));
    let mut blocks: Vec<(Rank, &AnyRect)> = blocks.collect();
    blocks.sort_by_key(|(_, block)| block.lo());
    let more = if blocks.len() > MOST { ", ..." } else { "" };
    let show = |(node, block): &(Rank, &AnyRect)| match block.volume() {
        1 => format!("{} to node {node}", block.lo()),
        _ => format!("{block} to node {node}"),
    };
    blocks.iter().take(MOST).map(show).collect::<Vec<_>>().join(", ") + more
}

#[cfg(test)]
mod tests {
    use maniple_space::Rect;
    use proptest::prelude::*;

    use super::*;

    fn shardings(nodes: usize) -> impl Strategy<Value = Sharding> {
        let strange = |salt: u64| {
            Sharding::by_point("strange", move |point, domain, nodes| {
                ((domain.linear(point) / 3 * salt) % nodes as u64) as usize
            })
        };
        prop_oneof![
            Just(Sharding::Blocked),
            Just(Sharding::Cyclic),
            (0..nodes).prop_map(Sharding::OnOne),
            any::<u32>().prop_map(move |salt| strange(salt.into())),
        ]
    }

    fn domains() -> impl Strategy<Value = AnyRect> {
        (prop::array::uniform2(-50..50_i64), prop::array::uniform2(0..20_i64))
            .prop_map(|(lo, extent)| Rect::<2>::new(lo, [lo[0] + extent[0] - 1, lo[1] + extent[1] - 1]).into())
    }

    fn volume(share: &[AnyRect]) -> u64 {
        share.iter().map(AnyRect::volume).sum()
    }

    proptest! {
        #[test]
        fn each_point_is_on_the_one_node_that_it_is_said_to_be_on(
            (nodes, sharding) in (1..9_usize).prop_flat_map(|nodes| (Just(nodes), shardings(nodes))), domain in domains()
        ) {
            let shares = shares(&sharding, &domain, nodes).unwrap();
            prop_assert_eq!(shares.len(), nodes);
            prop_assert_eq!(shares.iter().map(|share| volume(share)).sum::<u64>(), domain.volume());
            for point in domain.points() {
                let node = node_of(&sharding, point, &domain, nodes).unwrap();
                prop_assert!(shares[node].iter().any(|block| block.contains(point)), "{point} is not on {node}");
            }
        }

        #[test]
        fn nodes_have_about_as_many_points_in_blocks_and_cycles(domain in domains(), nodes in 1..9_usize) {
            let most = |sharding| shares(&sharding, &domain, nodes).unwrap().iter().map(|share| volume(share)).max();
            let fair = domain.volume().div_ceil(nodes as u64);
            prop_assert_eq!(most(Sharding::Cyclic), Some(fair));
            // Blocks are cut along whole rows and columns.
            prop_assert!(most(Sharding::Blocked) <= Some(2 * fair));
        }
    }

    #[test]
    fn points_side_by_side_are_one_launch() {
        let domain = AnyRect::from(Rect::<2>::from_shape([100, 4]));
        let shares = shares(&Sharding::Cyclic, &domain, 2).unwrap();
        assert_eq!(shares.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2], "{shares:?}");
    }

    #[test]
    fn a_node_that_there_is_not_is_named_with_the_point() {
        let domain = AnyRect::from(Rect::<1>::from(0..8));
        let odd = Sharding::by_point("odd", |point, _, _| point.coords()[0] as usize);
        let problem = "gives point (3) to node 3, but there are 3 nodes, counted from 0";
        assert_eq!(shares(&odd, &domain, 3).unwrap_err(), problem);
        let problem = "gives all points of (0)..=(7) to node 3, but there are 3 nodes, counted from 0";
        assert_eq!(shares(&Sharding::OnOne(3), &domain, 3).unwrap_err(), problem);
    }

    #[test]
    fn messages_show_who_has_which_points() {
        let domain = AnyRect::from(Rect::<1>::from(0..4));
        let shares = shares(&Sharding::by_point("s", |point, _, _| usize::from(point.coords()[0] == 2)), &domain, 2);
        assert_eq!(shown(&shares.unwrap()), "(0)..=(1) to node 0, (2) to node 1, (3) to node 0");
    }
}
