//! Futures that are computed from others and passed on without waiting.
//!
//! Run it with `cargo run -p maniple --example futures`.

use maniple::prelude::*;

#[task(leaf)]
fn square(number: u64) -> u64 {
    number * number
}

#[task(leaf)]
fn add(left: u64, right: u64) -> u64 {
    left + right
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let nine = cx.launch(square(3));
        let sixteen = cx.launch(square(4));
        // A future stands for an argument: the task waits for it, the program does not.
        let sum = cx.launch(add(&nine, &sixteen));
        let root = sum.map(u64::isqrt);
        let difference = sixteen.zip_with(&nine, |larger, smaller| larger - smaller);

        let (root, difference) = (root.await?, difference.await?);
        println!("the root of 9 + 16 is {root}, and 16 - 9 is {difference}");
        assert_eq!((root, difference), (5, 7));
        Ok(())
    })
}
