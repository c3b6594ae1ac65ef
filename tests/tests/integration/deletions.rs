//! Destruction of regions, fields and handles by the nodes of a program: in the same order for regions of the program,
//! at any time for handles.

use std::sync::Mutex;

use maniple::prelude::*;
use maniple::{FieldType, Region, Result};
use maniple_tests::nodes::{Nodes, on_nodes};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn number(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] += point[0]);
}

#[task(leaf)]
fn total(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

/// The errors of nodes whose programs differ.
fn differences(nodes: usize, program: impl AsyncFn(&Context, usize) -> Result<()> + Sync) -> Vec<String> {
    let outcomes = on_nodes(Nodes::new(nodes), async |cx, runtime| program(cx, runtime.node()).await);
    outcomes.into_iter().map(|outcome| outcome.unwrap_err().to_string()).collect()
}

#[track_caller]
fn all_say(errors: &[String], what: &[&str]) {
    for error in errors {
        assert!(what.iter().all(|what| error.contains(what)), "{error}");
    }
}

#[test]
fn a_node_that_destroys_another_region_ends_the_job_on_all_nodes() {
    for nodes in [2, 5] {
        let errors = differences(nodes, async |cx, node| {
            // As alike as two regions can be.
            let regions = [cx.region::<Cell>(40)?, cx.region::<Cell>(40)?];
            cx.destroy_region(&regions[usize::from(node == 1)])?;
            cx.destroy_region(&regions[usize::from(node != 1)])?;
            cx.execution_fence().await
        });
        all_say(
            &errors,
            &["do not run the same program", "where node 0 destroys Cell region", "node 1 destroys Cell region"],
        );
    }
}

#[test]
fn a_node_that_alone_destroys_a_region_ends_the_job_on_all_nodes() {
    let errors = differences(3, async |cx, node| {
        let (cells, others) = (cx.region::<Cell>(40)?, cx.region::<Cell>(7)?);
        if node == 2 {
            cx.destroy_region(&others)?;
        }
        cx.index_launch(4, number(&cells.partition(4).equal()?));
        cx.execution_fence().await
    });
    all_say(&errors, &["where node 0 launches task `number`", "node 2 destroys Cell region", "(7 points)"]);
}

/// Regions that a task has made, passed on in a way that the runtime does not see.
static MADE: Mutex<Vec<Region<Cell>>> = Mutex::new(Vec::new());

#[task]
async fn make(cx: &Context) -> Result<()> {
    let made = cx.region::<Cell>(5)?;
    MADE.lock().unwrap().push(made);
    Ok(())
}

#[test]
fn what_a_task_of_one_node_has_made_that_node_alone_may_destroy() {
    for outcome in on_nodes(Nodes::new(3), async |cx, _| {
        let cells = cx.region::<Cell>(40)?;
        cx.launch(make());
        cx.execution_fence().await?;
        let destroyed = MADE.lock().unwrap().iter().filter(|made| cx.destroy_region(*made).is_ok()).count();
        let destroyed = cx.per_node(destroyed).reduce(Sum).await?;
        let split = cells.partition(6).equal()?;
        cx.index_launch(6, number(&split));
        Ok((destroyed, cx.index_launch(6, total(&split)).reduce(Sum).await?))
    }) {
        assert_eq!(outcome.unwrap(), (1, 780));
    }
}

#[test]
fn a_node_that_alone_frees_a_field_and_makes_another_is_found_out_when_it_is_used() {
    let errors = differences(2, async |cx, node| {
        let fields = cx.field_space(2);
        let field = fields.allocate("kept", FieldType::of::<i64>())?;
        let rows = cx.index_space(&maniple::AnySpace::from(maniple::Rect::<1>::from(0..9)));
        let region = Region::<Cell>::try_from_logical(cx.logical_region(&rows, &fields)?)?;
        cx.fill(&region, maniple::Field::<Cell, i64>::new(field), 1)?;
        if node == 1 {
            cx.free_field(&fields, field)?;
            assert_eq!(fields.allocate("kept", FieldType::of::<i64>())?, field, "ids are used again");
        }
        cx.index_launch(3, total(&region.partition(3).equal()?)).reduce(Sum).await.map(drop)
    });
    all_say(&errors, &["where node 0 launches task `total`", "node 1 fills"]);
}

/// No other node knows which handles a node keeps, and for how long.
#[test]
fn nodes_that_drop_handles_at_different_times_go_on() {
    const ROUNDS: i64 = 30;
    for nodes in [2, 4] {
        for outcome in on_nodes(Nodes::new(nodes), async |cx, runtime| {
            let node = runtime.node();
            let mut random = fastrand::Rng::with_seed(node as u64);
            // Some nodes keep things for some rounds, some hand them to another thread to be dropped there, some drop
            // them at once.
            let mut kept: Vec<Box<dyn std::any::Any + Send>> = Vec::new();
            let mut sums = Vec::new();
            for round in 0..ROUNDS {
                let cells = cx.region::<Cell>(40)?;
                let split = cells.partition(8).equal()?;
                cx.fill(&cells, Cell::value, round)?;
                let numbered = cx.index_launch(8, number(&split));
                let totals = cx.index_launch(8, total(&split));
                let sum = totals.reduce(Sum);
                sums.push(sum.clone());
                let handles: [Box<dyn std::any::Any + Send>; 5] =
                    [Box::new(cells.clone()), Box::new(split), Box::new(numbered), Box::new(totals), Box::new(sum)];
                for handle in handles {
                    match (node + random.usize(..2)) % 3 {
                        0 => kept.push(handle),
                        1 => drop(handle),
                        _ => std::thread::spawn(move || drop(handle)).join().unwrap(),
                    }
                }
                while kept.len() > random.usize(..20) {
                    kept.swap_remove(random.usize(..kept.len()));
                }
                // What is destroyed, all destroy here.
                if round % 3 == 0 {
                    cx.destroy_region(&cells)?;
                }
            }
            let mut all = Vec::new();
            for sum in sums {
                all.push(sum.await?);
            }
            Ok(all)
        }) {
            assert_eq!(outcome.unwrap(), (0..ROUNDS).map(|round| 780 + 40 * round).collect::<Vec<_>>());
        }
    }
}
