//! Tiles with ghost cells: a stencil in two dimensions, without a line about messages or locks.
//!
//! Run it with `cargo run -p maniple --example ghost_cells`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    old: f64,
    new: f64,
}

/// The mean of each cell's neighbours. `around` reaches one cell further than `tile`, as far as the grid does.
#[task(leaf)]
fn smooth(#[reads(old)] around: Piece<Cell, 2>, #[discards(new)] tile: Piece<Cell, 2>) {
    for cell in tile.points() {
        let neighbours = [[-1, 0], [1, 0], [0, -1], [0, 1]].map(|[down, right]| [cell[0] + down, cell[1] + right]);
        let known = neighbours.into_iter().filter_map(|neighbour| around.old.get(neighbour));
        tile.new[cell] = known.clone().sum::<f64>() / known.count() as f64;
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region_over::<Cell, 2>(Rect::from_shape([40, 40]))?;
        let tiles = cells.blocks([20, 20])?;
        let around = cells.tiles([20, 20], [1, 1])?;
        cx.map_write(&cells, Cell::old).await?[[19, 19]] = 64.0;
        for _ in 0..3 {
            cx.index_launch(tiles.colors(), smooth(&around, &tiles));
            cx.copy(cells.field(Cell::new), cells.field(Cell::old));
        }

        let heat = cx.map_read(&cells, Cell::old).await?;
        println!(
            "after three steps {} is in cell (19, 20), of another tile, and {} in all",
            heat[[19, 20]],
            heat.iter().sum::<f64>()
        );
        assert_eq!((heat[[19, 20]], heat.iter().sum::<f64>()), (9.0, 64.0));
        Ok(())
    })
}
