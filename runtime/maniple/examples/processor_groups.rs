//! Processor groups: a mapper that names several processors for a task, of which the first that is free runs it.
//!
//! Run it with `cargo run -p maniple --example processor_groups`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use maniple::mapper::{DefaultMapper, Mapper, MappingContext, TaskInfo, TaskMapping, TaskProfile};
use maniple::prelude::*;
use maniple::{Machine, ProcessorId};

#[derive(Fields)]
struct Cell {
    value: u64,
}

#[task(leaf)]
fn work(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] = (0..10_000).fold(cells.value[cell], |sum, step| sum ^ step));
}

/// Leaves the first processor to the program: `work` runs on the others, on whichever is free.
#[derive(Clone, Default)]
struct LeavesTheFirst {
    inner: DefaultMapper,
    used: Arc<Mutex<BTreeSet<ProcessorId>>>,
}

impl Mapper for LeavesTheFirst {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let all = context.machine().processors().iter().map(|processor| processor.id);
        let group: Vec<ProcessorId> = all.skip(1).collect();
        // The same each time, and one of them is the one that counts where only one can.
        TaskMapping { processor: group[0], group, profile: true, ..self.inner.map_task(task, context) }
    }

    fn task_profiled(&mut self, _task: &str, profile: &TaskProfile) {
        self.used.lock().expect("no thread panics that holds it").insert(profile.processor);
    }
}

fn main() -> Result<()> {
    let mapper = LeavesTheFirst::default();
    let runtime = Runtime::builder().machine(Machine::uniform(4, 1 << 20)).mapper(mapper.clone()).build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(512)?;
        cx.index_launch(64, work(&cells.partition(64).equal()?)).all().await.map(drop)
    })?;
    let used = mapper.used.lock().expect("no thread panics that holds it");
    println!("processors that ran tasks: {used:?}");
    assert!(!used.is_empty() && !used.contains(&ProcessorId(0)));
    Ok(())
}
