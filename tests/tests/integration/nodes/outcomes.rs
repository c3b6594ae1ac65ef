//! Outcomes of one node alone: all nodes are told, and go on alike, or end.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use maniple::machine::NodeId;
use maniple::net::loopback::Network;
use maniple::prelude::*;
use maniple::simulation::Simulation;
use maniple::{Error, Machine, Result};
use maniple_tests::nodes::{Connections, Nodes, each_node, on_nodes};

use super::{Cell, stencil, take_over};

/// The outcome of a node: an error if it is one of those that fail, else its number.
fn own(node: usize, fail: &[usize]) -> Result<usize> {
    if fail.contains(&node) { Err(Error::application(format!("node {node} lacks a file"))) } else { Ok(node) }
}

#[test]
fn nodes_of_which_one_has_failed_by_itself_all_go_on_as_if_they_had() {
    for (fail, first) in [(&[1][..], Some(1)), (&[2, 1], Some(1)), (&[0, 1, 2], Some(0)), (&[], None)] {
        let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
            let cells = cx.region::<Cell>(40)?;
            let said = match cx.share_outcome(own(runtime.node(), fail)).await {
                Ok(own) => {
                    assert_eq!(own, runtime.node());
                    cx.fill(&cells, Cell::next, 1.0)?;
                    None
                }
                Err(error) => {
                    cx.fill(&cells, Cell::next, 2.0)?;
                    Some(error.to_string())
                }
            };
            Ok((said, cx.index_launch(8, take_over(&cells.partition(8).equal()?)).reduce(Sum).await?))
        });
        for (node, outcome) in outcomes.into_iter().enumerate() {
            let (said, sum) = outcome.unwrap();
            assert_eq!(sum, if first.is_some() { 80.0 } else { 40.0 });
            assert_eq!(said.is_some(), first.is_some());
            if let (Some(said), Some(first)) = (said, first) {
                let lacks = format!("node {first} lacks a file");
                let expected = if node == first { lacks } else { format!("on node {first}: {lacks}") };
                assert_eq!(said, expected);
            }
        }
    }
}

#[test]
fn a_node_that_ends_without_sharing_what_has_come_of_it_ends_the_job() {
    let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| match own(runtime.node(), &[1]) {
        Ok(_) => cx.share_outcome(Ok(())).await,
        Err(error) => Err(error),
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("node 1 lacks a file"), "{error}");
    }
}

/// Programs wait where they can: for a result of all nodes, for values of others, for a session that does nothing.
#[test]
fn a_node_that_leaves_with_a_failure_ends_the_job_for_all_others_wherever_they_are() {
    type Program = fn(&Runtime) -> Result<()>;
    let programs: [Program; 4] = [
        |runtime| runtime.run(async |cx| cx.per_node(1_u64).reduce(Sum).await).map(drop),
        |runtime| runtime.run(async |cx| stencil(cx, 12, 3).await).map(drop),
        |runtime| runtime.run(async |_| Ok(())),
        |runtime| runtime.begin()?.finish(),
    ];
    for program in programs {
        for nodes in [2, 3, 6] {
            let connections = Connections::new(nodes);
            let outcomes = each_node(nodes, |node| {
                let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
                let runtime = builder.network(connections.node(node)).build()?;
                let before = runtime.run(async |cx| cx.per_node(1_u64).reduce(Sum).await)?;
                assert_eq!(before, nodes as u64);
                if node == nodes - 1 {
                    runtime.note_failure("the file `state.json` is not there");
                    return Ok(());
                }
                program(&runtime)
            });
            for outcome in &outcomes[..nodes - 1] {
                let error = outcome.as_ref().unwrap_err().to_string();
                assert!(
                    error.contains(&format!("on node {}: the file `state.json` is not there", nodes - 1)),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn a_node_that_leaves_before_others_begin_another_run_ends_the_job_whichever_comes_first() {
    for first in [0, 1] {
        let connections = Connections::new(2);
        let (sender, receiver) = channel::<()>();
        let (sender, receiver) = (Mutex::new(Some(sender)), Mutex::new(receiver));
        let outcomes = each_node(2, |node| {
            let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
            let runtime = builder.network(connections.node(node)).build()?;
            if node == first {
                drop(sender.lock().unwrap().take());
            } else {
                // Until the other one is about to leave, or to run.
                let _ = receiver.lock().unwrap().recv();
            }
            if node == 1 { Ok(()) } else { runtime.run(async |cx| cx.execution_fence().await) }
        });
        let error = outcomes[0].as_ref().unwrap_err().to_string();
        assert!(error.contains("node 1 has left the job after 0 run(s), where node 0 begins another"), "{error}");
    }
}

#[test]
fn nodes_that_leave_after_as_many_runs_have_nothing_to_tell_each_other() {
    let connections = Connections::new(3);
    let outcomes = each_node(3, |node| {
        let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 24)).workers(1);
        let runtime = builder.network(connections.node(node)).build()?;
        let sum = runtime.run(async |cx| cx.per_node(1_u64).reduce(Sum).await)?;
        if node == 1 {
            runtime.note_failure("its disk is full");
        }
        Ok::<_, Error>(sum)
    });
    assert!(outcomes.into_iter().all(|sum| sum.unwrap() == 3));
}

#[test]
fn a_node_that_leaves_is_heard_of_in_whatever_order_messages_come() {
    for seed in 0..200 {
        let nodes = 2 + seed as usize % 4;
        let network = Network::seeded(nodes, seed, 20);
        let mut simulation = Simulation::new(seed).network(&network);
        let answers: Vec<_> = (0..nodes)
            .map(|node| {
                let transport = network.node(NodeId(node as u16));
                simulation.thread(format!("node {node}"), move || {
                    let builder = Runtime::builder().machine(Machine::uniform(1, 1 << 20)).workers(1);
                    let runtime = builder.network(transport).build().unwrap();
                    if node == 1 {
                        runtime.note_failure("as planned");
                        return Ok(());
                    }
                    runtime.run(async |cx: &Context| {
                        let cells = cx.region::<Cell>(24)?;
                        let pieces = cells.partition(8).equal()?;
                        cx.fill(&cells, Cell::next, 1.0)?;
                        cx.index_launch(8, take_over(&pieces)).all().await.map(drop)
                    })
                })
            })
            .collect();
        simulation.run().unwrap_or_else(|hang| panic!("seed {seed}: {hang}"));
        for (node, answer) in answers.into_iter().enumerate().filter(|(node, _)| *node != 1) {
            let error = answer.take().unwrap().expect_err(&format!("seed {seed}, node {node}")).to_string();
            assert!(error.contains("as planned"), "seed {seed}, node {node}: {error}");
        }
    }
}
