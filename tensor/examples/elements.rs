//! How long it takes to make, write and read all elements of a matrix:
//! `cargo run --release -p maniple-tensor --example elements -- [SIZE]`.
//!
//! Wanted for 2048 x 2048 of f64, which are 34 MB: some milliseconds to make, some tens to read.

use std::sync::Arc;
use std::time::Instant;

use maniple::{Error, Runtime};
use maniple_tensor::distributed::{Tensor, TensorMapper};
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::TensorVariable;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let size: i64 = std::env::args().nth(1).map_or(Ok(2048), |size| size.parse())?;
    let runtime = Runtime::builder().mapper(TensorMapper::new()).build()?;
    runtime.run(async |cx| {
        let tensor = Tensor::new(cx, &TensorVariable::new("A", ElementType::F64, [size, size]))?;
        let pieces = tensor.slabs(cx.machine().processors().len());
        let mut elements = Arc::new(vec![0.0_f64; (size * size) as usize]);
        // The first time makes room.
        for round in ["first", "again", "again"] {
            let started = Instant::now();
            tensor.generate(cx, &pieces, |point| (point[0] ^ point[1]) as f64)?;
            cx.execution_fence().await?;
            let made = started.elapsed();
            tensor.write_elements(cx, Arc::clone(&elements))?;
            cx.execution_fence().await?;
            let written = started.elapsed() - made;
            elements = Arc::new(tensor.read_elements(cx).await?);
            let read = started.elapsed() - written - made;
            println!("{size} x {size} {round}: made in {made:.1?}, written in {written:.1?}, read in {read:.1?}");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
