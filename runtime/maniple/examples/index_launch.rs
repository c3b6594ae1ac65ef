//! An index launch: one task for each point of a domain, here of two dimensions.
//!
//! Run it with `cargo run -p maniple --example index_launch`.

use maniple::prelude::*;

#[task(leaf)]
fn product(#[point] at: Point<2>) -> i64 {
    at[0] * at[1]
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let table = cx.index_launch(Rect::new([1, 1], [9, 9]), product());
        let values = table.all().await?; // in row-major order of the points
        for row in values.chunks(9) {
            println!("{row:3?}");
        }
        assert_eq!(values.iter().sum::<i64>(), 45 * 45);
        Ok(())
    })
}
