//! Variants: several implementations of one task, of which the mapper chooses one.
//!
//! Run it with `cargo run -p maniple --example variants`.

use maniple::mapper::{Mapper, TaskInfo};
use maniple::prelude::*;
use maniple::{Machine, ProcessorId};

#[derive(Fields)]
struct Cell {
    value: u64,
}

/// The plain implementation. It takes its data in any layout.
#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> (u64, String) {
    (cells.points().map(|cell| cells.value[cell]).sum(), "point by point".to_owned())
}

/// The same, row by row. It needs each field in an array.
#[task(leaf, variant_of(sum), layout = soa)]
fn sum_rows(#[reads(value)] cells: Piece<Cell>) -> (u64, String) {
    (cells.rows().map(|row| cells.value.span(row).iter().sum::<u64>()).sum(), "row by row".to_owned())
}

/// Takes the variant of this name where there is one, else the first.
#[derive(Clone)]
struct Prefers(&'static str);

impl Mapper for Prefers {
    fn select_variant(&mut self, task: &TaskInfo<'_>, _: ProcessorId, _: &Machine) -> usize {
        task.variants.iter().position(|variant| variant.name == self.0).unwrap_or(0)
    }
}

fn main() -> Result<()> {
    for (preferred, expected) in [("sum", "point by point"), ("sum_rows", "row by row")] {
        let runtime = Runtime::builder().mapper(Prefers(preferred)).build()?;
        let (total, how) = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(1_000)?;
            cx.fill(&cells, Cell::value, 3)?;
            cx.launch(sum(&cells)).await
        })?;
        println!("{total}, {how}");
        assert_eq!((total, &*how), (3_000, expected));
    }
    Ok(())
}
