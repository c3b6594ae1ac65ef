//! Twice as many workers as cores against as many.

use std::time::Duration;

use maniple::Runtime;
use maniple_apps::circuit;
use maniple_apps::taskbench::{self, flags};

use super::findings::{Bound, Findings, Row};
use super::{Effort, Target, tiny_circuit};
use crate::error::Result;
use crate::median;

/// Target for the cost of workers without a core.
pub const TARGET: Target = Target {
    name: "oversubscribed",
    about: "twice as many workers as cores against as many: circuit of 16 tiny pieces, and Task Bench's stencil with short tasks",
    measure,
};

/// A program on a runtime; gives the time that it says it takes.
type Program = dyn Fn(&Runtime) -> Result<Duration>;

fn measure(effort: Effort) -> Result<Findings> {
    let start = |workers, traced| Runtime::builder().workers(workers).tracing(traced).build();
    let mut rows = Vec::new();
    for (what, traced, program) in [
        ("circuit, traced", true, circuit(4000)),
        ("circuit, untraced", false, circuit(300)),
        ("stencil_1d, traced", true, stencil(2 * effort.cores, 8000)),
        ("stencil_1d, untraced", false, stencil(2 * effort.cores, 1000)),
    ] {
        let (enough, many) = (start(effort.cores, traced)?, start(2 * effort.cores, traced)?);
        let mut times: [Vec<f64>; 2] = Default::default();
        for _ in 0..effort.rounds {
            times[0].push(program(&enough)?.as_secs_f64());
            times[1].push(program(&many)?.as_secs_f64());
        }
        let [enough, many] = times.map(median);
        let (cores, workers) = (effort.cores, 2 * effort.cores);
        let what = format!("{what}: time with {workers} workers against {cores}, on {cores} cores");
        rows.push(Row::new(what, many / enough, "times").must(Bound::AtMost(1.5)));
    }
    Ok(Findings { rows, details: Vec::new() })
}

fn circuit(steps: usize) -> Box<Program> {
    Box::new(move |runtime| Ok(circuit::run_on(runtime, &tiny_circuit(steps))?.time))
}

/// A stencil of tasks that compute for about a microsecond.
fn stencil(width: usize, steps: usize) -> Box<Program> {
    let flags = format!("-type stencil_1d -width {width} -steps {steps} -kernel compute_bound -iter 16");
    let flags: Vec<String> = flags.split(' ').map(str::to_owned).collect();
    Box::new(move |runtime| Ok(taskbench::run_on(runtime, flags::parse(&flags)?)?.elapsed))
}
