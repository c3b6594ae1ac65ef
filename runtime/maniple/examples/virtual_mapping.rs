//! An inner task whose data is mapped virtually: it gets no instance, and what it launches uses those of its parent.
//!
//! Run it with `cargo run -p maniple --example virtual_mapping`.

use maniple::mapper::{DefaultMapper, Mapper, MappingContext, RequirementMapping, TaskInfo, TaskMapping};
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: u64,
}

#[task(leaf)]
fn increase(#[writes(value)] cells: Piece<Cell>) {
    for cell in cells.points() {
        cells.value[cell] += 1;
    }
}

/// `inner` promises that the task maps no data inline: it may begin before its data is there, and be mapped virtually.
#[task(inner)]
fn increase_often(cx: &Context, #[writes(value)] cells: Region<Cell>, times: u64) -> Result<()> {
    let parts = cells.partition(4).equal()?;
    for _ in 0..times {
        cx.index_launch(4, increase(&parts));
    }
    Ok(())
}

/// Maps inner tasks virtually, and all else as another mapper does.
#[derive(Clone)]
struct Virtually(DefaultMapper);

impl Mapper for Virtually {
    fn inner(&mut self) -> Option<&mut dyn Mapper> {
        Some(&mut self.0)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = self.0.map_task(task, context);
        if task.variants[mapping.variant].is_inner {
            mapping.requirements.fill(RequirementMapping::Virtual);
        }
        mapping
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().mapper(Virtually(DefaultMapper::new())).build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        cx.launch(increase_often(&cells, 5));
        assert_eq!(cx.map_read(&cells, Cell::value).await?[99], 5);
        Ok(())
    })?;
    let statistics = runtime.statistics();
    println!("{} instance(s), {} copies", statistics.instances, statistics.copies);
    assert_eq!((statistics.instances, statistics.copies), (1, 0));
    Ok(())
}
