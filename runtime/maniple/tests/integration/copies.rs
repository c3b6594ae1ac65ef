//! Copies of several fields and with an operator, and projections that are plain data: what is refused, and edges.

use maniple::mapper::{InstanceChoice, Mapper, MappingContext, ReductionPlace, RequirementMapping, TaskInfo};
use maniple::prelude::*;
use maniple::{Affine, Complex64, Error, FieldId, ProcessorId};

#[derive(Fields)]
struct Cell {
    mass: f64,
    weight: f64,
    number: i32,
    least: Located<f64>,
    signal: Complex64,
}

#[task(leaf)]
fn first(#[reads(mass)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|cell| cell[0]).min().unwrap_or(-1)
}

#[task(leaf)]
fn fill_signal(#[discards(signal)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.signal[cell] = Complex64::new(cell[0] as f64, 1.0));
}

#[task(leaf)]
fn sum_signal(#[reads(signal)] cells: Piece<Cell>) -> Complex64 {
    cells.points().map(|cell| cells.signal[cell]).sum()
}

/// Contributions go where the tag says.
#[derive(Clone)]
struct Where;

impl Mapper for Where {
    fn map_requirement(
        &mut self,
        _: &TaskInfo<'_>,
        requirement: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let memory = context.machine().memories_visible_from(processor)[0].memory;
        let reduction = if requirement == 1 { ReductionPlace::InPlace } else { ReductionPlace::Buffer };
        InstanceChoice { reduction, ..InstanceChoice::in_memory(memory).whole() }.into()
    }
}

#[test]
fn wrong_copies_of_fields_are_refused_and_change_nothing() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime
        .run(async |cx| {
            let (cells, other) = (cx.region::<Cell>(10)?, cx.region::<Cell>(20)?);
            cx.fill(&cells, Cell::mass, 1.5)?;
            cx.fill(&other, Cell::mass, 7.0)?;
            let [mass, weight, number] = [Cell::mass.id(), Cell::weight.id(), Cell::number.id()];
            let wrong = [
                (&other, &cells, vec![(mass, number)], "holds"),
                (&other, &cells, vec![(mass, mass), (weight, mass)], "is to be copied to twice; name it once"),
                (&cells, &other, vec![(mass, mass)], "has no row (10)"),
                (&other, &cells, vec![(mass, FieldId(77))], "77"),
            ];
            for (from, to, pairs, problem) in wrong {
                let error = cx.copy_fields(from, to, &pairs).await.unwrap_err();
                assert!(error.to_string().contains(problem), "{error}");
            }
            cx.copy_fields(&cells, &cells, &[(mass, weight), (weight, weight)]).await.unwrap_err();
            cx.copy_fields(&cells, &cells, &[]).await?;
            assert_eq!(cx.map_read(&cells, Cell::mass).await?.to_vec(), [1.5; 10]);
            cx.copy_fields(&other, &cells, &[(mass, weight), (mass, mass)]).await?;
            assert_eq!(cx.map_read(&cells, Cell::mass).await?.to_vec(), [7.0; 10]);
            assert_eq!(cx.map_read(&cells, Cell::weight).await?.to_vec(), [7.0; 10]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn contributions_are_the_same_in_place_and_in_buffers_and_at_no_points() {
    for builder in [Runtime::builder(), Runtime::builder().mapper(Where)] {
        let runtime = builder.workers(2).build().unwrap();
        runtime
            .run(async |cx| {
                let (cells, none) = (cx.region::<Cell>(10)?, cx.region::<Cell>(0)?);
                cx.fill(&cells, Cell::mass, 2.0)?;
                cx.fill(&cells, Cell::weight, 3.0)?;
                for _ in 0..5 {
                    cx.contribute(Sum, cells.field(Cell::mass), cells.field(Cell::weight));
                }
                cx.contribute(Max, cells.field(Cell::weight), cells.field(Cell::mass));
                cx.contribute(Sum, none.field(Cell::mass), none.field(Cell::mass)).await?;
                assert_eq!(cx.map_read(&cells, Cell::weight).await?.to_vec(), [13.0; 10]);
                assert_eq!(cx.map_read(&cells, Cell::mass).await?.to_vec(), [13.0; 10]);
                let lacking = cx.contribute(Sum, none.field(Cell::mass), cells.field(Cell::mass)).await.unwrap_err();
                assert!(lacking.to_string().contains("has no row (0)"), "{lacking}");
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn places_and_complex_numbers_are_field_values_like_others() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let (least, sum) = runtime
        .run(async |cx| {
            let cells = cx.region::<Cell>(10)?;
            let pieces = cells.partition(4).equal()?;
            cx.fill(&cells, Cell::least, Located { value: 5.0, at: 3 })?;
            cx.contribute(ArgMin, cells.field(Cell::least), cx.region_like::<Cell, _, 1>(&cells)?.field(Cell::least));
            cx.index_launch(4, fill_signal(&pieces));
            let sum = cx.index_launch(4, sum_signal(&pieces)).reduce(Sum).await?;
            Ok((cx.map_read(&cells, Cell::least).await?[3], sum))
        })
        .unwrap();
    assert_eq!((least, sum), (Located { value: 5.0, at: 3 }, Complex64::new(45.0, 10.0)));
}

#[test]
fn linear_projections_that_do_not_fit_are_refused_with_what_was_expected() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime
        .run(async |cx| {
            let pieces = cx.region::<Cell>(8)?.partition(4).equal()?;
            let firsts = cx.index_launch(4, first(pieces.affine(Affine::new([[-1]], [3]))));
            assert_eq!((firsts.get(0)?.await?, firsts.get(3)?.await?), (6, 0));
            let beyond = cx.index_launch(4, first(pieces.affine(Affine::shift([1])))).reduce(Sum).await.unwrap_err();
            assert!(beyond.to_string().contains("has no color (4)"), "{beyond}");
            let ring = cx.index_launch(4, first(pieces.affine(Affine::shift([i64::MAX]).around()))).reduce(Sum);
            assert_eq!(ring.await?, 2 + 4 + 6);
            for wrong in [Affine::shift([0, 0]), Affine::new([[1], [1]], [0, 0]), Affine::new([[1, 0]], [0])] {
                let error = cx.index_launch(4, first(pieces.affine(wrong))).reduce(Sum).await.unwrap_err();
                assert!(error.to_string().contains("a linear projection of points of"), "{error}");
                assert!(matches!(error, Error::Region(_)));
            }
            // Made anew each time, and the same launch all the same: it is found, recorded and replayed.
            for _ in 0..40 {
                cx.index_launch(4, first(pieces.affine(Affine::shift([1]).around())));
            }
            Ok(())
        })
        .unwrap();
    assert!(runtime.statistics().replays > 0);
}
