//! The memory of a region follows its points, wherever they are, and tasks see them as any others.

use std::sync::Arc;

use maniple::mapper::{
    DefaultMapper, InstanceChoice, Mapper, MappingContext, ReductionPlace, RequirementMapping, Reuse, TaskInfo,
};
use maniple::prelude::*;
use maniple::task::{LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Arrangement, FieldId, FieldMask, IndexSpace, LayoutConstraint, Machine, Privilege, ProcessorId, Requirement,
    TaskLauncher,
};

const FAR: i64 = 1 << 39;

#[derive(Fields)]
struct Cell {
    value: i64,
    half: i32,
}

#[task(leaf)]
fn number(#[writes(value)] cells: Piece<Cell>, first: i64) {
    for (point, number) in cells.points().zip(first..) {
        cells.value[point] = number;
    }
}

#[task(leaf)]
fn number_plane(#[writes(value)] cells: Piece<Cell, 2>) {
    for (point, number) in cells.points().zip(1..) {
        cells.value[point] = number;
    }
}

#[task(leaf)]
fn halve(
    #[reads(value)]
    #[discards(half)]
    cells: Piece<Cell>,
) {
    for row in cells.rows() {
        let values = cells.value.span(row);
        for (half, value) in cells.half.span_mut(row).iter_mut().zip(&*values) {
            *half = (value / 2) as i32;
        }
    }
}

#[task(leaf)]
fn add(#[reduces(Sum, value)] cells: Piece<Cell>, amount: i64) {
    for point in cells.points() {
        cells.value.fold(point, amount);
    }
}

#[task(leaf)]
fn values(#[reads(value, half)] cells: Piece<Cell>) -> Vec<i64> {
    cells.points().map(|point| 1000 * cells.value[point] + i64::from(cells.half[point])).collect()
}

fn two_ends() -> IndexSpace<1> {
    IndexSpace::from_rects([Rect::from(0..10), Rect::from(FAR..FAR + 10)])
}

/// A new instance for each task, with buffers for reductions, in a layout that changes from task to task.
#[derive(Clone)]
struct Copies(Arrangement);

impl Mapper for Copies {
    fn map_requirement(
        &mut self,
        _: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let memory = context.machine().memories_visible_from(processor)[0].memory;
        let mut choice = InstanceChoice::in_memory(memory);
        choice.reuse = Reuse::Never;
        choice.reduction = ReductionPlace::Buffer;
        choice.layout = LayoutConstraint { arrangement: Some(self.0), ..LayoutConstraint::default() };
        choice.into()
    }
}

#[test]
fn a_region_of_points_far_apart_fits_in_a_small_memory() {
    for arrangement in [Arrangement::StructOfArrays, Arrangement::ArrayOfStructs, Arrangement::Blocked(4)] {
        let machine = Machine::uniform(2, 1 << 14);
        let runtime = Runtime::builder().machine(machine).mapper(Copies(arrangement)).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region_over::<Cell, 1>(two_ends())?;
            let pieces = cells.partition(3).equal()?;
            cx.launch(number(&cells, 0));
            cx.launch(add(&cells, 100));
            cx.index_launch(3, add(&pieces, 1000));
            cx.index_launch(3, halve(&pieces));
            let all = cx.launch(values(&cells)).await?;
            let mapped = cx.map_read(&cells, Cell::value).await?.to_vec();
            Ok((all, mapped, cx.index_launch(3, values(&pieces)).all().await?.concat()))
        });
        let expected: Vec<i64> = (1100..1120).map(|value| 1000 * value + value / 2).collect();
        let (all, mapped, parts) = outcome.unwrap();
        assert_eq!(all, expected, "{arrangement}");
        assert_eq!(mapped, (1100..1120).collect::<Vec<_>>(), "{arrangement}");
        assert_eq!(parts, expected, "{arrangement}");
    }
}

#[test]
fn an_instance_of_a_sparse_region_holds_no_more_bytes_than_its_points_need() {
    let runtime = Runtime::builder().machine(Machine::uniform(1, 20 * 8)).build().unwrap();
    let used = runtime.run(async |cx| {
        let cells = cx.region_over::<Cell, 1>(two_ends())?;
        cx.launch(number(&cells, 7)).await?;
        Ok(runtime.machine().memories().iter().map(|memory| runtime.bytes_used(memory.id)).sum::<u64>())
    });
    assert_eq!(used.unwrap(), 20 * 8);
}

/// Reads and writes at points among those of a region and around them. Returns the value at each; none where the region
/// has no point.
#[task(leaf)]
fn present(#[writes(value)] cells: Piece<Cell>, around: Vec<i64>) -> Vec<Option<i64>> {
    let present: Vec<_> = around.iter().map(|&point| cells.value.get([point])).collect();
    for (&point, value) in around.iter().zip(&present) {
        assert_eq!(cells.value.set([point], value.unwrap_or(-1)), value.is_some(), "{point}");
    }
    present
}

#[task(leaf)]
fn contribute(#[reduces(Sum, value)] cells: Piece<Cell>, around: Vec<i64>) -> u32 {
    around.into_iter().map(|point| u32::from(cells.value.try_fold([point], 1000))).sum()
}

#[test]
fn points_that_are_stored_between_those_of_a_region_are_not_of_it() {
    // Some points so near to each other that what is between them is stored, in several rectangles.
    let points = [0, 1, 3, 6, 7, FAR, FAR + 2, FAR + 3, 2 * FAR];
    let space = IndexSpace::<1>::from_points(points.map(|point| [point].into()));
    let around: Vec<i64> = [0, FAR, 2 * FAR].into_iter().flat_map(|first| first - 3..first + 12).collect();
    // Instances for just the region asked for, and one for all regions.
    for mapper in [DefaultMapper::piecewise(), DefaultMapper::new()] {
        let runtime = Runtime::builder().machine(Machine::uniform(2, 1 << 14)).mapper(mapper).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region_over::<Cell, 1>(space.clone())?;
            let pieces = cells.partition(2).equal()?;
            cx.launch(number(&cells, 5));
            let folded: u32 = cx.index_launch(2, contribute(&pieces, around.clone())).all().await?.into_iter().sum();
            let whole = cx.launch(contribute(&cells, around.clone())).await?;
            let parts = cx.index_launch(2, present(&pieces, around.clone())).all().await?;
            Ok((folded, whole, cx.launch(present(&cells, around.clone())).await?, parts))
        });
        let (folded, whole, all, parts) = outcome.unwrap();
        let rank = |point: &i64| points.iter().position(|known| known == point);
        let expected: Vec<_> = around.iter().map(|point| rank(point).map(|rank| 2005 + rank as i64)).collect();
        assert_eq!((folded, whole), (9, 9), "{mapper:?}");
        assert_eq!(all, expected, "{mapper:?}");
        let either = parts[0].iter().zip(&parts[1]).map(|(one, other)| one.xor(*other));
        assert_eq!(either.collect::<Vec<_>>(), expected, "{mapper:?}");
    }
}

#[test]
fn a_task_gets_the_values_of_points_that_are_no_rectangle_as_several_views() {
    let runtime = Runtime::builder().machine(Machine::uniform(1, 1 << 12)).build().unwrap();
    let body = |call: &LeafCall<'_>| -> Result<Value> {
        let refused = call.strided::<i64>(0, FieldId(0)).unwrap_err().to_string();
        assert!(refused.contains("2 rectangles, not one; take `strided_parts`"), "{refused}");
        let mut sums = Vec::new();
        for part in call.strided_parts::<i64>(0, FieldId(0))? {
            let first = part.bounds().lo();
            let sum = part.bounds().points().map(|point| {
                let steps = point.coords().iter().zip(first.coords()).zip(part.strides());
                let offset: isize = steps.map(|((at, first), stride)| (at - first) as isize * stride).sum();
                // SAFETY: the point is one of the view's, and the field holds `i64`.
                unsafe { part.address().offset(offset).cast::<i64>().read() }
            });
            sums.push((part.bounds().volume(), sum.sum::<i64>()));
        }
        Ok(Value::new(sums))
    };
    let task = Arc::new(TaskDefinition::new("sums").leaf(TaskOptions::default(), body));
    let outcome = runtime.run(async |cx| {
        let corners = IndexSpace::from_rects([Rect::<2>::new([0, 0], [1, 1]), Rect::new([FAR, -FAR], [FAR + 2, -FAR])]);
        let cells = cx.region_over::<Cell, 2>(corners)?;
        cx.launch(number_plane(&cells));
        let reads = Requirement::new(cells.logical().clone(), FieldMask::of(FieldId(0)), Privilege::Read);
        cx.launch(TaskLauncher::new(&task).requirement(reads).typed::<Vec<(u64, i64)>>()).await
    });
    assert_eq!(outcome.unwrap(), [(4, 1 + 2 + 3 + 4), (3, 5 + 6 + 7)]);
}

/// The values of all points, by the address and strides of the rectangle around them.
fn by_strides(call: &LeafCall<'_>) -> Result<Value> {
    let (around, points) = call.strided_around::<i64>(0, FieldId(0))?;
    let lowest = around.bounds().lo();
    let value = |point: AnyPoint| {
        let steps = point.coords().iter().zip(lowest.coords()).zip(around.strides());
        let offset: isize = steps.map(|((at, lowest), stride)| (at - lowest) as isize * stride).sum();
        // SAFETY: the point is one of the region's, and the field holds `i64`.
        unsafe { around.address().wrapping_offset(offset).cast::<i64>().read() }
    };
    Ok(Value::new(points.points().map(value).collect::<Vec<_>>()))
}

#[test]
fn a_field_that_has_no_strides_around_its_points_is_still_there_in_parts() {
    let body = |call: &LeafCall<'_>| -> Result<Value> {
        assert!(call.strided_around::<i64>(0, FieldId(0)).is_err());
        let parts = call.strided_parts::<i64>(0, FieldId(0))?.len();
        // Now it is taken.
        assert!(call.strided_parts::<i64>(0, FieldId(0)).is_err());
        Ok(Value::new(parts))
    };
    let task = Arc::new(TaskDefinition::new("parts").leaf(TaskOptions::default(), body));
    let runtime = Runtime::builder().machine(Machine::uniform(1, 1 << 12)).build().unwrap();
    let parts = runtime.run(async |cx| {
        let rects = [Rect::<2>::new([0, 0], [1, 2]), Rect::new([FAR, 0], [FAR, 0])];
        let cells = cx.region_over::<Cell, 2>(IndexSpace::from_rects(rects))?;
        cx.launch(number_plane(&cells));
        let changes = Requirement::new(cells.logical().clone(), FieldMask::of(FieldId(0)), Privilege::ReadWrite);
        cx.launch(TaskLauncher::new(&task).requirement(changes).typed::<usize>()).await
    });
    assert_eq!(parts.unwrap(), 2);
}

#[test]
fn points_that_are_no_rectangle_have_strides_if_what_is_around_them_is_stored() {
    // Two rows of three, and one of two beside; the last lies far away.
    let near = [Rect::<2>::new([0, 0], [1, 2]), Rect::new([4, 1], [4, 2])];
    let far = [near[0], Rect::new([FAR, 0], [FAR, 0])];
    let task = Arc::new(TaskDefinition::new("by_strides").leaf(TaskOptions::default(), by_strides));
    for mapper in [DefaultMapper::piecewise(), DefaultMapper::new()] {
        let runtime = Runtime::builder().machine(Machine::uniform(1, 1 << 12)).mapper(mapper).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let mut found = Vec::new();
            for rects in [&near[..], &far, &near[..1], &[]] {
                let cells = cx.region_over::<Cell, 2>(IndexSpace::from_rects(rects.iter().copied()))?;
                cx.launch(number_plane(&cells));
                let reads = Requirement::new(cells.logical().clone(), FieldMask::of(FieldId(0)), Privilege::Read);
                let values = cx.launch(TaskLauncher::new(&task).requirement(reads).typed::<Vec<i64>>()).await;
                found.push(values.map_err(|error| error.to_string()));
            }
            Ok(found)
        });
        let [near, far, dense, empty] = &outcome.unwrap()[..] else { panic!() };
        assert_eq!(near.as_ref().unwrap()[..], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(far.as_ref().unwrap_err().contains("take `strided_parts`"), "{far:?}");
        assert_eq!(dense.as_ref().unwrap()[..], [1, 2, 3, 4, 5, 6]);
        assert_eq!(empty.as_ref().unwrap()[..], []);
    }
}
