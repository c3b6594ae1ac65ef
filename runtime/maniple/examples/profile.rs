//! A profile: what each worker did at each moment, in a file for `maniple prof`.
//!
//! Run it with `cargo run -p maniple --example profile -- primes.mprof`, and look at the file with
//! `maniple prof primes.mprof --open`.

use maniple::prelude::*;
use maniple::profile::{Kind, Recording};

#[task(leaf)]
fn count_primes(#[point] block: Point<1>) -> usize {
    let is_prime = |number: &i64| {
        (2..*number).take_while(|divisor| divisor * divisor <= *number).all(|divisor| number % divisor != 0)
    };
    (1_000 * block[0]..1_000 * (block[0] + 1)).filter(|number| *number > 1).filter(is_prime).count()
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "primes.mprof".to_owned());
    let runtime = Runtime::builder().profile(&file).build()?;
    let primes = runtime.run(async |cx| cx.index_launch(10, count_primes()).reduce(Sum).await)?;
    assert_eq!(primes, 1_229);
    drop(runtime); // with it the profile ends

    let recording = Recording::read(file.as_ref())?;
    let is_known = recording.labels.iter().any(|label| label.kind == Kind::Task && label.name == "count_primes");
    println!("{primes} primes; the profile is in {file}");
    assert!(is_known);
    Ok(())
}
