//! Contributions in buffers: applied in program order, each once, and never those that were overwritten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple::ProcessorId;
use maniple::mapper::{
    DefaultMapper, InstanceChoice, InstanceId, Mapper, MappingContext, ReductionPlace, RequirementMapping, TaskInfo,
};
use maniple::prelude::*;
use maniple::record::{Kind, OperationNumber, check};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[reduces(Sum, value)] cells: Piece<Cell>, amount: i64) {
    for point in cells.points() {
        cells.value.fold(point, amount);
    }
}

#[task(leaf)]
fn raise(#[reduces(Max, value)] cells: Piece<Cell>, amount: i64) {
    for point in cells.points() {
        cells.value.fold(point, amount);
    }
}

#[task(leaf)]
fn values(#[reads(value)] cells: Piece<Cell>) -> Vec<i64> {
    cells.points().map(|point| cells.value[point]).collect()
}

/// A buffer for each region, but for tasks with the tag 1, which reduce in place.
#[derive(Clone)]
struct Buffers;

impl Mapper for Buffers {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let mut choice = InstanceChoice::in_memory(context.machine().memories_visible_from(processor)[0].memory);
        if task.tag == 1 {
            choice.reduction = ReductionPlace::InPlace;
        }
        choice.into()
    }
}

fn runtime(mapper: impl Mapper + Clone + 'static) -> Runtime {
    Runtime::builder().workers(2).mapper(mapper).build().unwrap()
}

#[test]
fn another_operator_comes_after_contributions_to_values_that_nobody_stored() {
    let outcome = runtime(Buffers).run(async |cx| {
        let cells = cx.region::<Cell>(2)?;
        cx.launch(add(&cells, 5));
        cx.launch(raise(&cells, 3));
        cx.launch(values(&cells)).await
    });
    assert_eq!(outcome.unwrap(), [5, 5]);
}

#[test]
fn operators_that_meet_only_in_part_keep_program_order() {
    for look_first in [false, true] {
        let outcome = runtime(Buffers).run(async |cx| {
            let cells = cx.region::<Cell>(2)?;
            if look_first {
                cx.launch(values(&cells)).await?;
            }
            let halves = cells.partition(2).equal()?;
            let (low, high) = (halves.piece(0)?, halves.piece(1)?);
            cx.launch(add(&low, 1));
            cx.launch(raise(&high, 10));
            cx.launch(add(&cells, 100));
            cx.launch(raise(&high, 50));
            cx.launch(values(&cells)).await
        });
        assert_eq!(outcome.unwrap(), [101, 110]);
    }
}

#[test]
fn reducing_in_place_comes_after_all_contributions_by_other_operators() {
    let outcome = runtime(Buffers).run(async |cx| {
        let cells = cx.region::<Cell>(2)?;
        let halves = cells.partition(2).equal()?;
        cx.launch(values(&cells)).await?;
        cx.launch(add(&halves.piece(0)?, 1));
        cx.launch(raise(&halves.piece(1)?, 10));
        cx.launch(add(&cells, 100).tag(1));
        cx.launch(values(&cells)).await
    });
    assert_eq!(outcome.unwrap(), [101, 110]);
}

#[task(leaf)]
fn add_late(#[reduces(Sum, value)] cells: Piece<Cell>, begun: Arc<AtomicBool>, go: Arc<AtomicBool>, amount: i64) {
    begun.store(true, Ordering::Release);
    while !go.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    for point in cells.points() {
        cells.value.fold(point, amount);
    }
}

#[test]
fn contributions_that_were_overwritten_never_come_back() {
    let outcome = runtime(DefaultMapper::piecewise()).run(async |cx| {
        let cells = cx.region::<Cell>(2)?;
        let (begun, go, none) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default(), Arc::default());
        let overwritten = cx.launch(add_late(&cells, Arc::clone(&begun), Arc::clone(&go), 1000));
        cx.fill(&cells, Cell::value, 7)?;
        // A free buffer is taken again; the second task must not fold into it before the first has ended.
        let later = cx.launch(add_late(&cells, none, Arc::clone(&go), 1));
        while !begun.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        go.store(true, Ordering::Release);
        overwritten.await?;
        later.await?;
        cx.launch(values(&cells)).await
    });
    assert_eq!(outcome.unwrap(), [8, 8]);
}

#[test]
fn reducers_of_one_region_fold_side_by_side_into_as_many_buffers_as_there_are_processors() {
    let runtime = Runtime::builder().workers(2).mapper(Buffers).record_operations(true).build().unwrap();
    let sums = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        for _ in 0..6 {
            cx.launch(add(&cells, 1));
        }
        cx.execution_fence();
        cx.launch(values(&cells)).await
    });
    assert_eq!(sums.unwrap(), vec![6; 8]);
    let record = runtime.take_record();
    check(&record).unwrap();
    let adds: Vec<(InstanceId, OperationNumber)> = (record.numbered())
        .filter_map(|(number, operation)| match &operation.kind {
            Kind::Task(task) if task.name == "add" => Some((task.usages[0].instances[0].1, number)),
            _ => None,
        })
        .collect();
    let mut buffers: Vec<_> = adds.iter().map(|(buffer, _)| *buffer).collect();
    buffers.sort_unstable();
    buffers.dedup();
    assert_eq!(buffers.len(), 2, "one a processor");
    for buffer in buffers {
        let into: Vec<_> = adds.iter().filter(|(used, _)| *used == buffer).collect();
        assert_eq!(into.len(), 3, "both take turns");
    }
    for (buffer, add) in &adds {
        let after = &record.operation(*add).unwrap().after;
        let waits_for = adds.iter().filter(|(_, earlier)| after.contains(earlier));
        assert!(waits_for.into_iter().all(|(other, _)| other == buffer), "only who shares a buffer waits");
    }
}

#[derive(Fields)]
struct Number {
    value: f64,
}

#[task(leaf)]
fn set(#[discards(value)] mut numbers: Piece<Number>, value: f64) {
    for point in numbers.points() {
        numbers.value[point] = value;
    }
}

#[task(leaf)]
fn contribute(#[reduces(Sum, value)] numbers: Piece<Number>, amount: f64) {
    for point in numbers.points() {
        numbers.value.fold(point, amount);
    }
}

#[task(leaf)]
fn double(#[writes(value)] mut numbers: Piece<Number>) {
    for point in numbers.points() {
        numbers.value[point] *= 2.0;
    }
}

#[task(leaf)]
fn first(#[reads(value)] numbers: Piece<Number>) -> f64 {
    numbers.points().next().map_or(f64::NAN, |point| numbers.value[point])
}

/// A leaf task that changes few values applies what was contributed to them itself.
#[test]
fn contributions_are_applied_in_program_order_to_few_values_and_to_many() {
    const HUGE: f64 = 1e16;
    for points in [8, 5000] {
        let outcome = runtime(Buffers).run(async |cx| {
            let numbers = cx.region::<Number>(points)?;
            cx.launch(set(&numbers, HUGE));
            cx.launch(contribute(&numbers, 1.0));
            cx.launch(contribute(&numbers, -HUGE));
            cx.launch(double(&numbers));
            cx.launch(first(&numbers)).await
        });
        // The other way round it is 2.
        assert_eq!(outcome.unwrap(), 2.0 * ((HUGE + 1.0) - HUGE), "{points} points");
    }
}
