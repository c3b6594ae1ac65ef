//! Projections: point `p` of a launch gets another piece than the one of color `p`.
//!
//! Run it with `cargo run -p maniple --example projections`.

use maniple::Affine;
use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: i64,
    mirrored: i64,
}

#[task(leaf)]
fn number(#[point] piece: Point<1>, #[discards(value)] cells: Piece<Cell>) {
    cells.value.fill(piece[0]);
}

#[task(leaf)]
fn take(#[reads(value)] from: Piece<Cell>, #[discards(mirrored)] to: Piece<Cell>) {
    for (source, target) in from.points().zip(to.points()) {
        to.mirrored[target] = from.value[source];
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(8)?;
        let pieces = cells.partition(4).equal()?;
        let opposite = pieces.project(|point| (3 - point[0]).into());
        // The same as plain data: known again where a function made anew is another one.
        let same = pieces.affine(Affine::new([[-1]], [3]));
        cx.index_launch(4, number(&pieces));
        cx.index_launch(4, take(&opposite, &pieces));
        cx.index_launch(4, take(&same, &pieces));

        let mirrored = cx.map_read(&cells, Cell::mirrored).await?.to_vec();
        println!("{mirrored:?}");
        assert_eq!(mirrored, [3, 3, 2, 2, 1, 1, 0, 0]);
        Ok(())
    })
}
