//! What may be launched, and how often.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

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

/// Everybody gets the same region.
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
