//! Temporary data in loops: regions, partitions and fields that take over the names of those that have gone, so that the loops are replayed.

mod fields;
mod regions;
mod scratch;

use maniple::machine::{Affinity, MemoryKind, ProcessorKind};
use maniple::prelude::*;
use maniple::record::check;
use maniple::{LogicalRegion, Machine, TreeId};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[derive(Fields)]
struct Other {
    value: i64,
}

#[task(leaf)]
fn double(#[discards(value)] to: Piece<Cell>, #[reads(value)] from: Piece<Cell>) {
    to.points().for_each(|point| to.value[point] = 2 * from.value[point]);
}

#[task(leaf)]
fn add(#[writes(value)] to: Piece<Cell>, #[reads(value)] from: Piece<Cell>) {
    to.points().for_each(|point| to.value[point] = (to.value[point] + from.value[point]) % 1009);
}

#[task(leaf)]
fn total(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

/// Launches on what it was given, later than its launcher goes on.
#[task]
async fn total_of_child(cx: &Context, #[reads(value)] cells: Region<Cell>) -> Result<i64> {
    cx.execution_fence().await?;
    cx.launch(total(&cells)).await
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

fn tree(region: &impl AsRef<LogicalRegion>) -> TreeId {
    region.as_ref().tree().id()
}

/// One processor, and memory for two fields of a thousand cells.
fn small() -> Machine {
    let mut machine = Machine::builder();
    let processor = machine.processor(ProcessorKind::Cpu);
    let memory = machine.memory(MemoryKind::System, 2 * 8 * 1000 + 512);
    machine.sees(processor, memory, Affinity { bandwidth_mb_s: 1000, latency_ns: 100 });
    machine.build().unwrap()
}

const STEPS: usize = 60;

/// Runs a step, perhaps as a trace.
type Step = dyn Fn(&Context, &mut dyn FnMut(&Context) -> Result<()>) -> Result<()>;

/// Runs a loop with its steps marked as a trace and found by the runtime, recorded and not, and without traces: it comes to the same, and is replayed.
fn everywhere(program: impl AsyncFn(&Context, &Step) -> Result<Vec<i64>>) -> Vec<i64> {
    let mut outcomes = Vec::new();
    for (marked, traced, recorded) in
        [(true, false, false), (true, true, false), (false, true, false), (true, true, true), (false, true, true)]
    {
        let runtime = Runtime::builder().workers(2).tracing(traced).record_operations(recorded).build().unwrap();
        let step = move |cx: &Context, body: &mut dyn FnMut(&Context) -> Result<()>| {
            if marked { cx.trace("step", body) } else { body(cx) }
        };
        outcomes.push(runtime.run(async |cx| program(cx, &step).await).unwrap());
        let statistics = runtime.statistics();
        assert!(!traced || statistics.replays >= 20, "marked {marked}, recorded {recorded}: {statistics:?}");
        if recorded {
            check(&runtime.take_record()).unwrap_or_else(|violation| panic!("{violation}"));
        }
    }
    assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]), "{outcomes:?}");
    outcomes.swap_remove(0)
}
