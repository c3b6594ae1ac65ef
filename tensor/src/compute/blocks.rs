//! Schedules by blocks: how each index variable is split, in which order blocks are computed, and where (Shinde,
//! *SuperTaco*, MIT 2019).
//!
//! They become ordinary commands: blocks of variables that say where kernels run are the points of a launch, as are
//! those of variables over which partial results are made at the same time; all other blocks are steps, in the order
//! that is asked for.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::concrete::Statement;
use crate::notation::{Assignment, Expression, IndexVariable};
use crate::program::terms;
use crate::sparse::{Computation, SparseError};

/// A way to split an index variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// In so many ranges of equal length.
    Ranges(i64),
    /// In ranges that begin at these points, the first one at 0.
    At(Vec<i64>),
}

impl Split {
    /// Reads the split of a variable, with its name: `i=8`, or `i=10,25`.
    ///
    /// # Errors
    ///
    /// If it is no such text.
    pub fn parse(text: &str) -> std::result::Result<(String, Self), &'static str> {
        let expected = "it must be NAME=N or NAME=POINT,POINT,..., such as i=8 or i=0,10,25";
        let (name, numbers) = text.split_once('=').ok_or(expected)?;
        let numbers = numbers.split(',').map(|number| number.trim().parse().ok().filter(|number| *number >= 0));
        let numbers: Vec<i64> = numbers.collect::<Option<_>>().ok_or(expected)?;
        let split = match numbers[..] {
            [0] => return Err("there has to be one range at least"),
            [count] => Self::Ranges(count),
            _ => Self::At(numbers.into_iter().skip_while(|point| *point == 0).collect()),
        };
        Ok((name.trim().to_owned(), split))
    }
}

/// Blocks that do not fit the statement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlocksError {
    /// A part of [`Blocks`] that does not fit the statement, or another part: the message begins with its name.
    #[error("{0}")]
    Unfit(String),
    /// The statement has no loops.
    #[error(transparent)]
    Loops(#[from] Box<SparseError>),
}

/// The blocks by which a statement runs, with its index variables by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks<'a> {
    /// The splits of variables.
    pub split: &'a [(String, Split)],
    /// The variables in the order in which blocks are computed; without any, it is that of the loops.
    pub order: &'a [String],
    /// The variables that are summed over for whose blocks partial results are made at the same time.
    pub extend: &'a [String],
    /// The variables whose blocks say where kernels run; without any, those of the result.
    pub map: &'a [String],
    /// The number of nodes.
    pub nodes: usize,
}

type Result<T> = std::result::Result<T, BlocksError>;

fn unfit<T>(problem: String) -> Result<T> {
    Err(BlocksError::Unfit(problem))
}

impl Blocks<'_> {
    /// Whether any are asked for.
    #[must_use]
    pub fn are_asked_for(&self) -> bool {
        !(self.split.is_empty() && self.order.is_empty() && self.extend.is_empty() && self.map.is_empty())
    }

    /// The length of the blocks into which a variable is split, if it is and they have one length.
    #[must_use]
    pub fn length(&self, assignment: &Assignment, variable: &IndexVariable) -> Option<i64> {
        match self.split.iter().find(|(name, _)| name == variable.name())? {
            (_, Split::Ranges(count)) if *count > 1 => {
                let extent = *assignment.extents().get(variable)?;
                (extent > *count).then(|| (extent + count - 1) / count)
            }
            _ => None,
        }
    }

    /// The commands of a schedule for a statement.
    ///
    /// # Errors
    ///
    /// [`BlocksError`] if the blocks do not fit the statement, or each other.
    pub fn commands(self, assignment: &Assignment) -> Result<String> {
        let loops = loops(assignment)?;
        let known = |option: &str, name: &String| match loops.contains(name) {
            true => Ok(()),
            false => {
                let variables: Vec<&str> = assignment.extents().keys().map(IndexVariable::name).collect();
                let problem = match (variables.contains(&&**name), loops.is_empty()) {
                    (false, _) if variables.is_empty() => "the statement has no index variables".to_owned(),
                    (false, _) => format!("the index variables of the statement are {}", variables.join(", ")),
                    (true, true) => {
                        "the statement is a sum of sums, of which no loop is around all others; write each as a statement of its own".to_owned()
                    }
                    (true, false) => {
                        let all = loops.join(", ");
                        format!("the loops around all others are {all}; only those can be split and ordered")
                    }
                };
                unfit(format!("{option} {name}: {problem}"))
            }
        };
        for (option, names) in [("order", self.order), ("extend", self.extend), ("map", self.map)] {
            names.iter().try_for_each(|name| known(option, name))?;
            if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
                return unfit(format!("{option} {}: a variable is there twice", names.join(",")));
            }
        }
        if !self.order.is_empty() && self.order.len() != loops.len() {
            let found = self.order.join(",");
            return unfit(format!("order {found}: it must name each of {} once", loops.join(", ")));
        }
        let target = &assignment.left().variables;
        let is_free = |name: &String| target.iter().any(|variable| variable.name() == name);
        if let Some(free) = self.extend.iter().find(|name| is_free(name)) {
            return unfit(format!(
                "extend {free}: {free} is a variable of the result; partial results are made for variables that are summed over"
            ));
        }
        let mut text = String::new();
        let mut split = Vec::new();
        for (name, how) in self.split {
            known("split", name)?;
            if split.contains(name) {
                return unfit(format!("split says twice how {name} is split"));
            }
            let extent =
                assignment.extents().iter().find(|(variable, _)| variable.name() == name).map(|(_, extent)| *extent);
            let made = match how {
                Split::Ranges(1) => continue,
                Split::Ranges(count) => format!("divide({name}, {name}_block, {name}_in, {count})"),
                Split::At(points) => {
                    if let Some(pair) = points.windows(2).find(|pair| pair[0] > pair[1]) {
                        let problem = format!("split {name}: {} comes after {}", pair[1], pair[0]);
                        return unfit(format!("{problem}: points must not decrease"));
                    }
                    if let Some(point) = points.iter().find(|point| extent.is_some_and(|extent| **point > extent)) {
                        let extent = extent.unwrap_or(0);
                        return unfit(format!("split {name}: {point} is beyond the extent {extent} of {name}"));
                    }
                    let mut distinct = points.clone();
                    // Ranges without values would have nothing to do.
                    distinct.dedup();
                    distinct.retain(|point| extent.is_none_or(|extent| *point < extent));
                    let list = distinct.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                    if distinct.is_empty() {
                        continue;
                    }
                    format!("split_at({name}, {name}_block, {name}_in, {{{list}}})")
                }
            };
            check_added(assignment, "split", name)?;
            let _ = writeln!(text, "{made}");
            split.push(name.clone());
        }
        let order = if self.order.is_empty() { &loops[..] } else { self.order };
        let is_mapped = |name: &String| match self.map.is_empty() {
            true => is_free(name),
            false => self.map.contains(name),
        };
        // On several nodes, blocks of a number are made at once, as no variable says where kernels run.
        let is_number = self.nodes > 1 && !order.iter().any(is_mapped);
        let is_extended = |name: &String| is_number || self.extend.contains(name);
        if self.nodes > 1 && !split.iter().any(|name| is_mapped(name) || is_extended(name)) {
            // Nothing says which node has what: each has a block of the first variable that says where kernels run.
            if let Some(name) = order.iter().find(|name| is_mapped(name)).or(order.first()) {
                check_added(assignment, "map", name)?;
                let _ = writeln!(text, "divide({name}, {name}_block, {name}_in, {})", self.nodes);
                split.push(name.clone());
            }
        }
        let blocks = |is_one: &dyn Fn(&String) -> bool| -> Vec<String> {
            order
                .iter()
                .filter(|name| split.contains(name) && is_one(name))
                .map(|name| format!("{name}_block"))
                .collect()
        };
        let mapped = blocks(&is_mapped);
        let extended = blocks(&|name| !is_mapped(name) && is_extended(name));
        let steps = blocks(&|name| !is_mapped(name) && !is_extended(name));
        let points = [mapped, extended].concat();
        if split.is_empty() {
            return Ok(text);
        }
        let inner = |name: &String| if split.contains(name) { format!("{name}_in") } else { name.clone() };
        let all = [points.clone(), steps.clone(), loops.iter().map(inner).collect()].concat();
        let _ = writeln!(text, "reorder({{{}}})", all.join(", "));
        if !points.is_empty() {
            let _ = writeln!(text, "distribute({{{}}})", points.join(", "));
        }
        if let Some(innermost) = steps.last() {
            // Of each operand a point has no more than the block of a step.
            let operands: BTreeSet<&str> =
                assignment.right().accesses().iter().map(|access| access.tensor.name()).collect();
            let operands: Vec<&str> = operands.into_iter().collect();
            let _ = writeln!(text, "communicate({{{}}}, {innermost})", operands.join(", "));
        }
        Ok(text)
    }
}

/// The loops of a statement, from the outermost, as far as there is nothing between them.
fn loops(assignment: &Assignment) -> Result<Vec<String>> {
    let names = |statement: &Statement| -> Vec<String> {
        statement.spine().iter().map(|outer| outer.variable.name().to_owned()).collect()
    };
    let is_sparse = assignment.tensors().iter().any(|tensor| !tensor.format().is_dense());
    if !is_sparse {
        return Ok(names(&Statement::new(assignment)));
    }
    Ok(names(Computation::new(assignment).map_err(Box::new)?.statement()))
}

/// Refuses to split a variable that is summed over in some terms alone.
fn check_added(assignment: &Assignment, option: &str, name: &str) -> Result<()> {
    let is_free = assignment.left().variables.iter().any(|variable| variable.name() == name);
    if is_free || !is_added_to(assignment.right(), name) {
        return Ok(());
    }
    unfit(format!(
        "{option} {name}: {name} is not in all terms of the sum, and those without it would be added for each block"
    ))
}

/// Whether a sum at the top of an expression has terms with a variable and terms without it.
fn is_added_to(expression: &Expression, name: &str) -> bool {
    let terms = terms(expression);
    let has = |(term, _): &(&Expression, bool)| {
        term.accesses().iter().any(|access| access.variables.iter().any(|variable| variable.name() == name))
    };
    terms.len() > 1 && !terms.iter().all(has) && terms.iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_counts_or_points() {
        assert_eq!(Split::parse("i=8"), Ok(("i".to_owned(), Split::Ranges(8))));
        assert_eq!(Split::parse("i=0,10,25"), Ok(("i".to_owned(), Split::At(vec![10, 25]))));
        assert_eq!(Split::parse("j=3, 3"), Ok(("j".to_owned(), Split::At(vec![3, 3]))));
        for wrong in ["i", "i=", "i=-1", "i=a,b", "i=0"] {
            assert!(Split::parse(wrong).is_err(), "{wrong}");
        }
    }
}
