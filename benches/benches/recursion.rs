//! Tasks that launch tasks, without regions: Fibonacci and queens, against `rayon::join` and `rayon::scope`.

use maniple::prelude::*;
use maniple_benches::{line, side_by_side};

const ROUNDS: usize = 9;
const WORKERS: usize = 2;

#[task]
async fn fib(cx: &Context, n: u32) -> Result<u64> {
    if n < 2 {
        return Ok(u64::from(n));
    }
    let (a, b) = (cx.launch(fib(n - 1)), cx.launch(fib(n - 2)));
    Ok(a.await? + b.await?)
}

fn rayon_fib(n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (a, b) = rayon::join(|| rayon_fib(n - 1), || rayon_fib(n - 2));
    a + b
}

/// How many calls it takes to compute a Fibonacci number by recursion.
fn calls(n: u32) -> u64 {
    if n < 2 { 1 } else { 1 + calls(n - 1) + calls(n - 2) }
}

/// The queens on the first rows of a board: which columns and diagonals they attack in the next row.
#[derive(Clone, Copy, Default)]
struct Attacked {
    row: u32,
    columns: u32,
    left: u32,
    right: u32,
}

impl Attacked {
    /// With one more queen, in each place that is not attacked.
    fn next(self, size: u32) -> impl Iterator<Item = Self> {
        let taken = self.columns | self.left | self.right;
        (0..size).map(|column| 1 << column).filter(move |queen| taken & queen == 0).map(move |queen| Self {
            row: self.row + 1,
            columns: self.columns | queen,
            left: (self.left | queen) << 1,
            right: (self.right | queen) >> 1,
        })
    }
}

#[task]
async fn queens(cx: &Context, board: Attacked, size: u32) -> Result<u64> {
    if board.row == size {
        return Ok(1);
    }
    let next: Vec<_> = board.next(size).map(|board| cx.launch(queens(board, size))).collect();
    let mut solutions = 0;
    for future in next {
        solutions += future.await?;
    }
    Ok(solutions)
}

fn rayon_queens(board: Attacked, size: u32) -> u64 {
    if board.row == size {
        return 1;
    }
    let mut solutions: Vec<_> = board.next(size).map(|board| (board, 0)).collect();
    rayon::scope(|scope| {
        for (board, found) in &mut solutions {
            scope.spawn(move |_| *found = rayon_queens(*board, size));
        }
    });
    solutions.iter().map(|(_, found)| found).sum()
}

/// How many boards there are, with any number of queens.
fn boards(board: Attacked, size: u32) -> u64 {
    1 + board.next(size).map(|board| boards(board, size)).sum::<u64>()
}

fn main() {
    let runtime = Runtime::builder().workers(WORKERS).build().expect("two workers can be started");
    let rayon = rayon::ThreadPoolBuilder::new().num_threads(WORKERS).build().expect("two threads can be started");
    println!("{WORKERS} workers; {:<36} {:>10} {:<8} wanted", "what", "median", "unit");

    const N: u32 = 27;
    let (ours, theirs) = side_by_side(
        ROUNDS,
        || assert_eq!(runtime.run_task(fib(N)).expect("no task fails"), 196_418),
        || assert_eq!(rayon.install(|| rayon_fib(N)), 196_418),
    );
    report("fibonacci", (ours, theirs, calls(N)), "rayon::join", "at most 0.2, aim 0.04");

    const SIZE: u32 = 9;
    let (ours, theirs) = side_by_side(
        ROUNDS,
        || assert_eq!(runtime.run_task(queens(Attacked::default(), SIZE)).expect("no task fails"), 352),
        || assert_eq!(rayon.install(|| rayon_queens(Attacked::default(), SIZE)), 352),
    );
    report("queens", (ours, theirs, boards(Attacked::default(), SIZE)), "rayon::scope", "at most 0.2, aim 0.04");
}

/// Lines for a program, ours and theirs, in seconds for so many tasks.
fn report(what: &str, (ours, theirs, tasks): (f64, f64, u64), rival: &str, wanted: &str) {
    line(&format!("{what}: a task"), ours * 1e6 / tasks as f64, "us", wanted);
    line(&format!("{what}: a call, {rival}"), theirs * 1e6 / tasks as f64, "us", "");
    line(&format!("{what}: ours to {rival}"), ours / theirs, "times", "");
}
