//! Nodes that do not all do the same: the job ends, and says what differs.

use std::collections::HashSet;

use maniple::mapper::{Sharding, TaskInfo};
use maniple::prelude::*;
use maniple::{Error, FieldMask, Result};
use maniple_tests::nodes::{Nodes, on_nodes};
use serde::{Deserialize, Serialize};

use super::{Cell, smooth, start, stencil, take_over};

#[test]
fn nodes_whose_mappers_deal_differently_end_the_job_and_show_both_answers() {
    let odd = |node: usize, launch: &TaskInfo<'_>, _: usize| match (node, launch.name) {
        (2, "smooth") => Sharding::by_point("odd", |point, _, _| usize::from(point.coords()[0] == 1)),
        _ => Sharding::Cyclic,
    };
    for outcome in on_nodes(Nodes::new(3).dealt(odd), async |cx, _| stencil(cx, 4, 3).await) {
        let error = outcome.map(drop).unwrap_err().to_string();
        assert!(error.contains("node 0 launches task `smooth` over (0)..=(3) in cycles, which"), "{error}");
        let other = "node 2 launches task `smooth` over (0)..=(3) by `odd`, (0) to node 0, (1) to node 1, (2)..=(3) to node 0, which";
        assert!(error.contains(other), "{error}");
    }
}

#[test]
fn a_node_that_launches_something_else_ends_the_job_on_all_nodes() {
    for odd in 0..3 {
        let outcomes = on_nodes(Nodes::new(3), async move |cx, runtime| {
            let extra = usize::from(runtime.node() == odd);
            Ok(stencil(cx, 6, 3 + extra).await?.2)
        });
        for outcome in &outcomes {
            let error = outcome.as_ref().unwrap_err();
            assert!(matches!(error, Error::NodesDiffer { .. }), "{error}");
            assert!(error.to_string().contains("do not run the same program"), "{error}");
        }
    }
}

#[test]
fn a_node_that_launches_as_much_but_something_else_ends_the_job_before_anybody_waits_for_a_sum() {
    let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
        let (split, around, _) = stencil(cx, 6, 2).await?;
        if runtime.node() == 1 {
            cx.index_launch(6, start(&split));
        } else {
            cx.index_launch(6, smooth(&split, &around));
        }
        cx.index_launch(6, take_over(&split)).reduce(Sum).await
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("launches task `start`") && error.contains("launches task `smooth`"), "{error}");
    }
}

#[test]
fn a_node_that_fills_with_another_number_ends_the_job_on_all_nodes() {
    let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
        let cells = cx.region::<Cell>(40)?;
        cx.fill(&cells, Cell::value, if runtime.node() == 1 { 0.5 } else { 2.0 })?;
        cx.index_launch(8, take_over(&cells.partition(8).equal()?)).reduce(Sum).await
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("(40 points) with 0.5") && error.contains("(40 points) with 2.0"), "{error}");
    }
}

/// The argument of a task: values that must be the same on all nodes, and sets, whose order is another one on each.
#[derive(Clone, Serialize, Deserialize)]
struct Given {
    factor: f64,
    names: HashSet<String>,
}

#[task(leaf)]
fn scale_all(#[writes(value)] tile: Piece<Cell>, given: Given, more: f64) {
    let by = given.factor * more + given.names.len() as f64;
    tile.points().for_each(|point| tile.value[point] *= by);
}

/// Scales on three nodes, some steps, in the last by what a node says, and by a future.
fn scaled(last: fn(usize) -> f64) -> Vec<Result<f64>> {
    on_nodes(Nodes::new(3), async move |cx, runtime| {
        let cells = cx.region::<Cell>(40)?;
        cx.fill(&cells, Cell::value, 1.0)?;
        let split = cells.partition(8).equal()?;
        let sum = cx.index_launch(8, take_over(&split)).reduce(Sum);
        for step in 0..20 {
            let names = (0..50).map(|name| format!("name {name}")).collect();
            let factor = if step < 19 { 0.5 } else { last(runtime.node()) };
            cx.index_launch(8, scale_all(&split, Given { factor, names }, &sum));
        }
        cx.index_launch(8, take_over(&split)).reduce(Sum).await
    })
}

#[test]
fn a_node_that_passes_another_argument_ends_the_job_on_all_nodes() {
    for outcome in scaled(|node| if node == 1 { 0.5 } else { 2.0 }) {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("launches task `scale_all` over (0)..=(7) with arguments 0.5, others"), "{error}");
        assert!(error.contains("launches task `scale_all` over (0)..=(7) with arguments 2.0, others"), "{error}");
    }
}

#[test]
fn arguments_that_are_equal_pass_in_whatever_order_and_whenever_they_are_there() {
    let sums: Vec<f64> = scaled(|_| 2.0).into_iter().map(Result::unwrap).collect();
    assert_eq!(sums, [sums[0]; 3]);
}

#[test]
fn a_node_that_makes_a_larger_region_ends_the_job_with_both_sizes() {
    let outcomes = on_nodes(Nodes::new(2), async |cx, runtime| {
        let cells = cx.region::<Cell>(if runtime.node() == 1 { 20 } else { 10 })?;
        cx.fill(&cells, Cell::value, 1.0)
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("node 0 makes Cell region") && error.contains("node 1 makes Cell region"), "{error}");
        assert!(error.contains("(10 points)") && error.contains("(20 points)"), "{error}");
    }
}

/// Every node has said all of this.
fn all_say(errors: &[String], parts: &[&str]) {
    for error in errors {
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

/// The errors of both of two nodes for a program that they run differently.
fn differences<T: Send>(program: impl AsyncFn(&Context, usize) -> Result<T> + Sync) -> Vec<String> {
    let outcomes = on_nodes(Nodes::new(2), async |cx, runtime| program(cx, runtime.node()).await.map(drop));
    outcomes.into_iter().map(|outcome| outcome.unwrap_err().to_string()).collect()
}

#[test]
fn a_node_whose_pieces_have_other_points_ends_the_job_on_all_nodes() {
    for weight_of_the_first in [1, 2] {
        let errors = differences(async |cx, node| {
            let cells = cx.region::<Cell>(60)?;
            let weights = if node == 1 { [weight_of_the_first, 3, 3 - weight_of_the_first] } else { [3, 2, 1] };
            let split = cells.partition(3).weighted(&weights)?;
            cx.index_launch(3, start(&split));
            cx.index_launch(3, take_over(&split)).reduce(Sum).await
        });
        all_say(
            &errors,
            &["where node 0 launches task `start`", "node 1 does so too, but with other points in its pieces"],
        );
    }
}

#[test]
fn a_node_that_projects_otherwise_ends_the_job_on_all_nodes() {
    let errors = differences(async |cx, node| {
        let cells = cx.region::<Cell>(40)?;
        let split = cells.partition(4).equal()?;
        cx.index_launch(4, start(&split));
        let shifted = split.project(move |point| ((point[0] + node as i64) % 4).into());
        cx.index_launch(4, take_over(&shifted)).reduce(Sum).await
    });
    all_say(
        &errors,
        &["where node 0 launches task `take_over`", "node 1 does so too, but with other points in its pieces"],
    );
}

#[test]
fn a_node_that_takes_equal_regions_in_another_order_ends_the_job_on_all_nodes() {
    type Use = for<'a> fn(&'a Context, &'a Region<Cell>) -> Result<()>;
    let uses: [(Use, &str); 2] = [
        (|cx, cells| cx.fill(cells, Cell::value, 2.0), "node 0 fills Cell region"),
        (
            |cx, cells| {
                let split = cells.partition(4).equal()?;
                drop(cx.index_launch(4, take_over(&split)));
                Ok(())
            },
            "node 0 launches task `take_over`",
        ),
    ];
    for (with, what) in uses {
        let errors = differences(async |cx, node| {
            let regions = [cx.region::<Cell>(40)?, cx.region::<Cell>(40)?];
            for cells in &regions {
                cx.fill(cells, Cell::value, 1.0)?;
                cx.fill(cells, Cell::next, 1.0)?;
            }
            with(cx, &regions[node])?;
            with(cx, &regions[1 - node])?;
            cx.execution_fence().await
        });
        all_say(&errors, &["do not run the same program", what]);
    }
}

#[test]
fn a_node_that_looks_at_another_region_ends_the_job_on_all_nodes() {
    let errors = differences(async |cx, node| {
        let regions = [cx.region::<Cell>(40)?, cx.region::<Cell>(40)?];
        for cells in &regions {
            cx.index_launch(4, start(&cells.partition(4).equal()?));
        }
        cx.map_read(&regions[node], Cell::value).await.map(drop)
    });
    all_say(&errors, &["node 0 looks at Cell region"]);
}

#[test]
fn nodes_that_look_at_results_of_different_launches_end_the_job_and_show_both() {
    let looked = |with: for<'a> fn(&'a FutureMap<f64>) -> maniple::Future<f64>, what: &str| {
        let errors = differences(async |cx, node| {
            let split = cx.region::<Cell>(40)?.partition(4).equal()?;
            cx.index_launch(4, start(&split));
            let sums = [0, 1].map(|_| cx.index_launch(4, take_over(&split)));
            // One looks at the earlier launch first, the other at the later one.
            let first = with(&sums[node]).await?;
            Ok(first + with(&sums[1 - node]).await?)
        });
        for error in errors {
            let of = |operation| format!("{what} the results of operation {operation}, `take_over`");
            assert!(error.contains(&format!("where node 0 {}, node 1 {}", of(1), of(2))), "{error}");
        }
    };
    looked(|sums| sums.reduce(Sum), "reduces");
    looked(|sums| sums.fold(0.0, |sum, one| sum + one), "looks at");
}

#[test]
fn a_node_that_alone_looks_at_a_result_ends_the_job_on_all_nodes() {
    let outcomes = on_nodes(Nodes::new(4), async |cx, runtime| {
        let cells = cx.region::<Cell>(40)?;
        let split = cells.partition(8).equal()?;
        cx.index_launch(8, start(&split));
        let sums = cx.index_launch(8, take_over(&split));
        if runtime.node() == 2 { sums.all().await.map(drop) } else { Ok(()) }
    });
    let told = outcomes.iter().filter(|outcome| {
        let error = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
        error.contains("do not run the same program")
    });
    assert_eq!(told.count(), 4, "{outcomes:?}");
}

/// The errors of the nodes of a job for a program that they run differently after some steps in common, with this
/// window or the usual one. `take_over` is dealt as `dealt` says.
fn differences_in_window(
    (nodes, window): (usize, Option<usize>),
    dealt: fn(usize, &TaskInfo<'_>, usize) -> Sharding,
    program: impl AsyncFn(&Context, &Region<Cell>, usize) -> Result<()> + Sync,
) -> Vec<String> {
    let job = window.into_iter().fold(Nodes::new(nodes).dealt(dealt), Nodes::with_window);
    let outcomes = on_nodes(job, async |cx, runtime| {
        let cells = cx.region::<Cell>(40)?;
        let split = cells.partition(8).equal()?;
        cx.index_launch(8, start(&split));
        cx.index_launch(8, smooth(&split, &split));
        cx.execution_fence().await?;
        program(cx, &cells, runtime.node()).await
    });
    outcomes.into_iter().map(|outcome| outcome.unwrap_err().to_string()).collect()
}

/// Each node deals `take_over` to itself.
fn to_itself(node: usize, launch: &TaskInfo<'_>, _: usize) -> Sharding {
    if launch.name == "take_over" { Sharding::OnOne(node) } else { Sharding::Blocked }
}

/// How many operations are in flight at most, or as many as usual.
const WINDOWS: [Option<usize>; 5] = [Some(1), Some(2), Some(3), Some(4), None];

#[test]
fn a_node_that_waits_for_values_of_nodes_that_have_ended_is_told_what_they_did() {
    for nodes in [2, 3] {
        for (number, window) in WINDOWS.into_iter().enumerate() {
            let odd = number % nodes;
            // All do as many operations, and what the odd one launches needs values of the others.
            let errors = differences_in_window((nodes, window), to_itself, async move |cx, cells, node| {
                for number in 0..6 {
                    match node == odd && number == 4 {
                        true => drop(cx.launch(take_over(cells))),
                        false => cx.fill(cells, Cell::value, f64::from(number))?,
                    }
                }
                Ok(())
            });
            all_say(&errors, &["do not run the same program", "launches task `take_over`", "fills Cell region"]);
        }
    }
}

#[test]
fn nodes_that_wait_for_values_of_each_other_without_an_end_are_told_what_they_did() {
    for (nodes, window) in [2, 3].into_iter().flat_map(|nodes| WINDOWS.map(|window| (nodes, window))) {
        // Each launches the task on itself, and has the others send what it needs.
        let errors = differences_in_window((nodes, window), to_itself, async |cx, cells, _| {
            for _ in 0..3 {
                cx.fill(cells, Cell::value, 1.0)?;
            }
            for _ in 0..4 {
                cx.launch(take_over(cells));
            }
            Ok(())
        });
        all_say(&errors, &["do not run the same program", "where node", "launches task `take_over`"]);
    }
}

#[test]
fn a_node_that_waits_for_values_of_one_that_has_failed_is_told_of_the_failure() {
    let on_the_first = |_: usize, launch: &TaskInfo<'_>, _: usize| match launch.name {
        "take_over" => Sharding::OnOne(0),
        _ => Sharding::Blocked,
    };
    for (nodes, window) in [2, 3].into_iter().flat_map(|nodes| WINDOWS.map(|window| (nodes, window))) {
        let errors = differences_in_window((nodes, window), on_the_first, async |cx, cells, node| {
            if node == 1 {
                cx.fill(cells, Cell::value, 1.0)?;
                return Err(Error::application("as planned"));
            }
            cx.launch(take_over(cells));
            Ok(())
        });
        all_say(&errors, &["as planned"]);
    }
}

#[test]
fn a_node_that_waits_for_values_of_one_whose_mapper_refuses_the_launch_is_told_of_that() {
    let refused = |node: usize, launch: &TaskInfo<'_>, nodes: usize| match (launch.name, node) {
        ("take_over", 1) => Sharding::OnOne(nodes),
        ("take_over", _) => Sharding::OnOne(0),
        _ => Sharding::Blocked,
    };
    for (nodes, window) in [2, 3].into_iter().flat_map(|nodes| WINDOWS.map(|window| (nodes, window))) {
        let errors = differences_in_window((nodes, window), refused, async |cx, cells, _| {
            cx.launch(take_over(cells));
            Ok(())
        });
        all_say(&errors, &["shard_launch", "`take_over`"]);
    }
}

/// A region with fields of types of which nodes compare values in other ways.
#[derive(Fields)]
struct Mixed {
    first: i64,
    second: i64,
    vector: [f32; 3],
    padded: Padded,
}

/// Has bytes that say nothing.
#[derive(Clone, Copy, maniple::bytemuck::Zeroable)]
#[repr(C)]
struct Padded {
    small: u8,
    large: u64,
}

/// An operation of a program on a region, in which nodes differ in one thing.
type UseOfMixed = for<'a> fn(&'a Context, &'a Region<Mixed>, usize) -> Result<()>;

#[test]
fn nodes_that_do_something_to_other_fields_or_with_other_values_are_told() {
    fn field(node: usize) -> Field<Mixed, i64> {
        [Mixed::first, Mixed::second][node]
    }
    fn mask(node: usize) -> FieldMask {
        FieldMask::of(field(node).id())
    }
    let uses: [(UseOfMixed, &str); 10] = [
        (|cx, mixed, node| cx.fill(mixed, field(node), 7), "fills"),
        (|cx, mixed, node| cx.fill_field(mixed, field(node).id(), 7_i64), "fills"),
        (|cx, mixed, node| cx.fill(mixed, Mixed::vector, [node as f32; 3]), "fills"),
        (|cx, mixed, node| cx.invalidate(mixed, field(node)), "invalidates"),
        (|cx, mixed, node| cx.invalidate_fields(mixed, &mask(node)), "invalidates"),
        (|cx, mixed, node| cx.forget_copies(mixed, &mask(node)), "forgets copies of"),
        (|cx, mixed, node| cx.attach_vec(mixed, field(node), vec![1; 8]).map(drop), "attachment"),
        (|cx, mixed, node| cx.attach_vec(mixed, Mixed::first, vec![node as i64; 8]).map(drop), "attachment"),
        (|cx, mixed, node| cx.attach_read_only(mixed, Mixed::first, vec![node as i64; 8]).map(drop), "attachment"),
        (
            |cx, mixed, node| {
                let values = cx.attach_vec(mixed, Mixed::first, vec![1; 8])?;
                let others = cx.attach_vec(mixed, Mixed::second, vec![1; 8])?;
                // In another order on each node.
                let [one, other] = if node == 0 { [values, others] } else { [others, values] };
                drop((cx.detach(one)?, cx.detach(other)?));
                Ok(())
            },
            "changes",
        ),
    ];
    for (number, (with, what)) in uses.into_iter().enumerate() {
        let errors = differences(async |cx, node| {
            let mixed = cx.region::<Mixed>(8)?;
            with(cx, &mixed, node)
        });
        assert!(errors.iter().all(|error| error.contains("where node 0 ")), "{number}: {errors:?}");
        all_say(&errors, &["do not run the same program", &format!("node 0 {what} Mixed region")]);
        all_say(&errors, &[&format!("node 1 {what} Mixed region")]);
    }
}

#[test]
fn nodes_that_look_at_other_fields_are_told() {
    let errors = differences(async |cx, node| {
        let mixed = cx.region::<Mixed>(8)?;
        cx.map_read(&mixed, [Mixed::first, Mixed::second][node]).await.map(drop)
    });
    all_say(&errors, &["node 0 looks at Mixed region", "fields first", "fields second"]);
}

#[test]
fn nodes_whose_spaces_have_other_points_within_the_same_bounds_are_told() {
    let errors = differences(async |cx, node| {
        let [one, other] = [3, 4];
        let points = [0, if node == 0 { one } else { other }, 9].map(Point::<1>::from);
        let cells = cx.region_over::<Cell, 1>(IndexSpace::from_points(points))?;
        cx.fill(&cells, Cell::value, 1.0)
    });
    all_say(&errors, &["where node 0 makes Cell region", "node 1 does so too, but with other points"]);
}

#[test]
fn nodes_that_do_the_same_with_values_of_any_type_go_on() {
    let outcomes = on_nodes(Nodes::new(2), async |cx, _| {
        let mixed = cx.region::<Mixed>(8)?;
        cx.fill(&mixed, Mixed::vector, [1.0; 3])?;
        cx.fill(&mixed, Mixed::padded, Padded { small: 1, large: 2 })?;
        let values = cx.attach_vec(&mixed, Mixed::padded, vec![Padded { small: 3, large: 4 }; 8])?;
        let given = cx.detach(values)?.await?;
        assert!(given.iter().all(|value| (value.small, value.large) == (3, 4)));
        let values = cx.attach_vec(&mixed, Mixed::vector, vec![[2.0; 3]; 8])?;
        cx.detach(values)?.await
    });
    assert!(outcomes.into_iter().all(|values| values.unwrap() == [[2.0; 3]; 8]));
}
