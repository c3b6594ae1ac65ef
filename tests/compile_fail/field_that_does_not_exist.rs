//! A field that the struct does not have.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task(leaf)]
fn miss(#[reads(c)] cells: Piece<Cell>) { //~ no field `c` on type `FieldsOfCell`
    let _ = cells;
}

fn main() {}
