//! Balancing loads: a mapper that looks at how many tasks each processor has, and hears which instances its tasks got.
//!
//! Run it with `cargo run -p maniple --example balancing`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple::mapper::{DefaultMapper, MappedTask, Mapper, MappingContext, TaskInfo, TaskMapping, Validity};
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: u64,
}

/// Some pieces take much longer than others, and no mapper knows which.
#[task(leaf)]
fn work(#[writes(value)] cells: Piece<Cell>) {
    for cell in cells.points() {
        let rounds = if cell[0] % 64 < 8 { 20_000 } else { 20 };
        let step = |value: u64, round: u64| (value ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7);
        cells.value[cell] = (0..rounds).fold(cells.value[cell] + 1, step);
    }
}

/// Gives each task to the processor that has the fewest. A sample may be over when it is looked at: that makes a task
/// slower, and no result wrong.
#[derive(Clone, Default)]
struct Balancing {
    inner: DefaultMapper,
    most_before: Arc<AtomicU64>,
    new_instances: Arc<AtomicU64>,
}

impl Mapper for Balancing {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let processors = context.machine().processors().iter().map(|processor| processor.id);
        let (before, processor) =
            processors.map(|processor| (context.load(processor), processor)).min().expect("there is a processor");
        self.most_before.fetch_max(before as u64, Ordering::Relaxed);
        // It would decide otherwise the next time, and it wants to hear what comes of this.
        TaskMapping { processor, validity: Validity::Once, report: true, ..self.inner.map_task(task, context) }
    }

    fn task_mapped(&mut self, _task: &TaskInfo<'_>, mapped: &MappedTask) {
        let new = mapped.requirements.iter().flatten().filter(|mapped| mapped.is_new).count();
        self.new_instances.fetch_add(new as u64, Ordering::Relaxed);
    }
}

async fn program(cx: &Context) -> Result<u64> {
    let cells = cx.region::<Cell>(512)?;
    let pieces = cells.partition(64).equal()?;
    for _ in 0..3 {
        cx.index_launch(64, work(&pieces));
    }
    Ok(cx.map_read(&cells, Cell::value).await?.to_vec().iter().fold(0, |sum, value| sum ^ value))
}

fn main() -> Result<()> {
    let mapper = Balancing::default();
    let found = Runtime::builder().workers(2).mapper(mapper.clone()).build()?.run(program)?;
    let (before, new) = (mapper.most_before.load(Ordering::Relaxed), mapper.new_instances.load(Ordering::Relaxed));
    println!("up to {before} tasks were before another one on a processor; {new} instances were made");
    assert_eq!(found, Runtime::builder().workers(1).build()?.run(program)?);
    assert!((1..=96).contains(&before) && new >= 1);
    Ok(())
}
