//! Regions, partitions and fields that come and go in the loop of a program on several nodes, and times.

use maniple::prelude::*;
use maniple::{Field, FieldType, LocalField, Result};
use maniple_tests::nodes::{Nodes, on_nodes};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn start(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] = cell[0]);
}

#[task(leaf)]
fn smooth(#[reads(value)] around: Piece<Cell>, #[discards(value)] to: Piece<Cell>) {
    for cell in to.points() {
        let beside = |step: i64| around.value.get(cell[0] + step).unwrap_or(7);
        to.value[cell] = (beside(-1) + 3 * beside(0) + beside(1)) % 1009;
    }
}

#[task(leaf)]
fn take_over(#[reads(value)] from: Piece<Cell>, #[writes(value)] to: Piece<Cell>) {
    to.points().for_each(|cell| to.value[cell] = from.value[cell]);
}

const STEPS: usize = 60;

/// The values after the loop, and how many of its steps were replayed, on each node.
fn loops(nodes: usize, marked: bool) -> Vec<(Vec<i64>, u64)> {
    let outcomes = on_nodes(Nodes::new(nodes), async |cx, runtime| {
        let cells = cx.region::<Cell>(24)?;
        cx.index_launch(6, start(&cells.partition(6).equal()?));
        let began = cx.time();
        for _ in 0..STEPS {
            let step = |cx: &Context| -> Result<()> {
                let split = cells.partition(6).equal()?;
                let around = cells.around(&split, [1])?;
                let temporary = cx.region::<Cell>(24)?;
                let parts = temporary.blocks([4])?;
                cx.index_launch(6, smooth(&around, &parts));
                cx.index_launch(6, take_over(&parts, &split));
                cx.destroy_region(&temporary)?;
                cx.destroy_partition(&around)?;
                cx.destroy_partition(&split)
            };
            if marked { cx.trace("step", step)? } else { step(cx)? }
        }
        // All nodes have the same times.
        let (began, ended) = (began.await?, cx.time().await?);
        let times = cx.per_node(ended.as_nanos() as u64).all().await?;
        assert!(began <= ended && times.iter().all(|time| *time == times[0]), "{times:?}");
        Ok((cx.map_read(&cells, Cell::value).await?.to_vec(), runtime.statistics().replays))
    });
    outcomes.into_iter().map(Result::unwrap).collect()
}

#[test]
fn loops_with_regions_that_come_and_go_are_replayed_on_all_nodes() {
    let (expected, _) = loops(1, true).remove(0);
    for (nodes, marked) in [(1, true), (2, true), (3, true), (2, false)] {
        for (node, (values, replays)) in loops(nodes, marked).into_iter().enumerate() {
            assert_eq!(values, expected, "node {node} of {nodes}");
            assert!(!marked || replays > 10, "node {node} of {nodes}, marked: {marked}: {replays}");
        }
    }
}

#[test]
fn local_fields_are_the_same_on_all_nodes() {
    for nodes in [1, 2, 3] {
        let outcomes = on_nodes(Nodes::new(nodes), async |cx, _| {
            let cells = cx.region::<Cell>(24)?;
            cx.index_launch(6, start(&cells.partition(6).equal()?));
            for _ in 0..20 {
                let copy: LocalField<Cell, i64> = cx.local_field(&cells, "copy")?;
                cx.copy(cells.field(Cell::value), cells.field(*copy));
                cx.fill(&cells, Cell::value, 1)?;
                cx.contribute(Sum, cells.field(*copy), cells.field(Cell::value));
            }
            Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
        });
        for outcome in outcomes {
            assert_eq!(outcome.unwrap(), (20..44).collect::<Vec<i64>>());
        }
    }
}

#[test]
fn loops_with_fields_that_come_and_go_are_replayed_on_all_nodes() {
    for (nodes, marked) in [(1, true), (2, true), (3, true), (2, false)] {
        let outcomes = on_nodes(Nodes::new(nodes), async |cx, runtime| {
            let cells = cx.region::<Cell>(24)?;
            let (split, fields) = (cells.partition(6).equal()?, cells.logical().fields());
            cx.index_launch(6, start(&split));
            for _ in 0..STEPS {
                let step = |cx: &Context| -> Result<()> {
                    let copy = Field::<Cell, i64>::new(fields.allocate("copy", FieldType::of::<i64>())?);
                    // Zero, whatever an earlier field with this id held.
                    cx.contribute(Sum, cells.field(copy), cells.field(Cell::value));
                    cx.copy(cells.field(Cell::value), cells.field(copy));
                    cx.index_launch(6, start(&split));
                    cx.contribute(Sum, cells.field(copy), cells.field(Cell::value));
                    cx.free_field(fields, copy.id())
                };
                if marked { cx.trace("step", step)? } else { step(cx)? }
            }
            Ok((cx.map_read(&cells, Cell::value).await?.to_vec(), runtime.statistics().replays))
        });
        let expected: Vec<i64> = (0..24).map(|cell| cell * (STEPS as i64 + 1)).collect();
        for (node, outcome) in outcomes.into_iter().enumerate() {
            let (values, replays) = outcome.unwrap();
            assert_eq!(values, expected, "node {node} of {nodes}");
            assert!(!marked || replays > 10, "node {node} of {nodes}, marked: {marked}: {replays}");
        }
    }
}
