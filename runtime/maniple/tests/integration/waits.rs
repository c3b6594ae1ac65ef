//! No operation waits for what comes after it in the program, so none waits in a circle.

use std::sync::{Arc, Mutex, mpsc};

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

/// Keeps the only worker until the gate is open: what is launched meanwhile is mapped in the order in which it can be,
/// all of it before anything runs.
#[task(leaf)]
fn hold(gate: Arc<Mutex<mpsc::Receiver<()>>>) {
    gate.lock().unwrap().recv().expect("somebody opens the gate");
}

#[task(leaf)]
fn five() -> i64 {
    5
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

/// Runs a program on one worker, which is kept until all of it has been launched.
fn run(program: impl AsyncFnOnce(&Context, &Region<Cell>, Box<dyn FnOnce()>) -> Result<()>) -> Vec<i64> {
    let runtime = Runtime::builder().workers(1).build().unwrap();
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
