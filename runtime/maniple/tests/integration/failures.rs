//! Failures reach the operations that need what failed, and no others; none is lost.

use maniple::ProcessorId;
use maniple::mapper::{DefaultMapper, InstanceChoice, Mapper, MappingContext, RequirementMapping, Reuse, TaskInfo};
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    for point in cells.points() {
        cells.value[point] += amount;
    }
}

#[task(leaf)]
fn total(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

#[task(leaf)]
fn spoil(#[writes(value)] cells: Piece<Cell>) -> Result<()> {
    Err(Error::application(format!("{} cells are spoilt", cells.volume())))
}

#[task(leaf)]
fn fail() -> Result<()> {
    Err(Error::application("as always"))
}

#[task(leaf)]
fn panics() {
    panic!("as always");
}

/// Everything in one instance, but for tasks with the tag 1, which get a new one.
#[derive(Clone)]
struct Copies;

impl Mapper for Copies {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let memory = context.machine().memories_visible_from(processor)[0].memory;
        let mut choice = InstanceChoice::in_memory(memory).whole();
        choice.reuse = match task.tag {
            1 => Reuse::Never,
            2 => context.instances(0).iter().map(|known| known.id).max().map_or(Reuse::Any, Reuse::Only),
            _ => Reuse::Any,
        };
        choice.into()
    }
}

#[test]
fn good_values_that_are_copied_together_with_bad_ones_stay_good() {
    let runtime = Runtime::builder().workers(2).mapper(Copies).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let quarters = cells.partition(4).equal()?;
        cx.launch(add(&cells, 1));
        cx.launch(add(&quarters.piece(0)?, 1));
        assert!(cx.launch(spoil(&quarters.piece(1)?)).await.is_err());
        assert!(cx.launch(total(&cells).tag(1)).await.is_err());
        // Both where the values were made and where they were copied to.
        Ok((cx.launch(total(&quarters.piece(0)?)).await?, cx.launch(total(&quarters.piece(0)?).tag(2)).await?))
    });
    assert_eq!(outcome.unwrap(), (4, 4));
}

#[test]
fn who_has_seen_one_failure_has_not_seen_another_of_the_same_kind() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        assert!(cx.launch(fail()).await.is_err());
        cx.launch(fail());
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::TaskFailed { .. })), "{outcome:?}");
    let outcome = runtime.run(async |cx| {
        assert!(cx.launch(panics()).await.is_err());
        cx.launch(panics());
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::Panicked { .. })), "{outcome:?}");
}

#[test]
fn who_has_seen_a_failure_need_not_look_at_what_it_spoilt() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        assert!(cx.launch(spoil(&cells)).await.is_err());
        cx.launch(total(&cells));
        Ok(())
    });
    outcome.unwrap();
}

#[task(leaf)]
fn fail_at_three(#[point] point: Point<1>) -> Result<i64> {
    if point[0] == 3 { Err(Error::application("three")) } else { Ok(point[0]) }
}

#[test]
fn who_has_seen_a_point_succeed_has_not_seen_another_fail() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let points = cx.index_launch(4, fail_at_three());
        assert_eq!(points.get(2)?.await?, 2);
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::TaskFailed { point: Some(_), .. })), "{outcome:?}");
}

#[task(leaf)]
fn take(#[point] point: Point<1>, number: i64) -> i64 {
    point[0] + number
}

#[task(leaf)]
fn fail_at_once() -> Result<i64> {
    Err(Error::application("nothing"))
}

#[test]
fn a_launch_of_no_points_shows_no_failure_of_what_it_was_given() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let number = cx.launch(fail_at_once());
        let none = cx.index_launch(0, take(&number)).all().await?;
        assert!(none.is_empty());
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::TaskFailed { .. })), "{outcome:?}");
}

#[task(leaf)]
fn contribute(#[reduces(Sum, value)] cells: Piece<Cell>, good: bool) -> Result<()> {
    for point in cells.points() {
        cells.value.fold(point, 1);
    }
    if good { Ok(()) } else { Err(Error::application("a bad contribution")) }
}

#[test]
fn a_reducer_does_not_fail_for_an_earlier_one_but_the_values_do() {
    for mapper in [DefaultMapper::new(), DefaultMapper::piecewise()] {
        let runtime = Runtime::builder().workers(2).mapper(mapper).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(8)?;
            assert!(cx.launch(contribute(&cells, false)).await.is_err());
            cx.launch(contribute(&cells, true)).await?;
            assert!(cx.launch(total(&cells)).await.is_err());
            Ok(())
        });
        outcome.unwrap();
    }
}

#[test]
fn a_bad_contribution_to_one_part_spoils_no_other_however_they_are_put_together() {
    for mapper in [DefaultMapper::new(), DefaultMapper::piecewise()] {
        let runtime = Runtime::builder().workers(2).mapper(mapper).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(12)?;
            cx.launch(add(&cells, 1)).await?;
            // Each of four pieces shares one cell with the next.
            let pieces = cells.tiles([3], [1])?;
            for color in 0..4 {
                let outcome = cx.launch(contribute(&pieces.piece(color)?, color != 2)).await;
                assert_eq!(outcome.is_ok(), color != 2);
            }
            // Applies all of them to all cells, and contributes itself.
            cx.launch(raise(&cells)).await?;
            let single = cells.tiles([1], [0])?;
            let mut good = Vec::new();
            for color in 0..12 {
                good.push(cx.launch(total(&single.piece(color)?)).await.is_ok());
            }
            Ok(good)
        });
        let expected: Vec<bool> = (0..12).map(|cell| !(5..=9).contains(&cell)).collect();
        assert_eq!(outcome.unwrap(), expected);
    }
}

#[test]
fn a_copy_of_values_that_were_made_by_several_keeps_the_good_ones() {
    let runtime = Runtime::builder().workers(2).mapper(Copies).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(12)?;
        cx.launch(add(&cells, 1)).await?;
        let pieces = cells.tiles([3], [1])?;
        for color in 0..4 {
            assert_eq!(cx.launch(contribute(&pieces.piece(color)?, color != 2)).await.is_ok(), color != 2);
        }
        assert!(cx.launch(total(&cells).tag(1)).await.is_err());
        let single = cells.tiles([1], [0])?;
        let mut sums = Vec::new();
        for color in 0..12 {
            sums.push(cx.launch(total(&single.piece(color)?).tag(2)).await.ok());
        }
        Ok(sums)
    });
    let expected = [2, 2, 3, 3, 2, 0, 0, 0, 0, 0, 2, 2].map(|sum| (sum > 0).then_some(sum));
    assert_eq!(outcome.unwrap(), expected);
}

#[task(leaf)]
fn raise(#[reduces(Max, value)] cells: Piece<Cell>) {
    for point in cells.points() {
        cells.value.fold(point, 5);
    }
}

#[task(inner)]
async fn launch_both(
    cx: &Context,
    #[reads(value)] good: Region<Cell>,
    #[reads(value)] bad: Region<Cell>,
) -> Result<(bool, bool)> {
    Ok((cx.launch(total(&good)).await.is_ok(), cx.launch(total(&bad)).await.is_ok()))
}

#[test]
fn what_an_inner_task_launches_fails_only_for_data_that_it_uses() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let (good, bad) = (cx.region::<Cell>(8)?, cx.region::<Cell>(8)?);
        cx.launch(add(&good, 1));
        assert!(cx.launch(spoil(&bad)).await.is_err());
        cx.launch(launch_both(&good, &bad)).await
    });
    assert_eq!(outcome.unwrap(), (true, false));
}
