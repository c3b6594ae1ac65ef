//! `.tcs` files.

mod convert;
mod damaged;
mod load;
mod merge;
mod section;
mod store;
mod vectors;
mod whole;

use std::collections::BTreeMap;
use std::ops::Range;

use maniple_files::tcs::{
    Arrays, Duplicates, Extent, Level, Listed, StoragePlan, TcsLevelKind, Tensor, Width, survey, write,
};
use proptest::prelude::*;
use proptest::strategy::Union;

/// A tensor, as a map from coordinates in the order of dimensions to elements, and how it is stored.
#[derive(Clone, Debug)]
struct Case {
    levels: Vec<Level>,
    entries: BTreeMap<Vec<u64>, f64>,
}

impl Case {
    /// The entries with coordinates in the order of levels, sorted.
    fn sorted(&self) -> Vec<(Vec<u64>, f64)> {
        let by_level = |at: &Vec<u64>| self.levels.iter().map(|level| at[level.mode]).collect();
        let sorted: BTreeMap<Vec<u64>, f64> = self.entries.iter().map(|(at, value)| (by_level(at), *value)).collect();
        sorted.into_iter().collect()
    }

    /// The entries with coordinates in the order of dimensions, in that of levels.
    fn listed(&self) -> Vec<(Vec<u64>, f64)> {
        let by_dimension = |at: &Vec<u64>| {
            let mut coordinates = vec![0; at.len()];
            self.levels.iter().zip(at).for_each(|(level, at)| coordinates[level.mode] = *at);
            coordinates
        };
        self.sorted().iter().map(|(at, value)| (by_dimension(at), *value)).collect()
    }

    /// The tensor, made straight from the definition.
    fn direct(&self) -> Tensor<f64> {
        direct(&self.levels, &self.sorted())
    }

    /// The plan that stores it like this.
    fn plan(&self, width: Width) -> StoragePlan<f64> {
        let mut extents = vec![Extent::Tight; self.levels.len()];
        self.levels.iter().for_each(|level| extents[level.mode] = Extent::Given(level.range.clone()));
        let (kinds, order) = self.levels.iter().map(|level| (level.kind, level.mode)).unzip();
        StoragePlan { kinds, order, extents, width, duplicates: Duplicates::Refuse }
    }

    /// The file, by the streaming converter.
    fn file(&self, width: Width) -> Vec<u8> {
        file(&self.plan(width), &self.listed())
    }
}

/// The file of some entries, by the streaming converter.
fn file(plan: &StoragePlan<f64>, entries: &[(Vec<u64>, f64)]) -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    let survey = survey(Listed::new(entries), plan).unwrap();
    write(&survey, Listed::new(entries), plan, &mut file).unwrap();
    file.into_inner()
}

/// The tensor of sorted entries: nodes are the entries below them.
fn direct(levels: &[Level], entries: &[(Vec<u64>, f64)]) -> Tensor<f64> {
    let mut nodes = vec![entries];
    let mut arrays = Vec::new();
    for (number, level) in levels.iter().enumerate() {
        let mut own = Arrays::default();
        let mut children = Vec::new();
        for node in nodes {
            let below = |coordinate: u64| {
                let start = node.partition_point(|(at, _)| at[number] < coordinate);
                &node[start..node.partition_point(|(at, _)| at[number] <= coordinate)]
            };
            match level.kind {
                TcsLevelKind::Dense => children.extend(level.range.clone().map(below)),
                TcsLevelKind::Sparse => {
                    own.pos.push(children.len() as i64);
                    for coordinate in level.range.clone().filter(|coordinate| !below(*coordinate).is_empty()) {
                        own.idx.push(coordinate as i64);
                        children.push(below(coordinate));
                    }
                }
            }
        }
        if level.kind == TcsLevelKind::Sparse {
            own.pos.push(children.len() as i64);
        }
        nodes = children;
        arrays.push(own);
    }
    let values = nodes.iter().map(|node| node.first().map_or(0.0, |(_, value)| *value)).collect();
    Tensor { levels: levels.to_vec(), arrays, values }
}

/// Tensors of some orders in all formats of dense and sparse levels, some without entries or extent.
fn cases(orders: Range<usize>) -> impl Strategy<Value = Case> {
    let level = (any::<bool>(), 0..3_u64, Union::new_weighted(vec![(1, Just(0).boxed()), (12, (1..5_u64).boxed())]));
    let levels = proptest::collection::vec(level, orders).prop_flat_map(|levels| {
        let order: Vec<usize> = (0..levels.len()).collect();
        (Just(levels), Just(order).prop_shuffle())
    });
    levels
        .prop_flat_map(|(levels, order)| {
            let level = |((is_sparse, first, extent), mode): ((bool, u64, u64), usize)| Level {
                range: first..first + extent,
                ..Level::new(if is_sparse { TcsLevelKind::Sparse } else { TcsLevelKind::Dense }, mode, 0)
            };
            let levels: Vec<Level> = levels.into_iter().zip(order).map(level).collect();
            let mut at = vec![Just(0_u64).boxed(); levels.len()];
            levels.iter().for_each(|level| {
                at[level.mode] = (level.range.start..level.range.end.max(level.range.start + 1)).boxed()
            });
            let most = if levels.iter().any(|level| level.extent() == 0) { 1 } else { 20 };
            let value = prop_oneof![8 => (-9..9_i32).prop_map(f64::from), 1 => Just(0.0)];
            (Just(levels), proptest::collection::btree_map(at, value, 0..most))
        })
        .prop_map(|(levels, entries)| Case { levels, entries })
}

fn widths() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::Four), Just(Width::Eight)]
}
