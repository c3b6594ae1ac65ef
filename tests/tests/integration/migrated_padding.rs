//! Leaf tasks with room around their regions that run on other nodes: they have the room there, and nothing of it comes
//! back.

use maniple::prelude::*;
use maniple::{Result, Statistics};

use crate::migrated_tasks::{Deals, ENOUGH, LendsLeaves, on_nodes, sum};

#[derive(Fields)]
struct Cell {
    value: i64,
    next: i64,
    seen: i64,
}

const ROWS: i64 = 26;
const STEPS: i64 = 6;

#[task(leaf)]
fn start(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] = 3 * point[0] + 1);
}

/// The value that comes after those two to the left and to the right of a point; beyond the cells there are zeros.
fn after(at: impl Fn(i64) -> i64) -> i64 {
    (-2..=2).map(|offset| at(offset) * (offset + 3)).sum::<i64>() % 1009
}

/// Has the values around its piece in the room around it, and leaves others there.
#[task(leaf)]
fn smooth(
    #[reads(value)] near: Piece<Cell>,
    #[layout(pad = 2)]
    #[discards(next)]
    #[writes(seen)]
    piece: Piece<Cell>,
) -> i64 {
    let (own, all) = (piece.space(), piece.next.space());
    for point in all.points().filter(|point| !own.contains(*point)) {
        assert_eq!((piece.next[point], piece.seen[point]), (0, 0), "it begins as zero");
        piece.seen[point] = -1;
    }
    near.points().for_each(|point| _ = piece.next.set(point, near.value[point]));
    let new: Vec<i64> = piece.points().map(|point| after(|offset| piece.next[point[0] + offset])).collect();
    piece.next.fill(-7);
    for (point, value) in piece.points().zip(new) {
        piece.next[point] = value;
        piece.seen[point] += 1;
    }
    (all.volume() - own.volume()) as i64
}

#[task(leaf)]
fn take_over(#[reads(next)] from: Piece<Cell>, #[discards(value)] to: Piece<Cell>) {
    to.points().for_each(|point| to.value[point] = from.next[point]);
}

/// The values in the end, how often each was made, and how much room there was.
type Smoothed = (Vec<i64>, Vec<i64>, i64);

#[task]
async fn smoothed(cx: &Context, rows: i64, block: i64) -> Result<Smoothed> {
    let cells = cx.region::<Cell>(rows as usize)?;
    cx.launch(start(&cells));
    let (pieces, near) = (cells.blocks([block])?, cells.tiles([block], [2])?);
    let mut room = 0;
    for _ in 0..STEPS {
        room += cx.index_launch(pieces.colors(), smooth(&near, &pieces)).reduce(Sum).await?;
        cx.index_launch(pieces.colors(), take_over(&pieces, &pieces));
    }
    let values = cx.map_read(&cells, Cell::value).await?.to_vec();
    Ok((values, cx.map_read(&cells, Cell::seen).await?.to_vec(), room))
}

/// As [`smoothed`] on one array.
fn model(rows: i64) -> Vec<i64> {
    let mut values: Vec<i64> = (0..rows).map(|row| 3 * row + 1).collect();
    for _ in 0..STEPS {
        let at = |row: i64| usize::try_from(row).ok().and_then(|row| values.get(row)).copied().unwrap_or(0);
        values = (0..rows).map(|row| after(|offset| at(row + offset))).collect();
    }
    values
}

/// Checks what nodes have come to, of so many rows in blocks of so many.
fn check(outcomes: Vec<(Result<Smoothed>, Statistics)>, (rows, block): (i64, i64)) {
    for (outcome, _) in outcomes {
        let (values, seen, room) = outcome.unwrap();
        assert_eq!((values, seen), (model(rows), vec![STEPS; rows as usize]), "{rows} rows in blocks of {block}");
        let pieces = (rows + block - 1) / block;
        assert_eq!(room, if rows == 0 { 0 } else { 4 * pieces * STEPS });
    }
}

#[test]
fn tasks_that_a_mapper_sends_away_have_the_room_around_their_pieces_there() {
    for nodes in [1, 2, 3] {
        for (rows, block) in [(ROWS, 5), (ROWS, 1), (ROWS, 40), (1, 1)] {
            let outcomes =
                on_nodes(&Deals::default(), &vec![ENOUGH; nodes], async |cx| cx.launch(smoothed(rows, block)).await);
            let pieces = ((rows + block - 1) / block) as usize;
            let away = (0..pieces).filter(|piece| piece % nodes != 0).count() as u64;
            // The launches of each step, all of whose points are dealt to the nodes in turn.
            assert_eq!(sum(&outcomes, |statistics| statistics.tasks_sent), 2 * STEPS as u64 * away);
            check(outcomes, (rows, block));
        }
    }
}

#[test]
fn nodes_that_have_nothing_to_do_take_padded_tasks_with_their_room() {
    for nodes in [2, 4] {
        let outcomes =
            on_nodes(&LendsLeaves::default(), &vec![ENOUGH; nodes], async |cx| cx.launch(smoothed(ROWS, 2)).await);
        check(outcomes, (ROWS, 2));
    }
}

#[test]
fn a_node_without_memory_for_the_room_leaves_the_task_where_it_is() {
    // A piece has two fields of ten rows in the room and three around it; without the room it would fit.
    let memory = [ENOUGH, 16 * 20 + 8 * 24];
    let outcomes = on_nodes(&Deals::default(), &memory, async |cx| cx.launch(smoothed(ROWS, 13)).await);
    check(outcomes, (ROWS, 13));
}

/// More room than there are rows.
#[task(leaf)]
fn scribble(
    #[layout(pad = 9)]
    #[writes(next)]
    cells: Piece<Cell>,
) {
    let own: Vec<i64> = cells.points().map(|point| cells.next[point] + point[0]).collect();
    cells.next.fill(i64::MIN);
    cells.points().zip(own).for_each(|(point, value)| cells.next[point] = value);
}

#[task]
async fn scribbled(cx: &Context) -> Result<Vec<i64>> {
    let cells = cx.region::<Cell>(5)?;
    // More pieces than rows: some have none.
    let pieces = cells.partition(13).equal()?;
    for _ in 0..3 {
        cx.index_launch(13, scribble(&pieces));
    }
    Ok(cx.map_read(&cells, Cell::next).await?.to_vec())
}

#[test]
fn what_is_left_in_the_room_on_another_node_is_nothing_to_others() {
    for nodes in [1, 2, 4] {
        let outcomes = on_nodes(&Deals::default(), &vec![ENOUGH; nodes], async |cx| cx.launch(scribbled()).await);
        for (outcome, _) in outcomes {
            assert_eq!(outcome.unwrap(), [0, 3, 6, 9, 12]);
        }
    }
}
