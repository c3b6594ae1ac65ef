//! Memory of the program's, and rows that tasks have made, on several nodes: what programs compute is what they compute
//! on one.

use std::sync::Arc;

use maniple::mapper::{Sharding, TaskInfo};
use maniple::prelude::*;
use maniple::{AnyPoint, Runtime};
use maniple_tests::nodes::{Nodes, on_nodes};

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, what: i64) {
    cells.points().for_each(|point| cells.value[point] += what + point[0]);
}

#[task(leaf)]
fn spread(#[reads(value)] around: Piece<Cell>, #[discards(other)] cells: Piece<Cell>) {
    for point in cells.points() {
        let at = |offset: i64| around.value.get(point[0] + offset).unwrap_or(0);
        cells.other[point] = at(-1) + 10 * at(0) + 100 * at(1);
    }
}

#[task(leaf)]
fn contribute(#[reduces(Sum, value)] cells: Piece<Cell>, #[reads(other)] from: Piece<Cell>) {
    let sum: i64 = from.points().map(|point| from.other[point] % 1000).sum();
    cells.points().for_each(|point| cells.value.fold(point, sum));
}

/// Deals launches of each task in its own way, and attachments in a third one.
fn scattered(_: usize, launch: &TaskInfo<'_>, _: usize) -> Sharding {
    match launch.name {
        "attachment" => Sharding::by_point("thirds", |point, _, nodes| (point.coords()[0] as usize * 5 / 3) % nodes),
        "add" | "find" => Sharding::Cyclic,
        _ => Sharding::Blocked,
    }
}

const POINTS: i64 = 36;

/// Attaches, uses and detaches, whole and in pieces, flushed and not; all that was seen.
async fn attach_and_detach(cx: &Context) -> Result<Vec<i64>> {
    let cells = cx.region::<Cell>(POINTS as usize)?;
    let (tiles, around) = (cells.partition(6).equal()?, cells.tiles([6], [2])?);
    let mut seen = Vec::new();
    for round in 0..4 {
        let whole = cx.attach_vec(&cells, Cell::value, (0..POINTS).map(|at| at * at + round).collect())?;
        cx.index_launch(6, add(&tiles, 1));
        cx.index_launch(6, spread(&around, &tiles));
        let detached = cx.detach(whole)?;
        let pieces = cx.attach_pieces(&tiles, Cell::value, |color: AnyPoint| vec![color.coords()[0] + round; 6])?;
        cx.index_launch(6, add(&tiles, 2));
        cx.index_launch(6, contribute(&around, &tiles));
        cx.index_launch(6, spread(&around, &tiles));
        seen.extend(detached.await?);
        seen.extend(cx.map_read(&cells, Cell::other).await?.to_vec());
        let mine = cx.detach_pieces(pieces)?.await?;
        // Each node has its own: put together as a sum of all.
        let hash = mine.iter().map(|(color, values)| (color.coords()[0] + 1) * values.iter().sum::<i64>()).sum::<i64>();
        let count = mine.len() as i64;
        let (hash, count) = (cx.per_node(hash).reduce(Sum), cx.per_node(count).reduce(Sum));
        seen.extend([hash.await?, count.await?]);
        cx.index_launch(6, add(&tiles, 3));
        seen.extend(cx.map_read(&cells, Cell::value).await?.to_vec());
        cx.fill(&cells, Cell::value, round)?;
        let some = cells.partition_into(2.into(), vec![Rect::from(3..9).into(), Rect::from(20..30).into()])?;
        let pieces = cx.attach_pieces(&some, Cell::value, |_| vec![5; 10])?;
        cx.index_launch(6, spread(&around, &tiles));
        drop(cx.detach_pieces(pieces.discard())?);
        cx.index_launch(6, contribute(&around, &tiles));
        seen.extend(cx.map_read(&cells, Cell::value).await?.to_vec());
    }
    Ok(seen)
}

#[test]
fn memory_attached_on_several_nodes_gives_what_it_gives_on_one() {
    let program = async |cx: &Context, _: &Runtime| attach_and_detach(cx).await;
    let expected = on_nodes(Nodes::new(1), program).remove(0).unwrap();
    for nodes in [2, 3, 5, 8] {
        for job in [Nodes::new(nodes), Nodes::new(nodes).dealt(scattered)] {
            for seen in on_nodes(job, program) {
                assert_eq!(seen.unwrap(), expected, "on {nodes} nodes");
            }
        }
    }
}

#[task(leaf)]
fn find(#[point] point: Point<1>, sizes: Arc<Vec<usize>>) -> Output<Cell> {
    let number = point[0];
    (0..sizes[number as usize] as i64).map(|row| Cell { value: 1000 * number + row, other: row }).collect()
}

#[task(leaf)]
fn fail_at(#[point] point: Point<1>, bad: i64) -> Result<Output<Cell>> {
    match point[0] == bad {
        true => Err(Error::application("it is bad")),
        false => Ok(std::iter::repeat_with(|| Cell { value: 1, other: 2 }).take(5).collect()),
    }
}

/// Collects outputs of some sizes, uses them, and filters them again; all that was seen.
async fn collect(cx: &Context, sizes: &[usize]) -> Result<Vec<i64>> {
    let points = sizes.len();
    let (cells, pieces) = cx.collect(cx.index_launch(points, find(Arc::new(sizes.to_vec())))).await?;
    let mut seen: Vec<i64> = pieces.pieces().map(|piece| piece.volume() as i64).collect();
    cx.index_launch(points, add(&pieces, 1));
    let thirds = cells.partition(3).equal()?;
    cx.index_launch(3, add(&thirds, 4));
    seen.extend(cx.map_read(&cells, Cell::value).await?.to_vec());
    seen.extend(cx.map_read(&cells, Cell::other).await?.to_vec());
    for bad in [0, points as i64 - 1] {
        let refused = cx.collect(cx.index_launch(points, fail_at(bad))).await;
        assert!(refused.unwrap_err().to_string().contains("it is bad"));
    }
    Ok(seen)
}

#[test]
fn outputs_collected_on_several_nodes_are_those_collected_on_one() {
    let few: &[&[usize]] = &[&[0], &[4], &[3, 0, 5, 1, 0, 0, 2], &[0, 0, 9], &[100_000, 1, 50_000, 0, 7]];
    for sizes in few {
        let program = async |cx: &Context, _: &Runtime| collect(cx, sizes).await;
        let expected = on_nodes(Nodes::new(1), program).remove(0).unwrap();
        for nodes in [2, 3, 8] {
            for job in [Nodes::new(nodes), Nodes::new(nodes).dealt(scattered)] {
                for seen in on_nodes(job, program) {
                    assert!(seen.unwrap() == expected, "{sizes:?} on {nodes} nodes");
                }
            }
        }
    }
}

#[test]
fn rows_stay_on_the_node_that_made_them() {
    let sent = on_nodes(Nodes::new(4), async |cx, runtime| {
        let (_, pieces) = cx.collect(cx.index_launch(4, find(Arc::new(vec![10_000; 4])))).await?;
        cx.index_launch(4, add(&pieces, 1)).await?;
        let statistics = runtime.statistics();
        Ok((statistics.parcel_bytes_sent, statistics.bytes_copied))
    });
    sent.into_iter().for_each(|sent| assert_eq!(sent.unwrap(), (0, 0)));
}

#[test]
fn memory_that_is_refused_on_one_node_fails_on_all() {
    let outcomes = on_nodes(Nodes::new(2), async |cx, _| {
        let cells = cx.region::<Cell>(8)?;
        let halves = cells.partition(2).equal()?;
        // The vector of the second piece is too short: on the node that has it.
        let _ = cx.attach_pieces(&halves, Cell::value, |color: AnyPoint| vec![0; 4 - color.coords()[0] as usize])?;
        cx.execution_fence().await
    });
    for outcome in outcomes {
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("which has 4 points: there are 3 values"), "{message}");
    }
}

#[test]
fn a_node_detaches_what_is_its_own_however_many_pieces_there_are_elsewhere() {
    let launches = |nodes: usize, pieces: i64| {
        let counted = on_nodes(Nodes::new(nodes), async |cx, runtime| {
            let cells = cx.region::<Cell>(2 * pieces as usize + 1)?;
            let every_other: Vec<(usize, Rect<1>)> =
                (0..pieces).map(|piece| (piece as usize, Rect::from(2 * piece..2 * piece + 1))).collect();
            let some = cells.partition(pieces as usize).by_coloring(&every_other)?;
            cx.fill(&cells, Cell::value, 3)?;
            let attached = cx.attach_pieces(&some, Cell::value, |_| vec![5])?;
            cx.index_launch(pieces as usize, add(&some, 1));
            cx.execution_fence().await?;
            let before = runtime.statistics().launches;
            let mine = cx.detach_pieces(attached)?.await?.len() as u64;
            let launches = runtime.statistics().launches - before;
            // What is detached reads as zero, on each node, and what was not attached as before.
            let values = cx.map_read(&cells, Cell::value).await?.to_vec();
            assert!(
                values
                    .iter()
                    .enumerate()
                    .all(|(at, value)| *value == if at % 2 == 0 && at as i64 != 2 * pieces { 0 } else { 3 })
            );
            Ok((mine, launches))
        });
        counted.into_iter().map(Result::unwrap).collect::<Vec<_>>()
    };
    for (mine, launches) in launches(1, 40) {
        assert_eq!((mine, launches), (40, 41));
    }
    for (mine, launches) in launches(4, 160) {
        assert_eq!(mine, 40);
        assert!(launches <= 44, "{launches} for {mine} pieces");
    }
}
