//! A region of other fields passed to a task.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[derive(Fields)]
struct Other {
    a: f64,
}

#[task(leaf)]
fn look(#[reads(a)] cells: Piece<Cell>) {
    let _ = cells;
}

fn launch(cx: &Context, others: &Region<Other>) {
    cx.launch(look(others)); //~ cannot be passed for a region of `Cell`
}

fn main() {}
