//! A panic in a task: an error for whatever needs its result, which names the task, the point and the line.
//!
//! Run it with `cargo run -p maniple --example panics`; with `RUST_BACKTRACE=1` the error has the call stack, too.

use maniple::prelude::*;

#[task(leaf)]
fn divide(#[point] by: Point<1>, number: i64) -> i64 {
    number / by[0]
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let outcome = runtime.run(async |cx| {
        let quotients = cx.index_launch(Rect::from(0..5), divide(60));
        assert_eq!(quotients.get(4)?.await?, 15);

        let error = quotients.get(0)?.await.expect_err("a division by zero");
        assert!(error.to_string().starts_with("task `divide` at point (0) panicked"), "{error}");
        if let Some(stack) = error.backtrace() {
            println!("{stack}");
        }

        cx.launch(divide(1)); // a failure whose future is dropped is not lost: it becomes that of the task that launched
        Ok(())
    });
    let error = outcome.expect_err("a point failed");
    println!("{error}");
    assert!(matches!(error, Error::Panicked { .. }));
    Ok(())
}
