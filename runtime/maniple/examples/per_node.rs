//! Values that differ from node to node: a value that each node of a job gives, combined so that all decide alike.
//!
//! Run it with `cargo run -p maniple --example per_node`.

use maniple::prelude::*;

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    let blocks = runtime.run(async |cx| {
        // Machines may differ in their cores. A program has to launch the same on all nodes, so it must not decide by
        // its own number.
        let cores = cx.machine().processors().len() as i64;
        let fewest = cx.per_node(cores).reduce(Min).await?;
        Ok(fewest * cx.nodes() as i64)
    })?;
    if runtime.node() == 0 {
        println!("{blocks} blocks on {} node(s)", runtime.nodes());
    }
    assert!(blocks >= 1);
    Ok(())
}
