//! Partitions that are computed from data, in programs on several nodes: found where the data is.

use maniple::Result;
use maniple::prelude::*;
use maniple::space::Rect;
use maniple_tests::nodes::{Nodes, on_nodes};

const CELLS: i64 = 1200;

#[derive(Fields)]
struct Cell {
    color: i32,
    next: Ptr<Cell, 1>,
    around: Rect<1>,
}

/// Five colors in turn; each cell names the one a hundred further on, and those beside that one.
#[task(leaf)]
fn make(#[discards(color, next, around)] cells: Piece<Cell>) {
    for cell in cells.points() {
        let named = (cell[0] + 100) % CELLS;
        cells.color[cell] = (cell[0] % 5) as i32;
        cells.next[cell] = Point([named]).into();
        cells.around[cell] = Rect::from((named - 1).max(0)..(named + 2).min(CELLS));
    }
}

/// The points of a piece, in order.
fn points(partition: &Partition<Cell>, color: i64) -> Vec<i64> {
    partition.piece(color).unwrap().space().points().map(|point| point[0]).collect()
}

fn named(cells: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut named: Vec<i64> = cells.map(|cell| (cell + 100) % CELLS).collect();
    named.sort_unstable();
    named
}

#[test]
fn partitions_by_data_move_none_of_it_and_are_the_same_on_all_nodes() {
    for nodes in [1, 2, 3, 8] {
        let results = on_nodes(Nodes::new(nodes), async |cx, runtime| -> Result<()> {
            let cells = cx.region::<Cell>(CELLS as usize)?;
            // Other pieces than nodes.
            let blocks = cells.blocks([75])?;
            cx.index_launch(blocks.colors(), make(&blocks)).await?;
            let before = runtime.statistics();
            let colors = cx.partition_by_field(&cells, Cell::color, 5).await?;
            let image = cx.image(&cells, &blocks, Cell::next).await?;
            let preimage = cx.preimage(&cells, Cell::next, &blocks).await?;
            let touched = cx.image_of_rects(&cells, &blocks, Cell::around).await?;
            let touching = cx.preimage_of_rects(&cells, Cell::around, &blocks).await?;
            let after = runtime.statistics();
            assert_eq!(after.parcel_bytes_received, before.parcel_bytes_received, "data moves");
            for color in 0..5 {
                assert_eq!(points(&colors, color), (color..CELLS).step_by(5).collect::<Vec<_>>());
            }
            let block = |color: i64| color * 75..(color + 1) * 75;
            for color in 0..CELLS / 75 {
                assert_eq!(points(&image, color), named(block(color)));
                let sources = |wanted: &dyn Fn(i64) -> bool| {
                    (0..CELLS).filter(|cell| wanted((cell + 100) % CELLS)).collect::<Vec<_>>()
                };
                assert_eq!(points(&preimage, color), sources(&|target| block(color).contains(&target)));
                let near = |target: i64| (target - 1..target + 2).any(|target| block(color).contains(&target));
                assert_eq!(points(&touching, color), sources(&near));
                let mut around: Vec<i64> = named(block(color))
                    .into_iter()
                    .flat_map(|cell| cell - 1..cell + 2)
                    .filter(|cell| (0..CELLS).contains(cell))
                    .collect();
                around.sort_unstable();
                around.dedup();
                assert_eq!(points(&touched, color), around);
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}

#[test]
fn what_is_still_to_be_contributed_is_there_before_anybody_looks() {
    #[task(leaf)]
    fn add(#[reduces(Sum, color)] cells: Piece<Cell>) {
        cells.points().for_each(|cell| cells.color.fold(cell, 1));
    }
    let results = on_nodes(Nodes::new(3), async |cx, _| -> Result<()> {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        let (blocks, wide) = (cells.blocks([75])?, cells.tiles([75], [10])?);
        cx.index_launch(blocks.colors(), make(&blocks));
        cx.index_launch(wide.colors(), add(&wide));
        let colors = cx.partition_by_field(&cells, Cell::color, 8).await?;
        // One for its own block, and one more beside another.
        let count = |cell: &i64| {
            1 + i64::from(cell % 75 < 10 && *cell >= 75) + i64::from(cell % 75 >= 65 && *cell < CELLS - 75)
        };
        for color in 0..8 {
            let wanted: Vec<i64> = (0..CELLS).filter(|cell| cell % 5 + count(cell) == color).collect();
            assert_eq!(points(&colors, color), wanted);
        }
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[derive(Fields)]
struct Row {
    first: i64,
    narrow: i32,
}

/// Row `r` has `r % 4` entries: where they begin, of each row and of one more.
fn offset(row: i64) -> i64 {
    (0..row).map(|row| row % 4).sum()
}

#[task(leaf)]
fn make_offsets(#[discards(first, narrow)] rows: Piece<Row>) {
    for row in rows.points() {
        rows.first[row] = offset(row[0]);
        rows.narrow[row] = offset(row[0]) as i32;
    }
}

#[test]
fn what_belongs_to_rows_lies_between_their_offsets() {
    let count = 101;
    for nodes in [1, 2, 3] {
        let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
            let rows = cx.region::<Row>(count as usize + 1)?;
            let entries = cx.region::<Cell>(offset(count) as usize)?;
            let made = rows.blocks([30])?;
            cx.index_launch(made.colors(), make_offsets(&made));
            // Each has the row that ends its last one. The third is in two parts, and the last has nothing.
            let parts: [&[(i64, i64)]; 4] = [&[(0, 20)], &[(20, 57)], &[(57, 60), (80, 101)], &[]];
            let piece = |parts: &[(i64, i64)]| {
                IndexSpace::from_rects(parts.iter().map(|&(first, end)| Rect::from(first..end + 1)))
            };
            let pieces = rows.partition_into(cx.colors(4), parts.map(piece).into())?;
            let wide = cx.image_of_offsets(&entries, &pieces, Row::first).await?;
            let narrow = cx.image_of_offsets(&entries, &pieces, Row::narrow).await?;
            for (color, parts) in (0..).zip(parts) {
                let expected: Vec<i64> = parts.iter().flat_map(|&(first, end)| offset(first)..offset(end)).collect();
                assert_eq!(points(&wide, color), expected, "on {nodes} nodes");
                assert_eq!(points(&narrow, color), expected, "on {nodes} nodes");
            }
            Ok(())
        });
        results.into_iter().for_each(|result| result.unwrap());
    }
}
