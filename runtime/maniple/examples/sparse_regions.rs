//! Regions over any set of points: a wall with two windows.
//!
//! Run it with `cargo run -p maniple --example sparse_regions`.

use maniple::prelude::*;

#[derive(Fields)]
struct Brick {
    weight: u32,
}

#[task(leaf)]
fn weigh(#[reads(weight)] bricks: Piece<Brick, 2>) -> u32 {
    bricks.points().map(|brick| bricks.weight[brick]).sum()
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let wall = IndexSpace::from(Rect::from_shape([10, 30]));
        let windows = IndexSpace::from_rects([Rect::new([3, 5], [6, 9]), Rect::new([3, 20], [6, 24])]);
        let bricks = cx.region_over::<Brick, 2>(wall.difference(&windows))?; // memory is needed for the bricks alone
        cx.fill(&bricks, Brick::weight, 3)?;

        let columns = bricks.blocks([10, 10])?; // blocks of the bounds, as far as there are bricks
        let weights = cx.index_launch(columns.colors(), weigh(&columns)).all().await?;
        println!("{} bricks; the weight of each third is {weights:?}", bricks.volume());
        assert_eq!(weights, [240, 300, 240]);
        Ok(())
    })
}
