//! How jobs end.

use maniple_cluster::{Error, Job, JobBuilder, ParcelFuture, ParcelName};
use maniple_realm::Realm;
use maniple_realm::machine::NodeId;
use maniple_realm::net::loopback::Network;
use maniple_realm::simulation::Simulation;

use super::nodes::simulate;

fn why(job: &Job) -> Error {
    let fault = job.realm().breakdown().expect("the job is over");
    fault.downcast_ref::<Error>().expect("a job ends with its own errors").clone()
}

/// Waits for a parcel that is never sent.
fn wait(job: &Job) -> String {
    let parcels = ParcelFuture::new(1, job.realm());
    let other = (job.rank() + 1) % job.nodes();
    job.expect(&parcels, [(other, ParcelName { operation: 3, exchange: 0, number: 0 })].into_iter());
    job.realm().wait(parcels.complete(job.realm())).unwrap_err();
    why(job).to_string()
}

#[test]
fn a_node_that_asks_after_the_end_elsewhere_is_told_and_does_not_wait() {
    for seed in 0..40 {
        let outcomes = simulate(seed, 3, |job| {
            job.begin_operation("begin");
            if job.rank() > 0 {
                job.ask();
                return wait(job);
            }
            job.end_program(None);
            // The others abort the job.
            wait(job)
        });
        let told = "node 0 has ended";
        let asked = "has asked the others for";
        assert!(
            outcomes.iter().any(|error| error.contains(told) || error.contains(asked)),
            "seed {seed}: {outcomes:?}"
        );
    }
}

#[test]
fn a_lost_node_ends_the_job_with_what_it_did_last() {
    for seed in 0..20 {
        let network = Network::seeded(2, seed, 5);
        let mut simulation = Simulation::new(seed).network(&network);
        let node = |rank: u16| {
            let transport = network.node(NodeId(rank));
            move || {
                let realm = Realm::builder().workers(1).build().unwrap();
                let job = JobBuilder::new(transport, &realm).join();
                job.begin_operation("hold on");
                let error = wait(&job);
                job.abort(&error);
                realm.shut_down();
                error
            }
        };
        let survivor = simulation.thread("node 0", node(0));
        let victim = simulation.thread("node 1", node(1));
        simulation.kill_at(30, &victim);
        let dying = network.clone();
        simulation.at(30, move || dying.kill(NodeId(1)));
        simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
        let error = survivor.take().unwrap();
        let told = ["node 1 is lost", "it had not yet sent anything for an operation", "at operation 0, `hold on`"];
        assert!(told.iter().all(|part| error.contains(part)), "seed {seed}: {error}");
    }
}
