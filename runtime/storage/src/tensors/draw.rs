//! Pictures of what a tensor stores: where its entries lie, and small tensors as trees of levels.

use std::fmt::{self, Write};

use maniple_kernel::arithmetic::cast;

use super::dynamic::DynamicTensor;
use crate::element::{Element, ElementType, Scalar};
use crate::with_element;

/// The width and height of a pattern, in units of the picture, if it is a square.
const SIZE: f64 = 300.0;
/// A pattern has at most so many cells along a dimension.
const CELLS: i64 = 150;
/// Around pictures, and above them for the text.
const GAP: f64 = 20.0;
const TOP: f64 = 52.0;
/// Tensors of at most so many entries are drawn as trees too.
const LEAVES: usize = 40;
/// The width of a leaf of a tree, the height of a level, and a letter's width.
const LEAF: f64 = 34.0;
const LEVEL: f64 = 44.0;

/// Which part of a tensor is whose: parts along one dimension, each from one coordinate up to the next one's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The dimension.
    pub mode: usize,
    /// The coordinates at which parts begin, in ascending order.
    pub starts: Vec<i64>,
}

impl Parts {
    /// The part that has a coordinate.
    fn of(&self, at: &[i64]) -> usize {
        self.starts.partition_point(|start| *start <= at[self.mode]).saturating_sub(1)
    }
}

impl DynamicTensor {
    /// Draws, as SVG, where the entries are: darker where there are more, in colors by the parts that have them, if
    /// there are parts. The first dimension runs downwards, the second one from left to right; of tensors with more
    /// dimensions all entries are drawn at their first two coordinates. Beside it, if there are few entries, is the
    /// tree of levels: below each position of a level, its positions in the next one with their coordinates, and at the
    /// bottom the elements.
    pub fn draw(&self, title: &str, parts: Option<&Parts>) -> String {
        draw(self, title, parts)
    }
}

fn draw(tensor: &DynamicTensor, title: &str, parts: Option<&Parts>) -> String {
    let extent = |mode: usize| tensor.dimensions().get(mode).copied().unwrap_or(1);
    let (rows, columns) = match tensor.dimensions().len() {
        // A vector lies.
        1 => (1, extent(0)),
        _ => (extent(0), extent(1)),
    };
    let cells = [rows, columns].map(|extent| extent.clamp(1, CELLS));
    let longest = rows.max(columns).max(1) as f64;
    let [height, width] = [rows, columns].map(|extent| (SIZE * extent as f64 / longest).max(12.0));
    let mut counts = vec![Vec::<(usize, u32)>::new(); (cells[0] * cells[1]) as usize];
    let mut entries = 0_usize;
    tensor.for_each(&mut |at, _| {
        entries += 1;
        let [row, column] = match *at {
            [] => [0, 0],
            [column] => [0, column],
            [row, column, ..] => [row, column],
        };
        let cell =
            |at: i64, extent: i64, cells: i64| (i128::from(at) * i128::from(cells) / i128::from(extent.max(1))) as i64;
        let place = cell(row, rows, cells[0]) * cells[1] + cell(column, columns, cells[1]);
        let part = parts.map_or(0, |parts| parts.of(at));
        let counted = &mut counts[place as usize];
        match counted.iter_mut().find(|(other, _)| *other == part) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => counted.push((part, 1)),
        }
    });
    let tree = (entries <= LEAVES && tensor.count() <= LEAVES).then(|| Tree::new(tensor));
    let (across, down) = tree.as_ref().map_or((0.0, 0.0), |tree| (tree.width + GAP, tree.height));
    let (total_width, total_height) = ((width + across + 2.0 * GAP).max(260.0), height.max(down) + TOP + GAP);
    let extents: Vec<String> = tensor.dimensions().iter().map(i64::to_string).collect();
    let whose = parts.map_or_else(String::new, |parts| format!(", in {} parts", parts.starts.len()));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {total_width:.0} {total_height:.0}\" font-family=\"sans-serif\">\n\
         <title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{GAP}\" y=\"22\" font-size=\"15\" fill=\"#222\">{0}</text>\n\
         <text x=\"{GAP}\" y=\"40\" font-size=\"11\" fill=\"#555\">{1}: {2}, {entries} entries{whose}</text>\n\
         <g transform=\"translate({GAP} {TOP})\"><rect width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#f7f7f7\" stroke=\"#999\"/>\n",
        escape(title),
        escape(&tensor.format().to_string()),
        if extents.is_empty() { "a number".to_owned() } else { extents.join(" x ") },
    );
    let [cell_height, cell_width] = [(height, cells[0]), (width, cells[1])].map(|(side, cells)| side / cells as f64);
    let most = counts.iter().flatten().map(|(_, count)| *count).max().unwrap_or(1);
    for (place, counted) in counts.iter().enumerate() {
        let (row, column) = (place as i64 / cells[1], place as i64 % cells[1]);
        // Of several parts in a cell, that which has most is seen.
        let Some((part, count)) = counted.iter().max_by_key(|(_, count)| *count) else { continue };
        let color = if parts.is_some() { hue(*part) } else { "#2b5c9e".to_owned() };
        let opacity = 0.35 + 0.65 * f64::from(*count) / f64::from(most);
        // Writing to a string succeeds.
        let _ = write!(
            svg,
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{cell_width:.2}\" height=\"{cell_height:.2}\" fill=\"{color}\" fill-opacity=\"{opacity:.2}\"/>",
            column as f64 * cell_width,
            row as f64 * cell_height,
        );
    }
    svg.push_str("</g>\n");
    if let Some(tree) = tree {
        let _ = writeln!(svg, "<g transform=\"translate({:.1} {TOP})\">{}</g>", width + 2.0 * GAP, tree.svg);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Text as it has to be within SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One of many colors: those of neighbours in number are far apart.
pub fn hue(number: usize) -> String {
    format!("hsl({:.0} 65% 58%)", (number as f64 * 137.508) % 360.0)
}

/// The levels of a tensor as a tree.
struct Tree {
    svg: String,
    width: f64,
    height: f64,
}

impl Tree {
    fn new(tensor: &DynamicTensor) -> Self {
        let elements: Vec<Scalar> = with_element!(tensor.element(), T => {
            tensor.values::<T>().unwrap_or_default().iter().map(|value| value.to_scalar()).collect()
        });
        let mut tree =
            Self { svg: String::new(), width: 0.0, height: (tensor.levels().len() + 1) as f64 * LEVEL + 24.0 };
        let label = LEAF * 1.4;
        for (level, kind) in tensor.format().levels().iter().enumerate() {
            let what = format!("{}: {}", tensor.format().expressions()[level], kind.kind().letter());
            tree.text(0.0, (level + 1) as f64 * LEVEL + 14.0, &what, "start");
        }
        let mut next = label + LEAF;
        let root = tree.below(tensor, &elements, 0, 0, &mut Vec::new(), &mut next);
        tree.node(root.unwrap_or(next), 0.0, "");
        tree.width = next.max(160.0);
        tree
    }

    /// Draws what is below a position, and gives where it is in the middle of it; none if there is nothing.
    fn below(
        &mut self,
        tensor: &DynamicTensor,
        elements: &[Scalar],
        level: usize,
        parent: usize,
        at: &mut Vec<i64>,
        next: &mut f64,
    ) -> Option<f64> {
        let Some(data) = tensor.levels().get(level) else {
            let place = *next;
            *next += LEAF;
            let top = (level + 1) as f64 * LEVEL;
            self.text(place, top, &format!("{}", Shown(elements[parent])), "middle");
            return Some(place);
        };
        let along = data.line.as_ref().map_or(0, |line| at[line.level]);
        let mut children = Vec::new();
        let kind = tensor.format().levels()[level].kind();
        kind.visit(data, parent, along, &mut |coordinate, position| children.push((coordinate, position)));
        let mut places = Vec::new();
        let top = (level + 1) as f64 * LEVEL;
        for (coordinate, position) in children {
            at.push(coordinate);
            let place = self.below(tensor, elements, level + 1, position, at, next);
            at.pop();
            // A position without anything below it has a place too.
            let place = place.unwrap_or_else(|| {
                *next += LEAF;
                *next - LEAF
            });
            self.node(place, top, &coordinate.to_string());
            places.push(place);
        }
        let middle = (places.first()? + places.last()?) / 2.0;
        for place in places {
            let _ = write!(
                self.svg,
                "<line x1=\"{middle:.1}\" y1=\"{:.1}\" x2=\"{place:.1}\" y2=\"{top:.1}\" stroke=\"#aaa\"/>",
                top - LEVEL + 20.0,
            );
        }
        Some(middle)
    }

    fn node(&mut self, x: f64, y: f64, text: &str) {
        let _ = write!(
            self.svg,
            "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"26\" height=\"20\" rx=\"5\" fill=\"#e8eef7\" stroke=\"#2b5c9e\"/>",
            x - 13.0
        );
        self.text(x, y + 14.0, text, "middle");
    }

    fn text(&mut self, x: f64, y: f64, text: &str, anchor: &str) {
        let _ = write!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"10\" text-anchor=\"{anchor}\" fill=\"#333\">{}</text>",
            escape(text)
        );
    }
}

/// An element, as short as it can be written.
struct Shown(Scalar);

impl fmt::Display for Shown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let real =
            |formatter: &mut fmt::Formatter<'_>, value: f64| write!(formatter, "{}", (value * 1e3).round() / 1e3);
        match cast(self.0, ElementType::C64) {
            Scalar::C64(value) if value.im == 0.0 => real(formatter, value.re),
            Scalar::C64(value) => write!(formatter, "{value:.2}"),
            _ => Ok(()),
        }
    }
}
