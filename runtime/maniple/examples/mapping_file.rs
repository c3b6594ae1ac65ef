//! A mapping file: where tasks run and data lives is written down, and can change without the program.
//!
//! `cargo run -p maniple --example mapping_file`

use maniple::mapper::MappingRules;
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|cell| cells.value[cell] += amount);
}

/// Adds to a thousand cells in four pieces; the sum, and how many instances that took.
fn run(runtime: &Runtime) -> Result<(i64, u64)> {
    let sum = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(1000)?.named("cells");
        let pieces = cells.partition(4).equal()?;
        (0..10).for_each(|amount| drop(cx.index_launch(4, add(&pieces, amount))));
        let values = cx.map_read(&cells, Cell::value).await?;
        Ok(values.to_vec().iter().sum())
    })?;
    Ok((sum, runtime.statistics().instances))
}

const MAPPING: &str = r#"
# Each piece has memory of its own, and stays with a processor.
[[data]]
region = "cells"
extent = "region"
reuse = "exact"

[[task]]
name = "add"
deal = "cycles"
pinned = true
"#;

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let file = std::env::temp_dir().join(format!("mapping-{}.toml", std::process::id()));
    std::fs::write(&file, MAPPING)?;
    let mapped = Runtime::builder().workers(2).mapping_file(&file).build()?;
    let (sum, instances) = run(&mapped)?;
    let (same, fewer) = run(&Runtime::builder().workers(2).build()?)?;
    std::fs::remove_file(&file)?;

    assert_eq!((sum, same), (45_000, 45_000));
    assert!(instances > fewer, "{instances} and {fewer}");

    // What a file decides, in words.
    for rule in MappingRules::parse(MAPPING)?.explain() {
        println!("{rule}");
    }
    // A mistake has a place, and says what was meant.
    let mistake = MappingRules::parse("[[data]]\nmemory = 'sytem'").expect_err("there is no such memory");
    assert!(
        mistake.to_string().starts_with("line 2, column 10: `sytem` is not a kind of memory; did you mean `system`?")
    );
    Ok(())
}
