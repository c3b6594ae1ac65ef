//! Task Bench's `stencil_1d`: each task waits for those of the step before at its own point and beside it, checks what
//! they left, and computes.
//!
//! Sizes are width, steps, and iterations of a task's work. Steps are done twice, and the second time counts. The
//! answer is how many tasks had the right inputs.

use std::hint::black_box;

use maniple_apps::options::RuntimeOptions;
use maniple_apps::taskbench::compute::square_and_add;
use maniple_apps::taskbench::kernel::KernelKind;
use maniple_apps::taskbench::{self, flags};
use rayon::prelude::*;

use super::{Source, found, rayon_pool};
use crate::contest::{Contest, Contestant, Measure, timed};
use crate::error::Result;
use crate::toolbox::program::Outcome;
use crate::toolbox::{Rival, Toolbox};

/// The stencil.
pub const CONTEST: Contest = Contest {
    name: "stencil",
    title: "Task Bench stencil_1d: the shortest tasks that still spend half of the time on work",
    contestants,
    answer: |size| size[0] * size[1],
    small: &[&[2, 9, 1], &[5, 20, 100]],
    measure: Measure::Granularity,
};

const SOURCES: &[Source] = &[
    (Rival::Mpi, "MPI, a process a core", "stencil_mpi.c"),
    (Rival::OpenMp, "OpenMP, a loop a step", "stencil_openmp_loop.c"),
    (Rival::OpenMp, "OpenMP, tasks", "stencil_openmp_tasks.c"),
    (Rival::Taskflow, "Taskflow, a graph built before", "stencil_taskflow.cpp"),
    (Rival::StarPu, "StarPU, tasks", "stencil_starpu.c"),
];

fn contestants(toolbox: &Toolbox) -> Vec<Contestant> {
    let cores = toolbox.cores();
    let mut contestants = vec![
        Contestant::new("Maniple, regions and launches", cores, move |size| ours(cores, size)),
        Contestant::new("a loop, on one core", 1, plain_loop),
        Contestant::new("rayon, a loop a step", cores, move |size| with_rayon(cores, size)),
    ];
    contestants.extend(found(toolbox, SOURCES));
    contestants
}

/// As `maniple run taskbench` does it: regions, partitions, index launches in a loop. Nothing marks that the loop
/// repeats.
fn ours(cores: usize, size: &[u64]) -> Result<Outcome> {
    let &[width, steps, iterations] = size else { unreachable!("the stencil has three sizes") };
    let kernel = if iterations > 0 { KernelKind::ComputeBound } else { KernelKind::Empty };
    let words = format!("-type stencil_1d -kernel {kernel} -width {width} -steps {steps} -iter {iterations}");
    let configuration = flags::parse(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())?;
    let options = RuntimeOptions { workers: Some(cores), ..taskbench::TaskbenchOptions::default().runtime };
    let report = taskbench::run_on(&options.start()?, configuration)?;
    Ok(Outcome { seconds: report.elapsed.as_secs_f64(), answer: report.totals.tasks as u64 })
}

/// The result that a task leaves for other tasks, alone in its cache line; and the number of tasks of its point that
/// had the right inputs.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Cell {
    step: u64,
    point: usize,
    right: u64,
}

/// A task, given the cells of the step before.
fn task(step: u64, point: usize, iterations: u64, before: &[Cell], after: &mut Cell) {
    let sources = point.saturating_sub(1)..(point + 2).min(before.len());
    let is_from = |source: usize| before[source].step + 1 == step && before[source].point == source;
    let is_right = step == 0 || sources.into_iter().all(is_from);
    if iterations > 0 {
        black_box(square_and_add(black_box(iterations as i64)));
    }
    *after = Cell { step, point, right: before[point].right + u64::from(is_right) };
}

/// Does all steps twice, each by a function that is given the cells before and after, and times the second time.
fn steps(size: &[u64], mut step: impl FnMut(u64, &[Cell], &mut [Cell])) -> Result<Outcome> {
    let mut rows = [vec![Cell::default(); size[0] as usize], vec![Cell::default(); size[0] as usize]];
    let mut all = || {
        rows.iter_mut().flatten().for_each(|cell| *cell = Cell::default());
        for number in 0..size[1] {
            let [before, after] = &mut rows;
            step(number, before, after);
            rows.swap(0, 1);
        }
        Ok(rows[0].iter().map(|cell| cell.right).sum())
    };
    all()?;
    timed(all)
}

fn plain_loop(size: &[u64]) -> Result<Outcome> {
    steps(size, |step, before, after| {
        after.iter_mut().enumerate().for_each(|(point, after)| task(step, point, size[2], before, after));
    })
}

fn with_rayon(cores: usize, size: &[u64]) -> Result<Outcome> {
    rayon_pool(cores)?.install(|| {
        steps(size, |step, before, after| {
            let points = after.par_iter_mut().with_max_len(1).enumerate();
            points.for_each(|(point, after)| task(step, point, size[2], before, after));
        })
    })
}
