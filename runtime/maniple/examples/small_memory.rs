//! Memory limits: a machine whose memory is too small for all regions at once, and data that never fits.
//!
//! Run it with `cargo run -p maniple --example small_memory`.

use maniple::mapper::DefaultMapper;
use maniple::prelude::*;
use maniple::{Machine, MemoryId};

#[derive(Fields)]
struct Cell {
    value: u64,
}

#[task(leaf)]
fn sum(#[discards(value)] cells: Piece<Cell>) -> u64 {
    for cell in cells.points() {
        cells.value[cell] = cell[0] as u64;
    }
    cells.points().map(|cell| cells.value[cell]).sum()
}

fn main() -> Result<()> {
    let machine = Machine::uniform(2, 100_000); // two processors, and a memory of 100,000 bytes
    let runtime = Runtime::builder().machine(machine).mapper(DefaultMapper::new()).build()?;
    runtime.run(async |cx| {
        for _ in 0..20 {
            let cells = cx.region::<Cell>(5_000)?; // 40,000 bytes
            let sum = cx.launch(sum(&cells));
            cx.destroy_region(&cells)?; // gives the memory back when the task has ended; later tasks wait for that
            assert_eq!(sum.await?, 12_497_500);
        }
        println!("{} bytes are in use", runtime.bytes_used(MemoryId(0)));

        let large = cx.region::<Cell>(50_000)?; // a region takes no memory until it is used
        let error = cx.launch(sum(&large)).await.expect_err("four times the memory");
        println!("{error}");
        assert!(matches!(error, Error::OutOfMemory { .. }));
        Ok(())
    })
}
