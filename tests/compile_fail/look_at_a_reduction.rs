//! A field read that was declared to be reduced.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task(leaf)]
fn peek(#[reduces(Sum, a)] cells: Piece<Cell>) -> f64 {
    cells.a[0] //~ cannot index into a value of type
}

fn main() {}
