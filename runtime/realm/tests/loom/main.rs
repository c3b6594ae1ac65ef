//! The lock-free protocols, each file as it ships, under the loom model checker: every interleaving, up to the bound on
//! preemptions, that the C11 memory model allows. A worker that sleeps through its work shows as a deadlock, a missing
//! ordering as a data race.
//!
//! ```console
//! $ cargo test -p maniple-realm --release --test loom
//! ```

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

// Each model uses a part of what the files offer.
#![allow(dead_code)]

#[path = "../../src/worker/chunks.rs"]
mod chunks;
#[path = "../../src/scheduler/deque.rs"]
mod deque;
#[path = "../../src/worker/helpers.rs"]
mod helpers;
#[path = "../../src/reservation/lock.rs"]
mod lock;
#[path = "../../src/barrier/phases.rs"]
mod phases;
#[path = "../../src/scheduler/seat.rs"]
mod seat;
#[path = "../../src/scheduler/sleep.rs"]
mod sleep;
#[path = "../../src/net/tcp/turn.rs"]
mod turn;
#[path = "../../src/events/word.rs"]
mod word;
#[path = "../../src/graph/words.rs"]
mod words;

mod barriers;
mod deques;
mod event_words;
mod graphs;
mod loops;
mod reservations;
mod sync;
mod turns;
mod workers;

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Unoptimised, three preemptions take minutes.
    builder.preemption_bound = Some(if cfg!(debug_assertions) { 2 } else { 3 });
    builder.check(check);
}
