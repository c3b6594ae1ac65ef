//! Statistics: what a mapper costs, in instances and bytes copied, on a described machine with two memories.
//!
//! Run it with `cargo run -p maniple --example statistics`.

use maniple::machine::{Affinity, Machine, MemoryKind, ProcessorKind};
use maniple::mapper::DefaultMapper;
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn increase(#[writes(value)] cells: Piece<Cell>) {
    for cell in cells.points() {
        cells.value[cell] += 1.0;
    }
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

/// Two processors, each of which sees a memory of its own.
fn two_sockets() -> std::result::Result<Machine, Box<dyn std::error::Error>> {
    let near = Affinity { bandwidth_mb_s: 20_000, latency_ns: 100 };
    let far = Affinity { bandwidth_mb_s: 5_000, latency_ns: 500 };
    let mut machine = Machine::builder();
    let memories = [(); 2].map(|()| {
        let processor = machine.processor(ProcessorKind::Cpu);
        let memory = machine.memory(MemoryKind::System, 1 << 20);
        machine.sees(processor, memory, near);
        memory
    });
    machine.copies(memories[0], memories[1], far);
    Ok(machine.build()?)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder().machine(two_sockets()?).mapper(DefaultMapper::piecewise()).build()?;
    let total = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(1_000)?;
        let halves = cells.partition(2).equal()?;
        cx.index_launch(2, increase(&halves));
        let other = halves.project(|point| (1 - point[0]).into()); // what the other processor has increased
        cx.index_launch(2, sum(&other)).reduce(Sum).await
    })?;
    let statistics = runtime.statistics();
    println!("{} tasks, {} copies, {} bytes copied", statistics.tasks, statistics.copies, statistics.bytes_copied);
    assert_eq!((total, statistics.tasks, statistics.bytes_copied), (1_000.0, 4, 8_000));
    Ok(())
}
