//! Tests of which launches are allowed, and how often.

use std::sync::Arc;

use maniple::prelude::*;
use maniple::{AnyRect, CustomProjection, LogicalRegion, Projection, RegionError, UpperBound};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn count(#[reads(value)] cells: Piece<Cell>) -> u64 {
    cells.volume()
}

#[test]
fn a_task_that_is_launched_once_takes_a_piece_and_no_partition() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let halves = cx.region::<Cell>(10)?.partition(2).equal()?;
        for refused in [count(&halves), count(halves.project(|_| 1.into()))] {
            let error = cx.launch(refused).await.unwrap_err();
            assert!(matches!(error, Error::NoPieceNamed { .. }), "{error}");
            let text = error.to_string();
            for word in ["`count`", &halves.logical().to_string(), "`index_launch`", "`.piece(color)`"] {
                assert!(text.contains(word), "{text:?} does not say {word:?}");
            }
        }
        Ok((cx.launch(count(&halves.piece(1)?)).await?, cx.index_launch(1, count(&halves)).all().await?))
    });
    assert_eq!(outcome.unwrap(), (5, vec![5]));
}

/// Every point gets the same region.
struct Always(LogicalRegion);

impl CustomProjection for Always {
    fn project(&self, _: UpperBound<'_>, _: AnyPoint, _: &AnyRect) -> Result<LogicalRegion, RegionError> {
        Ok(self.0.clone())
    }
}

#[test]
fn a_projection_names_nothing_that_was_destroyed() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let halves = cx.region::<Cell>(10)?.partition(2).equal()?;
        let fifth = halves.piece(0)?.partition(5).equal()?;
        let projection = Projection::Custom(Arc::new(Always(fifth.piece(2)?.logical().clone())));
        let launch = || cx.index_launch(3, count(halves.project_by(projection.clone())));
        assert_eq!(launch().all().await?, [1, 1, 1]);
        cx.destroy_partition(&fifth)?;
        Ok(launch().all().await)
    });
    let error = outcome.unwrap().unwrap_err();
    assert!(matches!(error, Error::Region(RegionError::Destroyed { .. })), "{error:?}");
}

#[task(leaf)]
fn change(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] += 1);
}

#[task(leaf)]
fn look_and_change(#[reads(value)] seen: Piece<Cell>, #[writes(value)] cells: Piece<Cell>) {
    let sum: i64 = seen.points().map(|point| seen.value[point]).sum();
    cells.points().for_each(|point| cells.value[point] += sum);
}

/// A list of all pairs of points that interfere would not fit into any memory.
#[test]
fn very_many_points_that_interfere_are_refused_as_fast_as_a_few() {
    const POINTS: usize = 1 << 20;
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(10)?.named("cells");
        let halves = cells.partition(2).equal()?;
        let alternating = || halves.project(|point| (point.coords()[0] % 2).into());
        let refused = [
            (change(&cells), "(0) and (1)"),
            (change(halves.project(|_| 0.into())), "(0) and (1)"),
            (change(alternating()), "(0) and (2)"),
            (look_and_change(alternating(), alternating()), "(0) and (2)"),
        ];
        for (launch, points) in refused {
            let error = cx.index_launch(POINTS, launch).await.unwrap_err();
            assert!(matches!(error, Error::PointsInterfere { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains(points) && text.contains("cells"), "{text:?}");
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn points_that_write_nothing_do_not_interfere() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let nothing = cx.region::<Cell>(0)?;
        let halves = nothing.partition(2).equal()?;
        cx.index_launch(3, change(&nothing)).await?;
        cx.index_launch(3, change(halves.project(|_| 1.into()))).await?;
        cx.index_launch(3, look_and_change(&nothing, halves.project(|_| 1.into()))).await
    });
    outcome.unwrap();
}
