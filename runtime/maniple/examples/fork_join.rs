//! Fork and join: a recursion of small tasks without regions, which idle workers steal from each other.
//!
//! Run it with `cargo run -p maniple --example fork_join`.

use maniple::prelude::*;

#[task]
async fn fibonacci(cx: &Context, n: u64) -> Result<u64> {
    if n < 2 {
        return Ok(n);
    }
    let first = cx.launch(fibonacci(n - 1));
    let second = cx.launch(fibonacci(n - 2));
    Ok(first.await? + second.await?)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let value = runtime.run_task(fibonacci(16))?; // the task is the whole program
    println!("fibonacci(16) = {value}, by {} tasks", runtime.statistics().tasks);
    assert_eq!(value, 987);
    Ok(())
}
