//! Regions and partitions that a loop makes and destroys in each iteration: those of the next take over their names, so
//! that the loop is replayed.

use std::sync::{Mutex, mpsc};

use maniple::prelude::*;
use maniple::{Error, Field, FieldId, FieldType, Rect, RegionError, TreeId};

use super::{
    Cell, Other, STEPS, add, add_by_way_of, double, everywhere, known_late, runtime, small, tiled, total,
    total_of_child, tree, values,
};

fn is_destroyed<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::Region(RegionError::Destroyed { .. })))
}

#[test]
fn a_loop_that_makes_splits_and_destroys_regions_is_replayed() {
    everywhere(async |cx, step| {
        let (cells, tiles) = tiled(cx)?;
        let mut seen = Vec::new();
        for number in 0..STEPS {
            step(cx, &mut |cx| {
                let (one, other) = (cx.region::<Cell>(24)?, cx.region_over::<Cell, 1>(Rect::from(0..24))?);
                let (ones, others) = (one.blocks([8])?, other.partition(3).equal()?);
                // What an earlier step has left there is gone.
                seen.push(cx.launch(total(&other)));
                add_by_way_of(cx, [&ones, &others], &tiles);
                // In one order or the other.
                let all = if number.is_multiple_of(2) { [&one, &other] } else { [&other, &one] };
                all.into_iter().try_for_each(|region| cx.destroy_region(region))
            })?;
        }
        for zero in seen {
            assert_eq!(zero.await?, 0);
        }
        values(cx, &cells).await
    });
}

#[test]
fn regions_over_the_rows_of_others_and_of_fields_known_at_run_time_are_made_again_too() {
    everywhere(async |cx, step| {
        let (cells, tiles) = tiled(cx)?;
        let fields = cx.field_space(1);
        fields.allocate("value", FieldType::of::<i64>())?;
        for _ in 0..STEPS {
            step(cx, &mut |cx| {
                let like = cx.region_like::<Cell, _, _>(&cells)?;
                let logical = cx.logical_region(cells.logical().space(), &fields)?;
                let known_late = Region::<Cell>::try_from_logical(logical)?;
                let (ones, others) = (like.split_like(&tiles)?, known_late.split_like(&tiles)?);
                add_by_way_of(cx, [&ones, &others], &tiles);
                cx.destroy_region(&known_late)?;
                cx.destroy_region(&like)
            })?;
        }
        values(cx, &cells).await
    });
}

#[test]
fn a_loop_that_makes_and_destroys_partitions_is_replayed() {
    everywhere(async |cx, step| {
        let (cells, sums) = (cx.region::<Cell>(24)?, cx.region::<Cell>(24)?);
        cx.fill(&cells, Cell::value, 3)?;
        for _ in 0..STEPS {
            step(cx, &mut |cx| {
                let (tiles, pieces) = (cells.blocks([8])?, sums.partition(3).equal()?);
                // Also a piece of a piece.
                let half = tiles.piece(1)?;
                let quarters = half.partition(2).equal()?;
                cx.index_launch(3, add(&pieces, &tiles));
                cx.index_launch(2, double(&quarters, &sums));
                cx.destroy_partition(&quarters)?;
                cx.destroy_partition(&tiles)?;
                cx.destroy_partition(&pieces)
            })?;
        }
        let cells = cx.map_read(&cells, Cell::value).await?.to_vec();
        let sums = cx.map_read(&sums, Cell::value).await?.to_vec();
        Ok([cells, sums].concat())
    });
}

#[test]
fn what_was_destroyed_stays_so_though_another_has_its_name() {
    for traced in [true, false] {
        let outcome = Runtime::builder().workers(2).tracing(traced).build().unwrap().run(async |cx| {
            let cells = cx.region::<Cell>(8)?;
            let mut old: Option<(Region<Cell>, Partition<Cell>)> = None;
            for turn in 0..30 {
                cx.trace("turn", |cx| -> Result<()> {
                    let new = cx.region::<Cell>(8)?;
                    let halves = new.partition(2).equal()?;
                    if let Some((old, old_halves)) = &old {
                        assert_eq!(tree(old), tree(&new));
                        assert_eq!(old.logical(), new.logical());
                        // By a launch, by a fill, by the name of a part, and to be destroyed once more.
                        if turn % 3 == 0 {
                            assert!(is_destroyed(cx.fill(old, Cell::value, 7)));
                            assert!(is_destroyed(cx.destroy_region(old)));
                            assert!(is_destroyed(cx.invalidate(&old_halves.piece(0)?, Cell::value)));
                        }
                    }
                    cx.index_launch(2, add(&halves, &cells));
                    cx.launch(add(&cells, &new));
                    cx.destroy_region(&new)?;
                    old = Some((new, halves));
                    Ok(())
                })?;
                let (old, halves) = old.as_ref().expect("it was just set");
                assert!(cx.launch(total(old)).await.is_err() && cx.index_launch(2, total(halves)).all().await.is_err());
            }
            cx.launch(total(&cells)).await
        });
        assert_eq!(outcome.unwrap(), 0);
    }
}

#[test]
fn a_launch_on_a_destroyed_region_is_refused_where_a_replay_expects_its_successor() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let mut old: Option<Region<Cell>> = None;
        for turn in 0..40 {
            let seen = cx.trace("turn", |cx| -> Result<_> {
                let new = cx.region::<Cell>(8)?;
                let used = if turn == 35 { old.take().expect("there was one") } else { new.clone() };
                let seen = cx.launch(total(&used));
                cx.launch(add(&cells, &new));
                cx.destroy_region(&new)?;
                old = Some(new);
                Ok(seen)
            })?;
            assert_eq!(seen.await.is_err(), turn == 35, "turn {turn}");
        }
        cx.launch(total(&cells)).await
    });
    assert_eq!(outcome.unwrap(), 0);
}

#[test]
fn tasks_launched_before_a_region_is_destroyed_are_not_disturbed_by_its_successor() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        cx.fill(&cells, Cell::value, 5)?;
        let mut seen = Vec::new();
        for _ in 0..100 {
            let temporary = cx.region::<Cell>(8)?;
            seen.push((cx.launch(total_of_child(&temporary)), 0));
            cx.launch(double(&temporary, &cells));
            seen.push((cx.launch(total_of_child(&temporary)), 80));
            cx.destroy_region(&temporary)?;
        }
        for (seen, expected) in seen {
            assert_eq!(seen.await?, expected);
        }
        Ok(())
    });
    outcome.unwrap();
}

/// The ends of channels by which [`meet`] tells the next that it runs, and waits for that.
static MEETINGS: Mutex<Vec<(mpsc::Sender<()>, mpsc::Receiver<()>)>> = Mutex::new(Vec::new());

#[task(leaf)]
fn meet(#[writes(value)] _cells: Piece<Cell>) {
    let (tell, hear) = MEETINGS.lock().unwrap().pop().expect("there is a place for each");
    tell.send(()).expect("the other waits");
    hear.recv().expect("the other comes");
}

#[test]
fn users_of_a_region_do_not_wait_for_those_of_the_one_before_outside_of_traces() {
    let runtime = Runtime::builder().workers(2).tracing(false).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let mut names = Vec::new();
        for _ in 0..10 {
            let ((to_first, first), (to_second, second)) = (mpsc::channel(), mpsc::channel());
            MEETINGS.lock().unwrap().extend([(to_first, second), (to_second, first)]);
            for _ in 0..2 {
                let cells = cx.region::<Cell>(8)?;
                names.push(tree(&cells));
                cx.launch(meet(&cells));
                cx.destroy_region(&cells)?;
            }
            cx.execution_fence().await?;
        }
        names.dedup();
        assert!(names.len() < 4, "{names:?}");
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn only_a_region_with_the_same_rows_and_fields_takes_over_a_name() {
    let outcome = runtime().run(async |cx| {
        let again = |cx: &Context| -> Result<TreeId> {
            let region = cx.region::<Cell>(8)?;
            cx.destroy_region(&region)?;
            Ok(tree(&region))
        };
        // The first one's memory goes at once: perhaps there is no second.
        let first = again(cx)?;
        let name = again(cx)?;
        assert_ne!(first, name);
        assert_eq!(again(cx)?, name);
        assert_ne!(tree(&cx.region::<Other>(8)?), name);
        assert_ne!(tree(&cx.region::<Cell>(9)?), name);
        assert_ne!(tree(&cx.region_over::<Cell, 2>(Rect::new([0, 0], [2, 4]))?), name);
        let scratch = cx.scratch::<Cell>(8)?;
        assert_ne!(tree(&scratch), name);
        let taken = cx.region::<Cell>(8)?;
        assert_eq!(tree(&taken), name);
        // It has another field by now, or has had.
        let field = taken.logical().fields().allocate("more", FieldType::of::<u8>())?;
        cx.destroy_region(&taken)?;
        let without = cx.region::<Cell>(8)?;
        assert_ne!(tree(&without), name);
        assert_eq!(without.logical().fields().get(field), None);
        cx.destroy_region(&without)?;
        let name = tree(&without);
        cx.destroy_index_space(without.logical().space())?;
        assert_ne!(again(cx)?, name);
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_region_that_is_held_mapped_when_it_is_destroyed_leaves_its_name_to_none() {
    let outcome = runtime().run(async |cx| {
        let mut held = Vec::new();
        for turn in 0..4 {
            let cells = cx.region::<Cell>(4)?;
            cx.fill(&cells, Cell::value, turn)?;
            held.push((tree(&cells), cx.map_read(&cells, Cell::value).await?));
            cx.destroy_region(&cells)?;
        }
        for (turn, (name, mapping)) in held.iter().enumerate() {
            assert_eq!(mapping.to_vec(), [turn as i64; 4]);
            assert_eq!(held.iter().filter(|(other, _)| other == name).count(), 1);
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn fields_that_were_freed_and_made_again_are_zero_in_a_region_that_takes_over_a_name() {
    let outcome = runtime().run(async |cx| {
        let (rows, fields) = known_late(cx, 2);
        let mut field = fields.allocate("a", FieldType::of::<i64>())?;
        for turn in 0..6 {
            let cells = Region::<()>::try_from_logical(cx.logical_region(&rows, &fields)?)?;
            let column = Field::<(), i64>::new(field);
            assert_eq!(cx.map_read(&cells, column).await?.to_vec(), [0; 4], "turn {turn}");
            cx.fill(&cells, column, 7)?;
            cx.destroy_region(&cells)?;
            if turn % 2 == 0 {
                cx.free_field(&fields, field)?;
                field = fields.allocate("b", FieldType::of::<i64>())?;
                assert_eq!(field, FieldId(0));
            }
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn memory_of_regions_that_were_destroyed_goes_to_others() {
    let outcome = Runtime::builder().machine(small()).build().unwrap().run(async |cx| {
        let cells = cx.region::<Cell>(1000)?;
        cx.fill(&cells, Cell::value, 1)?;
        for step in 0..40 {
            // Of other rows each time, three times each.
            let rows = 1000 - step % 13;
            let part = cells.part(Rect::from(0..rows))?;
            cx.trace("step", |cx| -> Result<()> {
                let temporary = cx.region_over::<Cell, 1>(Rect::from(0..rows))?;
                cx.launch(double(&temporary, &part));
                cx.launch(add(&part, &temporary));
                cx.destroy_region(&temporary)
            })?;
        }
        cx.map_read(&cells, Cell::value).await.map(|_| ())
    });
    outcome.unwrap();
}

#[test]
fn regions_without_rows_and_of_many_come_and_go() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(1)?;
        for _ in 0..20 {
            let (none, many) = (cx.region::<Cell>(0)?, cx.region::<Cell>(1 << 40)?);
            let pieces = none.partition(5).equal()?;
            cx.index_launch(5, add(&pieces, &cells));
            let first = many.part(Rect::from(0..1))?;
            cx.launch(add(&first, &cells));
            cx.destroy_region(&many)?;
            cx.destroy_region(&none)?;
        }
        cx.launch(total(&cells)).await
    });
    assert_eq!(outcome.unwrap(), 0);
}
