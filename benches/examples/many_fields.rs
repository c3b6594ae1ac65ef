//! Cost of a launch that names one field, in regions with more and more fields: it must not follow their number.
//!
//! `cargo run --release -p maniple-benches --example many_fields` prints the time of a launch relative to the time
//! in a region of 10 fields: *cold*, where the field is used alone for the first time, and *warm*, where it was used
//! before. The target is 2 at most.

#![allow(clippy::print_stdout)] // that is what it is for

use std::sync::Arc;
use std::time::Instant;

use maniple::prelude::*;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{FieldMask, FieldType, Privilege, Rect, Requirement, TaskLauncher};

const FIELDS: [usize; 3] = [10, 1000, 2264];
const COLD: usize = 10;
const WARM: usize = 2000;
const ROUNDS: usize = 15;

/// Seconds of a cold and of a warm launch in a new region with so many fields.
async fn seconds(cx: &Context, task: &Arc<TaskDefinition>, count: usize) -> Result<[f64; 2]> {
    let (rows, fields) = (cx.index_space(&Rect::from(0..4).into()), cx.field_space(count));
    let allocate = |number| fields.allocate(&format!("field {number}"), FieldType::of::<i64>());
    let ids = (0..count).map(allocate).collect::<std::result::Result<Vec<_>, _>>()?;
    let region = cx.logical_region(&rows, &fields)?;
    let launch = |fields: FieldMask, privilege| {
        cx.launch(
            TaskLauncher::new(task).requirement(Requirement::new(region.clone(), fields, privilege)).typed::<()>(),
        )
    };
    launch(ids.iter().copied().collect(), Privilege::Discard).await?;
    let start = Instant::now();
    for number in 0..COLD {
        launch([ids[number * (count / COLD)]].into_iter().collect(), Privilege::ReadWrite).await?;
    }
    let cold = start.elapsed().as_secs_f64() / COLD as f64;
    let start = Instant::now();
    for _ in 0..WARM {
        launch([ids[0]].into_iter().collect(), Privilege::ReadWrite).await?;
    }
    Ok([cold, start.elapsed().as_secs_f64() / WARM as f64])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let task = Arc::new(TaskDefinition::new("nothing").leaf(TaskOptions::default(), |_| Ok(Value::new(()))));
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    Runtime::builder().workers(1).tracing(false).build()?.run(async |cx| {
        let mut measured = vec![[Vec::new(), Vec::new()]; FIELDS.len()];
        for _ in 0..rounds {
            for (of, count) in measured.iter_mut().zip(FIELDS) {
                let [cold, warm] = seconds(cx, &task, count).await?;
                of[0].push(cold);
                of[1].push(warm);
            }
        }
        let medians: Vec<_> = measured.into_iter().map(|of| of.map(median)).collect();
        println!("{:>6} fields {:>12} {:>12}", "", "cold", "warm");
        for ([cold, warm], count) in medians.iter().zip(FIELDS) {
            let [cold_of_few, warm_of_few] = medians[0];
            println!("{count:>6} {:>18.2}x {:>11.2}x", cold / cold_of_few, warm / warm_of_few);
        }
        println!("of 10 fields: {:.2} us cold, {:.2} us warm", medians[0][0] * 1e6, medians[0][1] * 1e6);
        Ok(())
    })
}
