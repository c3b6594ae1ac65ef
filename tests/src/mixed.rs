//! A task that launches leaf tasks which use data in every way, and what comes out, as loops over arrays.

use std::collections::BTreeSet;

use maniple::prelude::*;
use maniple::{AnyPoint, Future, IndexSpace, Point, Result};

/// The data.
#[derive(Fields)]
#[allow(missing_docs, reason = "what they are used for, their privileges say")]
pub struct Cell {
    pub input: i64,
    pub state: i64,
    pub made: f64,
    pub total: i64,
    pub least: i32,
}

#[task(leaf)]
fn begin(#[discards(input, state, total, least)] cells: Piece<Cell>) {
    for point in cells.points() {
        (cells.input[point], cells.state[point]) = (point[0] * 7 % 11, point[0]);
        (cells.total[point], cells.least[point]) = (1000, 1000);
    }
}

#[task(leaf)]
fn mix(
    #[point] at: Point<1>,
    #[reads(input)] around: Piece<Cell>,
    #[writes(state)]
    #[discards(made)]
    own: Piece<Cell>,
    #[reduces(Sum, total)]
    #[reduces(Min, least)]
    near: Piece<Cell>,
    round: i64,
    before: i64,
) -> (i64, String) {
    let seen: i64 = around.points().map(|point| around.input[point]).sum();
    for point in own.points() {
        own.made[point] = (own.state[point] * seen + before) as f64 / 3.0;
        own.state[point] = own.state[point] * 3 + seen - round;
    }
    for point in near.points() {
        near.total.fold(point, seen * (point[0] + at[0]) + round);
        near.least.fold(point, (seen - point[0] * round) as i32);
    }
    (seen, format!("{at} in round {round}"))
}

/// How large such a program is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Rows of the data.
    pub rows: i64,
    /// Pieces, hence leaf tasks a launch.
    pub pieces: i64,
    /// Launches, besides the first.
    pub rounds: i64,
    /// So many rows beyond its own are near a piece.
    pub halo: i64,
    /// Whether pieces take the rows in turn, not in blocks.
    pub is_cyclic: bool,
    /// Whether the launch of a round is named as a trace.
    pub is_traced: bool,
}

impl Size {
    /// Points of all its launches.
    #[must_use]
    pub fn leaf_tasks(self) -> u64 {
        (self.pieces * (self.rounds + 1)) as u64
    }

    fn piece_of(self, row: i64) -> i64 {
        if self.is_cyclic { row % self.pieces } else { row * self.pieces / self.rows }
    }

    fn own(self, piece: i64) -> Vec<i64> {
        (0..self.rows).filter(|&row| self.piece_of(row) == piece).collect()
    }

    fn near(self, piece: i64) -> BTreeSet<i64> {
        let near = |row: i64| (row - self.halo).max(0)..=(row + self.halo).min(self.rows - 1);
        self.own(piece).into_iter().flat_map(near).collect()
    }
}

/// The values of each field in the end, and the sum of the results of the tasks.
pub type Values = (Vec<i64>, Vec<u64>, Vec<i64>, Vec<i32>, i64);

/// The program, as a task: its data is on one node.
///
/// # Errors
/// Any error of the runtime or of a task.
#[task]
pub async fn mixed(cx: &Context, rows: i64, pieces: i64, rounds: i64, halo: i64, how: (bool, bool)) -> Result<Values> {
    let (is_cyclic, is_traced) = how;
    let size = Size { rows, pieces, rounds, halo, is_cyclic, is_traced };
    let cells = cx.region::<Cell>(rows as usize)?;
    let own = |color: AnyPoint| IndexSpace::from_points(size.own(color.coords()[0]).into_iter().map(Point::from));
    let own = cells.partition(pieces as usize).by(own)?;
    let near = |color: AnyPoint| IndexSpace::from_points(size.near(color.coords()[0]).into_iter().map(Point::from));
    let near = cells.partition(pieces as usize).by(near)?;
    cx.index_launch(pieces as usize, begin(&own));
    let (mut sum, mut before): (i64, Option<Future<i64>>) = (0, None);
    for round in 0..rounds {
        let launch = match &before {
            None => mix(&near, &own, &near, round, 0),
            Some(before) => mix(&near, &own, &near, round, before),
        };
        let results = match is_traced {
            true => cx.trace("round", |cx| cx.index_launch(pieces as usize, launch)),
            false => cx.index_launch(pieces as usize, launch),
        };
        // Some rounds are given a future.
        before = (round % 2 == 0).then(|| results.get(0)).transpose()?.map(|first| first.map(|(seen, _)| seen));
        for piece in 0..pieces {
            let (seen, text) = results.get(piece)?.await?;
            assert_eq!(text, format!("({piece}) in round {round}"));
            sum += seen;
        }
    }
    let state = cx.map_read(&cells, Cell::state).await?.to_vec();
    let made = cx.map_read(&cells, Cell::made).await?.to_vec().into_iter().map(f64::to_bits).collect();
    let total = cx.map_read(&cells, Cell::total).await?.to_vec();
    let least = cx.map_read(&cells, Cell::least).await?.to_vec();
    Ok((state, made, total, least, sum))
}

/// A launch of a program.
pub fn program(size: Size) -> maniple::Launch<Values> {
    let Size { rows, pieces, rounds, halo, is_cyclic, is_traced } = size;
    mixed(rows, pieces, rounds, halo, (is_cyclic, is_traced))
}

/// The result of the program, computed sequentially.
#[must_use]
pub fn expected(size: Size) -> Values {
    let Size { rows, pieces, rounds, .. } = size;
    let input: Vec<i64> = (0..rows).map(|row| row * 7 % 11).collect();
    let (mut state, mut made): (Vec<i64>, Vec<u64>) = ((0..rows).collect(), vec![0; rows as usize]);
    let (mut total, mut least) = (vec![1000; rows as usize], vec![1000_i32; rows as usize]);
    let (mut sum, mut before) = (0, 0);
    for round in 0..rounds {
        let mut first = 0;
        for piece in 0..pieces {
            let near = size.near(piece);
            let seen: i64 = near.iter().map(|&row| input[row as usize]).sum();
            sum += seen;
            if piece == 0 {
                first = seen;
            }
            for row in size.own(piece) {
                let place = row as usize;
                made[place] = ((state[place] * seen + before) as f64 / 3.0).to_bits();
                state[place] = state[place] * 3 + seen - round;
            }
            for row in near {
                let place = row as usize;
                total[place] += seen * (row + piece) + round;
                least[place] = least[place].min((seen - row * round) as i32);
            }
        }
        before = if round % 2 == 0 { first } else { 0 };
    }
    (state, made, total, least, sum)
}
