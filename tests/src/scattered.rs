//! A region whose cells have colors that are as scattered as can be, and point to one another: what is found in it are
//! pieces of single points.

use maniple::prelude::*;

/// The number of cells.
pub const CELLS: i64 = 960;
/// The number of colors.
pub const COLORS: i64 = 16;

/// A cell.
#[derive(Fields)]
pub struct Cell {
    /// Its color.
    pub color: i64,
    /// The cell that it points to.
    pub next: Ptr<Cell, 1>,
    /// Something that others look at, and add to.
    pub value: i64,
    /// The sum of what it has seen.
    pub sum: i64,
}

/// The color of a cell: as scattered as can be.
#[must_use]
pub fn color(cell: i64) -> i64 {
    (cell * 7 + cell / 31) % COLORS
}

/// The cell that another one points to.
#[must_use]
pub fn next(cell: i64) -> i64 {
    (cell * 11 + 5) % CELLS
}

/// Makes the cells.
#[task(leaf)]
pub fn make(#[discards(color, next, value, sum)] cells: Piece<Cell>) {
    for cell in cells.points() {
        cells.color[cell] = color(cell[0]);
        cells.next[cell] = Ptr::row(next(cell[0]));
        cells.value[cell] = cell[0];
        cells.sum[cell] = 0;
    }
}

/// Takes the values that the own cells point to.
#[task(leaf)]
pub fn gather(
    #[reads(next)]
    #[writes(sum)]
    own: Piece<Cell>,
    #[reads(value)] reached: Piece<Cell>,
) {
    for cell in own.points() {
        own.sum[cell] += reached.value[own.next[cell]];
    }
}

/// Adds to the values that the own cells point to.
#[task(leaf)]
pub fn scatter(#[reads(next, sum)] own: Piece<Cell>, #[reduces(Sum, value)] reached: Piece<Cell>) {
    for cell in own.points() {
        reached.value.fold(own.next[cell], own.sum[cell] % 1000);
    }
}

/// A number that depends on all values and sums.
#[task(leaf)]
pub fn total(#[reads(value, sum)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|cell| cells.value[cell] * 3 + cells.sum[cell]).sum()
}

/// How many cells there are.
#[task(leaf)]
pub fn count(#[reads(color)] cells: Piece<Cell>) -> u64 {
    cells.space().volume()
}

/// Cells, cells by color, and what each color's cells point to.
///
/// # Errors
/// The runtime's.
pub async fn parts(cx: &Context) -> Result<(Region<Cell>, Partition<Cell>, Partition<Cell>)> {
    let cells = cx.region::<Cell>(CELLS as usize)?;
    let blocks = cells.partition(12).equal()?;
    cx.index_launch(12, make(&blocks));
    let own = cx.partition_by_field(&cells, Cell::color, cx.colors(COLORS as usize)).await?;
    let reached = cx.image(&cells, &own, Cell::next).await?;
    Ok((cells, own, reached))
}
