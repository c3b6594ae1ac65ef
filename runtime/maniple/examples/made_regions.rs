//! A task that makes a region and returns it, and the destruction of a region.
//!
//! Run it with `cargo run -p maniple --example made_regions`.

use maniple::prelude::*;

#[derive(Fields)]
struct Digit {
    value: u8,
}

#[task(leaf)]
fn write(#[discards(value)] digits: Piece<Digit>, number: u64) {
    let mut rest = number;
    for digit in digits.points() {
        digits.value[digit] = (rest % 10) as u8;
        rest /= 10;
    }
}

/// The digits of a number. The region passes to the task that launched this one.
#[task]
fn digits(cx: &Context, number: u64) -> Result<Region<Digit>> {
    let digits = cx.region(number.to_string().len())?;
    cx.launch(write(&digits, number));
    Ok(digits)
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let digits = cx.launch(digits(271_828)).await?;
        let values = cx.map_read(&digits, Digit::value).await?.to_vec();
        println!("{values:?}");
        assert_eq!(values, [8, 2, 8, 1, 7, 2]);

        // In program order: what was launched before keeps working, what comes later is refused.
        cx.destroy_region(&digits)?;
        assert!(cx.map_read(&digits, Digit::value).await.is_err());
        Ok(())
    })
}
