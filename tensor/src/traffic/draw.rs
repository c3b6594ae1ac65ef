//! Pictures of traffic: each step's messages as arrows between processors.

use std::fmt::Write;

use super::{Cause, Message, Traffic};
use crate::storage::{escape, hue};

/// The side of a processor, and the space between two.
const BOX: f64 = 30.0;
const GAP: f64 = 30.0;
/// Above the steps, and above each step's processors.
const TOP: f64 = 64.0;
const HEAD: f64 = 34.0;
/// More steps than these are not drawn.
const MOST: i64 = 64;

/// Draws, as SVG, the messages of each step as arrows between processors: a color for each tensor, and the wider the
/// more bytes. Dashed arrows are reductions, dotted ones bring the result to its place.
///
/// Processors lie as in [pictures of placements](crate::placement::draw()): the last dimension of the machine runs from
/// left to right, the one before downwards, and others are panels side by side. If there are more than 64 steps, the
/// first ones are drawn. Of traffic that is not [listed](Traffic::is_listed) there is no more than a title.
pub fn draw(traffic: &Traffic, title: &str) -> String {
    if !traffic.is_listed() {
        return format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 64\" font-family=\"sans-serif\">\n<title>{0}</title>\n\
             <text x=\"{GAP}\" y=\"22\" font-size=\"15\" fill=\"#222\">{0}: {1} bytes on {2} in {3} steps, too many messages to draw</text>\n</svg>\n",
            escape(title),
            traffic.bytes(),
            traffic.machine(),
            traffic.steps(),
        );
    }
    let layout = ProcessorLayout::new(traffic);
    let drawn = traffic.steps().clamp(1, MOST);
    // The fewest columns that make the picture no higher than wide.
    let rows = |columns: i64| (drawn + columns - 1) / columns;
    let flat = |columns: &i64| layout.width * *columns as f64 >= layout.height * rows(*columns) as f64;
    let columns = (1..=drawn).find(flat).unwrap_or(drawn);
    let rows = rows(columns);
    let (width, height) = (columns as f64 * layout.width + GAP, rows as f64 * layout.height + TOP + GAP);
    let width = width.max(360.0);
    let more = if drawn < traffic.steps() { format!(", of which the first {drawn} are drawn") } else { String::new() };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\">\n\
         <title>{0}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{GAP}\" y=\"22\" font-size=\"15\" fill=\"#222\">{0}</text>\n\
         <text x=\"{GAP}\" y=\"40\" font-size=\"11\" fill=\"#555\">{1} bytes on {2} in {3} steps{more}</text>\n",
        escape(title),
        traffic.bytes(),
        traffic.machine(),
        traffic.steps(),
    );
    legend(&mut svg, traffic);
    let largest = traffic.messages().iter().map(|message| message.bytes).max().unwrap_or(1);
    for step in 0..drawn {
        let (left, top) = ((step % columns) as f64 * layout.width + GAP, (step / columns) as f64 * layout.height + TOP);
        // Writing to a string succeeds.
        let _ = writeln!(
            svg,
            "<g transform=\"translate({left:.1} {top:.1})\"><text y=\"12\" font-size=\"11\" fill=\"#222\">step {step}: {} bytes</text>\
             <g transform=\"translate(0 {HEAD})\">",
            traffic.of_step(step)
        );
        layout.processors(&mut svg);
        for message in traffic.messages().iter().filter(|message| message.step == step) {
            layout.arrow(&mut svg, traffic, message, largest);
        }
        svg.push_str("</g></g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

/// The name of each tensor in its color, and what is sent of it.
fn legend(svg: &mut String, traffic: &Traffic) {
    let _ = write!(svg, "<text x=\"{GAP}\" y=\"56\" font-size=\"11\">");
    for (number, tensor) in traffic.tensors().iter().enumerate() {
        let (name, bytes) = (escape(tensor.name()), traffic.of_tensor(tensor.name()));
        let _ = write!(svg, "<tspan fill=\"{}\">&#9632; {name}: {bytes} bytes</tspan>   ", hue(number));
    }
    svg.push_str("</text>\n");
}

/// The layout of processors in a picture.
struct ProcessorLayout {
    names: Vec<String>,
    places: Vec<Point>,
    width: f64,
    height: f64,
}

impl ProcessorLayout {
    fn new(traffic: &Traffic) -> Self {
        let extents = traffic.machine().extents();
        let along = |from_end: usize| extents.len().checked_sub(from_end).map_or(1, |dimension| extents[dimension]);
        let (columns, rows) = (along(1), along(2));
        let panels = traffic.machine().size() / (columns * rows);
        let panel = columns as f64 * (BOX + GAP) + GAP;
        let place = |number: usize| {
            let (column, row, beside) = (number % columns, number / columns % rows, number / (columns * rows));
            Point { x: beside as f64 * panel + column as f64 * (BOX + GAP), y: row as f64 * (BOX + GAP) }
        };
        let name = |point: Vec<usize>| point.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Self {
            names: traffic.machine().points().map(name).collect(),
            places: (0..traffic.machine().size()).map(place).collect(),
            width: (panels as f64 * panel).max(140.0),
            height: rows as f64 * (BOX + GAP) + HEAD,
        }
    }

    fn processors(&self, svg: &mut String) {
        for (name, Point { x: left, y: top }) in self.names.iter().zip(&self.places) {
            let (x, y) = (left + BOX / 2.0, top + BOX / 2.0 + 3.0);
            let _ = write!(
                svg,
                "<rect x=\"{left}\" y=\"{top}\" width=\"{BOX}\" height=\"{BOX}\" rx=\"4\" fill=\"#f4f4f4\" stroke=\"#bbb\"/>\
                 <text x=\"{x}\" y=\"{y}\" font-size=\"9\" text-anchor=\"middle\" fill=\"#555\">{name}</text>"
            );
        }
    }

    /// An arrow that bends to its right, so that two processors that exchange something have two arrows.
    fn arrow(&self, svg: &mut String, traffic: &Traffic, message: &Message, largest: u64) {
        let middle = |Point { x, y }: Point| Point { x: x + BOX / 2.0, y: y + BOX / 2.0 };
        let (from, to) = (middle(self.places[message.from]), middle(self.places[message.to]));
        let (across, down) = (to.x - from.x, to.y - from.y);
        let length = across.hypot(down).max(1.0);
        let (across, down) = (across / length, down / length);
        // Tensors bend differently, from the edge of one box to that of the other.
        let bend = length * 0.12 + 5.0 + 4.0 * message.tensor as f64;
        let control = Point { x: (from.x + to.x) / 2.0 - down * bend, y: (from.y + to.y) / 2.0 + across * bend };
        let edge = BOX / 2.0 + 1.0;
        let start = from.toward(control, edge);
        let end = to.toward(control, edge + 5.0);
        let tip = to.toward(control, edge);
        let (color, width) = (hue(message.tensor), 1.0 + 2.0 * (message.bytes as f64 / largest as f64));
        let dashes = match message.cause {
            Cause::Fetch => "",
            Cause::Reduce => " stroke-dasharray=\"5 2\"",
            Cause::Return => " stroke-dasharray=\"1 2\"",
        };
        let (what, name) = (verb(message.cause), escape(traffic.tensors()[message.tensor].name()));
        let (from, to) = (&self.names[message.from], &self.names[message.to]);
        let (side_x, side_y) = ((tip.y - end.y) * 0.6, (end.x - tip.x) * 0.6);
        let _ = write!(
            svg,
            "<g class=\"message\"><title>({from}) {what} ({to}): {name} {}, {} elements, {} bytes</title>\
             <path d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width:.1}\"{dashes}/>\
             <path d=\"M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z\" fill=\"{color}\"/></g>",
            message.hull,
            message.elements,
            message.bytes,
            start.x,
            start.y,
            control.x,
            control.y,
            end.x,
            end.y,
            tip.x,
            tip.y,
            end.x + side_x,
            end.y + side_y,
            end.x - side_x,
            end.y - side_y,
        );
    }
}

fn verb(cause: Cause) -> &'static str {
    match cause {
        Cause::Fetch => "sends to",
        Cause::Reduce => "reduces into",
        Cause::Return => "returns to",
    }
}

/// A point of a drawing.
#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

impl Point {
    /// The point at a distance towards another one.
    fn toward(self, to: Self, distance: f64) -> Self {
        let (across, down) = (to.x - self.x, to.y - self.y);
        let length = across.hypot(down).max(1.0);
        Self { x: self.x + across / length * distance, y: self.y + down / length * distance }
    }
}
