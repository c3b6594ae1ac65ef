//! One mapping written through twice at a time.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    a: f64,
    b: f64,
}

async fn twice(cx: &Context, cells: &Region<Cell>) -> Result<()> {
    let mut mapping = cx.map_write(cells, Cell::a).await?;
    let mut first = mapping.values();
    let mut second = mapping.values(); //~ cannot borrow `mapping` as mutable more than once
    first[0] = 1.0;
    second[0] = 2.0;
    Ok(())
}

fn main() {}
