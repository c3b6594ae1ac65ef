//! Layouts: a mapper that has new instances made as arrays of structs, and a variant that insists on a struct of
//! arrays.
//!
//! Run it with `cargo run -p maniple --example layouts`.

use maniple::mapper::{Columns, DefaultMapper, InstanceChoice, Mapper, MappingContext, RequirementMapping, TaskInfo};
use maniple::prelude::*;
use maniple::{Arrangement, LayoutConstraint, ProcessorId};

/// Puts all fields of a point side by side, where the variant leaves the layout open.
#[derive(Clone)]
struct PointByPoint;

impl Mapper for PointByPoint {
    fn map_requirement(
        &mut self,
        task: &TaskInfo<'_>,
        requirement: usize,
        processor: ProcessorId,
        variant: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        if task.variants[variant].layout != LayoutConstraint::default() {
            return DefaultMapper::new().map_requirement(task, requirement, processor, variant, context);
        }
        let memory = context.machine().memories_visible_from(processor)[0].memory;
        let layout = LayoutConstraint { arrangement: Some(Arrangement::ArrayOfStructs), ..LayoutConstraint::default() };
        InstanceChoice { layout, columns: Columns::All, ..InstanceChoice::in_memory(memory) }.into()
    }
}

#[derive(Fields)]
struct Corner {
    x: f64,
    y: f64,
}

#[task(leaf)]
fn place(#[discards(x, y)] corners: Piece<Corner>) {
    for corner in corners.points() {
        (corners.x[corner], corners.y[corner]) = (3.0 * corner[0] as f64, 4.0 * corner[0] as f64);
    }
}

/// Gets its data as a struct of arrays, whatever the mapper says: each row of a field is a slice.
#[task(leaf, layout = soa)]
fn distance(#[reads(x, y)] corners: Piece<Corner>) -> f64 {
    let of_row = |row| corners.x.span(row).iter().zip(&*corners.y.span(row)).map(|(x, y)| x.hypot(*y)).sum::<f64>();
    corners.rows().map(of_row).sum()
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().mapper(PointByPoint).build()?;
    let sum = runtime.run(async |cx| {
        let corners = cx.region::<Corner>(10)?;
        cx.launch(place(&corners));
        cx.launch(distance(&corners)).await
    })?;
    let statistics = runtime.statistics();
    println!(
        "{sum}, with {} instances and {} bytes copied between them",
        statistics.instances, statistics.bytes_copied
    );
    assert_eq!((sum, statistics.instances, statistics.bytes_copied), (225.0, 2, 160));
    Ok(())
}
