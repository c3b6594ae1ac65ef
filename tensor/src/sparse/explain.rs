//! How a computation runs, as text.

use std::fmt::Write;

use super::compute::Computation;
use super::order::why_converted;
use crate::concrete::StatementNode;
use crate::format::Level;
use crate::lower::{Appending, lattice_points};
use crate::notation::Access;

impl Computation<'_> {
    /// Which loops there are and what each visits, how the result is made, and which operands are converted before, as
    /// text.
    ///
    /// For each loop there are the points of its merge lattice (Kjolstad et al., *The tensor algebra compiler*, OOPSLA
    /// 2017, section 5): the sets of operands that may have an element where an iteration has an effect. A loop without
    /// any visits all values. Other operands of the loop's variable are found once its value is known.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        let statement = self.run_loops();
        let is_distributed = statement.body().loops().iter().any(|outer| outer.level().is_some());
        let when = if is_distributed { "where it is placed" } else { "before, each time" };
        for (name, format) in self.conversions() {
            // Writing to a string succeeds.
            let operands = self.operands();
            let why = operands.iter().find(|operand| operand.name() == name);
            let why = why.map_or("", |operand| why_converted(operand.format()));
            let _ = writeln!(text, "{name} is converted to {format} {when}: {why}");
        }
        for operand in statement.operands() {
            let stored = self.stored_as(operand);
            if stored.dimensions() != operand.dimensions() {
                let (name, format) = (stored.name(), stored.format());
                let _ = writeln!(text, "{name} as {format}: loops go through blocks as they are stored, by {operand}");
            }
        }
        for outer in statement.body().loops() {
            let Some((_, body)) = statement.body().find(&outer.variable) else { continue };
            let points = lattice_points(statement, &outer.variable, body);
            let named = |point: &Vec<&Access>| {
                let names: Vec<String> = point.iter().map(ToString::to_string).collect();
                names.join(" and ")
            };
            // In lists that are in no order, elements are looked up.
            let is_looked_up = |access: &Access| {
                let format = access.tensor.format();
                let is_list = format.levels() == [Level::Hashed]
                    || format.levels() == [Level::Compressed] && !format.properties()[0].ordered;
                is_list && statement.body().workspaces().iter().any(|made| made.name() == access.tensor.name())
            };
            let visited = match &points[..] {
                [] => "all values".to_owned(),
                [point] if point.len() == 2 && point.iter().any(|access| is_looked_up(access)) => {
                    let (first, second) = (point[0], point[1]);
                    let (list, other) = if is_looked_up(first) { (first, second) } else { (second, first) };
                    format!("what {other} stores; {list} looked up there")
                }
                [point] if point.len() > 1 => {
                    format!("where {} store something, merged by {}", named(point), outer.merge)
                }
                [point] => format!("what {} stores", named(point)),
                several => {
                    let points: Vec<String> = several.iter().map(named).collect();
                    format!("what any stores: {}", points.join("; "))
                }
            };
            let merged: Vec<&Access> = points.iter().flatten().copied().collect();
            let is_found = |access: &&Access| {
                let is_of_loop = access
                    .variables
                    .iter()
                    .any(|own| statement.dependencies(own).contains(&outer.variable) || *own == outer.variable);
                is_of_loop && !merged.iter().any(|other| other == access)
            };
            let mut found: Vec<String> = accesses(body).into_iter().filter(is_found).map(ToString::to_string).collect();
            found.dedup();
            let found = if found.is_empty() { String::new() } else { format!("; {} found there", found.join(", ")) };
            let _ = writeln!(text, "loop {}: {visited}{found}", outer.variable);
        }
        for workspace in statement.body().workspaces().into_iter().filter(|workspace| workspace.order() > 0) {
            let _ = writeln!(text, "workspace {}: as {}", workspace.name(), workspace.format());
        }
        let result = statement.result().name();
        let made = match Appending::new(statement) {
            None => "each element is stored where it belongs".to_owned(),
            Some(Appending { pattern: Some(access), .. }) => {
                format!(
                    "it has the levels of {}, and its elements are stored at the positions of these",
                    access.tensor.name()
                )
            }
            Some(Appending { in_place: true, .. }) => {
                "loops run twice: what there is below each parent is counted, and then written in its place".to_owned()
            }
            Some(Appending { once: true, .. }) => {
                "loops run twice: elements are counted, and then written and packed".to_owned()
            }
            Some(_) => "loops run twice: contributions are counted, and then written, sorted and added up".to_owned(),
        };
        let _ = writeln!(text, "result {result}: {made}");
        text
    }
}

/// The accesses of what is read in a node, each once.
fn accesses(node: &StatementNode) -> Vec<&Access> {
    let mut all: Vec<&Access> = Vec::new();
    for site in node.sites() {
        for access in site.value.accesses() {
            if !all.contains(&access) {
                all.push(access);
            }
        }
    }
    all
}
