//! Nodes to be tested.

use maniple_cluster::{Job, JobBuilder};
use maniple_realm::Realm;
use maniple_realm::machine::NodeId;
use maniple_realm::net::loopback::Network;
use maniple_realm::simulation::Simulation;

/// Runs a program on each node of a simulation, in an order that follows from the seed. What each has returned.
///
/// A node leaves the job when its program returns, or aborts it if its realm has broken down.
pub fn simulate<T: 'static>(seed: u64, nodes: usize, program: impl Fn(&Job) -> T + Clone + 'static) -> Vec<T> {
    simulate_with(seed, nodes, |builder| builder, program)
}

/// The same of nodes that join in a way of their own.
pub fn simulate_with<T: 'static>(
    seed: u64,
    nodes: usize,
    join: impl Fn(JobBuilder) -> JobBuilder + Clone + 'static,
    program: impl Fn(&Job) -> T + Clone + 'static,
) -> Vec<T> {
    let network = Network::seeded(nodes, seed, 20);
    let mut simulation = Simulation::new(seed).network(&network);
    let node = |rank: usize| {
        let (transport, join, program) = (network.node(NodeId(rank as u16)), join.clone(), program.clone());
        simulation.thread(format!("node {rank}"), move || {
            let realm = Realm::builder().workers(1).build().unwrap();
            let job = join(JobBuilder::new(transport, &realm)).join();
            let outcome = program(&job);
            match realm.breakdown() {
                None => job.leave(),
                Some(why) => job.abort(&why.to_string()),
            }
            drop(job);
            realm.shut_down();
            outcome
        })
    };
    let outcomes: Vec<_> = (0..nodes).map(node).collect();
    simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
    outcomes.into_iter().map(|outcome| outcome.take().unwrap()).collect()
}
