//! Errors that travel: one point fails, what needs its data fails with the same error, and everything else goes on.
//!
//! Run it with `cargo run -p maniple --example errors`.

use std::fmt;

use maniple::prelude::*;

#[derive(Fields)]
struct Reading {
    value: f64,
}

/// The error of this program.
#[derive(Debug, PartialEq)]
struct SensorLost {
    sensor: i64,
}

impl fmt::Display for SensorLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sensor {} gives no answer", self.sensor)
    }
}

impl std::error::Error for SensorLost {}

#[task(leaf)]
fn measure(
    #[point] sensor: Point<1>,
    #[discards(value)] readings: Piece<Reading>,
) -> std::result::Result<(), SensorLost> {
    if sensor[0] == 2 {
        return Err(SensorLost { sensor: 2 });
    }
    readings.value.fill(20.0);
    Ok(())
}

#[task(leaf)]
fn mean(#[reads(value)] readings: Piece<Reading>) -> f64 {
    readings.points().map(|reading| readings.value[reading]).sum::<f64>() / readings.volume() as f64
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let readings = cx.region::<Reading>(40)?;
        let of_sensors = readings.partition(4).equal()?;
        cx.index_launch(4, measure(&of_sensors));
        let means = cx.index_launch(4, mean(&of_sensors));

        assert_eq!(means.get(1)?.await?, 20.0);
        let error = means.get(2)?.await.expect_err("its data was never measured");
        println!("{error}");
        assert_eq!(error.downcast_ref(), Some(&SensorLost { sensor: 2 }));

        cx.fill(&of_sensors.piece(2)?, Reading::value, 0.0)?; // overwriting the data makes it good again
        assert_eq!(cx.launch(mean(&readings)).await?, 15.0);
        Ok(())
    })
}
