//! Temporary data in loops: regions, partitions and fields that take over the names of those that have gone, so that
//! the loops are replayed.

mod fields;
mod regions;
mod scratch;

use std::sync::Arc;

use maniple::machine::{Affinity, MemoryKind, ProcessorKind};
use maniple::prelude::*;
use maniple::record::check;
use maniple::{AnySpace, FieldSpace, IndexSpaceNode, LogicalRegion, Machine, TreeId};

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

/// Cells that are all 3, and their three tiles.
fn tiled(cx: &Context) -> Result<(Region<Cell>, Partition<Cell>)> {
    let cells = cx.region::<Cell>(24)?;
    let tiles = cells.blocks([8])?;
    cx.fill(&cells, Cell::value, 3)?;
    Ok((cells, tiles))
}

/// Adds four times what tiles have to them, by way of pieces of two others.
fn add_by_way_of(cx: &Context, [ones, others]: [&Partition<Cell>; 2], tiles: &Partition<Cell>) {
    cx.index_launch(tiles.colors(), double(ones, tiles));
    cx.index_launch(tiles.colors(), double(others, ones));
    cx.index_launch(tiles.colors(), add(tiles, others));
}

/// All values of cells.
async fn values(cx: &Context, cells: &Region<Cell>) -> Result<Vec<i64>> {
    Ok(cx.map_read(cells, Cell::value).await?.to_vec())
}

/// Four rows, and room for so many fields that are known at run time.
fn known_late(cx: &Context, fields: usize) -> (IndexSpaceNode, Arc<FieldSpace>) {
    (cx.index_space(&AnySpace::from(maniple::IndexSpace::from(Rect::<1>::from(0..4)))), cx.field_space(fields))
}

const STEPS: usize = 60;

/// Runs a step, perhaps as a trace.
type Step = dyn Fn(&Context, &mut dyn FnMut(&Context) -> Result<()>) -> Result<()>;

/// Runs a loop with its steps marked as a trace and found by the runtime, recorded and not, and without traces: it
/// comes to the same, and is replayed.
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
