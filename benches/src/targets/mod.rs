//! Targets for the costs of the runtime: each cost is measured side by side with its rival, and laid beside the bound
//! that it must keep.
//!
//! [`findings`]: figures and what is wanted of them; [`automatic`]: traces that are found against marked
//! ones; [`points`]: tasks of an index launch; [`launching`]: launches of few and of many points; [`oversubscribed`]:
//! more workers than cores; [`idle`]: a runtime without work; [`layer`]: the machine layer.

pub mod automatic;
pub mod findings;
pub mod idle;
pub mod launching;
pub mod layer;
pub mod oversubscribed;
pub mod points;

use maniple_apps::circuit;
use maniple_apps::options::RuntimeOptions;
use rustix::time::{ClockId, clock_gettime};

use crate::error::Result;
use findings::Findings;

/// One target, or several that are measured together.
pub struct Target {
    /// How it is asked for.
    pub name: &'static str,
    /// The quantity that is measured, and the way.
    pub about: &'static str,
    /// Measures it.
    pub measure: fn(Effort) -> Result<Findings>,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often each program runs. The median counts.
    pub rounds: usize,
    /// Cores of the machine: so many workers, where nothing else is said.
    pub cores: usize,
    /// Seconds for which an idle runtime is watched.
    pub idle: f64,
}

/// All targets.
pub static TARGETS: &[Target] =
    &[automatic::TARGET, points::TARGET, launching::TARGET, oversubscribed::TARGET, idle::TARGET, layer::TARGET];

/// Which command shows targets that are not here.
pub const ELSEWHERE: &str = "\
METG(50%) of Task Bench's patterns: cargo run --release -- run metg --type PATTERN; beside others: the bench rivals
Fibonacci and queens: the bench recursion; beside others: the bench rivals
no allocation in a traced loop: cargo test -p maniple --test allocations
what a profile costs: the bench profile";

/// A circuit of 16 pieces so small that a task is next to nothing.
#[must_use]
pub fn tiny_circuit(steps: usize) -> circuit::CircuitOptions {
    circuit::CircuitOptions {
        pieces: 16,
        nodes_per_piece: 8,
        wires_per_piece: 16,
        inside: 90,
        steps,
        no_verify: true,
        runtime: without_progress(),
        ..circuit::CircuitOptions::default()
    }
}

/// Options of a program that runs on a runtime which was started before.
fn without_progress() -> RuntimeOptions {
    RuntimeOptions { no_progress: true, ..circuit::CircuitOptions::default().runtime }
}

/// The time of a clock, in seconds.
fn seconds_of(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
