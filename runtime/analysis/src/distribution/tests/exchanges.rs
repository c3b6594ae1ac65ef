//! Tests of exchanges: the parcels that nodes send each other.

use std::sync::Arc;

use maniple_region::{FieldId, FieldMask, Shape, ShapeTable};

use super::super::{Coherence, DistributionStep, Exchange, Layout, NodeStep, Parcel};
use super::{block, job};

/// The exchange of each node when all read their areas.
fn exchanges(nodes: &mut [Coherence], areas: &[Shape], shapes: &ShapeTable) -> Vec<Arc<Exchange>> {
    let fields = FieldMask::of(FieldId(0));
    let read = each(nodes, areas, shapes, |one, layout| one.read(&fields, layout, shapes));
    let exchange = |steps: Vec<NodeStep>| match &steps[..] {
        [NodeStep { step: DistributionStep::Exchange { exchange, .. }, .. }] => Arc::clone(exchange),
        other => panic!("one exchange, not {other:?}"),
    };
    read.into_iter().map(exchange).collect()
}

/// Has every node find out by itself what it has to do.
fn each<R>(
    nodes: &mut [Coherence],
    areas: &[Shape],
    shapes: &ShapeTable,
    find: impl Fn(&mut Coherence, &Arc<Layout>) -> R,
) -> Vec<R> {
    let find = |node: &mut Coherence| {
        let layout = node.layout(areas.to_vec(), shapes);
        find(node, &layout)
    };
    nodes.iter_mut().map(find).collect()
}

#[test]
fn what_all_read_is_forwarded_along_a_tree() {
    const NODES: usize = 1000;
    let shapes = ShapeTable::new();
    let mut nodes = job(NODES, 10, &shapes);
    let fields = FieldMask::of(FieldId(0));
    let mut areas = vec![block(&shapes, 0, 0); NODES];
    areas[77] = block(&shapes, 0, 10);
    each(&mut nodes, &areas, &shapes, |one, layout| one.discard(&fields, layout, &shapes));
    let exchanges = exchanges(&mut nodes, &vec![block(&shapes, 0, 10); NODES], &shapes);
    let mut above = vec![None; NODES];
    for (node, exchange) in exchanges.iter().enumerate() {
        assert!(exchange.sends.len() + exchange.forwards.len() <= 10);
        assert_eq!(exchange.receives.len(), usize::from(node != 77));
        above[node] = exchange.receives.first().map(|parcel| parcel.with);
    }
    let rounds = |node: usize| std::iter::successors(Some(node), |&node| above[node]).count() - 1;
    assert_eq!((0..NODES).map(rounds).max(), Some(9), "the logarithm of 1000, rounded down");
}

#[test]
fn what_was_brought_last_is_brought_from_there() {
    const NODES: usize = 6;
    let shapes = ShapeTable::new();
    let mut nodes = job(NODES, NODES as i64, &shapes);
    let fields = FieldMask::of(FieldId(0));
    let turned = |by: usize| {
        (0..NODES)
            .map(|node| ((node + by) % NODES) as i64)
            .map(|tile| block(&shapes, tile, tile + 1))
            .collect::<Vec<_>>()
    };
    each(&mut nodes, &turned(0), &shapes, |one, layout| one.discard(&fields, layout, &shapes));
    for by in 1..NODES {
        for (node, exchange) in exchanges(&mut nodes, &turned(by), &shapes).iter().enumerate() {
            let with = |parcels: &[Parcel]| parcels.iter().map(|parcel| parcel.with).collect::<Vec<_>>();
            assert_eq!(with(&exchange.receives), [(node + 1) % NODES], "step {by}");
            assert_eq!(with(&exchange.sends), [(node + NODES - 1) % NODES], "step {by}");
        }
    }
}

#[test]
fn a_state_that_is_come_to_again_is_known_with_all_that_follows_from_it() {
    const NODES: usize = 3;
    let (shapes, fields) = (ShapeTable::new(), FieldMask::of(FieldId(0)));
    let mut node = job(NODES, 9, &shapes).remove(1);
    let own = node.layout((0..3).map(|node| block(&shapes, 3 * node, 3 * node + 3)).collect(), &shapes);
    let around =
        node.layout((0..3).map(|node| block(&shapes, (3 * node - 1).max(0), (3 * node + 4).min(9))).collect(), &shapes);
    let mut states = Vec::new();
    for _ in 0..4 {
        node.write(&fields, &own, &shapes);
        states.push(node.state());
        assert_eq!(node.read(&fields, &around, &shapes).len(), 1);
        states.push(node.state());
    }
    let (written, brought) = (states[4], states[5]);
    assert_ne!(written, brought);
    assert_eq!(states[4..], [written, brought, written, brought]);
    node.go_to(written);
    assert_eq!(node.read(&fields, &around, &shapes).len(), 1, "no node has it yet");
    assert_eq!(node.state(), brought);
    node.go_to(written);
    node.go_to(brought);
    assert_eq!(node.read(&fields, &around, &shapes), [], "everybody has it");
}
