//! No operation waits for what comes after it in the program, so none waits in a circle.

use std::sync::{Arc, Mutex, mpsc};

use maniple::mapper::{Columns, InstanceChoice, Mapper, MappingContext, RequirementMapping, Reuse, TaskInfo};
use maniple::prelude::*;
use maniple::{ProcessorId, RuntimeBuilder};

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

/// Keeps the only worker until the gate is open: what is launched meanwhile is mapped in the order in which it can be,
/// all of it before anything runs.
#[task(leaf)]
fn hold(gate: Arc<Mutex<mpsc::Receiver<()>>>) {
    gate.lock().unwrap().recv().expect("the gate is opened");
}

#[task(leaf)]
fn five() -> i64 {
    5
}

#[task(leaf)]
fn same(value: i64) -> i64 {
    value
}

#[task(leaf)]
fn add(#[reduces(Sum, value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|point| cells.value.fold(point, amount));
}

#[task]
async fn add_below(cx: &Context, #[reduces(Sum, value)] cells: Region<Cell>, amount: i64) -> Result<i64> {
    cx.launch(add(&cells, amount)).await?;
    Ok(amount)
}

type Shared<T> = Arc<Mutex<Option<maniple::Future<T>>>>;

fn shared<T>(future: &maniple::Future<T>) -> Shared<T> {
    Arc::new(Mutex::new(Some(future.clone())))
}

async fn of<T: Clone + Send + Sync + 'static>(earlier: &Shared<T>) -> Result<T> {
    let earlier = earlier.lock().unwrap().take().expect("asked once");
    earlier.await
}

/// Contributes what an earlier task gives, which it was not given as an argument.
#[task]
async fn add_after(cx: &Context, #[reduces(Sum, value)] cells: Region<Cell>, earlier: Shared<i64>) -> Result<i64> {
    let amount = of(&earlier).await?;
    cx.launch(add(&cells, amount * 10)).await?;
    Ok(amount)
}

/// Writes other data when an earlier task has ended.
#[task]
async fn write_after(cx: &Context, #[writes(other)] cells: Region<Cell>, earlier: Shared<()>) -> Result<()> {
    of(&earlier).await?;
    cx.fill(&cells, Cell::other, 7)
}

#[task(leaf)]
fn add_other(
    #[reduces(Sum, value)]
    #[reads(other)]
    cells: Piece<Cell>,
) {
    cells.points().for_each(|point| cells.value.fold(point, cells.other[point]));
}

#[task(leaf)]
fn read_other(#[reads(other)] cells: Piece<Cell>, more: i64) -> i64 {
    more + cells.points().map(|point| cells.other[point]).sum::<i64>()
}

/// Reads what an earlier task need not have written.
#[task]
async fn read_after(cx: &Context, #[reads(value)] cells: Region<Cell>, earlier: Shared<i64>) -> Result<i64> {
    let read = of(&earlier).await?;
    cx.map_read(&cells, Cell::value).await?;
    Ok(read)
}

#[task(leaf)]
fn overwrite(#[discards(value)] cells: Piece<Cell>) {
    cells.value.fill(2);
}

/// Keeps all fields in one instance, but for what is overwritten: that gets a new one.
#[derive(Clone)]
struct Together;

impl Mapper for Together {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let memory = context.machine().memories_visible_from(processor)[0].memory;
        let reuse = if task.name == "overwrite" { Reuse::Never } else { Reuse::Any };
        let choice = InstanceChoice { reuse, columns: Columns::All, ..InstanceChoice::in_memory(memory) };
        RequirementMapping::Instance(vec![choice])
    }
}

/// Runs a program on one worker, which is kept until all of it has been launched.
fn run(program: impl AsyncFnOnce(&Context, &Region<Cell>, Box<dyn FnOnce()>) -> Result<()>) -> Vec<i64> {
    run_on(Runtime::builder(), program)
}

fn run_on(
    builder: RuntimeBuilder,
    program: impl AsyncFnOnce(&Context, &Region<Cell>, Box<dyn FnOnce()>) -> Result<()>,
) -> Vec<i64> {
    let runtime = builder.workers(1).build().unwrap();
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        cx.fill(&cells, Cell::value, 1)?;
        let (open, gate) = mpsc::channel();
        let held = cx.launch(hold(Arc::new(Mutex::new(gate))));
        program(cx, &cells, Box::new(move || open.send(()).unwrap())).await?;
        held.await?;
        Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
    });
    outcome.unwrap()
}

#[test]
fn a_task_that_contributes_in_place_does_not_hold_what_the_one_that_it_waits_for_needs() {
    let values = run(async |cx, cells, open| {
        let late = cx.launch(five());
        let first = cx.launch(add_below(cells, &late));
        let second = cx.launch(add_after(cells, shared(&first)));
        open();
        second.await.map(|_| ())
    });
    assert_eq!(values, [1 + 5 + 50; 4]);
}

#[test]
fn a_leaf_that_contributes_in_place_and_follows_a_task_that_waits_does_not_come_before_the_one_that_is_waited_for() {
    let values = run(async |cx, cells, open| {
        let late = cx.launch(five());
        let first = cx.launch(add(cells, &late));
        // It may use anything but what the first one contributes to.
        let between = cx.launch(write_after(cells, shared(&first)));
        let last = cx.launch(add_other(cells));
        open();
        between.await?;
        last.await
    });
    assert_eq!(values, [1 + 5 + 7; 4]);
}

#[test]
fn a_task_does_not_wait_for_those_that_used_other_fields_of_its_instance() {
    let values = run_on(Runtime::builder().mapper(Together), async |cx, cells, open| {
        // Mapped two rounds after the second one, and so after the last.
        let late = cx.launch(same(cx.launch(five())));
        let first = cx.launch(read_other(cells, &late));
        let second = cx.launch(read_after(cells, shared(&first)));
        // The instance that the second one reads is not that of the current values any more.
        let last = cx.launch(overwrite(cells));
        open();
        assert_eq!(second.await?, 5);
        last.await
    });
    assert_eq!(values, [2; 4]);
}
