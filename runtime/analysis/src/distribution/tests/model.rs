//! All values on all nodes, one by one, as steps change them.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple_region::{FieldMask, OperatorId, Shape};
use maniple_space::AnyPoint;

use super::super::{DistributionStep, Exchange, Parcel, Rank};
use super::{Greater, POINTS, Plus};

/// The value of a node in the place of a copy that it gave up.
pub(super) const FORGOTTEN: i64 = -77;

/// A model of the data: the values of each field on each node, and the values that all nodes would see.
pub(super) struct Model {
    pub(super) nodes: Vec<Vec<[i64; POINTS as usize]>>,
    pub(super) whole: Vec<[i64; POINTS as usize]>,
    /// Whether each node is known to have the current value.
    pub(super) has: Vec<Vec<[bool; POINTS as usize]>>,
}

pub(super) fn operator(is_sum: bool) -> OperatorId {
    if is_sum { OperatorId::of::<Plus>() } else { OperatorId::of::<Greater>() }
}

pub(super) fn identity(operator: OperatorId) -> i64 {
    if operator == OperatorId::of::<Plus>() { 0 } else { i64::MIN }
}

pub(super) fn fold(operator: OperatorId, value: i64, contribution: i64) -> i64 {
    if operator == OperatorId::of::<Plus>() { value.wrapping_add(contribution) } else { value.max(contribution) }
}

pub(super) fn points(shape: &Shape) -> Vec<usize> {
    shape.space().points().map(|point: AnyPoint| point.coords()[0] as usize).collect()
}

pub(super) fn fields_of(mask: &FieldMask) -> Vec<usize> {
    mask.iter().map(|field| field.0 as usize).collect()
}

/// The parcels under way in one round of exchanges: fields and points with their values, by round, sender, receiver and
/// number.
pub(super) type Sent = BTreeMap<(usize, Rank, Rank, u32), (Vec<(usize, usize)>, Vec<i64>)>;

impl Model {
    /// Carries out what each node alone has found that it has to do. Nodes must agree on which node sends what to
    /// which.
    pub(super) fn carry_out(&mut self, of_nodes: &[Vec<DistributionStep>]) {
        let exchanges = |steps: &[DistributionStep]| {
            steps.iter().filter(|step| matches!(step, DistributionStep::Exchange { .. })).count()
        };
        let rounds = exchanges(&of_nodes[0]);
        assert!(of_nodes.iter().all(|steps| exchanges(steps) == rounds), "nodes count exchanges alike: {of_nodes:?}");
        let mut rest: Vec<&[DistributionStep]> = of_nodes.iter().map(|steps| &steps[..]).collect();
        for round in 0..=rounds {
            let mut sent = Sent::new();
            let mut now = Vec::new();
            for (node, rest) in rest.iter_mut().enumerate() {
                while let Some((step, others)) = rest.split_first() {
                    *rest = others;
                    match step {
                        DistributionStep::Identity { fields, operator, place } => {
                            for (field, point) in product(fields, place) {
                                self.nodes[node][field][point] = identity(*operator);
                            }
                        }
                        DistributionStep::Forget { fields, place } => {
                            for (field, point) in product(fields, place) {
                                let value = std::mem::replace(&mut self.nodes[node][field][point], FORGOTTEN);
                                let had = std::mem::replace(&mut self.has[node][field][point], false);
                                // What has been overwritten elsewhere was no copy any more.
                                let others = || self.nodes.iter().any(|other| other[field][point] == value);
                                assert!(!had || others(), "node {node} gives up the only value of {field}, {point}");
                            }
                        }
                        DistributionStep::Exchange { fields, fold, exchange } => {
                            now.push((node, fields, fold, exchange));
                            break;
                        }
                    }
                }
            }
            // All are sent before any arrives.
            for (node, fields, _, exchange) in &now {
                self.send((round, *node), fields, &exchange.sends, &mut sent);
            }
            // A node that has received all of its parcels passes some on.
            while !now.is_empty() {
                let has_all = |(node, _, _, exchange): &(Rank, &FieldMask, _, &Arc<Exchange>)| {
                    exchange
                        .receives
                        .iter()
                        .all(|parcel| sent.contains_key(&(round, parcel.with, *node, parcel.number)))
                };
                let next = now.iter().position(has_all).expect("what is awaited is sent");
                let (node, fields, operator, exchange) = now.swap_remove(next);
                for Parcel { with, number, points, .. } in &exchange.receives {
                    let (places, values) = sent.remove(&(round, *with, node, *number)).expect("it is there");
                    assert_eq!(places, product(fields, points));
                    for ((field, point), value) in places.into_iter().zip(values) {
                        let has = std::mem::replace(&mut self.has[node][field][point], true);
                        assert!(!has || operator.is_some(), "node {node} is sent what it has: {field}, {point}");
                        let place = &mut self.nodes[node][field][point];
                        *place = operator.map_or(value, |operator| fold(operator, *place, value));
                    }
                }
                self.send((round, node), fields, &exchange.forwards, &mut sent);
            }
            assert!(sent.is_empty(), "what is sent is awaited: {sent:?}");
        }
    }

    /// Each node writes its area.
    pub(super) fn write(&mut self, (fields, areas): (&FieldMask, &[Shape]), value: impl Fn(Rank, usize) -> i64) {
        for (node, area) in areas.iter().enumerate() {
            for (field, point) in product(fields, area) {
                self.nodes[node][field][point] = value(node, point);
                self.whole[field][point] = value(node, point);
                self.has.iter_mut().for_each(|node| node[field][point] = false);
                self.has[node][field][point] = true;
            }
        }
    }

    /// Each node contributes to its area.
    pub(super) fn contribute(
        &mut self,
        operator: OperatorId,
        (fields, areas): (&FieldMask, &[Shape]),
        value: impl Fn(Rank, usize) -> i64,
    ) {
        for (node, area) in areas.iter().enumerate() {
            for (field, point) in product(fields, area) {
                self.has.iter_mut().for_each(|node| node[field][point] = false);
                for place in [&mut self.nodes[node][field][point], &mut self.whole[field][point]] {
                    *place = fold(operator, *place, value(node, point));
                }
            }
        }
    }

    pub(super) fn send(&self, (round, node): (usize, Rank), fields: &FieldMask, parcels: &[Parcel], sent: &mut Sent) {
        for Parcel { with, number, points, .. } in parcels {
            let places = product(fields, points);
            let values = places.iter().map(|&(field, point)| self.nodes[node][field][point]).collect();
            let before = sent.insert((round, node, *with, *number), (places, values));
            assert!(before.is_none() && node != *with && !points.is_empty());
        }
    }
}

pub(super) fn product(fields: &FieldMask, shape: &Shape) -> Vec<(usize, usize)> {
    let points = points(shape);
    fields_of(fields).into_iter().flat_map(|field| points.iter().map(move |&point| (field, point))).collect()
}
