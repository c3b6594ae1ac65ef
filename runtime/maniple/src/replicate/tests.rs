//! Coherence against a model: as many copies of an array as there are nodes, and one array that everybody would see on one node.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple_region::{FieldId, FieldMask, OperatorId, Shape, ShapeTable};
use maniple_space::{AnyPoint, AnySpace, IndexSpace, Point};
use proptest::prelude::*;

use super::coherence::{Coherence, Parcel, Step};
use super::layout::{Layout, Rank};

const POINTS: i64 = 24;
const FIELDS: u32 = 2;

/// The operators of the model, both on numbers.
struct Plus;
struct Greater;

/// One launch, by its areas: for each node the points that it uses, as bits.
#[derive(Clone, Debug)]
enum Launch {
    Fill(u32),
    Read(Vec<u32>),
    Write(Vec<u32>),
    Discard(Vec<u32>),
    Reduce(bool, Vec<u32>),
}

/// Areas that overlap as they like.
fn areas(nodes: usize) -> impl Strategy<Value = Vec<u32>> {
    let span = (0..POINTS as u32, 0..10_u32).prop_map(|(from, length)| bits(from, from + length));
    let sparse = any::<u32>().prop_map(|bits| bits & all());
    prop::collection::vec(prop_oneof![4 => span, 1 => sparse], nodes)
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
        4 => areas(nodes).prop_map(Launch::Read),
        2 => apart(nodes).prop_map(Launch::Write),
        2 => apart(nodes).prop_map(Launch::Discard),
        4 => (any::<bool>(), areas(nodes)).prop_map(|(operator, areas)| Launch::Reduce(operator, areas)),
    ];
    (1..1_u8 << FIELDS, launch)
}

fn programs() -> impl Strategy<Value = (usize, Vec<(u8, Launch)>, Vec<usize>)> {
    (1..5_usize).prop_flat_map(|nodes| {
        // Few different launches, each many times: what was remembered is used.
        let launches = prop::collection::vec(launch(nodes), 1..8);
        (Just(nodes), launches, prop::collection::vec(0..8_usize, 1..40))
    })
}

/// What each node has, of each field; and what all would see.
struct Model {
    nodes: Vec<Vec<[i64; POINTS as usize]>>,
    whole: Vec<[i64; POINTS as usize]>,
}

fn identity(operator: OperatorId) -> i64 {
    if operator == OperatorId::of::<Plus>() { 0 } else { i64::MIN }
}

fn fold(operator: OperatorId, value: i64, contribution: i64) -> i64 {
    if operator == OperatorId::of::<Plus>() { value.wrapping_add(contribution) } else { value.max(contribution) }
}

fn points(shape: &Shape) -> Vec<usize> {
    shape.space().points().map(|point: AnyPoint| point.coords()[0] as usize).collect()
}

fn fields_of(mask: &FieldMask) -> Vec<usize> {
    mask.iter().map(|field| field.0 as usize).collect()
}

/// What each node sends and receives in the exchanges of one operation: fields, operator, and the values by other node and number.
type Sent = BTreeMap<(usize, Rank, Rank, u32), (Vec<(usize, usize)>, Vec<i64>)>;

impl Model {
    /// Carries out what each node alone has found that it has to do. Nodes must agree on who sends what to whom.
    fn carry_out(&mut self, of_nodes: &[Vec<Step>]) {
        let exchanges = |steps: &[Step]| steps.iter().filter(|step| matches!(step, Step::Exchange { .. })).count();
        let rounds = exchanges(&of_nodes[0]);
        assert!(of_nodes.iter().all(|steps| exchanges(steps) == rounds), "nodes count exchanges alike: {of_nodes:?}");
        let mut rest: Vec<&[Step]> = of_nodes.iter().map(|steps| &steps[..]).collect();
        for round in 0..=rounds {
            let mut sent = Sent::new();
            let mut now = Vec::new();
            for (node, rest) in rest.iter_mut().enumerate() {
                while let Some((step, others)) = rest.split_first() {
                    *rest = others;
                    match step {
                        Step::Identity { fields, operator, place } => {
                            for (field, point) in product(fields, place) {
                                self.nodes[node][field][point] = identity(*operator);
                            }
                        }
                        Step::Exchange { fields, fold, exchange } => {
                            now.push((node, fields, fold, exchange));
                            break;
                        }
                    }
                }
            }
            // All are sent before any arrives.
            for (node, fields, _, exchange) in &now {
                for Parcel { with, number, points } in &exchange.sends {
                    let places = product(fields, points);
                    let values = places.iter().map(|&(field, point)| self.nodes[*node][field][point]).collect();
                    let before = sent.insert((round, *node, *with, *number), (places, values));
                    assert!(before.is_none() && node != with && !points.is_empty());
                }
            }
            for (node, fields, operator, exchange) in now {
                for Parcel { with, number, points } in &exchange.receives {
                    let (places, values) =
                        sent.remove(&(round, *with, node, *number)).expect("what is awaited is sent");
                    assert_eq!(places, product(fields, points));
                    for ((field, point), value) in places.into_iter().zip(values) {
                        let place = &mut self.nodes[node][field][point];
                        *place = operator.map_or(value, |operator| fold(operator, *place, value));
                    }
                }
            }
            assert!(sent.is_empty(), "what is sent is awaited: {sent:?}");
        }
    }
}

fn product(fields: &FieldMask, shape: &Shape) -> Vec<(usize, usize)> {
    let points = points(shape);
    fields_of(fields).into_iter().flat_map(|field| points.iter().map(move |&point| (field, point))).collect()
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_node_reads_what_it_would_read_if_it_were_the_only_one((nodes, launches, order) in programs()) {
        let shapes = ShapeTable::new();
        let shape = |bits: u32| {
            let points = (0..POINTS).filter(|point| bits >> point & 1 == 1).map(|point| Point([point]));
            shapes.intern(&AnySpace::from(IndexSpace::<1>::from_points(points)))
        };
        let shapes_of = |areas: &[u32]| areas.iter().map(|&bits| shape(bits)).collect::<Vec<_>>();
        let cut = |node: usize| POINTS as u32 * node as u32 / nodes as u32;
        let home: Vec<Shape> = (0..nodes).map(|node| shape(bits(cut(node), cut(node + 1)))).collect();
        let new = |rank| Coherence::new(rank, shape(all()), home.clone(), &shapes);
        let mut coherences: Vec<Coherence> = (0..nodes).map(new).collect();
        let nothing = vec![[0; POINTS as usize]; FIELDS as usize];
        let mut model = Model { nodes: vec![nothing.clone(); nodes], whole: nothing };
        for (time, &number) in order.iter().enumerate() {
            let (fields, launch) = &launches[number % launches.len()];
            let mut mask = FieldMask::new();
            (0..FIELDS).filter(|field| fields >> field & 1 == 1).for_each(|field| mask.insert(FieldId(field)));
            let value = |node: usize, point: usize| (time * 1000 + node * 100 + point) as i64 + 1;
            let check = |model: &Model, areas: &[Shape]| {
                for (node, area) in areas.iter().enumerate() {
                    for (field, point) in product(&mask, area) {
                        assert_eq!(
                            model.nodes[node][field][point], model.whole[field][point],
                            "time {time}, {launch:?}: node {node}, field {field}, point {point}"
                        );
                    }
                }
            };
            match launch {
                Launch::Fill(bits) => {
                    coherences.iter_mut().for_each(|coherence| coherence.fill(&mask, &shape(*bits), &shapes));
                    for (field, point) in product(&mask, &shape(*bits)) {
                        model.nodes.iter_mut().for_each(|node| node[field][point] = time as i64);
                        model.whole[field][point] = time as i64;
                    }
                }
                Launch::Read(areas) => {
                    let areas = shapes_of(areas);
                    let mut read = || each(&mut coherences, &areas, &shapes, |one, layout| one.read(&mask, layout, &shapes));
                    model.carry_out(&read());
                    check(&model, &areas);
                    prop_assert!(read().iter().all(Vec::is_empty), "nothing is sent twice");
                }
                Launch::Write(areas) | Launch::Discard(areas) => {
                    let areas = shapes_of(areas);
                    if let Launch::Write(_) = launch {
                        let write = |one: &mut Coherence, layout: &Arc<Layout>| one.write(&mask, layout, &shapes);
                        model.carry_out(&each(&mut coherences, &areas, &shapes, write));
                        check(&model, &areas);
                    } else {
                        each(&mut coherences, &areas, &shapes, |one, layout| one.discard(&mask, layout, &shapes));
                    }
                    for (node, area) in areas.iter().enumerate() {
                        for (field, point) in product(&mask, area) {
                            model.nodes[node][field][point] = value(node, point);
                            model.whole[field][point] = value(node, point);
                        }
                    }
                }
                Launch::Reduce(is_sum, areas) => {
                    let operator = if *is_sum { OperatorId::of::<Plus>() } else { OperatorId::of::<Greater>() };
                    let areas = shapes_of(areas);
                    let reduce = |one: &mut Coherence, layout: &Arc<Layout>| one.reduce(&mask, operator, layout, &shapes);
                    model.carry_out(&each(&mut coherences, &areas, &shapes, reduce));
                    for (node, area) in areas.iter().enumerate() {
                        for (field, point) in product(&mask, area) {
                            for place in [&mut model.nodes[node][field][point], &mut model.whole[field][point]] {
                                *place = fold(operator, *place, value(node, point));
                            }
                        }
                    }
                }
            }
        }
    }
}
