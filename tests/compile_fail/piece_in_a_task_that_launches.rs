//! Data touched by a task that launches.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task]
async fn both(cx: &Context, #[reads(a)] cells: Piece<Cell>) { //~ Region
    let _ = (cx, cells);
}

fn main() {}
