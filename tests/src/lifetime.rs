//! Whether runtimes have gone, with all that knew them: their mappers, which they own, tell.

use std::sync::Arc;

use maniple::machine::NodeId;
use maniple::mapper::{LoggingMapper, Mapper};
use maniple::net::loopback::Network;
use maniple::simulation::{Answer, Report, Simulation};

/// How long a runtime is in memory: as long as its mappers, which hold clones of this.
#[derive(Clone, Debug, Default)]
pub struct Lifetime(Arc<()>);

impl Lifetime {
    /// The mapper, holding on to this.
    pub fn of<M: Mapper + 'static>(&self, mapper: M) -> impl Mapper + use<M> {
        let held = self.clone();
        LoggingMapper::with_sink(mapper, move |_| held.hold())
    }

    /// Makes a closure that calls this hold on to a clone.
    pub(crate) fn hold(&self) {}

    /// Whether this is the only clone left.
    #[must_use]
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// Runs nodes in a simulation to their end, one of which may be killed at some turn, and gives what those came to that
/// were not. Each must leave no runtime in memory and, if none was killed, no thread.
///
/// # Panics
/// If one does, or the simulation hangs, with the seed.
pub fn run_nodes<T>(
    mut simulation: Simulation,
    network: &Network,
    answers: &[Answer<T>],
    lifetimes: &[Lifetime],
    seed: u64,
    killed: Option<(usize, u64)>,
) -> (Report, Vec<T>) {
    if let Some((node, turn)) = killed {
        simulation.kill_at(turn, &answers[node]);
        let network = network.clone();
        simulation.at(turn, move || network.kill(NodeId(node as u16)));
    }
    let report = simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
    assert!(killed.is_some() || report.left.is_empty(), "seed {seed}: threads are left: {:?}", report.left);
    let ended = |(answer, lifetime): (&Answer<T>, &Lifetime)| {
        let outcome = answer.take()?;
        assert!(lifetime.is_over(), "seed {seed}: a runtime stays in memory, {killed:?} killed");
        Some(outcome)
    };
    let outcomes = answers.iter().zip(lifetimes).filter_map(ended).collect();
    (report, outcomes)
}
