//! In how many ways queens can stand on a board so that none attacks another: a tree of tasks, one for each queen that
//! is tried.
//!
//! The size is the rows of the board. The answer is the number of ways.

use maniple::prelude::*;

use super::{Source, found, rayon_pool};
use crate::contest::{Contest, Contestant, Measure, timed};
use crate::error::Result as BenchResult;
use crate::toolbox::program::Outcome;
use crate::toolbox::{Rival, Toolbox};

/// Queens.
pub const CONTEST: Contest = Contest {
    name: "queens",
    title: "11 queens: time of a queen that is placed, each a task",
    contestants,
    answer: |size| solutions(Board::new(size[0])),
    small: &[&[1], &[8]],
    measure: Measure::Unit { unit: "queen", count: |size| boards(Board::new(size[0])) - 1, size: &[11] },
};

const SOURCES: &[Source] = &[
    (Rival::Taskflow, "Taskflow, task groups", "queens_taskflow.cpp"),
    (Rival::OpenMp, "OpenMP, tasks", "queens_openmp.c"),
];

fn contestants(toolbox: &Toolbox) -> Vec<Contestant> {
    let cores = toolbox.cores();
    let mut contestants = vec![
        Contestant::new("Maniple, tasks and futures", cores, move |size| ours(cores, size[0])),
        Contestant::new("a recursion, on one core", 1, |size| timed(|| Ok(solutions(Board::new(size[0]))))),
        Contestant::new("rayon, join", cores, move |size| {
            let board = Board::new(size[0]);
            rayon_pool(cores)?.install(|| {
                joins(board);
                timed(|| Ok(joins(board)))
            })
        }),
    ];
    contestants.extend(found(toolbox, SOURCES));
    contestants
}

/// A board with queens on its first rows: the columns that have one, and those of the next row that are attacked along
/// either diagonal, a bit each.
#[derive(Clone, Copy, Debug)]
struct Board {
    all: u64,
    columns: u64,
    left: u64,
    right: u64,
}

impl Board {
    fn new(rows: u64) -> Self {
        Self { all: (1 << rows) - 1, columns: 0, left: 0, right: 0 }
    }

    fn is_full(self) -> bool {
        self.columns == self.all
    }

    /// The columns of the next row where a queen can stand, a bit each.
    fn free(self) -> u64 {
        self.all & !(self.columns | self.left | self.right)
    }

    /// The boards with a queen more.
    fn next(self) -> impl Iterator<Item = Self> {
        let others = |&free: &u64| Some(free & (free - 1)).filter(|&free| free != 0);
        let bits = std::iter::successors(Some(self.free()).filter(|&free| free != 0), others);
        bits.map(move |free| self.with(first(free)))
    }

    /// With a queen more.
    fn with(self, column: u64) -> Self {
        let Self { all, columns, left, right } = self;
        Self { all, columns: columns | column, left: (left | column) << 1, right: (right | column) >> 1 }
    }
}

/// The lowest of some columns.
fn first(columns: u64) -> u64 {
    columns & columns.wrapping_neg()
}

#[task]
async fn queens(cx: &Context, board: Board) -> Result<u64> {
    if board.is_full() {
        return Ok(1);
    }
    let below: Vec<_> = board.next().map(|next| cx.launch(queens(next))).collect();
    let mut sum = 0;
    for solutions in below {
        sum += solutions.await?;
    }
    Ok(sum)
}

fn ours(cores: usize, rows: u64) -> BenchResult<Outcome> {
    let runtime = Runtime::builder().workers(cores).build()?;
    let board = Board::new(rows);
    let all = || Ok(runtime.run(async |cx| cx.launch(queens(board)).await)?);
    all()?;
    timed(all)
}

#[inline(never)]
fn solutions(board: Board) -> u64 {
    if board.is_full() { 1 } else { board.next().map(solutions).sum() }
}

/// How many boards are looked at, the empty one among them.
fn boards(board: Board) -> u64 {
    1 + board.next().map(boards).sum::<u64>()
}

fn joins(board: Board) -> u64 {
    match (board.is_full(), board.free()) {
        (true, _) => 1,
        (false, 0) => 0,
        (false, free) => joins_of(board, free),
    }
}

/// A queen in the first of some columns, and beside it one in each of the others.
fn joins_of(board: Board, columns: u64) -> u64 {
    let (column, others) = (first(columns), columns & (columns - 1));
    let with_first = || joins(board.with(column));
    if others == 0 {
        return with_first();
    }
    let (first, others) = rayon::join(with_first, || joins_of(board, others));
    first + others
}
