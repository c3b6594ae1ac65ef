//! The place of the least value, and not the value alone: `ArgMin` and `ArgMax` of values with their places; and
//! complex numbers.
//!
//! Run it with `cargo run -p maniple --example arg_min`.

use maniple::Complex64;
use maniple::prelude::*;

#[derive(Fields)]
struct Sample {
    value: f64,
    signal: Complex64,
}

/// The least of each bucket, and where it is.
#[derive(Fields)]
struct Bucket {
    least: Located<f64>,
}

#[task(leaf)]
fn measure(#[discards(value, signal)] samples: Piece<Sample>) {
    for sample in samples.points() {
        let at = sample[0] as f64;
        samples.value[sample] = (at - 70.0).powi(2);
        samples.signal[sample] = Complex64::from_polar(1.0, at * std::f64::consts::TAU / 100.0);
    }
}

#[task(leaf)]
fn least_in_buckets(#[reads(value)] samples: Piece<Sample>, #[reduces(ArgMin, least)] buckets: Piece<Bucket>) {
    for sample in samples.points() {
        let found = Located { value: samples.value[sample], at: sample[0] };
        buckets.least.fold(sample[0] % 2, found);
    }
}

#[task(leaf)]
fn greatest(#[reads(value)] samples: Piece<Sample>) -> Located<f64> {
    let mut greatest = <ArgMax as ReductionOperator<Located<f64>>>::identity();
    for sample in samples.points() {
        let found = Located { value: samples.value[sample], at: sample[0] };
        <ArgMax as ReductionOperator<Located<f64>>>::fold(&mut greatest, found);
    }
    greatest
}

#[task(leaf)]
fn sum(#[reads(signal)] samples: Piece<Sample>) -> Complex64 {
    samples.points().map(|sample| samples.signal[sample]).sum()
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().workers(2).build()?;
    let (buckets, greatest, sum) = runtime.run(async |cx| {
        let (samples, buckets) = (cx.region::<Sample>(100)?, cx.region::<Bucket>(2)?);
        let pieces = samples.partition(4).equal()?;
        cx.index_launch(4, measure(&pieces));
        cx.fill(&buckets, Bucket::least, Located { value: f64::INFINITY, at: -1 })?;
        cx.index_launch(4, least_in_buckets(&pieces, &buckets));
        let greatest = cx.index_launch(4, greatest(&pieces)).reduce(ArgMax).await?;
        let sum = cx.index_launch(4, sum(&pieces)).reduce(Sum).await?;
        Ok((cx.map_read(&buckets, Bucket::least).await?.to_vec(), greatest, sum))
    })?;
    println!("least {buckets:?}, greatest {greatest:?}, sum {sum:.3}");
    assert_eq!(buckets[0], Located { value: 0.0, at: 70 });
    assert_eq!(buckets[1], Located { value: 1.0, at: 69 }, "of equal ones the first");
    assert_eq!(greatest, Located { value: 4900.0, at: 0 });
    assert!(sum.norm() < 1e-9, "once around the circle");
    Ok(())
}
