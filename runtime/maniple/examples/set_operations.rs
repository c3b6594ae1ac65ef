//! Set operations on partitions, color by color: the neighbours' cells that each piece needs, and the cells that
//! neighbours need.
//!
//! Run it with `cargo run -p maniple --example set_operations`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(100)?;
        let owned = cells.blocks([25])?;
        let needed = cells.tiles([25], [2])?; // with two cells of each neighbour

        let ghosts = needed.difference(&owned)?; // of each piece, what others own
        let shared = owned.intersection_with_all(&ghosts)?; // of each piece, what others need
        let private = owned.difference_from_all(&ghosts)?; // and what no other piece needs
        let all = private.union(&shared)?;

        println!("piece 1 shares {:?} and has as ghosts {:?}", shared.piece(1)?.space(), ghosts.piece(1)?.space());
        assert_eq!(private.piece(1)?.bounds(), Rect::from(27..48));
        assert_eq!(ghosts.piece(1)?.space().rects(), [Rect::from(23..25), Rect::from(50..52)]);
        assert!(all.pieces().eq(owned.pieces()));
        Ok(())
    })
}
