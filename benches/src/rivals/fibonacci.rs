//! Fibonacci numbers by their definition, a task a call: the shortest tasks that there are, in a tree.
//!
//! The size is which number; it is the answer.

use maniple::prelude::*;

use super::{Source, found, rayon_pool};
use crate::contest::{Contest, Contestant, Measure, timed};
use crate::error::Result as BenchResult;
use crate::toolbox::program::Outcome;
use crate::toolbox::{Rival, Toolbox};

/// Fibonacci numbers.
pub const CONTEST: Contest = Contest {
    name: "fibonacci",
    title: "Fibonacci(25) by its definition: time of a call, each call a task",
    contestants,
    answer: |size| number(size[0]),
    small: &[&[1], &[12]],
    measure: Measure::Unit { unit: "call", count: |size| 2 * number(size[0] + 1) - 1, size: &[25] },
};

const SOURCES: &[Source] = &[
    (Rival::Taskflow, "Taskflow, task groups", "fibonacci_taskflow.cpp"),
    (Rival::OpenMp, "OpenMP, tasks", "fibonacci_openmp.c"),
];

fn contestants(toolbox: &Toolbox) -> Vec<Contestant> {
    let cores = toolbox.cores();
    let mut contestants = vec![
        Contestant::new("Maniple, tasks and futures", cores, move |size| ours(cores, size[0])),
        Contestant::new("a recursion, on one core", 1, |size| timed(|| Ok(recursion(size[0])))),
        Contestant::new("rayon, join", cores, move |size| {
            rayon_pool(cores)?.install(|| {
                joins(size[0]);
                timed(|| Ok(joins(size[0])))
            })
        }),
    ];
    contestants.extend(found(toolbox, SOURCES));
    contestants
}

/// The number by a loop.
fn number(n: u64) -> u64 {
    (0..n).fold((0, 1), |(last, next), _| (next, last + next)).0
}

#[task]
async fn fibonacci(cx: &Context, n: u64) -> Result<u64> {
    if n < 2 {
        return Ok(n);
    }
    let left = cx.launch(fibonacci(n - 1));
    let right = cx.launch(fibonacci(n - 2));
    Ok(left.await? + right.await?)
}

fn ours(cores: usize, n: u64) -> BenchResult<Outcome> {
    let runtime = Runtime::builder().workers(cores).build()?;
    let all = || Ok(runtime.run(async |cx| cx.launch(fibonacci(n)).await)?);
    all()?;
    timed(all)
}

#[inline(never)]
fn recursion(n: u64) -> u64 {
    if n < 2 { n } else { recursion(n - 1) + recursion(n - 2) }
}

fn joins(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (left, right) = rayon::join(|| joins(n - 1), || joins(n - 2));
    left + right
}
