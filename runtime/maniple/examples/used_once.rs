//! Data that is used once: copies that go as soon as no task uses them, and how much memory that saves.
//!
//! Run it with `cargo run -p maniple --example used_once`.

use maniple::machine::{Affinity, Machine, MemoryKind, ProcessorKind};
use maniple::mapper::{InstanceChoice, Keep, Mapper, MappingContext, RequirementMapping, Reuse, TaskInfo};
use maniple::prelude::*;
use maniple::{MemoryId, ProcessorId};

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn number(#[discards(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] = cell[0] as f64);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

/// Data lives in memory 0; what is summed is brought to memory 1, piece by piece.
#[derive(Clone)]
struct Streams(Keep);

impl Mapper for Streams {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        _requirement: usize,
        _: ProcessorId,
        _: usize,
        _context: &dyn MappingContext,
    ) -> RequirementMapping {
        match task.name {
            "sum" => {
                let near = InstanceChoice::in_memory(MemoryId(1));
                InstanceChoice { reuse: Reuse::Exact, keep: self.0, ..near }.into()
            }
            _ => InstanceChoice::in_memory(MemoryId(0)).whole().into(),
        }
    }
}

/// The most bytes in memory 1 at a time.
fn peak(keep: Keep) -> std::result::Result<u64, Box<dyn std::error::Error>> {
    let mut machine = Machine::builder();
    let processor = machine.processor(ProcessorKind::Cpu);
    let path = Affinity { bandwidth_mb_s: 10_000, latency_ns: 100 };
    let memories = [(); 2].map(|()| machine.memory(MemoryKind::System, 1 << 20));
    memories.iter().for_each(|&memory| _ = machine.sees(processor, memory, path));
    machine.copies(memories[0], memories[1], path);
    let runtime = Runtime::builder().machine(machine.build()?).mapper(Streams(keep)).build()?;
    let total = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(1_000)?;
        let pieces = cells.partition(10).equal()?;
        cx.launch(number(&cells));
        let mut total = 0.0;
        for piece in 0..10 {
            total += cx.launch(sum(&pieces.piece(piece)?)).await?;
        }
        Ok(total)
    })?;
    assert_eq!(total, 499_500.0);
    Ok(runtime.memories()[1].peak)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let (kept, once) = (peak(Keep::default())?, peak(Keep::WhileUsed)?);
    println!("{kept} bytes in the second memory if copies are kept, {once} if they go when they have been used");
    assert_eq!(kept, 8_000);
    assert!(once <= 3 * 800);
    Ok(())
}
