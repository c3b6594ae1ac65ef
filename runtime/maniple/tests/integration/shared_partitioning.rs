//! Partitions by what fields say, of so many points that workers share the work: the same as one worker makes them.

use maniple::prelude::*;
use maniple::{AnySpace, IndexSpace, LogicalPartition, Relation};

#[derive(Fields)]
struct Node {
    color: i64,
    next: Ptr<Node>,
    reach: Rect<1>,
}

const ROWS: i64 = 500_000;
const COLORS: usize = 7;

/// Some number that follows from a row, below a bound.
fn drawn(row: i64, salt: u64, below: i64) -> i64 {
    ((row as u64 ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) as i64 % below
}

#[task(leaf)]
fn fill(#[discards(color, next, reach)] nodes: Piece<Node>) {
    for point in nodes.points() {
        let row = point[0];
        // Long runs, single points, and some of no color.
        nodes.color[point] =
            if row % 50_000 < 30_000 { row / 50_000 % 9 } else { drawn(row, 1, 2 * COLORS as i64) - 1 };
        nodes.next[point] = Ptr::row(if row % 3 == 0 { drawn(row, 2, ROWS) } else { (row + 5).min(ROWS - 1) });
        let low = drawn(row, 3, ROWS);
        nodes.reach[point] = Rect::from(low..low + drawn(row, 4, 4));
    }
}

/// The pieces of all kinds of partitions, as so many workers make them of rows with holes or without.
fn pieces(workers: usize, with_holes: bool) -> Vec<AnySpace> {
    let runtime = Runtime::builder().workers(workers).build().unwrap();
    let found = runtime.run(async |cx| {
        let points = match with_holes {
            false => IndexSpace::from(Rect::from(0..ROWS)),
            true => IndexSpace::from_rects((0..ROWS / 100).map(|block| Rect::from(100 * block..100 * block + 60))),
        };
        let nodes = cx.region_over::<Node, 1>(points)?;
        let parts = nodes.partition(COLORS).equal()?;
        cx.index_launch(COLORS, fill(&parts));
        let by_color = cx.partition_by_field(&nodes, Node::color, COLORS).await?;
        let partitions = [
            cx.image(&nodes, &by_color, Node::next).await?,
            cx.preimage(&nodes, Node::next, &by_color).await?,
            cx.image_of_rects(&nodes, &by_color, Node::reach).await?,
            cx.preimage_of_rects(&nodes, Node::reach, &parts).await?,
            by_color,
        ];
        Ok(partitions.iter().flat_map(|partition| partition.pieces().map(|piece| piece.clone().into())).collect())
    });
    found.unwrap()
}

#[test]
fn several_workers_find_the_pieces_that_one_finds() {
    for with_holes in [false, true] {
        let one = pieces(1, with_holes);
        assert!(one.iter().map(AnySpace::volume).sum::<u64>() > ROWS as u64);
        for workers in [2, 3, 5] {
            assert!(pieces(workers, with_holes) == one, "{workers} workers");
        }
    }
}

#[derive(Fields)]
struct Run {
    first: u32,
    end: u64,
}

/// Runs of 0 to 3 rows each, which follow one another.
fn first_of(run: i64) -> i64 {
    run * 3 / 2 + drawn(run, 5, 2)
}

#[task(leaf)]
fn fill_runs(#[discards(first, end)] runs: Piece<Run>) {
    for point in runs.points() {
        runs.first[point] = first_of(point[0]) as u32;
        runs.end[point] = (first_of(point[0]) + point[0] % 2) as u64;
    }
}

#[test]
fn ranges_of_many_rows_are_those_that_their_fields_say() {
    let stretches = |with_holes: bool| match with_holes {
        false => vec![Rect::<1>::from(0..ROWS)],
        true => (0..ROWS / 1000).map(|block| Rect::from(1000 * block..1000 * block + 990)).collect(),
    };
    for (with_holes, workers) in [(false, 1), (false, 4), (true, 1), (true, 4)] {
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let (sources, found) = runtime
            .run(async |cx| {
                let runs = cx.region_over::<Run, 1>(IndexSpace::from_rects(stretches(with_holes)))?;
                let parts = runs.partition(3).equal()?;
                cx.index_launch(3, fill_runs(&parts));
                let nodes = cx.region::<Node>(2 * ROWS as usize)?;
                let between = Relation::Between(Run::first.id(), Run::end.id());
                let between = cx.logical_image(nodes.logical(), parts.logical(), between).await?;
                let offsets = Relation::Offsets(Run::first.id());
                let offsets = cx.logical_image(nodes.logical(), parts.logical(), offsets).await?;
                let sources: Vec<_> = parts.pieces().cloned().collect();
                let volumes = |partition: &LogicalPartition| -> Vec<u64> {
                    partition.partitioning().pieces().iter().map(|piece| piece.space().volume()).collect()
                };
                Ok((sources, [volumes(&between), volumes(&offsets)]))
            })
            .unwrap();
        let rows = |space: &IndexSpace<1>| space.points().map(|point| point[0]).collect::<Vec<_>>();
        let lengths = |space: &IndexSpace<1>| rows(space).iter().map(|row| row % 2).sum::<i64>() as u64;
        // Runs have no row in common; the last of a stretch names none.
        let has_next = |row: &i64| if with_holes { row % 1000 < 989 } else { *row < ROWS - 1 };
        let length = |row: i64| first_of(row + 1) - first_of(row);
        let steps = |space: &IndexSpace<1>| rows(space).into_iter().filter(has_next).map(length).sum::<i64>() as u64;
        assert_eq!(found[0], sources.iter().map(lengths).collect::<Vec<_>>(), "{with_holes}, {workers} workers");
        assert_eq!(found[1], sources.iter().map(steps).collect::<Vec<_>>(), "{with_holes}, {workers} workers");
    }
}
