//! Padding: a task gets room around its tile for the values beside it, so that the loop over the tile needs no special
//! cases at its edges.
//!
//! Run it with `cargo run -p maniple --example padding`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    heat: f64,
    next: f64,
}

#[task(leaf)]
fn start(#[discards(heat)] cells: Piece<Cell, 2>) {
    cells.points().for_each(|cell| cells.heat[cell] = if cell == Point([8, 8]) { 1024.0 } else { 0.0 });
}

/// Beyond the cells it is cold: the room around the tile is zero where there are no values to fill in.
#[task(leaf)]
fn spread(
    #[reads(heat)] near: Piece<Cell, 2>,
    #[layout(pad = 1)]
    #[discards(next)]
    tile: Piece<Cell, 2>,
) {
    near.points().for_each(|cell| tile.next[cell] = near.heat[cell]);
    let mean = |x, y| {
        let beside = tile.next[[x - 1, y]] + tile.next[[x + 1, y]] + tile.next[[x, y - 1]] + tile.next[[x, y + 1]];
        (4.0 * tile.next[[x, y]] + beside) / 8.0
    };
    let new: Vec<f64> = tile.points().map(|cell| mean(cell[0], cell[1])).collect();
    tile.points().zip(new).for_each(|(cell, heat)| tile.next[cell] = heat);
}

#[task(leaf)]
fn take_over(#[reads(next)] from: Piece<Cell, 2>, #[discards(heat)] to: Piece<Cell, 2>) {
    to.points().for_each(|cell| to.heat[cell] = from.next[cell]);
}

fn main() -> Result<()> {
    let total = Runtime::builder().build()?.run(async |cx| {
        let cells = cx.region_over::<Cell, 2>(Rect::from_shape([16, 16]))?;
        cx.launch(start(&cells));
        let (tiles, near) = (cells.blocks([4, 4])?, cells.tiles([4, 4], [1, 1])?);
        for _ in 0..6 {
            cx.index_launch(tiles.colors(), spread(&near, &tiles));
            cx.index_launch(tiles.colors(), take_over(&tiles, &tiles));
        }
        Ok(cx.map_read(&cells, Cell::heat).await?.to_vec().iter().sum::<f64>())
    })?;
    println!("the heat is {total} in all");
    // After so few steps none has left the cells.
    assert_eq!(total, 1024.0);
    Ok(())
}
