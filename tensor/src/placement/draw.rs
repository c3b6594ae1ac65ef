//! Pictures of placements: which processor holds what.

use std::fmt::Write;

use super::{Piece, Placed};
use crate::rectangle::Rectangle;
use crate::storage::{escape, hue};

/// The width and height of the largest tensor, in units of the picture.
const SIZE: f64 = 90.0;
/// How far to the right, and above, a step to the back is drawn.
const SLANT: f64 = 0.4;
/// Between two processors.
const GAP: f64 = 26.0;
/// For the text on top.
const TOP: f64 = 56.0;

/// Draws, as SVG, the machine's processors, and in each the tensor with what the processor holds of it in color. Copies
/// of one piece have one color.
///
/// The last dimension of the machine runs from left to right, the one before downwards, and others are panels side by
/// side. Of tensors with more than three dimensions the first three are drawn.
pub fn draw(placed: &Placed, title: &str) -> String {
    let extents = placed.machine().extents();
    let along = |from_end: usize| extents.len().checked_sub(from_end).map_or(1, |dimension| extents[dimension]);
    let (columns, rows) = (along(1), along(2));
    let panels = placed.machine().size() / (columns * rows);
    let shape = Shape::new(placed.domain());
    let (cell_width, cell_height) = (shape.width + GAP, shape.height + GAP + 14.0);
    let panel = columns as f64 * cell_width + GAP;
    let (width, height) = (panels as f64 * panel + GAP, rows as f64 * cell_height + TOP + GAP);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\">\n\
         <title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{GAP}\" y=\"22\" font-size=\"15\" fill=\"#222\">{0}</text>\n\
         <text x=\"{GAP}\" y=\"40\" font-size=\"11\" fill=\"#555\">{1} on {2}</text>\n",
        escape(title),
        escape(&placed.placement().to_string()),
        placed.machine(),
    );
    for (number, point) in placed.machine().points().enumerate() {
        let (column, row, beside) = (number % columns, number / columns % rows, number / (columns * rows));
        let left = GAP + beside as f64 * panel + column as f64 * cell_width;
        let top = TOP + row as f64 * cell_height;
        let name: Vec<String> = point.iter().map(ToString::to_string).collect();
        let piece = placed.piece(&point);
        // Writing to a string succeeds.
        let _ = writeln!(
            svg,
            "<g transform=\"translate({left:.1} {top:.1})\"><title>processor ({0}): {1} elements</title>\
             <text y=\"10\" font-size=\"10\" fill=\"#555\">({0})</text><g transform=\"translate(0 14)\">{2}</g></g>",
            name.join(","),
            piece.volume(),
            shape.tensor(&piece, &color(placed, &point)),
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// A color for each piece.
fn color(placed: &Placed, point: &[usize]) -> String {
    let number = placed
        .color(point)
        .unwrap_or_default()
        .iter()
        .zip(placed.colors())
        .fold(0, |number, (index, extent)| number * extent + index);
    hue(number)
}

/// How a tensor is drawn: an oblique box of three dimensions, of which the first ones may be missing.
struct Shape {
    /// Depth, height, width: lowest index and extent; and the length that is drawn.
    axes: [(i64, f64, f64); 3],
    width: f64,
    height: f64,
}

impl Shape {
    fn new(domain: &Rectangle) -> Self {
        let drawn: Vec<(i64, i64)> = domain.bounds().take(3).collect();
        let missing = 3 - drawn.len();
        let mut axes = [(0, 1.0, 0.0); 3];
        for (axis, (low, high)) in axes[missing..].iter_mut().zip(drawn) {
            *axis = (low, (high as f64 - low as f64).max(1.0), 0.0);
        }
        let longest = axes[missing..].iter().map(|axis| axis.1).fold(1.0, f64::max);
        for (number, axis) in axes.iter_mut().enumerate() {
            // What is missing is a line's thickness; nothing gets so thin that it cannot be seen.
            axis.2 = if number < missing {
                if number == 0 { 0.0 } else { 12.0 }
            } else {
                (axis.1 / longest).max(0.1) * SIZE
            };
        }
        if missing == 3 {
            axes[2].2 = 12.0;
        }
        let slant = axes[0].2 * SLANT;
        Self { width: axes[2].2 + slant, height: axes[1].2 + slant, axes }
    }

    /// A tensor with `piece` in `color`.
    fn tensor(&self, piece: &Piece, color: &str) -> String {
        let all: Vec<(f64, f64)> = self.axes.iter().map(|axis| (0.0, axis.2)).collect();
        let mut text = self.block(&all, "none", "#bbb");
        let missing = 3 - piece.dimensions().len().min(3);
        for rectangle in piece.rectangles() {
            let mut range = all.clone();
            for ((range, axis), (low, high)) in
                range[missing..].iter_mut().zip(&self.axes[missing..]).zip(rectangle.bounds())
            {
                let place = |index: i64| (index as f64 - axis.0 as f64) / axis.1 * axis.2;
                *range = (place(low), place(high));
            }
            text.push_str(&self.block(&range, color, "#444"));
        }
        text
    }

    /// A box with the given ranges of depth, height and width: the faces that are seen from the front, above and the
    /// right.
    fn block(&self, range: &[(f64, f64)], fill: &str, stroke: &str) -> String {
        let [depth, down, across] = [range[0], range[1], range[2]];
        let back = self.axes[0].2;
        let at = |depth: f64, down: f64, across: f64| {
            // The first index lies at the back, to the right and above.
            format!("{:.1},{:.1}", across + (back - depth) * SLANT, down + depth * SLANT)
        };
        let face = |corners: [String; 4], shade: &str| {
            format!(
                "<polygon points=\"{}\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"0.6\"{shade}/>",
                corners.join(" ")
            )
        };
        let front = face(
            [
                at(depth.1, down.0, across.0),
                at(depth.1, down.0, across.1),
                at(depth.1, down.1, across.1),
                at(depth.1, down.1, across.0),
            ],
            "",
        );
        if back == 0.0 {
            return front;
        }
        let top = face(
            [
                at(depth.0, down.0, across.0),
                at(depth.0, down.0, across.1),
                at(depth.1, down.0, across.1),
                at(depth.1, down.0, across.0),
            ],
            " fill-opacity=\"0.7\"",
        );
        let side = face(
            [
                at(depth.0, down.0, across.1),
                at(depth.0, down.1, across.1),
                at(depth.1, down.1, across.1),
                at(depth.1, down.0, across.1),
            ],
            " fill-opacity=\"0.85\"",
        );
        front + &top + &side
    }
}
