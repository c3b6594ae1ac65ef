//! A task that returns a reference.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task(leaf)]
fn name(#[reads(a)] cells: Piece<Cell>) -> &str { //~ return an owned value, such as `String` for `&str`
    let _ = cells;
    "cell"
}

fn main() {}
