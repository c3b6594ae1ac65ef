//! Sizes known afterwards: tasks that return as many rows as they find, and a region of all rows.
//!
//! Run it with `cargo run -p maniple --example output_regions`.

use maniple::prelude::*;

#[derive(Fields)]
struct Number {
    value: u64,
}

#[derive(Fields)]
struct Prime {
    value: u64,
    /// The distance to the next one in the same piece, or 0.
    gap: u64,
}

#[task(leaf)]
fn count(#[discards(value)] numbers: Piece<Number>) {
    numbers.points().for_each(|point| numbers.value[point] = point[0] as u64);
}

#[task(leaf)]
fn primes(#[reads(value)] numbers: Piece<Number>) -> Output<Prime> {
    let is_prime = |&value: &u64| value > 1 && (2..value).take_while(|d| d * d <= value).all(|d| value % d > 0);
    let found = numbers.points().map(|point| numbers.value[point]).filter(is_prime);
    found.map(|value| Prime { value, gap: 0 }).collect()
}

#[task(leaf)]
fn gaps(
    #[reads(value)]
    #[writes(gap)]
    primes: Piece<Prime>,
) -> u64 {
    let points: Vec<_> = primes.points().collect();
    for pair in points.windows(2) {
        primes.gap[pair[0]] = primes.value[pair[1]] - primes.value[pair[0]];
    }
    points.iter().map(|&point| primes.gap[point]).max().unwrap_or(0)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let numbers = cx.region::<Number>(1000)?;
        let pieces = numbers.partition(8).equal()?;
        cx.index_launch(8, count(&pieces));

        // A region of all rows, and which of them each task has made: known when all have ended.
        let (found, parts) = cx.collect(cx.index_launch(8, primes(&pieces))).await?;
        let sizes: Vec<u64> = parts.pieces().map(|part| part.volume()).collect();
        println!("{} primes, by pieces {sizes:?}", found.volume());
        assert_eq!((found.volume(), sizes[0]), (168, 30));

        // They are a region like any other. What the tasks have made is used where it is.
        let widest = cx.index_launch(8, gaps(&parts)).reduce(Max).await?;
        println!("the widest gap within a piece is {widest}");
        assert_eq!((widest, runtime.statistics().bytes_copied), (20, 0));
        Ok(())
    })
}
