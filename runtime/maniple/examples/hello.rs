//! A task with an argument and a result.
//!
//! Run it with `cargo run -p maniple --example hello`.

use maniple::prelude::*;

/// A leaf task: it launches nothing and never waits.
#[task(leaf)]
fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let greeting = runtime.run(async |cx| cx.launch(greet("world".to_owned())).await)?;
    println!("{greeting}");
    assert_eq!(greeting, "Hello, world!");
    Ok(())
}
