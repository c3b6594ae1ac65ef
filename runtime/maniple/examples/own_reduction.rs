//! A reduction operator of the program's own, on a type of its own.
//!
//! Run it with `cargo run -p maniple --example own_reduction`.

use maniple::prelude::*;

/// The smallest interval that contains all that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Zeroable)]
#[bytemuck(crate = "maniple::bytemuck")]
struct Interval {
    low: f64,
    high: f64,
}

/// Widens an interval to contain another one.
struct Hull;

impl ReductionOperator<Interval> for Hull {
    type Rhs = Interval;

    // `apply` does what `fold` does, so several nodes of a job can contribute side by side.
    const APPLIES_AS_IT_FOLDS: bool = true;

    fn identity() -> Interval {
        Interval { low: f64::INFINITY, high: f64::NEG_INFINITY }
    }

    fn apply(value: &mut Interval, contribution: Interval) {
        value.low = value.low.min(contribution.low);
        value.high = value.high.max(contribution.high);
    }

    fn fold(into: &mut Interval, contribution: Interval) {
        Self::apply(into, contribution);
    }
}

#[derive(Fields)]
struct Summary {
    range: Interval,
}

#[task(leaf)]
fn measure(#[point] at: Point<1>, #[reduces(Hull, range)] summary: Piece<Summary>) {
    let value = (at[0] as f64).sin();
    summary.range.fold(0, Interval { low: value, high: value });
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let summary = cx.region::<Summary>(1)?;
        cx.fill(&summary, Summary::range, Hull::identity())?;
        cx.index_launch(100, measure(&summary));
        let range = cx.map_read(&summary, Summary::range).await?[0];
        println!("sines lie between {:.4} and {:.4}", range.low, range.high);
        assert!(range.low < -0.999 && range.high > 0.999 && range.high <= 1.0);
        Ok(())
    })
}
