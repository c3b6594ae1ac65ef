//! Partitions that were found in the data, in all sorts of programs on several nodes: with what else there is, and with
//! what goes wrong.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use maniple::mapper::Sharding;
use maniple::prelude::*;
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    AnyPoint, AnyRect, CustomProjection, FieldMask, LogicalRegion, Privilege, Projection, RegionError, Requirement,
    Runtime, Target, UpperBound,
};
use maniple_tests::nodes::{Nodes, on_nodes};
use maniple_tests::scattered::{CELLS, COLORS, Cell, count, gather, make, next, parts, scatter, total};

/// Checks that a program has the same result on one node and on several, and gives it.
fn the_same<T: Send + PartialEq + std::fmt::Debug>(program: impl AsyncFn(&Context, &Runtime) -> Result<T> + Sync) -> T {
    let run = |nodes: usize| {
        let mut outcomes: Vec<T> = on_nodes(Nodes::new(nodes), &program).into_iter().map(Result::unwrap).collect();
        let first = outcomes.pop().unwrap();
        outcomes.iter().for_each(|other| assert_eq!(*other, first, "on one of {nodes} nodes"));
        first
    };
    let one = run(1);
    for nodes in [2, 3, 5] {
        assert_eq!(run(nodes), one, "{nodes} nodes");
    }
    one
}

async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(move |cx| {
        if first.is_none()
            && let Poll::Ready(value) = one.as_mut().poll(cx)
        {
            first = Some(value);
        }
        if second.is_none()
            && let Poll::Ready(value) = other.as_mut().poll(cx)
        {
            second = Some(value);
        }
        match (first.take(), second.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

#[test]
fn partitions_are_found_side_by_side() {
    for _ in 0..10 {
        the_same(async |cx, _| {
            let (cells, own, _) = parts(cx).await?;
            let by_color = cx.partition_by_field(&cells, Cell::color, cx.colors(5));
            let two = both(cx.image(&cells, &own, Cell::next), by_color);
            let ((image, by_color), sources) = both(two, cx.preimage(&cells, Cell::next, &own)).await;
            let mut counts = Vec::new();
            for partition in [&image?, &sources?, &by_color?] {
                counts.push(cx.index_launch(partition.colors(), count(partition)).all().await?);
            }
            Ok(counts)
        });
    }
}

#[test]
fn nodes_that_differ_at_a_launch_that_was_planned_before_are_told_so() {
    let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
        let (cells, own, reached) = parts(cx).await?;
        for step in 0..40 {
            cx.fill(&cells, Cell::sum, step)?;
            cx.index_launch(0..COLORS, gather(&own, &reached));
            if runtime.node() == 1 && step == 21 {
                cx.fill(&cells, Cell::sum, 7)?;
            }
        }
        cx.index_launch(0..COLORS, total(&own)).reduce(Sum).await
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("fills Cell region") && error.contains("with 7"), "{error}");
    }
}

#[test]
fn a_launch_that_is_refused_on_one_node_alone_ends_the_job() {
    let dealt = |node: usize, launch: &maniple::mapper::TaskInfo<'_>, _: usize| {
        if node == 1 && launch.name == "count" { Sharding::OnOne(99) } else { Sharding::Blocked }
    };
    let outcomes = on_nodes(Nodes::new(3).dealt(dealt), async |cx, _| {
        let (_, own, _) = parts(cx).await?;
        cx.index_launch(0..COLORS, count(&own)).all().await
    });
    for outcome in outcomes {
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("gives all points of (0)..=(15) to node 99"), "{error}");
    }
}

/// A projection that leads where the function says.
struct Leads<F>(F);

impl<F> CustomProjection for Leads<F>
where
    F: Fn(AnyPoint) -> std::result::Result<LogicalRegion, RegionError> + Send + Sync,
{
    fn project(
        &self,
        _: UpperBound<'_>,
        point: AnyPoint,
        _: &AnyRect,
    ) -> std::result::Result<LogicalRegion, RegionError> {
        (self.0)(point)
    }
}

#[test]
fn what_interferes_through_a_projection_is_refused_whoever_knows_the_pieces() {
    for asks in [None, Some(1)] {
        let outcomes = on_nodes(Nodes::new(3), async |cx, runtime| {
            let (cells, own, reached) = parts(cx).await?;
            let union = own.union(&reached)?;
            if asks == Some(runtime.node()) {
                assert_eq!(union.pieces().len(), COLORS as usize);
            }
            let clear = |of: &Partition<Cell>| {
                let nothing = |_: &LeafCall<'_>| -> Result<Value> { Ok(Value::new(())) };
                let task = TaskDefinition::new("clear").leaf(TaskOptions::default(), nothing);
                let of = of.logical().clone();
                let into = Projection::Custom(Arc::new(Leads(move |point| of.piece(point))));
                let target = Target::Region(cells.logical().clone(), Some(into));
                let writes = Requirement::new(target, FieldMask::of(Cell::value.id()), Privilege::ReadWrite);
                TaskLauncher::new(&Arc::new(task)).requirement(writes).typed::<()>()
            };
            let refused = cx.index_launch(0..COLORS, clear(&union)).await.unwrap_err().to_string();
            cx.index_launch(0..COLORS, clear(&own)).await?;
            Ok(refused)
        });
        for outcome in outcomes {
            let refused = outcome.unwrap();
            assert!(refused.contains("interfere"), "{refused}");
        }
    }
}

#[test]
fn a_projection_that_changes_its_answer_to_a_piece_that_is_elsewhere_is_an_error_that_says_so() {
    let outcomes = on_nodes(Nodes::new(2), async |cx, _| {
        let (_, own, _) = parts(cx).await?;
        let nothing = |_: &LeafCall<'_>| -> Result<Value> { Ok(Value::new(())) };
        let task = TaskDefinition::new("clear").leaf(TaskOptions::default(), nothing);
        // All threads but this one are led half of the pieces away.
        let (pieces, here) = (own.logical().clone(), thread::current().id());
        let fickle = move |point: AnyPoint| {
            let away = if thread::current().id() == here { 0 } else { COLORS / 2 };
            pieces.piece(AnyPoint::new(&[(point.coords()[0] + away) % COLORS]).unwrap())
        };
        let into = Projection::Custom(Arc::new(Leads(fickle)));
        let target = Target::Partition(own.logical().clone(), into);
        let writes = Requirement::new(target, FieldMask::of(Cell::value.id()), Privilege::ReadWrite);
        let launched = cx.index_launch(0..COLORS, TaskLauncher::new(&Arc::new(task)).requirement(writes).typed::<()>());
        let refused = launched.await.unwrap_err().to_string();
        // The job goes on.
        let counted: u64 = cx.index_launch(0..COLORS, count(&own)).reduce(Sum).await?;
        Ok((refused, counted))
    });
    for outcome in outcomes {
        let (refused, counted) = outcome.unwrap();
        let told =
            "whose points are not known on this node; a projection must name the same region each time it is asked";
        assert!(refused.contains("cannot launch `clear`") && refused.contains(told), "{refused}");
        assert_eq!(counted, CELLS as u64);
    }
}

#[test]
fn distributed_pieces_are_split_again_and_shared_by_regions() {
    the_same(async |cx, _| {
        let (cells, own, reached) = parts(cx).await?;
        let counts = async |of: &Partition<Cell>| cx.index_launch(0..COLORS, count(of)).all().await;
        let third = own.piece(3)?;
        let of_third = cx.partition_by_field(&third, Cell::color, cx.colors(COLORS as usize)).await?;
        let named = cx.image(&third, &reached, Cell::next).await?;
        let naming = cx.preimage(&third, Cell::next, &named).await?;
        let mut seen = vec![counts(&of_third).await?, counts(&named).await?, counts(&naming).await?];
        // Another region over the same points.
        let other: Region<Cell> = cx.region_like(&cells)?;
        cx.launch(make(&other));
        let (other_own, other_reached) = (other.split_like(&own)?, other.split_like(&reached)?);
        for _ in 0..3 {
            cx.index_launch(0..COLORS, gather(&other_own, &other_reached));
            cx.index_launch(0..COLORS, scatter(&other_own, &other_reached));
            cx.index_launch(0..COLORS, gather(&own, &reached));
        }
        // One over a piece.
        let over: Region<Cell> = cx.region_like(&own.piece(5)?)?;
        cx.launch(make(&over));
        let of_over = cx.partition_by_field(&over, Cell::color, cx.colors(COLORS as usize)).await?;
        cx.fill(&of_over.piece(5)?, Cell::sum, 5)?;
        seen.push(counts(&of_over).await?);
        let totals = [&other_own, &own, &of_over].map(|of| cx.index_launch(0..COLORS, total(of)).reduce(Sum));
        let [one, two, three] = totals;
        Ok((seen, [one.await?, two.await?, three.await?], cx.map_read(&over, Cell::sum).await?.to_vec()))
    });
}

#[test]
fn traces_hold_launches_over_found_pieces() {
    the_same(async |cx, _| {
        let (cells, own, reached) = parts(cx).await?;
        let blocks = cells.partition(5).equal()?;
        for step in 0..60 {
            if step % 7 == 3 {
                cx.fill(&cells, Cell::sum, step)?;
            }
            cx.trace("step", |cx| {
                cx.index_launch(0..COLORS, gather(&own, &reached));
                cx.index_launch(0..COLORS, scatter(&own, &reached));
                if step % 5 == 4 {
                    cx.index_launch(5, total(&blocks));
                }
            });
        }
        cx.index_launch(0..COLORS, total(&own)).reduce(Sum).await
    });
}

#[test]
fn pieces_go_from_node_to_node_with_their_values() {
    the_same(async |cx, _| {
        let (cells, own, reached) = parts(cx).await?;
        let blocks = cells.partition(5).equal()?;
        let mut seen = Vec::new();
        for step in 0..24_i64 {
            let shifted = |of: &Partition<Cell>, by: i64| {
                of.project(move |point| Point([(point.coords()[0] + by).rem_euclid(COLORS)]).into())
            };
            let (one, other) = (step % 4 * 3, step / 3 % 4 * 5);
            cx.index_launch(0..COLORS, gather(shifted(&own, one), shifted(&reached, one)));
            cx.index_launch(0..COLORS, scatter(shifted(&own, other), shifted(&reached, other)));
            match step % 6 {
                1 => seen.push(cx.index_launch(5, total(&blocks)).all().await?),
                2 => seen.push(vec![cx.launch(total(&own.piece(step % COLORS)?)).await?]),
                3 => cx.fill(&own.piece(2)?, Cell::value, 9)?,
                _ => {}
            }
        }
        Ok(seen)
    });
}

#[task(leaf)]
fn bump(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] += 1);
}

#[task(leaf)]
fn sum_of_values(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

#[task(leaf)]
fn colors_in_turn(#[discards(color, value)] cells: Piece<Cell>, colors: i64) {
    for cell in cells.points() {
        (cells.color[cell], cells.value[cell]) = (cell[0] * 7 % colors, 0);
    }
}

#[test]
fn many_tasks_that_launch_tasks_over_their_pieces_need_no_others() {
    const MANY: i64 = 240;
    #[task]
    async fn outer(cx: &Context, #[writes(value)] own: Region<Cell>) -> Result<()> {
        cx.launch(bump(&own)).await
    }
    let sum = the_same(async |cx, _| {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        cx.launch(colors_in_turn(&cells, MANY));
        let own = cx.partition_by_field(&cells, Cell::color, cx.colors(MANY as usize)).await?;
        cx.index_launch(0..MANY, outer(&own));
        let sum = cx.launch(sum_of_values(&cells)).await?;
        assert!(cx.nodes() == 1 || !own.logical().partitioning().is_known());
        Ok(sum)
    });
    assert_eq!(sum, CELLS);
}

#[test]
fn pieces_may_come_to_be_known_while_they_are_used() {
    const MANY: i64 = 1200;
    let outcomes = on_nodes(Nodes::new(2), async |cx, runtime| {
        for round in 0..10 {
            let cells = cx.region::<Cell>(2 * MANY as usize)?;
            let halves = cells.partition(2).equal()?;
            cx.index_launch(2, colors_in_turn(&halves, MANY));
            let own = cx.partition_by_field(&cells, Cell::color, cx.colors(MANY as usize)).await?;
            cx.index_launch(0..MANY, bump(&own));
            if runtime.node() == 0 {
                // At some time while the launch is mapped: how many turns that is away is another matter each time.
                (0..round * 240).for_each(|_| std::thread::yield_now());
                assert_eq!(own.pieces().len(), MANY as usize);
            }
            let sum: i64 = cx.index_launch(2, sum_of_values(&halves)).reduce(Sum).await?;
            assert_eq!(sum, 2 * MANY, "round {round}");
        }
        Ok(())
    });
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
}

#[test]
fn there_may_be_empty_pieces_no_points_and_fewer_points_than_nodes() {
    the_same(async |cx, _| {
        let cells = cx.region::<Cell>(3)?;
        cx.launch(make(&cells));
        let own = cx.partition_by_field(&cells, Cell::color, cx.colors(COLORS as usize)).await?;
        let none = own.difference_from_all(&own)?;
        let nothing = cx.region::<Cell>(0)?;
        let all = [
            cx.image(&cells, &own, Cell::next).await?,
            cx.preimage(&cells, Cell::next, &own).await?,
            cx.image(&cells, &none, Cell::next).await?,
            cx.preimage(&cells, Cell::next, &none).await?,
            cx.image(&nothing, &own, Cell::next).await?,
            cx.partition_by_field(&nothing, Cell::color, cx.colors(4)).await?,
            own.intersection_with_all(&none)?,
            own.difference_from_all(&none)?,
            none.difference_from_all(&own)?,
            none.union(&none)?,
            own,
        ];
        let mut counts = Vec::new();
        for partition in &all {
            counts.push(cx.index_launch(partition.colors(), count(partition)).all().await?);
        }
        let named = (0..3).filter(|&cell| (0..3).contains(&next(cell))).count() as u64;
        assert_eq!(counts[0].iter().sum::<u64>(), named);
        Ok(counts)
    });
}
