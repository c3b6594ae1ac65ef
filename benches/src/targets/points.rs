//! Point tasks that do next to nothing: those of a circuit of 16 tiny pieces.

use std::time::Instant;

use maniple::{Context, Runtime};
use maniple_apps::circuit;
use maniple_apps::circuit::graph::CircuitShape;
use maniple_apps::circuit::pieces::CircuitPieces;
use maniple_apps::circuit::tasks::{calc_new_currents, distribute_charge, update_voltages};

use super::findings::{Bound, Findings, Row};
use super::{Effort, Target, tiny_circuit};
use crate::error::Result;
use crate::median;

/// Target for the cost of a task of an index launch.
pub const TARGET: Target = Target {
    name: "points",
    about: "a point task of circuit with 16 tiny pieces: traced (found by itself, and marked), untraced with launches that repeat, and untraced with \
            launches none of which was seen before, for each has a tag of its own",
    measure,
};

const STEPS: usize = 1000;

/// How many steps a trace has to be found in.
const BEFORE: usize = 200;

fn measure(effort: Effort) -> Result<Findings> {
    let start = |traced| Runtime::builder().workers(effort.cores).tracing(traced).build();
    let (traced, untraced) = (start(true)?, start(false)?);
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..effort.rounds {
        let figures = [replayed(&traced, false)?, replayed(&traced, true)?, warm(&untraced)?, cold(&untraced)?];
        times.iter_mut().zip(figures).for_each(|(times, figure)| times.push(figure * 1e6));
    }
    let [found, marked, warm, cold] = times.map(median);
    let row = |what: &str, figure, must, aim| {
        Row::new(format!("point task of a tiny circuit, {what}"), figure, "us")
            .must(Bound::AtMost(must))
            .aim(Bound::AtMost(aim))
    };
    let rows = vec![
        row("traced, without a mark", found, 0.4, 0.1),
        row("traced, marked", marked, 0.4, 0.1),
        row("untraced, launch sites warm", warm, 2.0, 0.5),
        row("untraced, launch sites cold", cold, 6.0, 3.0),
    ];
    Ok(Findings { rows, details: Vec::new() })
}

/// Seconds a task of what is replayed: more steps against fewer, so that what comes before does not count.
fn replayed(runtime: &Runtime, trace: bool) -> Result<f64> {
    let run = |steps| circuit::run_on(runtime, &circuit::CircuitOptions { trace, ..tiny_circuit(steps) });
    let (few, many) = (run(BEFORE)?, run(BEFORE + STEPS)?);
    Ok((many.time.as_secs_f64() - few.time.as_secs_f64()) / (many.tasks - few.tasks) as f64)
}

/// Seconds a task of launches that repeat.
fn warm(runtime: &Runtime) -> Result<f64> {
    let report = circuit::run_on(runtime, &tiny_circuit(STEPS))?;
    Ok(report.time.as_secs_f64() / report.tasks as f64)
}

/// Seconds a task of launches that the runtime has not seen before.
fn cold(runtime: &Runtime) -> Result<f64> {
    let seconds = runtime.run(async |cx| {
        let pieces = CircuitPieces::make(cx, shape()).await?;
        // The first makes instances.
        step(cx, &pieces, u64::MAX);
        cx.execution_fence().await?;
        let started = Instant::now();
        (0..STEPS as u64).for_each(|number| step(cx, &pieces, number));
        cx.execution_fence().await?;
        Ok(started.elapsed().as_secs_f64())
    })?;
    Ok(seconds / (STEPS * 3 * shape().pieces) as f64)
}

/// The circuit that [`tiny_circuit`] makes.
pub(super) fn shape() -> CircuitShape {
    let circuit::CircuitOptions { pieces, nodes_per_piece, wires_per_piece, inside, .. } = tiny_circuit(1);
    CircuitShape { pieces, nodes_per_piece, wires_per_piece, percent_inside: inside, seed: 1 }
}

/// A step like no other: what is known of a launch is known by its tag, too.
pub(super) fn step(cx: &Context, of: &CircuitPieces, tag: u64) {
    cx.index_launch(of.colors, calc_new_currents(&of.wires, &of.private, &of.shared, &of.ghost).tag(tag));
    cx.index_launch(of.colors, distribute_charge(&of.wires, &of.private, &of.shared, &of.ghost).tag(tag));
    cx.index_launch(of.colors, update_voltages(&of.private, &of.shared).tag(tag));
}
