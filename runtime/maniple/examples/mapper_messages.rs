//! Messages between mappers: each tells another how long its tasks have taken. Results are the same whatever they say.
//!
//! Run it with `cargo run -p maniple --example mapper_messages`.

use std::sync::{Arc, Mutex};

use maniple::mapper::{DefaultMapper, Mail, Mapper, MapperAddress, MappingContext, TaskInfo, TaskMapping, TaskProfile};
use maniple::prelude::*;
use maniple::{Machine, ProcessorId};

#[task(leaf)]
fn cube(#[point] at: Point<1>) -> i64 {
    at[0].pow(3)
}

/// Has its tasks measured, and tells the mapper of processor 0 how many it has mapped and how long they took.
struct Measures {
    inner: DefaultMapper,
    nanoseconds: u64,
    heard: Arc<Mutex<Vec<(MapperAddress, u64)>>>,
}

impl Mapper for Measures {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.inner)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mail = context.mail();
        let first = MapperAddress { processor: ProcessorId(0), ..mail.here() };
        // It can only fail if there is no such mapper, or the message is too long.
        let _ = mail.send(first, &self.nanoseconds.to_le_bytes());
        TaskMapping { profile: true, ..self.inner.map_task(task, context) }
    }

    fn task_profiled(&mut self, _task: &str, profile: &TaskProfile) {
        self.nanoseconds += profile.ended - profile.started;
    }

    fn hear(&mut self, from: MapperAddress, message: &[u8], _mail: &dyn Mail) {
        if let Ok(bytes) = message.try_into() {
            let mut heard = self.heard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            heard.push((from, u64::from_le_bytes(bytes)));
        }
    }
}

fn main() -> Result<()> {
    let heard = Arc::<Mutex<Vec<_>>>::default();
    let shared = Arc::clone(&heard);
    let runtime = Runtime::builder().machine(Machine::uniform(2, 1 << 20)).mapper_for(move |_, _| {
        Box::new(Measures { inner: DefaultMapper::new(), nanoseconds: 0, heard: Arc::clone(&shared) })
    });
    let runtime = runtime.build()?;
    let sum = runtime.run(async |cx| cx.index_launch(0..10, cube()).reduce(Sum).await)?;
    assert_eq!(sum, 2025);
    drop(runtime); // what was under way when the program ended may be lost
    let heard = heard.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    println!("{} messages; the last said {:?}", heard.len(), heard.last());
    assert!(heard.len() <= 10);
    Ok(())
}
