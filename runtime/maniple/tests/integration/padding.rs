//! Room around a region that a task may use, where no values of others are.

use std::sync::Arc;

use maniple::mapper::{DefaultMapper, Mapper, RandomMapper};
use maniple::prelude::*;
use maniple::record::check;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{Error, IndexSpace, LayoutConstraint, Privilege, Requirement};

#[derive(Fields)]
struct Cell {
    value: i64,
    next: i64,
    seen: bool,
}

const SIDE: i64 = 12;

#[task(leaf)]
fn start(#[discards(value)] cells: Piece<Cell, 2>) {
    cells.points().for_each(|point| cells.value[point] = 3 * point[0] + point[1] * point[1]);
}

/// The value that comes after these of a point and those beside it; beyond the cells there are zeros.
fn after(at: impl Fn(i64, i64) -> i64) -> i64 {
    (3 * at(0, 0) + at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)) % 1009
}

/// Has the values around its tile in the room around it, and leaves rubbish there.
#[task(leaf)]
fn smooth(
    #[reads(value)] near: Piece<Cell, 2>,
    #[layout(pad = 1)]
    #[discards(next)]
    #[writes(seen)]
    tile: Piece<Cell, 2>,
) {
    let (own, all) = (tile.space(), tile.next.space());
    for point in all.points().filter(|point| !own.contains(*point)) {
        assert_eq!((tile.next[point], tile.seen[point]), (0, false), "it begins as zero");
        tile.seen[point] = true;
    }
    near.points().for_each(|point| _ = tile.next.set(point, near.value[point]));
    let new: Vec<i64> = tile.points().map(|point| after(|x, y| tile.next[[point[0] + x, point[1] + y]])).collect();
    tile.next.fill(-7);
    for (point, value) in tile.points().zip(new) {
        tile.next[point] = value;
        tile.seen[point] = true;
    }
}

#[task(leaf)]
fn take_over(#[reads(next)] from: Piece<Cell, 2>, #[discards(value)] to: Piece<Cell, 2>) {
    to.points().for_each(|point| to.value[point] = from.next[point]);
}

async fn smoothed(cx: &Context, tile: [i64; 2], steps: usize) -> Result<Vec<i64>> {
    let cells = cx.region_over::<Cell, 2>(Rect::from_shape([SIDE; 2]))?;
    cx.launch(start(&cells));
    let (tiles, near) = (cells.blocks(tile)?, cells.tiles(tile, [1, 1])?);
    for _ in 0..steps {
        cx.trace("step", |cx| {
            cx.index_launch(tiles.colors(), smooth(&near, &tiles));
            cx.index_launch(tiles.colors(), take_over(&tiles, &tiles));
        });
    }
    assert!(cx.map_read(&cells, Cell::seen).await?.to_vec().iter().all(|&seen| seen));
    Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
}

fn model(steps: usize) -> Vec<i64> {
    let mut values: Vec<i64> = (0..SIDE * SIDE).map(|n| 3 * (n / SIDE) + (n % SIDE) * (n % SIDE)).collect();
    for _ in 0..steps {
        let at = |x: i64, y: i64| {
            let is_inside = (0..SIDE).contains(&x) && (0..SIDE).contains(&y);
            if is_inside { values[(x * SIDE + y) as usize] } else { 0 }
        };
        values = (0..SIDE * SIDE).map(|n| after(|x, y| at(n / SIDE + x, n % SIDE + y))).collect();
    }
    values
}

#[test]
fn tasks_use_the_room_around_their_tiles_whatever_the_mapper_says() {
    let expected = model(12);
    for seed in 0..24_u64 {
        let mapper = move |processor: u32| -> Box<dyn Mapper> {
            let seed = seed + 100 * u64::from(processor);
            match seed % 3 {
                0 => Box::new(DefaultMapper::new()),
                1 => Box::new(RandomMapper::new(seed)),
                _ => Box::new(RandomMapper::steady(seed)),
            }
        };
        let builder = Runtime::builder().workers(2).tracing(seed % 2 == 0).record_operations(seed % 4 < 2);
        let runtime = builder.mapper_for(move |_, processor| mapper(processor.0)).build().unwrap();
        let tile = [[5, 3], [12, 12], [1, 4]][seed as usize % 3];
        let found = runtime.run(async |cx| smoothed(cx, tile, 12).await).unwrap();
        assert_eq!(found, expected, "seed {seed}");
        if seed % 4 < 2 {
            check(&runtime.take_record()).unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        }
    }
}

#[test]
fn a_loop_with_padded_tiles_is_replayed() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let found = runtime.run(async |cx| smoothed(cx, [4, 4], 40).await).unwrap();
    assert_eq!(found, model(40));
    assert!(runtime.statistics().replays > 20, "{:?}", runtime.statistics());
}

/// More room than the tiles are wide.
#[task(leaf)]
fn scribble(
    #[layout(pad = 9)]
    #[writes(next)]
    cells: Piece<Cell, 1>,
) {
    let own: Vec<i64> = cells.points().map(|point| cells.next[point] + point[0]).collect();
    cells.next.fill(i64::MIN);
    cells.points().zip(own).for_each(|(point, value)| cells.next[point] = value);
}

#[test]
fn what_is_left_in_the_room_is_nothing_to_others() {
    for seed in 0..12 {
        let runtime = Runtime::builder().workers(2).mapper(RandomMapper::steady(seed)).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(10)?;
            // More pieces than points, and pieces of pieces.
            let (pieces, halves) = (cells.partition(13).equal()?, cells.partition(2).equal()?);
            for _ in 0..6 {
                cx.index_launch(13, scribble(&pieces));
                cx.index_launch(2, scribble(&halves));
                cx.launch(scribble(&cells));
                cx.launch(scribble(&halves.piece(1)?));
            }
            let none = cx.region::<Cell>(0)?;
            cx.launch(scribble(&none)).await?;
            Ok(cx.map_read(&cells, Cell::next).await?.to_vec())
        });
        let times = |cell: i64| if cell < 5 { 18 } else { 24 };
        assert_eq!(outcome.unwrap(), (0..10).map(|cell| times(cell) * cell).collect::<Vec<_>>());
    }
}

#[test]
fn points_that_are_no_rectangle_or_at_the_end_of_all_numbers_have_no_room_around_them() {
    let outcome = Runtime::builder().workers(1).build().unwrap().run(async |cx| {
        let apart = IndexSpace::from_rects([Rect::<1>::from(0..2), Rect::from(1000..1002)]);
        for rows in [apart, Rect::new(i64::MAX - 3, i64::MAX).into(), Rect::new(i64::MIN, i64::MIN + 3).into()] {
            let cells = cx.region_over::<Cell, 1>(rows)?;
            match cx.launch(scribble(&cells)).await {
                Err(Error::Mapper { problem, .. }) => {
                    assert!(problem.contains("room for 9 points"), "{problem}");
                }
                other => panic!("{other:?}"),
            }
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_body_gets_no_more_room_than_the_layout_asks_for() {
    for (asked, used) in [(None, 1), (Some(1), 2), (Some(2), 1)] {
        let layout = LayoutConstraint { pad: asked, ..LayoutConstraint::default() };
        let task = TaskDefinition::new("uses").leaf(TaskOptions::default(), move |call| {
            call.write_padded::<i64, 1>(0, Cell::value.id(), used)?.fill(1);
            Ok(Value::new(()))
        });
        let task = Arc::new(task.layout_of(0, layout));
        let outcome = Runtime::builder().workers(1).build().unwrap().run(async |cx| {
            let cells = cx.region::<Cell>(8)?;
            let column = [Cell::value.id()].into_iter().collect();
            let requirement = Requirement::new(cells.logical().clone(), column, Privilege::ReadWrite);
            cx.launch(maniple::TaskLauncher::new(&task).requirement(requirement).typed::<()>()).await
        });
        match outcome {
            Ok(()) => assert!(asked >= Some(used)),
            Err(Error::Access { problem, .. }) => {
                assert!(asked < Some(used) && problem.contains("no room"), "{problem}");
            }
            other => panic!("{other:?}"),
        }
    }
}
