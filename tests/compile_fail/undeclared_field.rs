//! A field used without a privilege.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task(leaf)]
fn peek(#[reads(a)] cells: Piece<Cell>) -> f64 {
    cells.b[0] //~ no field `b` on type `cells_as_declared_by_peek
}

fn main() {}
