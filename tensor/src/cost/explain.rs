//! Plans with their costs, as text.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::estimate::Estimate;
use crate::notation::TensorVariable;
use crate::placement::Placement;
use crate::plan::Plan;
use crate::rectangle::{Rectangle, are_disjoint};
use crate::traffic::Traffic;

/// The pieces of so many points and steps are counted.
const MOST_COUNTED: i64 = 1 << 14;

/// Tells how a plan runs, and what that costs: its statement, where its tensors are, into which pieces they are
/// partitioned, the launches, the bytes that move, memory, and the estimated time.
pub fn explain(
    plan: &Plan,
    placements: &[(TensorVariable, Placement)],
    traffic: &Traffic,
    estimate: &Estimate,
) -> String {
    let mut text = String::new();
    section(&mut text, "statement", &plan.statement.to_string());
    let placed = placements.iter().map(|(tensor, placement)| format!("{}: {placement}\n", tensor.name()));
    section(&mut text, &format!("placements on {}", traffic.machine()), &placed.collect::<String>());
    let tensors = &plan.leaf().tensors;
    let pieces = tensors.iter().map(|tensor| format!("{}: {}\n", tensor.name(), pieces(plan, tensor)));
    section(&mut text, "partitions", &pieces.collect::<String>());
    section(&mut text, "launches", &plan.to_string());
    let mut moved: String = tensors
        .iter()
        .map(|tensor| format!("{}: {}\n", tensor.name(), bytes(traffic.of_tensor(tensor.name()))))
        .collect();
    // Writing to a string succeeds.
    let _ = writeln!(moved, "all: {} in {} messages", bytes(estimate.moved), estimate.messages);
    let _ = writeln!(moved, "one processor: at most {} sent or received", bytes(estimate.most_moved));
    if estimate.copied > 0 {
        let _ = writeln!(moved, "before: {} to make the copies that placements keep", bytes(estimate.copied));
    }
    section(&mut text, "bytes moved", &moved);
    section(&mut text, "memory", &format!("one processor: at most {}\n", bytes(estimate.memory)));
    let time = format!(
        "{} operations in {} leaves, at most {} on one processor\nestimated: {}, of which {} are for computing and {} for moving data, as far as they don't overlap\n",
        estimate.operations,
        estimate.leaves,
        estimate.most_operations,
        seconds(estimate.seconds),
        seconds(estimate.computing),
        seconds(estimate.moving),
    );
    section(&mut text, "time", &time);
    text
}

fn section(text: &mut String, title: &str, lines: &str) {
    let _ = writeln!(text, "{title}");
    lines.lines().for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
}

/// A description of the pieces of a tensor that the leaves use: how many different ones, and of what size.
fn pieces(plan: &Plan, tensor: &TensorVariable) -> String {
    let (order, (fixed, _)) = (plan.order(), plan.innermost_fetch(tensor.name()));
    let rectangles = plan.rectangles(tensor.name(), fixed);
    if order.steps().saturating_mul(order.points()) > MOST_COUNTED {
        // The first tile is the largest.
        let (tiles, first) = (rectangles.colors().count() - 1, rectangles.at(&vec![0; fixed.len()]).extents());
        return format!("about {tiles} pieces of {}", extents(&first));
    }
    let mut all = BTreeSet::new();
    for step in 0..order.steps() {
        for point in 0..order.points() {
            let parts = rectangles.parts(&order.values(step, point)[..fixed.len()]);
            if !parts.is_empty() {
                all.insert(parts);
            }
        }
    }
    let mut largest = vec![0; tensor.order()];
    for parts in &all {
        let hull = parts.iter().fold(Rectangle::empty(tensor.order()), |hull, part| hull.hull(part));
        largest.iter_mut().zip(hull.extents()).for_each(|(largest, extent)| *largest = extent.max(*largest));
    }
    let size = extents(&largest);
    let overlap = !are_disjoint(all.iter().flatten());
    match all.len() {
        0 => "nothing".to_owned(),
        1 => format!("one piece, {size}"),
        count => format!("{count} pieces of at most {size}, {}", if overlap { "overlapping" } else { "disjoint" }),
    }
}

/// The size of a piece.
fn extents(extents: &[i64]) -> String {
    let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
    if extents.is_empty() { "a number".to_owned() } else { extents.join(" x ") }
}

/// A number of bytes, as people read it.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..10_000 => format!("{count} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        _ => format!("{:.1} GB", count as f64 / 1e9),
    }
}

/// A time, as people read it.
pub(crate) fn seconds(time: f64) -> String {
    if time < 1e-3 {
        format!("{:.1} µs", time * 1e6)
    } else if time < 1.0 {
        format!("{:.2} ms", time * 1e3)
    } else {
        format!("{time:.2} s")
    }
}
