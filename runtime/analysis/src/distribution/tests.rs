//! Coherence against a model: as many copies of an array as there are nodes, and one array that all tasks would see on
//! one node.

mod exchanges;
mod model;

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple_region::{FieldId, FieldMask, Privilege, Shape, ShapeTable};
use maniple_space::{AnySpace, IndexSpace, Point, Rect};
use proptest::prelude::*;

use self::model::{Model, operator, product};
use super::{
    Blocks, Coherence, DistributionStep, Layout, NodeStep, Operators, StepPart, StepPlace, assemble, order_of_uses,
    split,
};

const POINTS: i64 = 24;
const FIELDS: u32 = 2;

/// The operators of the model, both on numbers.
struct Plus;
struct Greater;

/// One launch, by its areas: for each node the points that it uses, as bits.
#[derive(Clone, Debug)]
enum Launch {
    Fill(u32),
    /// Copies of these points are given up.
    Forget(u32),
    Read(Vec<u32>),
    Write(Vec<u32>),
    Discard(Vec<u32>),
    Reduce(bool, Vec<u32>),
    /// Contributes to some; reads others, or changes them; and contributes to some more.
    Together {
        is_sum: bool,
        reduced: [Vec<u32>; 2],
        others: Vec<u32>,
        writes: bool,
    },
}

/// Areas that overlap as they like.
fn areas(nodes: usize) -> impl Strategy<Value = Vec<u32>> {
    let span = (0..POINTS as u32, 0..10_u32).prop_map(|(from, length)| bits(from, from + length));
    let sparse = any::<u32>().prop_map(|bits| bits & all());
    let each = prop::collection::vec(prop_oneof![4 => span.clone(), 1 => sparse], nodes);
    // All want the same, but for a few; or they are dealt tiles.
    let alike = (span, prop::collection::vec(0..5_u8, nodes));
    let alike =
        alike.prop_map(|(span, chance)| chance.iter().map(|chance| if *chance > 0 { span } else { 0 }).collect());
    let tiles = prop::collection::vec(0..4_u32, nodes);
    let tiles = tiles.prop_map(|tiles| tiles.iter().map(|tile| bits(tile * 6, tile * 6 + 6)).collect());
    prop_oneof![4 => each, 1 => alike, 1 => tiles]
}

/// The same, but each point is in one area at most.
fn apart(nodes: usize) -> impl Strategy<Value = Vec<u32>> {
    let blocks = (0..=POINTS as u32, 0..=POINTS as u32).prop_map(move |(one, other)| {
        let (from, to) = (one.min(other), one.max(other));
        let cut = |node: usize| from + (to - from) * node as u32 / nodes as u32;
        (0..nodes).map(|node| bits(cut(node), cut(node + 1))).collect()
    });
    let any = areas(nodes).prop_map(|areas| {
        let mut taken = 0;
        let take = |area: u32| {
            let free = area & !taken;
            taken |= free;
            free
        };
        areas.into_iter().map(take).collect()
    });
    prop_oneof![2 => blocks, 1 => any]
}

fn bits(from: u32, to: u32) -> u32 {
    (from..to.min(POINTS as u32)).fold(0, |bits, bit| bits | 1 << bit)
}

fn all() -> u32 {
    bits(0, POINTS as u32)
}

fn launch(nodes: usize) -> impl Strategy<Value = (u8, Launch)> {
    let launch = prop_oneof![
        1 => any::<u32>().prop_map(|bits| Launch::Fill(bits & all())),
        1 => any::<u32>().prop_map(|bits| Launch::Forget(bits & all())),
        4 => areas(nodes).prop_map(Launch::Read),
        2 => apart(nodes).prop_map(Launch::Write),
        2 => apart(nodes).prop_map(Launch::Discard),
        4 => (any::<bool>(), areas(nodes)).prop_map(|(operator, areas)| Launch::Reduce(operator, areas)),
        4 => (any::<[bool; 2]>(), areas(nodes), areas(nodes), areas(nodes), apart(nodes)).prop_map(
            |([is_sum, writes], one, more, read, written)| {
                let all = one.iter().chain(&more).fold(0, |all, area| all | area);
                let others = if writes { written } else { read };
                let others = others.into_iter().map(|area| area & !all).collect();
                Launch::Together { is_sum, reduced: [one, more], others, writes }
            }
        ),
    ];
    (1..1_u8 << FIELDS, launch)
}

fn programs() -> impl Strategy<Value = (usize, Vec<(u8, Launch)>, Vec<usize>)> {
    (1..10_usize).prop_flat_map(|nodes| {
        // Few different launches, each many times: what was remembered is used.
        let launches = prop::collection::vec(launch(nodes), 1..8);
        (Just(nodes), launches, prop::collection::vec(0..8_usize, 1..40))
    })
}

/// The points whose bits are set.
fn shape(bits: u32, shapes: &ShapeTable) -> Shape {
    let points = (0..POINTS).filter(|point| bits >> point & 1 == 1).map(|point| Point([point]));
    shapes.intern(&AnySpace::from(IndexSpace::<1>::from_points(points)))
}

fn shapes_of(areas: &[u32], shapes: &ShapeTable) -> Vec<Shape> {
    areas.iter().map(|&bits| shape(bits, shapes)).collect()
}

/// Returns the coherence of a region as each node of a job knows it. Each node is the home of a part of the region.
fn coherences(nodes: usize, shapes: &ShapeTable) -> Vec<Coherence> {
    let cut = |node: usize| POINTS as u32 * node as u32 / nodes as u32;
    let home: Vec<Shape> = (0..nodes).map(|node| shape(bits(cut(node), cut(node + 1)), shapes)).collect();
    (0..nodes).map(|rank| Coherence::new(rank..rank + 1, shape(all(), shapes), home.clone(), shapes)).collect()
}

fn mask(fields: u8) -> FieldMask {
    let mut mask = FieldMask::new();
    (0..FIELDS).filter(|field| fields >> field & 1 == 1).for_each(|field| mask.insert(FieldId(field)));
    mask
}

/// Finds the steps that a launch asks of nodes, each with the number of the use that asks for it. The launch counts
/// only as far as it is about `points`.
fn steps(
    known: &mut Coherence,
    (mask, launch): (&FieldMask, &Launch),
    (points, shapes): (&Shape, &ShapeTable),
) -> Vec<(u32, NodeStep)> {
    let layout = |known: &mut Coherence, areas: &[u32]| {
        let areas = shapes_of(areas, shapes).into_iter().map(|area| shapes.intersection(&area, points));
        known.layout(areas.collect(), shapes)
    };
    let use_as = |privilege: Privilege, layout: &Arc<Layout>, known: &mut Coherence| match privilege {
        Privilege::Read => known.read(mask, layout, shapes),
        Privilege::ReadWrite => known.write(mask, layout, shapes),
        Privilege::Reduce(operator) => known.reduce(mask, operator, layout, shapes),
        Privilege::Discard => {
            known.discard(mask, layout, shapes);
            Vec::new()
        }
    };
    let (privilege, areas) = match launch {
        Launch::Fill(bits) => {
            known.fill(mask, &shapes.intersection(&shape(*bits, shapes), points), shapes);
            return Vec::new();
        }
        Launch::Forget(bits) => {
            let here = shapes.intersection(&shape(*bits, shapes), points);
            let forgotten = known.forget_copies(mask, &here, shapes);
            return forgotten.into_iter().map(|step| (0, step)).collect();
        }
        Launch::Together { is_sum, reduced: [one, more], others, writes } => {
            let reduce = Privilege::Reduce(operator(*is_sum));
            let other = if *writes { Privilege::ReadWrite } else { Privilege::Read };
            let uses = [(reduce, one), (other, others), (reduce, more)].map(|(how, areas)| (how, layout(known, areas)));
            let mut all = Vec::new();
            let mut add = |of: usize, steps: Vec<NodeStep>| {
                all.extend(steps.into_iter().map(|step| (of as u32, step)));
            };
            for (of, (how, layout)) in uses.iter().enumerate() {
                add(of, known.settle_for(mask, *how, layout, shapes));
            }
            for (of, number) in order_of_uses(&uses.clone().map(|(how, _)| how)).into_iter().enumerate() {
                let (how, layout) = &uses[number];
                add(3 + of, use_as(*how, layout, known));
            }
            return all;
        }
        Launch::Read(areas) => (Privilege::Read, areas),
        Launch::Write(areas) => (Privilege::ReadWrite, areas),
        Launch::Discard(areas) => (Privilege::Discard, areas),
        Launch::Reduce(is_sum, areas) => (Privilege::Reduce(operator(*is_sum)), areas),
    };
    let layout = layout(known, areas);
    use_as(privilege, &layout, known).into_iter().map(|step| (0, step)).collect()
}

/// The knowledge of the nodes of a job: each node knows the uses of the whole region, or those of its block.
enum Job {
    Whole(Vec<Coherence>),
    InBlocks(Vec<Blocks>, Remembered),
}

/// The remembered result of each launch in each state: the state afterwards, and the steps of each node.
type Remembered = BTreeMap<(usize, u64), (u64, Vec<Vec<DistributionStep>>)>;

impl Job {
    fn new(nodes: usize, shapes: &ShapeTable) -> Self {
        Self::Whole(coherences(nodes, shapes))
    }

    /// From now on nodes know of their blocks alone. These are not alike, and some are empty.
    fn go_to_blocks(self, shapes: &ShapeTable) -> Self {
        let Self::Whole(coherences) = self else { return self };
        let nodes = coherences.len();
        let cut = |node: usize| POINTS as u32 * (node * node) as u32 / (nodes * nodes) as u32;
        let blocks = coherences
            .into_iter()
            .enumerate()
            .map(|(node, coherence)| Blocks::new(coherence, shape(bits(cut(node), cut(node + 1)), shapes), shapes));
        Self::InBlocks(blocks.collect(), Remembered::new())
    }

    /// Returns the steps of each node before a launch.
    fn launch(
        &mut self,
        number: usize,
        launch: (&FieldMask, &Launch),
        shapes: &ShapeTable,
    ) -> Vec<Vec<DistributionStep>> {
        match self {
            Self::Whole(coherences) => {
                let of_one = |known: &mut Coherence| {
                    let steps = steps(known, launch, (&shape(all(), shapes), shapes));
                    steps.into_iter().map(|(_, NodeStep { step, .. })| step).collect()
                };
                coherences.iter_mut().map(of_one).collect()
            }
            Self::InBlocks(all_blocks, remembered) => {
                agree(all_blocks);
                let before = all_blocks[0].state().unwrap();
                if let Some((after, steps)) = remembered.get(&(number, before))
                    && all_blocks[0].remembers(*after)
                {
                    all_blocks.iter_mut().for_each(|blocks| blocks.go_to(*after));
                    return steps.clone();
                }
                let steps = launch_in_blocks(all_blocks, launch, shapes);
                agree(all_blocks);
                remembered.insert((number, before), (all_blocks[0].state().unwrap(), steps.clone()));
                steps
            }
        }
    }
}

fn agree(all_blocks: &mut [Blocks]) {
    if all_blocks[0].state().is_none() {
        let states: Vec<u64> = all_blocks.iter_mut().map(Blocks::own_state).collect();
        all_blocks.iter_mut().for_each(|blocks| blocks.agree(states.clone()));
    }
    let all: Vec<Option<u64>> = all_blocks.iter_mut().map(Blocks::state).collect();
    assert!(all.iter().all(|state| *state == all[0]), "{all:?}");
}

/// Each block tells nodes what to do, and each node puts together what it is told.
fn launch_in_blocks(
    all_blocks: &mut [Blocks],
    launch: (&FieldMask, &Launch),
    shapes: &ShapeTable,
) -> Vec<Vec<DistributionStep>> {
    let mut operators = Operators::default();
    [true, false].into_iter().for_each(|is_sum| operators.add(operator(is_sum)));
    let mut told_to = Vec::new();
    for blocks in all_blocks.iter_mut() {
        let block = blocks.block().clone();
        for (of, step) in steps(blocks.change(), launch, (&block, shapes)) {
            split(vec![step], of, &operators, &mut told_to);
        }
    }
    let mut of_nodes: Vec<Vec<StepPart>> = all_blocks.iter().map(|_| Vec::new()).collect();
    told_to.into_iter().for_each(|(node, told)| of_nodes[node].push(told));
    let of_nodes: Vec<BTreeMap<StepPlace, DistributionStep>> =
        of_nodes.into_iter().map(|told| assemble(told, &operators, shapes).into_iter().collect()).collect();
    // As all nodes count exchanges alike, a node that has no part in one does nothing in it.
    let is_exchange = |(_, step): &(&StepPlace, &DistributionStep)| matches!(step, DistributionStep::Exchange { .. });
    let exchanges = of_nodes.iter().flatten().filter(is_exchange);
    let nothing: BTreeMap<StepPlace, DistributionStep> = exchanges
        .map(|(place, step)| {
            let DistributionStep::Exchange { fields, fold, .. } = step else { unreachable!("they were picked") };
            (*place, DistributionStep::Exchange { fields: fields.clone(), fold: *fold, exchange: Arc::default() })
        })
        .collect();
    let all_of = |of_node: BTreeMap<StepPlace, DistributionStep>| {
        let mut all = nothing.clone();
        all.extend(of_node);
        all.into_values().collect()
    };
    of_nodes.into_iter().map(all_of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn every_node_reads_what_it_would_read_if_it_were_the_only_one(
        (nodes, launches, order) in programs(), blocks_from in 0..40_usize
    ) {
        let shapes = ShapeTable::new();
        let mut job = Job::new(nodes, &shapes);
        let nothing = vec![[0; POINTS as usize]; FIELDS as usize];
        let has = vec![vec![[true; POINTS as usize]; FIELDS as usize]; nodes];
        let mut model = Model { nodes: vec![nothing.clone(); nodes], whole: nothing, has };
        for (time, &number) in order.iter().enumerate() {
            let (fields, launch) = &launches[number % launches.len()];
            let mask = mask(*fields);
            let value = |node: usize, point: usize| (time * 1000 + node * 100 + point) as i64 + 1;
            if time == blocks_from {
                job = job.go_to_blocks(&shapes);
            }
            let number = number % launches.len();
            model.carry_out(&job.launch(number, (&mask, launch), &shapes));
            let check = |model: &Model, areas: &[u32]| {
                for (node, area) in shapes_of(areas, &shapes).iter().enumerate() {
                    for (field, point) in product(&mask, area) {
                        assert_eq!(
                            model.nodes[node][field][point], model.whole[field][point],
                            "time {time}, {launch:?}: node {node}, field {field}, point {point}"
                        );
                    }
                }
            };
            let write = |model: &mut Model, areas: &[u32]| model.write((&mask, &shapes_of(areas, &shapes)), value);
            let contribute = |model: &mut Model, is_sum: bool, areas: &[u32]| {
                model.contribute(operator(is_sum), (&mask, &shapes_of(areas, &shapes)), value);
            };
            match launch {
                Launch::Fill(bits) => {
                    for (field, point) in product(&mask, &shape(*bits, &shapes)) {
                        model.nodes.iter_mut().for_each(|node| node[field][point] = time as i64);
                        model.has.iter_mut().for_each(|node| node[field][point] = true);
                        model.whole[field][point] = time as i64;
                    }
                }
                Launch::Forget(bits) => {
                    // What is left is the only value of a point, or that of points with contributions.
                    let again = job.launch(number, (&mask, launch), &shapes);
                    prop_assert!(again.iter().all(Vec::is_empty), "{bits:b} is given up twice");
                }
                Launch::Read(areas) => {
                    check(&model, areas);
                    let again = job.launch(number, (&mask, launch), &shapes);
                    prop_assert!(again.iter().all(Vec::is_empty), "nothing is sent twice");
                }
                Launch::Write(areas) => {
                    check(&model, areas);
                    write(&mut model, areas);
                }
                Launch::Discard(areas) => write(&mut model, areas),
                Launch::Reduce(is_sum, areas) => contribute(&mut model, *is_sum, areas),
                Launch::Together { is_sum, reduced, others, writes } => {
                    check(&model, others);
                    if *writes {
                        write(&mut model, others);
                    }
                    reduced.iter().for_each(|areas| contribute(&mut model, *is_sum, areas));
                }
            }
        }
    }

    /// Otherwise nothing would be remembered of what loops do, nor could they be replayed.
    #[test]
    fn a_loop_comes_back_to_a_state((nodes, launches, _) in programs()) {
        let shapes = ShapeTable::new();
        let mut node = coherences(nodes, &shapes).remove(0);
        let mut states = Vec::new();
        for _ in 0..40 {
            for (fields, launch) in &launches {
                steps(&mut node, (&mask(*fields), launch), (&shape(all(), &shapes), &shapes));
            }
            states.push(node.state());
        }
        prop_assert!(states[..39].contains(&states[39]), "it is always in another one: {states:?}");
    }
}

/// So many nodes of one region.
fn job(nodes: usize, points: i64, shapes: &ShapeTable) -> Vec<Coherence> {
    let home: Vec<Shape> =
        (0..nodes as i64).map(|node| block(shapes, node.min(points), (node + 1).min(points))).collect();
    (0..nodes).map(|rank| Coherence::new(rank..rank + 1, block(shapes, 0, points), home.clone(), shapes)).collect()
}

fn block(shapes: &ShapeTable, from: i64, to: i64) -> Shape {
    shapes.intern(&AnySpace::from(IndexSpace::<1>::from(Rect::<1>::from(from..to))))
}

#[test]
fn a_loop_that_writes_a_region_in_parts_and_contributes_to_it_is_in_few_states() {
    const NODES: i64 = 2;
    let (shapes, fields) = (ShapeTable::new(), FieldMask::of(FieldId(0)));
    let mut node = job(NODES as usize, 20, &shapes).remove(1);
    let parts = |from: i64, to: i64| -> Vec<Shape> {
        (0..NODES).map(|node| block(&shapes, 10 * node + from, 10 * node + to)).collect()
    };
    // As in a circuit: own nodes, nodes that others look at, and those of others.
    let (private, shared) = (node.layout(parts(2, 10), &shapes), node.layout(parts(0, 2), &shapes));
    let ghost = node.layout(vec![block(&shapes, 10, 12), block(&shapes, 0, 2)], &shapes);
    let mut states = Vec::new();
    for _ in 0..10 {
        for part in [&private, &shared, &ghost] {
            node.reduce(&fields, operator(true), part, &shapes);
        }
        for part in [&private, &shared] {
            node.write(&fields, part, &shapes);
        }
        node.read(&fields, &ghost, &shapes);
        states.push(node.state());
    }
    assert!(states[2..].iter().all(|state| *state == states[2]), "{states:?}");
}

#[test]
fn what_happens_to_no_points_leads_to_no_other_state() {
    let (shapes, fields) = (ShapeTable::new(), FieldMask::of(FieldId(0)));
    let mut node = job(1, 10, &shapes).remove(0);
    let nowhere = node.layout(vec![block(&shapes, 0, 0)], &shapes);
    node.read(&fields, &nowhere, &shapes);
    let before = node.state();
    for is_sum in [true, false] {
        assert!(node.reduce(&fields, operator(is_sum), &nowhere, &shapes).is_empty());
        node.discard(&fields, &nowhere, &shapes);
        node.fill(&fields, &block(&shapes, 0, 0), &shapes);
        assert_eq!(node.state(), before);
    }
}
