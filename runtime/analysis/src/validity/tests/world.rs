//! A region with partitions.

use std::sync::Arc;

use maniple_region::{FieldType, Forest, IndexSpaceNode, LogicalRegion, Partitioning};
use maniple_space::{AnyRect, AnySpace, IndexSpace, Rect};

use super::plan::FIELDS;

/// A region of 12 points and 4 fields, with partitions.
pub(super) struct World {
    pub(super) forest: Arc<Forest>,
    pub(super) root: LogicalRegion,
    pub(super) regions: Vec<LogicalRegion>,
    pub(super) partitions: Vec<Arc<Partitioning>>,
}

impl World {
    /// An interval, or a grid of 3 by 4.
    pub(super) fn new(is_grid: bool) -> Self {
        let line = |lo, hi| AnySpace::from(Rect::<1>::from(lo..hi));
        let some = |points: &[i64]| {
            IndexSpace::from_rects(points.iter().map(|&point| Rect::<1>::from(point..point + 1))).into()
        };
        let grid = |x: (i64, i64), y: (i64, i64)| AnySpace::from(Rect::<2>::new([x.0, y.0], [x.1, y.1]));
        let forest = Forest::new();
        let fields = forest.field_space(FIELDS);
        (0..FIELDS).for_each(|field| _ = fields.allocate(&field.to_string(), FieldType::of::<u64>()).unwrap());
        let all = if is_grid { grid((0, 2), (0, 3)) } else { line(0, 12) };
        let root = forest.region(&forest.index_space(&all), &fields).unwrap();
        let mut world = Self { forest, root: root.clone(), regions: vec![root.clone()], partitions: Vec::new() };
        let points = all.points().map(|point| AnyRect::new(point, point).unwrap().into()).collect();
        if is_grid {
            let rows = world.split(root.space(), (0..3).map(|x| grid((x, x), (0, 3))).collect());
            world.split(&rows.piece(1.into()).unwrap(), vec![grid((1, 1), (0, 1)), grid((1, 1), (2, 3))]);
            world.split(root.space(), (0..4).map(|y| grid((0, 2), (y, y))).collect());
            world.split(root.space(), vec![grid((0, 1), (0, 1)), grid((1, 2), (1, 3)), grid((0, 1), (1, 2))]);
        } else {
            let halves = world.split(root.space(), vec![line(0, 6), line(6, 12)]);
            world.split(&halves.piece(0.into()).unwrap(), vec![line(0, 3), line(3, 6)]);
            world.split(root.space(), vec![line(0, 5), line(3, 9), line(7, 12)]);
            world.split(root.space(), vec![some(&[0, 2, 4]), some(&[6, 8, 9, 11])]);
        }
        world.split(root.space(), points);
        world
    }

    fn split(&mut self, space: &IndexSpaceNode, pieces: Vec<AnySpace>) -> Arc<Partitioning> {
        let colors = AnyRect::from(Rect::<1>::from(0..pieces.len() as i64));
        let partition = self.forest.partition(space, colors, &pieces).unwrap();
        let regions = colors.points().map(|color| self.root.with_space(partition.piece(color).unwrap()));
        self.regions.extend(regions);
        self.partitions.push(Arc::clone(&partition));
        partition
    }
}
