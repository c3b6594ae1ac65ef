//! Inline mappings: the program itself looks at data and changes it, in program order.
//!
//! Run it with `cargo run -p maniple --example inline_mapping`.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    value: f64,
}

#[task(leaf)]
fn double(#[writes(value)] cells: Piece<Cell>) {
    for cell in cells.points() {
        cells.value[cell] *= 2.0;
    }
}

fn main() -> Result<()> {
    let runtime = Runtime::builder().build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(4)?;
        {
            let mut mapping = cx.map_write(&cells, Cell::value).await?;
            let mut values = mapping.values(); // as in the body of a task
            for cell in cells.space().points() {
                values[cell] = 0.5 + cell[0] as f64;
            }

            // The program holds the data, so that a task which needs it could never begin.
            let refused = cx.launch(double(&cells)).await.expect_err("the data is mapped");
            assert!(refused.to_string().contains("drop the mapping before the launch"));
        }
        cx.launch(double(&cells));
        let values = cx.map_read(&cells, Cell::value).await?.to_vec(); // after `double`
        println!("{values:?}");
        assert_eq!(values, [1.0, 3.0, 5.0, 7.0]);
        Ok(())
    })
}
