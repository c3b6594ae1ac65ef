//! Not a mistake: shows that the others fail for their one mistake only.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

#[task(leaf)]
fn sum(#[reads(a)] #[writes(b)] cells: Piece<Cell>) -> f64 {
    for point in cells.points() {
        cells.b[point] = cells.a[point];
    }
    0.0
}

#[task]
async fn parent(cx: &Context, #[writes(a, b)] cells: Region<Cell>) -> Result<f64> {
    cx.launch(sum(&cells)).await
}

fn main() {}
