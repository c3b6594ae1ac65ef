//! Tests of the record of a run.

use std::collections::BTreeSet;

use maniple::machine::{Affinity, MemoryKind, ProcessorKind};
use maniple::mapper::{InstanceChoice, Mapper, MappingContext, RequirementMapping, Reuse, TaskInfo};
use maniple::prelude::*;
use maniple::record::{Because, Kind, OperationNumber, Record, Violation, check};
use maniple::{Machine, MemoryId, ProcessorId};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn write(#[discards(value)] cells: Piece<Cell>) -> i64 {
    cells.points().for_each(|point| cells.value[point] = point[0]);
    1
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

#[task(leaf)]
fn take(amount: i64) -> i64 {
    amount
}

#[task(inner)]
async fn twice(cx: &Context, #[writes(value)] cells: Region<Cell>) -> Result<i64> {
    cx.launch(write(&cells));
    cx.launch(sum(&cells)).await
}

/// Runs a program; gives what was recorded, which proves that it was right.
fn recorded<T>(program: impl AsyncFnOnce(&Context) -> Result<T>) -> Record {
    let runtime = Runtime::builder().workers(2).record_operations(true).build().unwrap();
    runtime.run(program).unwrap();
    let record = runtime.take_record();
    check(&record).unwrap();
    record
}

/// All operations that come before one.
fn before(record: &Record, operation: OperationNumber) -> BTreeSet<OperationNumber> {
    let (mut all, mut open) = (BTreeSet::new(), vec![operation]);
    while let Some(next) = open.pop() {
        let after = &record.operation(next).unwrap().after;
        open.extend(after.iter().filter(|earlier| all.insert(**earlier)));
    }
    all
}

fn tasks(record: &Record, name: &str) -> Vec<OperationNumber> {
    let named =
        record.numbered().filter(|(_, operation)| matches!(&operation.kind, Kind::Task(task) if task.name == name));
    named.map(|(number, _)| number).collect()
}

#[test]
fn nothing_is_recorded_unless_that_was_asked_for() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.run(async |cx| cx.launch(take(1)).await).unwrap();
    assert!(runtime.take_record().operations.is_empty());
}

#[test]
fn a_record_begins_where_the_last_one_ended() {
    let runtime = Runtime::builder().workers(2).record_operations(true).build().unwrap();
    let program = async |cx: &Context| {
        let cells = cx.region::<Cell>(4)?;
        cx.launch(write(&cells));
        cx.launch(sum(&cells)).await
    };
    let [first, second] = [(); 2].map(|()| {
        runtime.run(program).unwrap();
        runtime.take_record()
    });
    assert_eq!(first.operations.len(), second.operations.len());
    assert_eq!(second.first_operation.0, first.operations.len() as u64);
    assert_eq!(second.first_launch.0, first.launches.len() as u64);
    assert_eq!(check(&first), check(&second));
}

#[test]
fn a_record_that_is_taken_while_a_task_launches_is_not_whole_nor_is_the_next_one() {
    let runtime = Runtime::builder().workers(2).record_operations(true).build().unwrap();
    let program = async |cx: &Context| cx.launch(twice(&cx.region::<Cell>(4)?)).await;
    let early = async |cx: &Context| {
        program(cx).await?;
        let early = runtime.take_record();
        program(cx).await?;
        Ok(early)
    };
    let early = runtime.run(early).unwrap();
    let (late, top) = (runtime.take_record(), OperationNumber(0));
    for record in [&early, &late] {
        assert_eq!(record.unfinished, BTreeSet::from([top]), "only the top-level task had not ended");
        assert!(matches!(check(record), Err(Violation::Unfinished { task }) if task.number == top));
    }
    runtime.run(program).unwrap();
    check(&runtime.take_record()).unwrap();
}

#[test]
fn a_task_comes_after_those_whose_results_it_takes_also_by_way_of_functions_of_them() {
    let record = recorded(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        let halves = cells.partition(2).equal()?;
        let written = cx.index_launch(2, write(&halves)).reduce(Sum);
        let both = written.map(|written| written + 1).zip_with(&cx.launch(take(1)), |a, b| a + b);
        written.await?;
        cx.launch(take(both)).await
    });
    let takes = tasks(&record, "take");
    let earlier = before(&record, takes[1]);
    assert!(earlier.contains(&takes[0]) && tasks(&record, "write").iter().all(|write| earlier.contains(write)));
}

#[test]
fn what_is_launched_behind_an_execution_fence_comes_after_everything_before_it() {
    let record = recorded(async |cx| {
        for _ in 0..100 {
            cx.launch(take(1)).await?;
        }
        cx.execution_fence();
        cx.launch(take(2)).await
    });
    let takes = tasks(&record, "take");
    let (last, others) = takes.split_last().unwrap();
    let earlier = before(&record, *last);
    assert!(others.iter().all(|take| earlier.contains(take)));
    let launch = record.operation(*last).unwrap().kind.launch().unwrap();
    let after = record.launch(launch).unwrap().after.iter();
    assert_eq!(after.filter(|dependence| dependence.because == Because::Fence).count(), 1);
}

#[test]
fn a_task_that_launches_ends_after_all_that_it_launched() {
    let record = recorded(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        cx.launch(twice(&cells));
        cx.launch(sum(&cells)).await
    });
    let twice = tasks(&record, "twice")[0];
    let is_end = |kind: &Kind| matches!(kind, Kind::End { task } if *task == twice);
    let (end, _) = record.numbered().find(|(_, operation)| is_end(&operation.kind)).unwrap();
    let parent = |number: &OperationNumber| record.operation(*number).unwrap().kind.place().unwrap().parent;
    let all = tasks(&record, "write").into_iter().chain(tasks(&record, "sum"));
    let (inside, outside): (BTreeSet<_>, BTreeSet<_>) = all.partition(|number| parent(number) == twice);
    assert_eq!((inside.len(), outside.len()), (2, 1));
    assert!(before(&record, end).is_superset(&inside) && before(&record, end).contains(&twice));
    assert!(outside.iter().all(|reader| before(&record, *reader).contains(&end)));
}

#[test]
fn launches_name_the_earlier_ones_that_they_depend_on_although_those_have_ended() {
    let record = recorded(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        cx.launch(write(&cells)).await?;
        cx.launch(sum(&cells)).await?;
        cx.launch(write(&cells)).await
    });
    let after = |launch: usize| -> Vec<(u64, Because)> {
        record.launches[launch].after.iter().map(|dependence| (dependence.on.0, dependence.because)).collect()
    };
    assert_eq!(after(0), []);
    assert_eq!(after(1), [(0, Because::Data(0))]);
    // It waits for the first by way of the second.
    assert_eq!(after(2), [(1, Because::Data(0))]);
}

const SMALL: MemoryId = MemoryId(0);
const LARGE: MemoryId = MemoryId(1);

/// A runtime that records, with a small memory of so many bytes and a large one.
fn runtime_with(capacity: u64, mapper: impl Mapper + Clone + 'static) -> Runtime {
    let mut machine = Machine::builder();
    let near = Affinity { bandwidth_mb_s: 1000, latency_ns: 100 };
    let processor = machine.processor(ProcessorKind::Cpu);
    for capacity in [capacity, 1 << 20] {
        let memory = machine.memory(MemoryKind::System, capacity);
        machine.sees(processor, memory, near);
    }
    let builder = Runtime::builder().machine(machine.build().unwrap()).mapper(mapper);
    builder.record_operations(true).build().unwrap()
}

/// A small memory in which everything is made, unless the tag says otherwise: 1 for a new instance in the large memory,
/// 2 for one in the small memory if there is room.
#[derive(Clone)]
struct Crowded;

impl Mapper for Crowded {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        _: usize,
        _: ProcessorId,
        _: usize,
        _: &dyn MappingContext,
    ) -> RequirementMapping {
        let new = |memory| InstanceChoice { reuse: Reuse::Never, ..InstanceChoice::in_memory(memory) };
        match task.tag {
            1 => new(LARGE).into(),
            2 => RequirementMapping::Instance(vec![new(SMALL), new(LARGE)]),
            _ => InstanceChoice::in_memory(SMALL).into(),
        }
    }
}

#[task(leaf)]
fn add_sum(#[reduces(Sum, value)] total: Piece<Cell>, #[reads(value)] cells: Piece<Cell>) {
    let sum: i64 = cells.points().map(|point| cells.value[point]).sum();
    total.points().for_each(|point| total.value.fold(point, sum));
}

/// Wants what `add_sum` reads in the small memory, and only when it was asked a third time in the large one, where
/// everything else is.
#[derive(Clone, Default)]
struct Hopeful {
    asked: usize,
}

impl Mapper for Hopeful {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        requirement: usize,
        _: ProcessorId,
        _: usize,
        _: &dyn MappingContext,
    ) -> RequirementMapping {
        let hopes = (task.name, requirement) == ("add_sum", 1) && {
            self.asked += 1;
            !self.asked.is_multiple_of(3)
        };
        InstanceChoice::in_memory(if hopes { SMALL } else { LARGE }).into()
    }
}

#[test]
fn a_buffer_that_was_emptied_in_vain_is_not_emptied_behind_the_back_of_those_who_use_it_next() {
    let runtime = runtime_with(8, Hopeful::default());
    let totals = runtime.run(async |cx| {
        let (total, cells) = (cx.region::<Cell>(2)?, cx.region::<Cell>(10)?);
        cx.launch(write(&cells));
        for _ in 0..3 {
            // Both times that the mapper is hopeful, the buffer has been chosen and emptied before the runtime sees
            // that there is no room.
            cx.launch(add_sum(&total, &cells));
            cx.launch(sum(&total)).await?;
        }
        cx.launch(sum(&total)).await
    });
    assert_eq!(totals.unwrap(), 3 * 2 * 45);
    check(&runtime.take_record()).unwrap();
}

/// Makes a copy elsewhere, wants more of the small memory than there is, and comes back to what it was given.
#[task]
async fn look_around(cx: &Context, #[reads(value)] cells: Region<Cell>) -> Result<i64> {
    let mut total = 0;
    for tag in [1, 2, 0] {
        total += cx.launch(sum(&cells).tag(tag)).await?;
    }
    Ok(total)
}

#[test]
fn a_task_that_may_only_read_never_writes_into_what_it_was_lent() {
    let runtime = runtime_with(80, Crowded);
    let total = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        cx.launch(write(&cells));
        // Both points share the instance; neither knows what the other does with it.
        cx.index_launch(2, look_around(&cells)).reduce(Sum).await
    });
    assert_eq!(total.unwrap(), 2 * 3 * 45);
    check(&runtime.take_record()).unwrap();
}
