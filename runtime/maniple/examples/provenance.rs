//! The place where something was launched: errors name the line of the program, or the place that the program names in
//! its stead.
//!
//! Run it with `cargo run -p maniple --example provenance`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    heat: f64,
}

#[task(leaf)]
fn check(#[reads(heat)] cells: Piece<Cell>, limit: f64) -> Result<()> {
    match cells.points().find(|&cell| cells.heat[cell] > limit) {
        Some(hot) => Err(Error::application(format!("cell {hot} is too hot"))),
        None => Ok(()),
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().workers(2).build()?;
    let outcomes = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(10)?.named("plate");
        cx.fill(&cells, Cell::heat, 20.0)?;
        let by_line = cx.launch(check(&cells, 10.0)).await;
        // A front end says what its own users know. All that is launched from the context says so, also what a library
        // launches with it.
        let by_step = cx.at("heat.toml, step 3").launch(check(&cells, 15.0)).await;
        Ok((by_line, by_step))
    })?;
    let (Err(by_line), Err(by_step)) = outcomes else { panic!("the plate is too hot: {outcomes:?}") };
    println!("{by_line}\n{by_step}");
    let place = by_line.provenance().map(|place| place.location().file());
    assert!(place.is_some_and(|file| file.ends_with("provenance.rs")), "{by_line}");
    assert_eq!(by_step.to_string(), "task `check` failed: cell (0) is too hot (launched at heat.toml, step 3)");
    Ok(())
}
