//! The star stencil of the Parallel Research Kernels on 4000 x 4000 points: ours against rayon, on two threads.

use maniple_apps::options::RuntimeOptions;
use maniple_apps::stencil::kernel::{add_star, weights};
use maniple_apps::stencil::{self, Extents};
use maniple_benches::{line, median};
use rayon::prelude::*;
use std::time::Instant;

const SIZE: usize = 4000;
const STEPS: usize = 20;
const RADIUS: usize = 2;
const ROUNDS: usize = 5;

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("two threads can be started");
    let options = stencil::StencilOptions {
        size: Extents { rows: SIZE, columns: SIZE },
        steps: STEPS,
        radius: RADIUS,
        runtime: RuntimeOptions { workers: Some(2), ..stencil::StencilOptions::default().runtime },
        ..stencil::StencilOptions::default()
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let report = stencil::run(&options).expect("the stencil runs");
        ours.push(report.time.as_secs_f64());
        theirs.push(pool.install(with_rayon));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let points = (SIZE * SIZE * STEPS) as f64;
    line("stencil, ours", points / ours / 1e6, "Mpoint/s", "");
    line("stencil, rayon", points / theirs / 1e6, "Mpoint/s", "");
    line("speed relative to rayon", theirs / ours, "", "at least 0.85");
}

/// The same steps over two arrays; gives the seconds that they take; the result is checked afterwards, as ours is.
fn with_rayon() -> f64 {
    let mut input: Vec<f64> = vec![0.0; SIZE * SIZE];
    let mut output = vec![0.0; SIZE * SIZE];
    input.par_chunks_mut(SIZE).enumerate().for_each(|(row, values)| {
        values.iter_mut().enumerate().for_each(|(column, value)| *value = (row + column) as f64);
    });
    output.par_iter_mut().for_each(|value| *value = 0.0);
    let start = Instant::now();
    for _ in 0..STEPS {
        let read = &input;
        output.par_chunks_mut(SIZE).enumerate().for_each(|(row, values)| {
            if (RADIUS..SIZE - RADIUS).contains(&row) {
                let inner = RADIUS..SIZE - RADIUS;
                let line = |row: usize| &read[row * SIZE..][..SIZE];
                let before: [&[f64]; RADIUS] = std::array::from_fn(|distance| &line(row - 1 - distance)[inner.clone()]);
                let after: [&[f64]; RADIUS] = std::array::from_fn(|distance| &line(row + 1 + distance)[inner.clone()]);
                add_star(&mut values[inner.clone()], line(row), before, after, &weights());
            }
        });
        input.par_chunks_mut(SIZE).for_each(|values| values.iter_mut().for_each(|value| *value += 1.0));
    }
    let seconds = start.elapsed().as_secs_f64();
    let risen = 2.0 * STEPS as f64;
    let is_inner = |index: usize| {
        let inside = |place: usize| (RADIUS..SIZE - RADIUS).contains(&place);
        inside(index / SIZE) && inside(index % SIZE)
    };
    let error = (output.par_iter().enumerate())
        .map(|(index, value)| (value - if is_inner(index) { risen } else { 0.0 }).abs() / risen)
        .reduce(|| 0.0, f64::max);
    assert!(error < stencil::TOLERANCE, "the rival is right, too");
    seconds
}
