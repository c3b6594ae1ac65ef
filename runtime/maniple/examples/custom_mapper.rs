//! A mapper of the program's own, which overrides some of the defaults. It cannot change a result.
//!
//! Run it with `cargo run -p maniple --example custom_mapper`.

use maniple::mapper::{Mapper, TaskInfo, Tunable};
use maniple::prelude::*;
use maniple::{Machine, ProcessorId};

/// Deals points out to processors in turn, and has launches with a tag go first.
#[derive(Clone)]
struct InTurn;

const URGENT: u64 = 1;

impl Mapper for InTurn {
    fn select_processor(&mut self, task: &TaskInfo<'_>, machine: &Machine) -> ProcessorId {
        let processors = machine.processors();
        processors[task.index() as usize % processors.len()].id
    }

    fn priority(&mut self, task: &TaskInfo<'_>) -> i32 {
        if task.tag == URGENT { 1 } else { 0 }
    }

    fn tunable(&mut self, tunable: &Tunable<'_>, _machine: &Machine) -> Option<i64> {
        (tunable.name == "pieces").then_some(6)
    }
}

#[task(leaf)]
fn cube(#[point] at: Point<1>) -> i64 {
    at[0].pow(3)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().workers(2).mapper(InTurn).build()?;
    let (pieces, sum) = runtime.run(async |cx| {
        let pieces = cx.tunable("pieces", 4)?; // the mapper is asked, and 4 is what holds if it does not know
        let sum = cx.index_launch(0..pieces, cube().tag(URGENT)).reduce(Sum).await?;
        Ok((pieces, sum))
    })?;
    println!("{pieces} cubes come to {sum}");
    assert_eq!((pieces, sum), (6, 225));
    Ok(())
}
