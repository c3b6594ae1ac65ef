//! A page with a picture, for any browser.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::picture::graph::{Class, Graph, Node};
use crate::picture::layers;
use crate::picture::layout::{Frame, LINE, Line, PageLayout, SMALL};

/// A picture that would be unreadable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the graph has {nodes} nodes and {edges} edges, which go past {passed} others; a picture is readable with at most {}, {} and {}: record \
     less, or write DOT for a tool that can find its way in large graphs",
    Graph::MOST_NODES,
    Graph::MOST_EDGES,
    Graph::MOST_PASSED
)]
pub struct TooLarge {
    /// The nodes of the graph.
    pub nodes: usize,
    /// The edges of the graph.
    pub edges: usize,
    /// How many layers of nodes the edges go past, all in all.
    pub passed: usize,
}

const HEAD: &str = "\
<style>
text { font: 11px sans-serif; fill: #212529; text-anchor: middle; }
text.why { font-size: 9px; fill: #495057; paint-order: stroke; stroke: white; stroke-width: 4px; }
rect, circle { stroke: #495057; }
path { fill: none; stroke: #868e96; marker-end: url(#arrow); }
g:hover > rect { stroke-width: 2.5; }
</style>
<defs><marker id=\"arrow\" markerWidth=\"8\" markerHeight=\"6\" refX=\"8\" refY=\"3\" orient=\"auto\"><polygon points=\"0 0, 8 3, 0 6\" \
fill=\"#868e96\"/></marker></defs>
";

/// The height of the line at the bottom that says what the colours mean, where there are several.
const LEGEND: f64 = 30.0;

impl Graph {
    /// A picture with more nodes would not be readable.
    pub const MOST_NODES: usize = 2_000;
    /// A picture with more edges would not be readable.
    pub const MOST_EDGES: usize = 10_000;
    /// A picture with more lines side by side would not be readable.
    pub const MOST_PASSED: usize = 100_000;

    /// A picture of the graph: what comes later is further down. Resting the pointer on a box shows its details.
    ///
    /// # Errors
    /// [`TooLarge`] if there is too much to be drawn.
    pub fn to_svg(&self) -> Result<String, TooLarge> {
        let size = TooLarge { nodes: self.nodes.len(), edges: self.edges.len(), passed: layers::passed(self) };
        if size.nodes > Self::MOST_NODES || size.edges > Self::MOST_EDGES || size.passed > Self::MOST_PASSED {
            return Err(size);
        }
        let layout = PageLayout::of(self);
        let classes: BTreeSet<Class> = self.nodes.iter().map(|node| node.class).collect();
        let has_legend = classes.len() > 1;
        let width = if has_legend { layout.width.max(170.0 * classes.len() as f64) } else { layout.width };
        let height = if has_legend { layout.height + LEGEND } else { layout.height };
        let mut page = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n"
        );
        let _ = writeln!(page, "<title>{}</title>", escaped(&self.title));
        page += HEAD;
        page += "<rect width=\"100%\" height=\"100%\" style=\"fill: white; stroke: none\"/>\n";
        for (edge, line) in self.edges.iter().zip(&layout.lines) {
            draw_line(&mut page, line, &edge.labels);
        }
        for (node, frame) in self.nodes.iter().zip(&layout.boxes) {
            draw_node(&mut page, node, *frame);
        }
        if has_legend {
            draw_legend(&mut page, &classes, layout.height + LEGEND / 2.0);
        }
        page += "</svg>\n";
        Ok(page)
    }
}

/// A smooth line: it leaves and reaches every piece vertically.
fn draw_line(page: &mut String, line: &Line, labels: &[String]) {
    let mut path = String::new();
    let mut here: Option<(f64, f64)> = None;
    for &(x, top, bottom) in &line.pieces {
        let _ = match here {
            None => write!(path, "M{x:.1} {top:.1}"),
            Some((from, y)) => {
                let middle = (y + top) / 2.0;
                write!(path, " C{from:.1} {middle:.1}, {x:.1} {middle:.1}, {x:.1} {top:.1}")
            }
        };
        if bottom > top {
            let _ = write!(path, " V{bottom:.1}");
        }
        here = Some((x, bottom.max(top)));
    }
    let _ = writeln!(page, "<path d=\"{path}\"/>");
    if let Some((x, y)) = line.labels {
        let first = y - (labels.len() as f64 - 1.0) * LINE * SMALL / 2.0 + 3.0;
        for (number, label) in labels.iter().enumerate() {
            let y = first + number as f64 * LINE * SMALL;
            let _ = writeln!(page, "<text class=\"why\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(label));
        }
    }
}

fn draw_node(page: &mut String, node: &Node, frame: Frame) {
    let Frame { x, y, width, height } = frame;
    let color = node.class.color();
    let _ = write!(page, "<g id=\"{}\">", escaped(&node.key));
    let title = node.label.iter().chain(&node.details).map(|line| escaped(line)).collect::<Vec<_>>().join("\n");
    let _ = write!(page, "<title>{title}</title>");
    if node.class == Class::Join {
        let _ = write!(page, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{:.1}\" fill=\"{color}\"/>", width / 2.0);
    } else {
        let (left, top) = (x - width / 2.0, y - height / 2.0);
        let _ = write!(
            page,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"4\" fill=\"{color}\"/>"
        );
        let first = y - (node.label.len() as f64 - 1.0) * LINE / 2.0 + 4.0;
        for (number, line) in node.label.iter().enumerate() {
            let _ =
                write!(page, "<text x=\"{x:.1}\" y=\"{:.1}\">{}</text>", first + number as f64 * LINE, escaped(line));
        }
    }
    page.push_str("</g>\n");
}

fn draw_legend(page: &mut String, classes: &BTreeSet<Class>, y: f64) {
    for (number, class) in classes.iter().enumerate() {
        let x = 20.0 + 170.0 * number as f64;
        let _ = writeln!(
            page,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
             style=\"text-anchor: start\">{}</text>",
            y - 6.0,
            class.color(),
            x + 18.0,
            y + 4.0,
            class.word()
        );
    }
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML has no way to write other control characters.
            letter if letter.is_control() && !matches!(letter, '\n' | '\t') => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}
