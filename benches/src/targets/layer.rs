//! The machine layer: tasks and events without anything above.

use super::findings::{Bound, Findings, Row};
use super::{Effort, Target};
use crate::error::Result;
use crate::median;
use crate::rivals::{chain, empty};

/// Target for the costs of the machine layer.
pub const TARGET: Target = Target {
    name: "layer",
    about: "the machine layer: empty tasks spawned and run by two workers, and a chain of events in which each triggers the next",
    measure,
};

/// As many workers as the target is about.
const WORKERS: usize = 2;

const TASKS: u64 = 500_000;
const LINKS: u64 = 500_000;

fn measure(effort: Effort) -> Result<Findings> {
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..effort.rounds {
        let chain = chain::chain_of_events(WORKERS, LINKS)?;
        let seconds = [
            empty::from_inside(WORKERS, TASKS)?.seconds / TASKS as f64,
            empty::from_outside(WORKERS, TASKS)?.seconds / TASKS as f64,
            chain.triggering / LINKS as f64,
            (chain.making + chain.triggering) / LINKS as f64,
        ];
        times.iter_mut().zip(seconds).for_each(|(times, seconds)| times.push(seconds));
    }
    let [inside, outside, trigger, with_making] = times.map(median);
    let rate = |what: &str, seconds: f64| {
        Row::new(what, 1e-6 / seconds, "M/s").must(Bound::AtLeast(6.0)).aim(Bound::AtLeast(10.0))
    };
    let rows = vec![
        rate("empty tasks of the machine layer, spawned by a task", inside),
        rate("empty tasks of the machine layer, spawned from outside", outside),
        Row::new("trigger in a chain of events", trigger * 1e6, "us").must(Bound::AtMost(0.2)).aim(Bound::AtMost(0.1)),
        Row::new("the same, with making the events", with_making * 1e6, "us"),
    ];
    Ok(Findings { rows, details: Vec::new() })
}
