//! Contexts, mappings and children of a task, which must not outlive it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use maniple::prelude::*;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{FieldId, FieldMask, Privilege, Requirement};

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

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

type Leak = Arc<Mutex<Option<(Context, Region<Cell>)>>>;

#[task]
async fn leak_context(cx: &Context, #[writes(value)] cells: Region<Cell>, leak: Leak) -> Result<()> {
    *leak.lock().unwrap() = Some((cx.clone(), cells.clone()));
    Ok(())
}

#[test]
fn nothing_is_launched_from_the_context_of_a_task_that_has_ended() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let leak = Leak::default();
        cx.launch(leak_context(&cells, Arc::clone(&leak))).await?;
        let (ended, same) = leak.lock().unwrap().take().unwrap();
        assert!(matches!(ended.launch(add(&same, 1)).await, Err(Error::Ended { .. })));
        assert!(matches!(ended.fill(&same, Cell::value, 1), Err(Error::Ended { .. })));
        assert!(matches!(ended.map_write(&same, Cell::value).await.err(), Some(Error::Ended { .. })));
        assert!(matches!(ended.execution_fence().await, Err(Error::Ended { .. })));
        cx.launch(total(&cells)).await
    });
    assert_eq!(outcome.unwrap(), 0);
}

#[test]
fn nothing_is_launched_after_the_end_of_the_run() {
    let runtime = runtime();
    let (cx, cells) = runtime.run(async |cx| Ok((cx.clone(), cx.region::<Cell>(8)?))).unwrap();
    assert!(matches!(cx.launch(add(&cells, 1)).wait(), Err(Error::Ended { .. })));
}

#[test]
fn a_mapping_is_not_returned_from_the_task_that_made_it() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        cx.map_read(&cells, Cell::value).await
    });
    assert!(matches!(outcome.err(), Some(Error::StillMapped { .. })));
}

#[test]
fn a_run_ends_although_a_mapping_was_forgotten() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        std::mem::forget(cx.map_read(&cells, Cell::value).await?);
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::StillMapped { .. })));
}

#[test]
fn a_fence_does_not_wait_for_a_mapping_that_the_task_holds() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let mapping = cx.map_read(&cells, Cell::value).await?;
        cx.execution_fence();
        let sum = cx.launch(total(&cells)).await?;
        cx.execution_fence().await?;
        drop(mapping);
        Ok(sum)
    });
    assert_eq!(outcome.unwrap(), 0);
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

#[task(leaf)]
fn run_within() -> Result<()> {
    RUNTIME.get().unwrap().run(async |_| Ok(()))
}

#[test]
fn a_task_does_not_run_top_level_tasks_of_its_own_runtime() {
    let runtime = RUNTIME.get_or_init(|| Runtime::builder().workers(1).build().unwrap());
    let outcome = runtime.run(async |cx| cx.launch(run_within()).await);
    assert!(matches!(outcome, Err(Error::Launch { .. })), "{outcome:?}");
}

#[task(leaf)]
fn open_gate(#[writes(value)] cells: Piece<Cell>, gate: Arc<AtomicBool>) {
    // Ends a little later than its parent's body, which panics at once.
    (0..100).for_each(|_| std::thread::yield_now());
    assert!(!cells.space().is_empty());
    gate.store(true, Ordering::Release);
}

#[test]
fn a_task_whose_body_panics_before_its_future_is_made_still_waits_for_its_children() {
    let gate = Arc::new(AtomicBool::new(false));
    let opens = Arc::clone(&gate);
    let options = TaskOptions::default();
    let hasty = Arc::new(TaskDefinition::new("hasty").with_context(options, move |call| {
        let cells: Region<Cell> = call.region(0).unwrap();
        call.context().launch(open_gate(&cells, Arc::clone(&opens)));
        if call.domain().volume() == 1 {
            panic!("at once");
        }
        async { Ok(Value::new(())) }
    }));
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let writes = Requirement::new(cells.logical().clone(), FieldMask::of(FieldId(0)), Privilege::ReadWrite);
        let ended = cx.launch(TaskLauncher::new(&hasty).requirement(writes).typed::<()>()).await;
        assert!(matches!(ended, Err(Error::Panicked { .. })), "{ended:?}");
        Ok(gate.load(Ordering::Acquire))
    });
    assert!(outcome.unwrap());
}

#[task(leaf)]
fn fill_slowly(
    #[discards(value)] cells: Piece<Cell>,
    begun: Arc<AtomicBool>,
    go: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
) {
    begun.store(true, Ordering::SeqCst);
    while !go.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    cells.value.fill(1);
    ended.store(true, Ordering::SeqCst);
}

#[test]
fn a_panic_at_top_level_passes_on_when_what_was_launched_has_ended_and_leaves_no_memory_taken() {
    let runtime = runtime();
    let flags: [Arc<AtomicBool>; 3] = Default::default();
    let [begun, go, ended] = &flags;
    let run = || {
        runtime.run(async |cx| -> Result<()> {
            let cells = cx.region::<Cell>(1000)?;
            cx.launch(fill_slowly(&cells, begun.clone(), go.clone(), ended.clone()));
            while !begun.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            go.store(true, Ordering::SeqCst);
            panic!("at top level")
        })
    };
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"at top level"));
    assert!(ended.load(Ordering::SeqCst));
    let used = || runtime.machine().memories().iter().map(|memory| runtime.bytes_used(memory.id)).sum::<u64>();
    // The worker that ran the task may be about to let go of its instances.
    while used() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(runtime.run(async |_| Ok(3)).unwrap(), 3);
}

#[task]
async fn forget_mapping(cx: &Context, #[writes(value)] cells: Region<Cell>) -> Result<()> {
    std::mem::forget(cx.map_write(&cells, Cell::value).await?);
    Ok(())
}

#[task]
async fn keep_mapping(
    cx: &Context,
    #[reads(value)] cells: Region<Cell>,
    kept: Arc<Mutex<Vec<maniple::ReadMapping<i64, 1>>>>,
) -> Result<()> {
    let mapping = cx.map_read(&cells, Cell::value).await?;
    kept.lock().unwrap().push(mapping);
    Ok(())
}

#[task]
async fn forget_own_mapping(cx: &Context) -> Result<()> {
    std::mem::forget(cx.map_read(&cx.region::<Cell>(8)?, Cell::value).await?);
    Ok(())
}

#[test]
fn a_task_without_data_that_keeps_its_own_mapped_gives_up_the_run() {
    let outcome = runtime().run(async |cx| cx.launch(forget_own_mapping()).await);
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("kept data mapped"), "{message}");
}

#[test]
fn a_task_that_ends_but_keeps_data_mapped_gives_up_the_run() {
    let kept = Arc::default();
    for is_forgotten in [true, false] {
        let outcome = runtime().run(async |cx| {
            let cells = cx.region::<Cell>(8)?;
            match is_forgotten {
                true => cx.launch(forget_mapping(&cells)).await?,
                false => cx.launch(keep_mapping(&cells, Arc::clone(&kept))).await?,
            }
            cx.launch(total(&cells)).await
        });
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains("kept data mapped"), "{message}");
    }
}
