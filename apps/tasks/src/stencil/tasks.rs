//! The region and tasks of the stencil.

use maniple::prelude::*;

use super::kernel::{add_star, weights};
use crate::verify::worse;

/// One point of the grid.
#[derive(Fields)]
pub struct Cell {
    /// The value that the star is laid on.
    pub input: f64,
    /// The sum of the results of all steps.
    pub output: f64,
}

/// The input rises by 1 from point to point in both directions; the output is zero.
#[task(leaf)]
pub fn make_slope(#[discards(input, output)] tile: Piece<Cell, 2>) {
    for row in tile.rows() {
        for (column, value) in tile.input.span_mut(row).iter_mut().enumerate() {
            *value = (row.lo[0] + row.lo[1] + column as i64) as f64;
        }
        tile.output.span_mut(row).fill(0.0);
    }
}

/// Adds the star around each point of the tile that is far enough from the rim of the grid.
#[task(leaf)]
pub fn add_stars(
    #[writes(output)] tile: Piece<Cell, 2>,
    #[reads(input)] surroundings: Piece<Cell, 2>,
    inner: Rect<2>,
    radius: usize,
) {
    macro_rules! with_radius {
        ($($radius:literal),*) => {
            match radius {
                $($radius => {
                    let weights = weights::<$radius>();
                    for row in tile.rows().map(|row| row.intersection(&inner)).filter(|row| !row.is_empty()) {
                        let input = |rows: i64, columns: i64| {
                            surroundings.input.span(row.translate(Point([rows, 0])).grow(Point([0, columns])))
                        };
                        let before: [_; $radius] = std::array::from_fn(|distance| input(-1 - distance as i64, 0));
                        let after: [_; $radius] = std::array::from_fn(|distance| input(1 + distance as i64, 0));
                        add_star(
                            &mut tile.output.span_mut(row),
                            &input(0, $radius),
                            before.each_ref().map(|row| &**row),
                            after.each_ref().map(|row| &**row),
                            &weights,
                        );
                    }
                })*
                other => panic!("the radius is 1 to 4, not {other}"),
            }
        };
    }
    with_radius!(1, 2, 3, 4);
}

/// Raises the input by 1, so that a tile that still saw its neighbour's old values would go wrong.
#[task(leaf)]
pub fn raise(#[writes(input)] tile: Piece<Cell, 2>) {
    for row in tile.rows() {
        tile.input.span_mut(row).iter_mut().for_each(|value| *value += 1.0);
    }
}

/// The largest difference of the output from its closed form, relative to it: each step adds 2 to every inner point,
/// and nothing to the rim.
#[task(leaf)]
pub fn largest_error(#[reads(output)] tile: Piece<Cell, 2>, inner: Rect<2>, steps: usize) -> f64 {
    let risen = 2.0 * steps as f64;
    let mut largest = 0.0;
    for row in tile.rows() {
        for (point, &output) in row.points().zip(tile.output.span(row).iter()) {
            let expected = if inner.contains(point) { risen } else { 0.0 };
            largest = worse(largest, (output - expected).abs() / risen);
        }
    }
    largest
}

/// Copies all values of a tile to a grid like it: into one that is stored, or out of one that was.
#[task(leaf)]
pub fn copy_tile(#[reads(input, output)] from: Piece<Cell, 2>, #[discards(input, output)] to: Piece<Cell, 2>) {
    for row in from.rows() {
        to.input.span_mut(row).copy_from_slice(&from.input.span(row));
        to.output.span_mut(row).copy_from_slice(&from.output.span(row));
    }
}
