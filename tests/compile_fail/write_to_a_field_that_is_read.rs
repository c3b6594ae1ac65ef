//! A field written that was declared to be read.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task(leaf)]
fn spoil(#[reads(a)] cells: Piece<Cell>) {
    cells.a[0] = 1.0; //~ cannot assign to data in an index of
}

fn main() {}
