//! Data from outside of the runtime: a program's vectors as the places of values, used without a copy and taken back.
//!
//! Run it with `cargo run -p maniple --example attached_memory`.

use std::sync::Arc;

use maniple::prelude::*;

#[derive(Fields)]
struct Sample {
    value: f64,
    weight: f64,
}

#[task(leaf)]
fn weigh(
    #[writes(value)]
    #[reads(weight)]
    samples: Piece<Sample>,
) {
    for point in samples.points() {
        samples.value[point] *= samples.weight[point];
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let samples = cx.region::<Sample>(1000)?;
        let pieces = samples.partition(4).equal()?;

        // A vector goes in; it is the only place of the values from here on.
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let address = values.as_ptr();
        let values = cx.attach_vec(&samples, Sample::value, values)?;

        // A table that others use too is only read.
        let table: Arc<[f64]> = vec![0.5; 1000].into();
        let weights = cx.attach_read_only(&samples, Sample::weight, Arc::clone(&table))?;

        cx.index_launch(4, weigh(&pieces));

        // Both come back at their place in the program: after the tasks. Nothing has waited so far.
        let values = cx.detach(values)?.await?;
        let weights = cx.detach(weights)?.await?;
        assert_eq!((values[10], values.as_ptr()), (5.0, address));
        assert!(Arc::ptr_eq(&weights, &table));

        // Without its memory the field is zero.
        assert_eq!(cx.map_read(&samples, Sample::value).await?[10], 0.0);
        println!("{} bytes were copied for {} values", runtime.statistics().bytes_copied, values.len());
        assert_eq!(runtime.statistics().bytes_copied, 0);
        Ok(())
    })
}
