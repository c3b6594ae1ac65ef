//! The API below the macros, for compilers and libraries: fields and tasks that are known only at run time.
//!
//! Run it with `cargo run -p maniple --example dynamic_tasks`.

use std::sync::Arc;

use maniple::prelude::*;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{FieldId, FieldMask, FieldType, Privilege, Requirement};

/// A task that applies a function to a field.
fn pointwise(name: &str, field: FieldId, function: fn(f32) -> f32) -> Arc<TaskDefinition> {
    Arc::new(TaskDefinition::new(name).leaf(TaskOptions::default(), move |call| {
        let mut values = call.write::<f32, 1>(0, field)?; // by the number of the requirement
        for point in values.space().points() {
            values[point] = function(values[point]);
        }
        Ok(Value::new(()))
    }))
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let rows = cx.index_space(&Rect::from(0..100).into());
        let columns = cx.field_space(8); // at most eight fields at a time
        let heat = columns.allocate("heat", FieldType::of::<f32>())?;
        let plate = cx.logical_region(&rows, &columns)?;

        for task in [pointwise("warm", heat, |heat| heat + 2.0), pointwise("square", heat, |heat| heat * heat)] {
            let requirement = Requirement::new(plate.clone(), FieldMask::of(heat), Privilege::ReadWrite);
            cx.launch(TaskLauncher::new(&task).requirement(requirement).typed::<()>());
        }

        // Typed and untyped regions go together; `()` stands for fields that are known only at run time.
        let plate: Region<()> = Region::try_from_logical(plate)?;
        let heat = cx.map_read(&plate, Field::<(), f32>::new(heat)).await?[42];
        println!("the plate has {heat} degrees");
        assert_eq!(heat, 4.0);
        Ok(())
    })
}
