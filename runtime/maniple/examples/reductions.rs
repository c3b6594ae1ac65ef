//! Tasks that reduce to the same data side by side: a histogram.
//!
//! Run it with `cargo run -p maniple --example reductions`.

use maniple::prelude::*;

#[derive(Fields)]
struct Sample {
    value: i64,
}

#[derive(Fields)]
struct Bin {
    count: u64,
}

#[task(leaf)]
fn draw(#[discards(value)] samples: Piece<Sample>) {
    for sample in samples.points() {
        samples.value[sample] = sample[0] * sample[0] % 10;
    }
}

/// Adds to the bins. Addition commutes, so that points of the launch need no order among themselves.
#[task(leaf)]
fn count(#[reads(value)] samples: Piece<Sample>, #[reduces(Sum, count)] bins: Piece<Bin>) {
    for sample in samples.points() {
        bins.count.fold(samples.value[sample], 1);
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let (samples, bins) = (cx.region::<Sample>(1_000)?, cx.region::<Bin>(10)?);
        let parts = samples.partition(8).equal()?;
        cx.index_launch(8, draw(&parts));
        cx.index_launch(8, count(&parts, &bins)); // a piece of the samples, and all bins

        let counts = cx.map_read(&bins, Bin::count).await?.to_vec();
        println!("last digits of squares: {counts:?}");
        assert_eq!(counts, [100, 200, 0, 0, 200, 100, 200, 0, 0, 200]);
        Ok(())
    })
}
